//! Functions of one operand, as a table: the function, its host kernel, its derivative.

use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::promote::float_type;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_kernels::{elementwise, functions};

/// One line per function. The derivative is given the gradient and the saved input or output.
macro_rules! functions {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, saves $saves:ident,
        $kernel:ident($function:expr), |$grad:ident, $saved:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::$saves;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let ($grad, $saved) = (ctx.grad(), ctx.optional(0).unwrap_or(ctx.grad()));
                grads!(ctx; $derivative?)
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                infer::$kernel(Self::NAME, x)
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                cpu::map(x, out.dtype(), out, |x, out| elementwise::$kernel($function, x, out))
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

functions! {
    /// The negative of each element.
    Neg, neg: "aten::neg", "NegBackward0", saves Nothing, number_unary(functions::Neg), |grad, _x| grad.neg();
    /// `e` to the power of each element.
    Exp, exp: "aten::exp", "ExpBackward0", saves Outputs, unary(functions::Exp), |grad, y| grad.mul(y);
    /// The natural logarithm of each element.
    Log, log: "aten::log", "LogBackward0", saves Inputs, unary(functions::Log), |grad, x| grad.div(x);
    /// The square root of each element.
    Sqrt, sqrt: "aten::sqrt", "SqrtBackward0", saves Outputs, unary(functions::Sqrt), |grad, y| grad.div(&y.mul(2)?);
    /// One divided by each element.
    Reciprocal, reciprocal: "aten::reciprocal", "ReciprocalBackward0", saves Outputs, unary(functions::Reciprocal),
        |grad, y| grad.neg()?.mul(&y.mul(y)?);
    /// The hyperbolic tangent of each element.
    Tanh, tanh: "aten::tanh", "TanhBackward0", saves Outputs, unary(functions::Tanh), |grad, y| grad.tanh_backward(y);
    /// `1 / (1 + e^-x)` of each element.
    Sigmoid, sigmoid: "aten::sigmoid", "SigmoidBackward0", saves Outputs, unary(functions::Sigmoid),
        |grad, y| grad.sigmoid_backward(y);
}

/// Which element types come out, by the kind of kernel.
mod infer {
    use super::*;

    /// Functions that only floats have: others are converted.
    pub(super) fn unary(_op: &'static str, x: &Tensor) -> Result<Spec> {
        Ok(Spec::new(x.shape(), float_type(x.dtype())))
    }

    /// Functions of all numbers, each within its type.
    pub(super) fn number_unary(op: &'static str, x: &Tensor) -> Result<Spec> {
        if x.dtype() == DType::Bool {
            return Err(Error::new(Cause::DType, op, "not defined for bool; convert with to_dtype() first"));
        }
        Ok(Spec::like(x))
    }
}
