//! Sums of three operands, as optimizers write them.

use super::{broadcast, scalar_argument};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, elementwise, functions};

fn infer(op: &'static str, tensors: &[&Tensor]) -> Result<Spec> {
    let first = tensors[0];
    let mut shape = Dims::from_slice(first.shape());
    for tensor in &tensors[1..] {
        shape = broadcast(op, &shape, tensor.shape())?;
        if tensor.dtype() != first.dtype() || !first.dtype().is_float() {
            let text =
                format_args!("expects floats of one dtype, not {} and {}", first.dtype(), tensor.dtype());
            return Err(Error::new(Cause::DType, op, text));
        }
    }
    Ok(Spec { shape, dtype: first.dtype() })
}

/// Writes `a` into `out`, so that an in-place kernel can go on from there.
fn start(a: &Tensor, out: &Tensor) -> Result<()> {
    cpu::map(a, out.dtype(), out, elementwise::copy)
}

macro_rules! ternary {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $in_place:literal, $backward:literal,
        |$ctx:ident, $value:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// The factor.
            pub value: Scalar,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, $ctx: &Backward<'_>) -> Result<Grads> {
                let $value = self.value;
                $derivative
            }

            fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
                visit(scalar_argument(self.value));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, inputs: [&Tensor; 3]) -> Result<Spec> {
                infer(Self::NAME, &inputs)
            }

            fn cpu(&self, [a, b, c]: [&Tensor; 3], out: &Tensor) -> Result<()> {
                start(a, out)?;
                self.cpu_in_place([out, b, c])
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            const NEEDS_OVERWRITTEN: bool = false;
            kernel_table!(in place $op);

            fn cpu_in_place(&self, [a, b, c]: [&Tensor; 3]) -> Result<()> {
                let f = functions::$op { value: self.value.as_f64() };
                cpu::change(a, [Operand::Tensor(b), Operand::Tensor(c)], |a, [b, c]| {
                    elementwise::float_ternary_in_place(f, a, b, c);
                })
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, b: &Tensor, c: &Tensor, value: impl Into<Scalar>) -> Result<()> {
                $op { value: value.into() }.call_in_place([self, b, c])
            }
        }
    )*};
}

ternary! {
    /// Adds `value * b * c` in place.
    Addcmul, addcmul_: "aten::addcmul", "aten::addcmul_", "AddcmulBackward0", |ctx, value| grads!(ctx;
        ctx.grad().clone(),
        ctx.grad().mul(ctx.saved(2))?.mul(value)?,
        ctx.grad().mul(ctx.saved(1))?.mul(value)?,
    );
    /// Adds `value * b / c` in place.
    Addcdiv, addcdiv_: "aten::addcdiv", "aten::addcdiv_", "AddcdivBackward0", |ctx, value| grads!(ctx;
        ctx.grad().clone(),
        ctx.grad().div(ctx.saved(2))?.mul(value)?,
        ctx.grad().neg()?.mul(&ctx.saved(1).div(ctx.saved(2))?.div(ctx.saved(2))?)?.mul(value)?,
    );
}

/// `a + weight * (b - a)`
#[derive(Clone, Debug)]
pub struct Lerp {
    /// How far to go from `a` to `b`.
    pub weight: Scalar,
}

impl Op for Lerp {
    const NAME: &'static str = "aten::lerp";
    const BACKWARD: &'static str = "LerpBackward0";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let weight = self.weight.as_f64();
        grads!(ctx; ctx.grad().mul(1.0 - weight)?, ctx.grad().mul(weight)?)
    }

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(scalar_argument(self.weight));
    }
}

impl Kernel for Lerp {
    kernel_table!(Lerp);

    fn infer(&self, inputs: [&Tensor; 2]) -> Result<Spec> {
        infer(Self::NAME, &inputs)
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        start(a, out)?;
        self.cpu_in_place([out, b])
    }
}

impl InPlace for Lerp {
    const IN_PLACE: &'static str = "aten::lerp_";
    kernel_table!(in place Lerp);

    fn cpu_in_place(&self, [a, b]: [&Tensor; 2]) -> Result<()> {
        let weight = Operand::Scalar(self.weight);
        cpu::change(a, [Operand::Tensor(b), weight], |a, [b, weight]| {
            elementwise::float_ternary_in_place(functions::Lerp, a, b, weight);
        })
    }
}

impl Tensor {
    /// Goes the way to `end` by `weight`, in place.
    pub fn lerp_(&self, end: &Tensor, weight: impl Into<Scalar>) -> Result<()> {
        Lerp { weight: weight.into() }.call_in_place([self, end])
    }
}
