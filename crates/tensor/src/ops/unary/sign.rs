//! Signs, and the bits of integers.

use super::{functions, kind};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_kernels::{Scalar, elementwise, functions};

functions! {
    /// The negative of each element.
    Neg, neg, neg_: number, saves Nothing, |grad, _x| grad.neg();
    /// Each element without its sign.
    Abs, abs, abs_: number_into, saves Inputs, |grad, x| grad.mul(&x.sgn()?);
    /// The sign of each element: 1, 0 or -1.
    Sign, sign, sign_: number_or_bool, saves Nothing, |grad, _x| grad.zeros_like();
    /// The sign of each element: 1, 0 or -1. The same as [`sign`](Tensor::sign) for real numbers.
    Sgn, sgn, sgn_: number_or_bool, saves Nothing, |grad, _x| grad.zeros_like();
}

/// Every bit of each element turned around; `false` for `true`.
#[derive(Clone, Debug)]
pub struct BitwiseNot;

impl Op for BitwiseNot {
    const NAME: &'static str = "aten::bitwise_not";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Kernel for BitwiseNot {
    const ELEMENTWISE: bool = true;
    kernel_table!(BitwiseNot);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        if x.dtype().is_float() {
            let text = format_args!("expects integers or bool, not {}", x.dtype());
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, x.dtype(), out, |x, out| match x.dtype() {
            DType::Bool => elementwise::test(|x| x == Scalar::Bool(false), x, out),
            _ => elementwise::number_unary(functions::BitwiseNot, x, out),
        })
    }
}

impl InPlace for BitwiseNot {
    const IN_PLACE: &'static str = "aten::bitwise_not_";
    kernel_table!(in place BitwiseNot);
}

impl Tensor {
    /// Every bit of each element turned around; `false` for `true`.
    pub fn bitwise_not(&self) -> Result<Tensor> {
        BitwiseNot.call([self])
    }

    /// [`bitwise_not`](Tensor::bitwise_not) in place.
    pub fn bitwise_not_(&self) -> Result<()> {
        BitwiseNot.call_in_place([self])
    }

    /// This very tensor, for symmetry with [`neg`](Tensor::neg). Truth values are refused likewise.
    pub fn positive(&self) -> Result<Tensor> {
        let _span = composite("aten::positive", [self], |_| ());
        kind::number::infer("aten::positive", self)?;
        Ok(self.clone())
    }
}
