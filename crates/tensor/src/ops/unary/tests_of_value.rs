//! Questions about each element, answered with bool.

use super::kind::{Function, straight};
use crate::composite::composite;
use crate::op::{InPlace, below, kernel_table};
use crate::{DType, Kernel, Op, Result, Spec, Tensor, To, cpu, shown};
use cresset_kernels::{Scalar, elementwise};

/// One line per question.
macro_rules! questions {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $kind:ident, |$x:ident| $answer:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", stringify!($method));
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                Ok(Spec::new(x.shape(), DType::Bool))
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                $kind(self, x)
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                cpu::map(x, x.dtype(), out, |x, out| elementwise::test(|$x: Scalar| $answer, x, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                $op.call([self])
            }
        }
    )*};
}

questions! {
    /// Whether each element is infinite and positive.
    IsPosInf, isposinf: straight, |x| x.as_f64() == f64::INFINITY;
    /// Whether each element is infinite and negative.
    IsNegInf, isneginf: straight, |x| x.as_f64() == f64::NEG_INFINITY;
    /// Whether each element has a sign; `-0.0` has one.
    Signbit, signbit: straight, |x| x.as_f64().is_sign_negative();
    /// Whether each element is 0.
    LogicalNot, logical_not: into_empty, |x| x.as_f64() == 0.0;
}

/// Computed by a kernel that torch hands its output.
fn into_empty<O: Function>(op: &O, x: &Tensor) -> Result<Option<Tensor>> {
    shown::into_empty(O::NAME, [x], DType::Bool, || op.computed([x])).map(Some)
}

impl InPlace for LogicalNot {
    const IN_PLACE: &'static str = "aten::logical_not_";
    kernel_table!(in place LogicalNot);
}

impl Tensor {
    /// Whether each element is NaN.
    pub fn isnan(&self) -> Result<Tensor> {
        let _span = composite("aten::isnan", [self], |_| ());
        let _below = below();
        self.ne(self)
    }

    /// Whether each element is infinite.
    pub fn isinf(&self) -> Result<Tensor> {
        let _span = composite("aten::isinf", [self], |_| ());
        let _below = below();
        if !self.dtype().is_float() {
            return Tensor::zeros(self.shape(), (DType::Bool, self.device()));
        }
        self.abs()?.eq(f64::INFINITY)
    }

    /// Whether each element is a number, and not infinite.
    pub fn isfinite(&self) -> Result<Tensor> {
        let _span = composite("aten::isfinite", [self], |_| ());
        if !self.dtype().is_float() {
            let to = To { dtype: Some(DType::Bool), names_format: true, ..To::default() };
            return self.ones_like_with(to);
        }
        let bounded = self.abs()?.ne(f64::INFINITY)?;
        self.eq(self)?.mul(&bounded)
    }

    /// [`logical_not`](Tensor::logical_not) in place: 1 where an element is 0, 0 elsewhere.
    pub fn logical_not_(&self) -> Result<()> {
        LogicalNot.call_in_place([self])
    }
}
