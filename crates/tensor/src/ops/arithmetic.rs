//! Arithmetic of two operands, the second possibly a number.

use super::{broadcast, scalar_argument, scaled};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::promote::{float_type, result_type};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, functions};

type Pair<'a> = (&'a Tensor, Operand<'a>);

/// `a + alpha * b`
#[derive(Clone, Debug)]
pub struct Add {
    /// Multiplies the second operand.
    pub alpha: Scalar,
}

/// `a - alpha * b`
#[derive(Clone, Debug)]
pub struct Sub {
    /// Multiplies the second operand.
    pub alpha: Scalar,
}

/// `b - alpha * a`
#[derive(Clone, Debug)]
pub struct Rsub {
    /// Multiplies the first operand.
    pub alpha: Scalar,
}

/// `a * b`
#[derive(Clone, Debug)]
pub struct Mul;

/// `a / b`, a float whatever the operands are.
#[derive(Clone, Debug)]
pub struct Div;

/// `a` to the power of a number.
#[derive(Clone, Debug)]
pub struct PowScalar;

/// `a` to the power of `b`.
#[derive(Clone, Debug)]
pub struct PowTensor;

#[inline]
fn infer(op: &'static str, (a, b): Pair<'_>) -> Result<Spec> {
    Ok(Spec { shape: broadcast(op, a.shape(), b.shape())?, dtype: result_type(a, b) })
}

#[inline]
fn infer_numbers(op: &'static str, inputs: Pair<'_>) -> Result<Spec> {
    let spec = infer(op, inputs)?;
    if spec.dtype == DType::Bool {
        return Err(Error::new(Cause::DType, op, "not defined for bool; convert with to_dtype() first"));
    }
    Ok(spec)
}

fn infer_floats(op: &'static str, inputs: Pair<'_>) -> Result<Spec> {
    let spec = infer(op, inputs)?;
    Ok(Spec { dtype: float_type(spec.dtype), ..spec })
}

fn with_alpha((a, b): Pair<'_>, alpha: Scalar, visit: &mut dyn FnMut(Argument<'_>)) {
    use crate::Inputs as _;
    (a, b).each(|given| visit(given.into_argument()));
    visit(scalar_argument(alpha));
}

impl Op for Add {
    const NAME: &'static str = "aten::add";
    const BACKWARD: &'static str = "AddBackward0";
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone(), scaled(ctx.grad().clone(), self.alpha)?)
    }

    fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        with_alpha(inputs, self.alpha, visit);
    }

    fn flops(&self, (a, _): Pair<'_>) -> u64 {
        a.numel() as u64
    }
}

impl Kernel for Add {
    kernel_table!(Add);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_numbers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        let f = functions::Add { alpha: self.alpha };
        cpu::map2(Operand::Tensor(a), b, out.dtype(), out, |a, b, out| elementwise::binary(f, a, b, out))
    }
}

impl InPlace for Add {
    const IN_PLACE: &'static str = "aten::add_";
    kernel_table!(in place Add);

    fn cpu_in_place(&self, (a, b): Pair<'_>) -> Result<()> {
        let f = functions::Add { alpha: self.alpha };
        cpu::change(a, [b], |a, [b]| elementwise::binary_in_place(f, a, b))
    }
}

impl Op for Sub {
    const NAME: &'static str = "aten::sub";
    const BACKWARD: &'static str = "SubBackward0";
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone(), scaled(ctx.grad().neg()?, self.alpha)?)
    }

    fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        with_alpha(inputs, self.alpha, visit);
    }
}

impl Kernel for Sub {
    kernel_table!(Sub);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_numbers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        let f = functions::Sub { alpha: self.alpha };
        cpu::map2(Operand::Tensor(a), b, out.dtype(), out, |a, b, out| elementwise::binary(f, a, b, out))
    }
}

impl Op for Rsub {
    const NAME: &'static str = "aten::rsub";
    const BACKWARD: &'static str = "RsubBackward1";
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; scaled(ctx.grad().neg()?, self.alpha)?, ctx.grad().clone())
    }

    fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        with_alpha(inputs, self.alpha, visit);
    }
}

impl Kernel for Rsub {
    kernel_table!(Rsub);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_numbers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        let f = functions::Sub { alpha: self.alpha };
        cpu::map2(b, Operand::Tensor(a), out.dtype(), out, |b, a, out| elementwise::binary(f, b, a, out))
    }
}

impl Op for Mul {
    const NAME: &'static str = "aten::mul";
    const BACKWARD: &'static str = "MulBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(ctx.operand(1))?, ctx.grad().mul(ctx.saved(0))?)
    }

    fn flops(&self, (a, _): Pair<'_>) -> u64 {
        a.numel() as u64
    }
}

impl Kernel for Mul {
    kernel_table!(Mul);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_numbers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        cpu::map2(Operand::Tensor(a), b, out.dtype(), out, |a, b, out| {
            elementwise::binary(functions::Mul, a, b, out)
        })
    }
}

impl InPlace for Mul {
    const IN_PLACE: &'static str = "aten::mul_";
    const NEEDS_OVERWRITTEN: bool = false;
    kernel_table!(in place Mul);

    fn cpu_in_place(&self, (a, b): Pair<'_>) -> Result<()> {
        cpu::change(a, [b], |a, [b]| elementwise::binary_in_place(functions::Mul, a, b))
    }
}

impl Op for Div {
    const NAME: &'static str = "aten::div";
    const BACKWARD: &'static str = "DivBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let b = ctx.operand(1);
        grads!(ctx; ctx.grad().div(b)?, ctx.grad().neg()?.mul(&ctx.saved(0).div(b)?.div(b)?)?)
    }
}

impl Kernel for Div {
    kernel_table!(Div);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_floats(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        cpu::map2(Operand::Tensor(a), b, out.dtype(), out, |a, b, out| {
            elementwise::float_binary(functions::Div, a, b, out);
        })
    }
}

impl Op for PowScalar {
    const NAME: &'static str = "aten::pow";
    const BACKWARD: &'static str = "PowBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let Operand::Scalar(exponent) = ctx.operand(1) else {
            unreachable!("`pow` sends tensors to PowTensor")
        };
        let exponent = exponent.as_f64();
        grads!(ctx; if exponent == 0.0 {
            ctx.grad().zeros_like()?
        } else {
            ctx.grad().mul(&ctx.saved(0).pow(exponent - 1.0)?.mul(exponent)?)?
        })
    }
}

impl Kernel for PowScalar {
    kernel_table!(PowScalar);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_powers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        power(a, b, out)
    }
}

impl Op for PowTensor {
    const NAME: &'static str = "aten::pow";
    const BACKWARD: &'static str = "PowBackward1";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b, out) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
        grads!(ctx;
            // Where the exponent is 0 the base does not matter, also at 0 where the formula has a pole.
            ctx.grad().mul(&b.mul(&a.pow(&b.sub(1.0)?)?)?.zero_where_equal(b, 0.0)?)?,
            ctx.grad().mul(&exponent_slope(a, b, out)?)?,
        )
    }
}

impl Kernel for PowTensor {
    kernel_table!(PowTensor);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        infer_powers(Self::NAME, inputs)
    }

    fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
        power(a, b, out)
    }
}

/// `a^b * log(a)`; 0 where `a` is 0, which to any power but a negative one stays as it is.
fn exponent_slope(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<Tensor> {
    let slope = out.mul(&a.log()?)?;
    let flat = slope.zero_where_equal(a, 0.0)?;
    slope.where_(&b.neg()?.gt(0.0)?, &flat)
}

fn infer_powers(op: &'static str, inputs: Pair<'_>) -> Result<Spec> {
    let spec = infer_numbers(op, inputs)?;
    if !spec.dtype.is_float() {
        let text = format_args!(
            "powers of {} are not supported; convert with to_dtype() to a float first",
            spec.dtype
        );
        return Err(Error::new(Cause::DType, op, text));
    }
    Ok(spec)
}

fn power(a: &Tensor, b: Operand<'_>, out: &Tensor) -> Result<()> {
    cpu::map2(Operand::Tensor(a), b, out.dtype(), out, |a, b, out| {
        elementwise::float_binary(functions::Pow, a, b, out)
    })
}

impl Tensor {
    /// The sum of this and `other`, a tensor or a number.
    pub fn add<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Add { alpha: Scalar::Int(1) }.call((self, other.into()))
    }

    /// `self + alpha * other`
    pub fn add_scaled<'a>(
        &'a self,
        other: impl Into<Operand<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        Add { alpha: alpha.into() }.call((self, other.into()))
    }

    /// The difference of this and `other`, a tensor or a number.
    pub fn sub<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Sub { alpha: Scalar::Int(1) }.call((self, other.into()))
    }

    /// The difference of `other` and this.
    pub fn rsub<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Rsub { alpha: Scalar::Int(1) }.call((self, other.into()))
    }

    /// The product of this and `other`, a tensor or a number.
    pub fn mul<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Mul.call((self, other.into()))
    }

    /// The quotient of this and `other`, a tensor or a number. Integers give floats.
    pub fn div<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        Div.call((self, other.into()))
    }

    /// This to the power of `exponent`, a tensor or a number.
    pub fn pow<'a>(&'a self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        match exponent.into() {
            exponent @ Operand::Tensor(_) => PowTensor.call((self, exponent)),
            exponent @ Operand::Scalar(_) => PowScalar.call((self, exponent)),
        }
    }

    /// Adds `other` in place.
    pub fn add_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        Add { alpha: Scalar::Int(1) }.call_in_place((self, other.into()))
    }

    /// Adds `alpha * other` in place.
    pub fn add_scaled_<'a>(&'a self, other: impl Into<Operand<'a>>, alpha: impl Into<Scalar>) -> Result<()> {
        Add { alpha: alpha.into() }.call_in_place((self, other.into()))
    }

    /// Multiplies by `other` in place.
    pub fn mul_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        Mul.call_in_place((self, other.into()))
    }
}
