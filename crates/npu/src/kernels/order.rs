//! Elements in order, and running sums, products and extremes.

use super::lined;
use crate::aclnn;
use cresset_tensor::ops::{Cummax, Cummin, Cumprod, Cumsum, Recurrence, Sort, Topk};
use cresset_tensor::{Kernel, Key, Scalar};

pub(super) fn register(npu: Key) {
    Sort::table().register(npu, |op, [x], [values, indices]| {
        let stable = op.stable == Some(true);
        aclnn::sort(&lined(x)?, stable, *op.dim as i64, op.descending, &lined(values)?, &lined(indices)?)
    });
    Topk::table().register(npu, |op, [x], [values, indices]| {
        let (count, dim) = (op.count as i64, *op.dim as i64);
        aclnn::topk(&lined(x)?, count, dim, op.largest, op.sorted, &lined(values)?, &lined(indices)?)
    });
    Cumsum::table()
        .register(npu, |op, [x], out| aclnn::cumsum(&lined(x)?, *op.dim as i64, out.dtype(), &lined(out)?));
    Cumprod::table().register(npu, |op, [x], out| {
        aclnn::cumprod(&lined(x)?, Scalar::Int(*op.dim as i64), out.dtype(), &lined(out)?)
    });
    // From the end on, each sum is a term and a share of the sum behind it.
    Recurrence::table().register(npu, |op, [terms, factors], out| {
        aclnn::inplace_copy(out, terms)?;
        let size = terms.shape().get(op.dim).copied().unwrap_or(1);
        for at in (1..size).rev() {
            let [of_factors, behind, before] = [(factors, at - 1), (out, at), (out, at - 1)]
                .map(|(x, at)| x.narrow(op.dim as isize, at as isize, 1));
            aclnn::inplace_addcmul(&before?, &of_factors?, &behind?, super::ONE)?;
        }
        Ok(())
    });
    Cummax::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummax(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
    Cummin::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummin(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
}
