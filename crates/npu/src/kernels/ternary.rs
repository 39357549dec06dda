//! Sums of three operands, as optimizers write them.

use super::{apart, converted};
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::{Addcdiv, Addcmul, Lerp, LerpTensor};
use cresset_tensor::{Kernel, Key, Result, Tensor};

/// All tensors in the element type of the result.
fn meet<const N: usize>(tensors: [&Tensor; N], out: &Tensor) -> Result<[Tensor; N]> {
    let mut met = tensors.map(Tensor::clone);
    for x in &mut met {
        *x = converted(x, out.dtype())?;
    }
    Ok(met)
}

pub(super) fn register(npu: Key) {
    Addcmul::table().register(npu, |op, tensors, out| {
        let [a, b, c] = meet(tensors, out)?;
        aclnn::addcmul(&a, &b, &c, op.value, out)
    });
    Addcmul::in_place_table()
        .register(npu, |op, [a, b, c]| aclnn::inplace_addcmul(a, &apart(b, a)?, &apart(c, a)?, op.value));
    Addcdiv::table().register(npu, |op, tensors, out| {
        let [a, b, c] = meet(tensors, out)?;
        aclnn::addcdiv(&a, &b, &c, op.value, out)
    });
    Addcdiv::in_place_table()
        .register(npu, |op, [a, b, c]| aclnn::inplace_addcdiv(a, &apart(b, a)?, &apart(c, a)?, op.value));
    Lerp::table().register(npu, |op, tensors, out| {
        let [a, b] = meet(tensors, out)?;
        aclnn::lerps(&a, &b, op.weight, out)
    });
    Lerp::in_place_table().register(npu, |op, [a, b]| aclnn::inplace_lerps(a, &apart(b, a)?, op.weight));
    LerpTensor::table().register(npu, |_, tensors, out| {
        let [a, b, weight] = meet(tensors, out)?;
        aclnn::lerp(&a, &b, &weight, out)
    });
}
