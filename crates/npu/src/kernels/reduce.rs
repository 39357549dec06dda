//! Reductions: sums, means, maxima and where they are.

use crate::aclnn;
use cresset_tensor::ops::{Argmax, Max, MaxDim, Mean, Sum};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    // To the library no dimensions means all; to an operator it means none.
    Sum::table().register(npu, |op, [x], out| match &op.dims[..] {
        [] => aclnn::inplace_copy(out, x),
        dims => aclnn::reduce_sum(x, dims, op.keep, out.dtype(), out),
    });
    Mean::table().register(npu, |op, [x], out| match &op.dims[..] {
        [] => aclnn::inplace_copy(out, x),
        dims => aclnn::mean(x, dims, op.keep, out.dtype(), out),
    });
    Max::table().register(npu, |_, [x], out| aclnn::max(x, out));
    // A number by itself is the largest, and at index 0.
    MaxDim::table().register(npu, |op, [x], [values, indices]| {
        if x.dim() == 0 {
            aclnn::inplace_copy(values, x)?;
            return aclnn::inplace_zero(indices);
        }
        aclnn::max_dim(x, *op.dim as i64, op.keep, values, indices)
    });
    Argmax::table().register(npu, |op, [x], out| match op.dim {
        _ if x.dim() == 0 => aclnn::inplace_zero(out),
        Some(dim) => aclnn::arg_max(x, *dim as i64, op.keep, out),
        None => aclnn::arg_max(&x.reshape([x.numel()])?, 0, false, &out.reshape(())?),
    });
}
