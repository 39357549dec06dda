//! Arithmetic of two operands, the second possibly a number.

use super::{apart, converted};
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::{Add, Div, Mul, PowScalar, PowTensor, Rsub, Sub};
use cresset_tensor::{Kernel, Key, Operand, Result, Tensor};

/// Both tensors in the element type of the result, where the library might choose another.
fn meet(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<[Tensor; 2]> {
    Ok([converted(a, out.dtype())?, converted(b, out.dtype())?])
}

pub(super) fn register(npu: Key) {
    Add::table().register(npu, |op, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::adds(a, b, op.alpha, out),
        Operand::Tensor(b) => {
            let [a, b] = meet(a, b, out)?;
            aclnn::add(&a, &b, op.alpha, out)
        }
    });
    Add::in_place_table().register(npu, |op, (a, b)| match b {
        Operand::Scalar(b) => aclnn::inplace_adds(a, b, op.alpha),
        Operand::Tensor(b) => aclnn::inplace_add(a, &apart(b, a)?, op.alpha),
    });
    Sub::table().register(npu, |op, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::subs(a, b, op.alpha, out),
        Operand::Tensor(b) => {
            let [a, b] = meet(a, b, out)?;
            aclnn::sub(&a, &b, op.alpha, out)
        }
    });
    Rsub::table().register(npu, |op, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::rsubs(a, b, op.alpha, out),
        Operand::Tensor(b) => {
            let [a, b] = meet(a, b, out)?;
            aclnn::rsub(&a, &b, op.alpha, out)
        }
    });
    Mul::table().register(npu, |_, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::muls(a, b, out),
        Operand::Tensor(b) => {
            let [a, b] = meet(a, b, out)?;
            aclnn::mul(&a, &b, out)
        }
    });
    Mul::in_place_table().register(npu, |_, (a, b)| match b {
        Operand::Scalar(b) => aclnn::inplace_muls(a, b),
        Operand::Tensor(b) => aclnn::inplace_mul(a, &apart(b, a)?),
    });
    Div::table().register(npu, |_, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::divs(a, b, out),
        Operand::Tensor(b) => {
            let [a, b] = meet(a, b, out)?;
            aclnn::div(&a, &b, out)
        }
    });
    PowScalar::table().register(npu, |op, [a], out| aclnn::pow_tensor_scalar(a, op.exponent, out));
    PowTensor::table().register(npu, |_, [a, b], out| {
        let [a, b] = meet(a, b, out)?;
        aclnn::pow_tensor_tensor(&a, &b, out)
    });
}
