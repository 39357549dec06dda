//! Elements in order, and running sums, products and extremes.

use super::{converted, lined};
use crate::aclnn;
use cresset_tensor::ops::{Cummax, Cummin, Cumprod, Cumsum, Logcumsumexp, Mode, Recurrence, Sort, Topk};
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

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
    // Each sum is that before it and one more term: together they would not fit.
    Logcumsumexp::table().register(npu, |op, [x], out| {
        let x = converted(x, out.dtype())?;
        aclnn::inplace_copy(out, &x)?;
        for at in 1..x.shape().get(op.dim).copied().unwrap_or(1) {
            let part = |x: &Tensor, at: usize| x.narrow(op.dim as isize, at as isize, 1);
            aclnn::log_add_exp(&part(out, at - 1)?, &part(&x, at)?, &part(out, at)?)?;
        }
        Ok(())
    });
    Mode::table().register(npu, |op, [x], [values, indices]| {
        if x.dim() == 0 {
            aclnn::inplace_copy(values, x)?;
            return aclnn::inplace_zero(indices);
        }
        let last = x.transpose(op.dim as isize, -1)?;
        let (found, place) = most_frequent(&last)?;
        let shown = |x: Tensor| {
            let x = x.transpose(op.dim as isize, -1)?;
            if op.keep { Ok(x) } else { x.squeeze_dim(op.dim as isize) }
        };
        aclnn::inplace_copy(values, &shown(found)?)?;
        aclnn::inplace_copy(indices, &shown(place)?)
    });
    Cummax::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummax(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
    Cummin::table().register(npu, |op, [x], [values, indices]| {
        aclnn::cummin(&lined(x)?, op.dim as i64, &lined(values)?, &lined(indices)?)
    });
}

/// The most frequent elements along the last dimension, the smallest of several, and where the last are: in
/// order, equal elements are neighbours, and each row of them has a number.
fn most_frequent(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let size = x.shape()[x.dim() - 1];
    let [sorted, order] = x.sort(-1, false, true)?;
    let before = sorted.narrow(-1, 0, size - 1)?;
    let after = sorted.narrow(-1, 1, size - 1)?;
    let mut differs = after.ne(&before)?;
    if x.dtype().is_float() {
        let both = after.ne(&after)?.logical_and(&before.ne(&before)?)?;
        differs = differs.logical_and(&both.logical_not()?)?;
    }
    let first = sorted.narrow(-1, 0, 1)?.zeros_like_with(DType::I64)?;
    let row = Tensor::cat(&[&first, &differs.to(DType::I64)?.cumsum(-1, None)?], -1)?;
    let counts = row.zeros_like()?.scatter_add(-1, &row, &row.ones_like()?)?;
    // The largest count, and of equals the first.
    let places = Tensor::arange_with(size, (DType::I64, x.device()))?;
    let most = counts.mul(size as i64)?.sub(&places)?.argmax(-1, true)?;
    let end = counts.cumsum(-1, None)?.sub(1)?.gather(-1, &most)?;
    Ok((sorted.gather(-1, &end)?, order.gather(-1, &end)?))
}
