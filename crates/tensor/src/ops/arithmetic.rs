//! Sums, differences, products and quotients of two operands, the second possibly a number.

use super::pair::{self, Pair, meet};
use super::{scalar_argument, scaled};
use crate::autograd::{Needless, Saves};
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::{
    Backward, Cause, DType, Error, Grads, Inputs, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, functions};

/// `a * b`
#[derive(Clone, Debug)]
pub struct Mul;

/// `a / b`, a float whatever the operands are.
#[derive(Clone, Debug)]
pub struct Div;

/// Refuses factors that the result's element type does not know.
#[inline]
fn check_alpha(op: &'static str, alpha: Scalar, spec: Spec) -> Result<Spec> {
    let known = match alpha {
        Scalar::Int(_) => true,
        Scalar::Float(_) => spec.dtype.is_float(),
        Scalar::Bool(_) => spec.dtype == DType::Bool,
    };
    if known {
        return Ok(spec);
    }
    let text = format_args!("alpha {alpha} does not fit a result of {}", spec.dtype);
    Err(Error::new(Cause::DType, op, text))
}

/// Refuses differences in which a truth takes part.
fn check_difference(op: &'static str, (a, b): Pair<'_>) -> Result<()> {
    let is_truth = match b {
        Operand::Tensor(b) => b.dtype() == DType::Bool,
        Operand::Scalar(b) => matches!(b, Scalar::Bool(_)),
    };
    if a.dtype() != DType::Bool && !is_truth {
        return Ok(());
    }
    let text = "not defined for bool; logical_xor() compares truths, logical_not() turns them around";
    Err(Error::new(Cause::DType, op, text))
}

/// One line per operator with a factor for one of its operands.
macro_rules! sums {
    ($($(#[$doc:meta])* $op:ident: $name:literal, $backward:literal / $by_number:literal, $flops:expr,
        |$self:ident, $inputs:ident| $infer:expr, |$a:ident, $b:ident| $order:expr, $function:ident, shown $shown:ident,
        |$ctx:ident, $alpha:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// The factor.
            pub alpha: Scalar,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            type Inputs<'a> = Pair<'a>;
            type Output = Tensor;

            fn backward(&self, $ctx: &Backward<'_>) -> Result<Grads> {
                let $alpha = self.alpha;
                $derivative
            }

            fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.each(|given| visit(given.into_argument()));
                visit(scalar_argument(self.alpha));
            }

            fn flops(&self, (a, _): Pair<'_>) -> u64 {
                $flops(a)
            }

            fn backward_name(&self, inputs: Pair<'_>) -> &'static str {
                pair::overload(inputs, $backward, $by_number)
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&$self, $inputs: Pair<'_>) -> Result<Spec> {
                $infer
            }

            #[inline]
            fn quick(&self, ($a, $b): Pair<'_>) -> Result<Option<Tensor>> {
                let f = functions::$function { alpha: self.alpha };
                match ($order, self.alpha) {
                    ((Operand::Tensor(a), b), Scalar::Int(_) | Scalar::Float(_)) => {
                        cpu::alike2(a, b, |dtype, operands, out| elementwise::binary_bytes(f, dtype, operands, out))
                    }
                    _ => Ok(None),
                }
            }

            fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
                $shown(self, inputs, self.alpha)
            }

            fn cpu(&self, ($a, $b): Pair<'_>, out: &Tensor) -> Result<()> {
                let f = functions::$function { alpha: self.alpha };
                let (a, b) = $order;
                pair::map2(a, b, out, |a, b, out| elementwise::binary(f, a, b, out))
            }
        }
    )*};
}

sums! {
    /// `a + alpha * b`; for truths, whether either is true.
    Add: "aten::add", "AddBackward0" / "AddBackward1", elements,
        |self, inputs| check_alpha(Self::NAME, self.alpha, meet(Self::NAME, inputs)?),
        |a, b| (Operand::Tensor(a), b), Add, shown show_sum,
        |ctx, alpha| grads!(ctx; 1 => scaled(ctx.grad().clone(), alpha)?, 0 => ctx.grad().clone());
    /// `a - alpha * b`
    Sub: "aten::sub", "SubBackward0" / "SubBackward1", nothing,
        |self, inputs| infer_difference(Self::NAME, self.alpha, inputs),
        |a, b| (Operand::Tensor(a), b), Sub, shown show_sum,
        |ctx, alpha| grads!(ctx; 1 => scaled(ctx.grad().neg()?, alpha)?, 0 => ctx.grad().clone());
    /// `b - alpha * a`
    Rsub: "aten::rsub", "RsubBackward1" / "RsubBackward1", nothing,
        |self, inputs| infer_difference(Self::NAME, self.alpha, inputs),
        |a, b| (b, Operand::Tensor(a)), Sub, shown show_turned,
        |ctx, alpha| grads!(ctx; 1 => ctx.grad().clone(), 0 => scaled(ctx.grad().neg()?, alpha)?);
}

fn show_sum<O>(op: &O, inputs: Pair<'_>, alpha: Scalar) -> Result<Option<Tensor>>
where
    for<'a> O: Kernel + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    pair::shown(op, inputs, &[scalar_argument(alpha)])
}

/// Torch subtracts the other way round, from a number made a tensor.
fn show_turned(op: &Rsub, (a, b): Pair<'_>, alpha: Scalar) -> Result<Option<Tensor>> {
    let number = match b {
        Operand::Scalar(value) => Some(shown::number(value)?.into_number()),
        Operand::Tensor(_) => None,
    };
    let Some(b) = number.as_ref().or(b.tensor()) else { return Ok(None) };
    shown::within("aten::sub", [b, a], &[scalar_argument(alpha)], || {
        let pair = (a, Operand::Tensor(b));
        match shown::meet(Rsub::NAME, pair, op.infer(pair)?.dtype, None)? {
            Some(shown) => op.computed(shown.pair(pair)),
            None => op.computed(pair),
        }
    })
    .map(Some)
}

fn infer_difference(op: &'static str, alpha: Scalar, inputs: Pair<'_>) -> Result<Spec> {
    check_difference(op, inputs)?;
    check_alpha(op, alpha, meet(op, inputs)?)
}

fn elements(a: &Tensor) -> u64 {
    a.numel() as u64
}

fn nothing(_a: &Tensor) -> u64 {
    0
}

impl InPlace for Add {
    const IN_PLACE: &'static str = "aten::add_";
    kernel_table!(in place Add);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        pair::elements::change(self, functions::Add { alpha: self.alpha }, inputs)
    }

    fn shown_in_place(&self, inputs: Pair<'_>) -> Result<Shown> {
        pair::shown_in_place(self, inputs, &[scalar_argument(self.alpha)])
    }
}

impl InPlace for Sub {
    const IN_PLACE: &'static str = "aten::sub_";
    kernel_table!(in place Sub);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        pair::elements::change(self, functions::Sub { alpha: self.alpha }, inputs)
    }

    fn shown_in_place(&self, inputs: Pair<'_>) -> Result<Shown> {
        pair::shown_in_place(self, inputs, &[scalar_argument(self.alpha)])
    }
}

impl Op for Mul {
    const NAME: &'static str = "aten::mul";
    const BACKWARD: &'static str = "MulBackward0";
    const SAVES: Saves = Saves::Inputs;
    const NEEDLESS: Needless = Needless::Missing(Needless::factor::<0>);
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; 1 => ctx.grad().mul(ctx.saved(0))?, 0 => ctx.grad().mul(ctx.operand(1))?)
    }

    fn backward_name(&self, inputs: Pair<'_>) -> &'static str {
        pair::overload(inputs, Self::BACKWARD, "MulBackward1")
    }

    fn flops(&self, (a, _): Pair<'_>) -> u64 {
        a.numel() as u64
    }
}

impl Kernel for Mul {
    const ELEMENTWISE: bool = true;
    kernel_table!(Mul);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        pair::elements::infer(Self::NAME, inputs)
    }

    #[inline]
    fn quick(&self, (a, b): Pair<'_>) -> Result<Option<Tensor>> {
        cpu::alike2(a, b, |dtype, operands, out| {
            elementwise::binary_bytes(functions::Mul, dtype, operands, out);
        })
    }

    fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
        pair::elements::run(Self::NAME, functions::Mul, inputs, out)
    }

    fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
        pair::shown(self, inputs, &[])
    }
}

impl InPlace for Mul {
    const IN_PLACE: &'static str = "aten::mul_";
    const NEEDS_OVERWRITTEN: bool = false;
    kernel_table!(in place Mul);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        pair::elements::change(self, functions::Mul, inputs)
    }

    /// Torch multiplies a number by the tensor, over the tensor.
    fn shown_in_place(&self, (a, b): Pair<'_>) -> Result<Shown> {
        let Operand::Scalar(value) = b else { return pair::shown_in_place(self, (a, b), &[]) };
        shown::over_second(Self::NAME, shown::number(value)?.into_number(), a)
    }
}

impl Op for Div {
    const NAME: &'static str = "aten::div";
    const BACKWARD: &'static str = "DivBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The dividend matters for the gradient of the divisor only.
    const NEEDLESS: Needless = Needless::Missing(|gets| u8::from(gets & 2 == 0));
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let b = ctx.operand(1);
        grads!(ctx;
            1 => {
                let slope = ctx.saved(0).div(b)?.div(b)?;
                ctx.grad().neg()?.mul(&slope)?
            },
            0 => ctx.grad().div(b)?,
        )
    }

    fn backward_name(&self, inputs: Pair<'_>) -> &'static str {
        pair::overload(inputs, Self::BACKWARD, "DivBackward1")
    }
}

impl Kernel for Div {
    const ELEMENTWISE: bool = true;
    kernel_table!(Div);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        pair::floats::infer(Self::NAME, inputs)
    }

    #[inline]
    fn quick(&self, (a, b): Pair<'_>) -> Result<Option<Tensor>> {
        cpu::alike2(a, b, |dtype, operands, out| {
            elementwise::float_binary_bytes(functions::Div, dtype, operands, out);
        })
    }

    fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
        pair::floats::run(Self::NAME, functions::Div, inputs, out)
    }

    fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
        pair::shown(self, inputs, &[])
    }
}

impl InPlace for Div {
    const IN_PLACE: &'static str = "aten::div_";
    const NEEDS_OVERWRITTEN: bool = false;
    kernel_table!(in place Div);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        pair::floats::change(self, functions::Div, inputs)
    }

    fn shown_in_place(&self, inputs: Pair<'_>) -> Result<Shown> {
        pair::shown_in_place(self, inputs, &[])
    }
}

const ONE: Scalar = Scalar::Int(1);

impl Tensor {
    /// The sum of this and `other`, a tensor or a number. For truths, whether either is true.
    pub fn add<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        pair::call(Add { alpha: ONE }, self, other.into())
    }

    /// `self + alpha * other`
    pub fn add_scaled<'a>(
        &'a self,
        other: impl Into<Operand<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        pair::call(Add { alpha: alpha.into() }, self, other.into())
    }

    /// The difference of this and `other`, a tensor or a number.
    pub fn sub<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        pair::call(Sub { alpha: ONE }, self, other.into())
    }

    /// `self - alpha * other`
    pub fn sub_scaled<'a>(
        &'a self,
        other: impl Into<Operand<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        pair::call(Sub { alpha: alpha.into() }, self, other.into())
    }

    /// The difference of `other` and this.
    pub fn rsub<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Rsub { alpha: ONE }.call((self, other.into()))
    }

    /// `other - alpha * self`
    pub fn rsub_scaled<'a>(
        &'a self,
        other: impl Into<Operand<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        Rsub { alpha: alpha.into() }.call((self, other.into()))
    }

    /// The product of this and `other`, a tensor or a number. For truths, whether both are true.
    pub fn mul<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        pair::call(Mul, self, other.into())
    }

    /// The quotient of this and `other`, a tensor or a number. Integers give floats.
    pub fn div<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        pair::call(Div, self, other.into())
    }

    /// The quotient of `other` and this.
    pub fn rdiv<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.reciprocal()?.mul(other.into())
    }

    /// Adds `other` in place.
    pub fn add_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        pair::call_in_place(Add { alpha: ONE }, self, other.into())
    }

    /// Adds `alpha * other` in place.
    pub fn add_scaled_<'a>(&'a self, other: impl Into<Operand<'a>>, alpha: impl Into<Scalar>) -> Result<()> {
        pair::call_in_place(Add { alpha: alpha.into() }, self, other.into())
    }

    /// Takes `other` away in place.
    pub fn sub_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        pair::call_in_place(Sub { alpha: ONE }, self, other.into())
    }

    /// Takes `alpha * other` away in place.
    pub fn sub_scaled_<'a>(&'a self, other: impl Into<Operand<'a>>, alpha: impl Into<Scalar>) -> Result<()> {
        pair::call_in_place(Sub { alpha: alpha.into() }, self, other.into())
    }

    /// Multiplies by `other` in place.
    pub fn mul_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        pair::call_in_place(Mul, self, other.into())
    }

    /// Divides by `other` in place.
    pub fn div_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        pair::call_in_place(Div, self, other.into())
    }
}
