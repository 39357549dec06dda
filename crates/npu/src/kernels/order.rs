//! Elements in order, and running sums, products and extremes.

use super::lined;
use crate::aclnn;
use cresset_tensor::ops::{Cummax, Cummin, Cumprod, Cumsum, Sort, Topk};
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
    Cummax::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummax(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
    Cummin::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummin(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
}
