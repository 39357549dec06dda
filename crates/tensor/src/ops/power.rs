//! Powers.

use super::pair::{meet, no_truths};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::promote::common_type;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads, ops,
    shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, functions};

/// Each element to the power of a number.
#[derive(Clone, Debug)]
pub struct PowScalar {
    /// The number.
    pub exponent: Scalar,
}

/// `a` to the power of `b`.
#[derive(Clone, Debug)]
pub struct PowTensor;

/// A number to the power of each element.
#[derive(Clone, Debug)]
pub struct PowOf {
    /// The number.
    pub base: Scalar,
}

impl Op for PowScalar {
    const NAME: &'static str = "aten::pow";
    const BACKWARD: &'static str = "PowBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let exponent = self.exponent.as_f64();
        grads!(ctx; if exponent == 0.0 {
            ctx.grad().zeros_like()?
        } else {
            ctx.grad().mul(&ctx.saved(0).pow(exponent - 1.0)?.mul(exponent)?)?
        })
    }

    fn arguments(&self, [base]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(base.argument()));
        visit(super::scalar_argument(self.exponent));
    }
}

impl Kernel for PowScalar {
    const ELEMENTWISE: bool = true;
    kernel_table!(PowScalar);

    fn infer(&self, [base]: [&Tensor; 1]) -> Result<Spec> {
        let spec = meet(Self::NAME, (base, Operand::Scalar(self.exponent)))?;
        if let Scalar::Int(exponent) = self.exponent
            && exponent < 0
            && !spec.dtype.is_float()
        {
            let text = format_args!("integers of {} have no power {exponent} that is whole", spec.dtype);
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        Ok(spec)
    }

    fn shown(&self, [base]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let converted = shown::result_type(base, self.exponent, self.infer([base])?.dtype)?;
        let out = self.room([base])?;
        show_exponent(self.exponent, &converted, &out)?;
        self.fill([&converted], &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [base]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        if out.dtype() == DType::Bool {
            // A truth to the power of a truth: itself, or true.
            let f = functions::Add { alpha: Scalar::Bool(true) };
            let beyond = Operand::Scalar(Scalar::Bool(self.exponent.as_f64() == 0.0));
            return cpu::map2(Operand::Tensor(base), beyond, DType::Bool, out, |a, b, out| {
                elementwise::binary(f, a, b, out);
            });
        }
        power(Operand::Tensor(base), Operand::Scalar(self.exponent), out)
    }
}

/// Torch fills in what is known of the powers 0 and 1.
fn show_exponent(exponent: Scalar, base: &Tensor, out: &Tensor) -> Result<()> {
    match exponent.as_f64() {
        0.0 => out.fill_(1),
        1.0 => out.copy_(base),
        _ => Ok(()),
    }
}

impl Op for PowTensor {
    const NAME: &'static str = "aten::pow";
    const BACKWARD: &'static str = "PowBackward1";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b, out) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
        let grad = ctx.grad();
        let zero = || Tensor::scalar_tensor(0.0, (grad.dtype(), grad.device()));
        grads!(ctx;
            1 => {
                // 0 to any power but a negative one stays as it is.
                let rises = b.ge(0)?;
                let stays = a.eq(0)?.logical_and(&rises)?;
                let slope = out.mul(&shown::common(a, b)?.log()?)?;
                grad.mul(&stays.choose(&zero()?, &slope)?)?
            },
            0 => {
                // Where the exponent is 0 the base does not matter, also at 0 where the formula has a pole.
                let slope = grad.mul(&b.mul(&a.pow(&b.sub(1)?)?)?)?;
                let zero = zero()?;
                b.eq(0.0)?.choose(&zero, &slope)?
            },
        )
    }
}

impl Kernel for PowTensor {
    const ELEMENTWISE: bool = true;
    kernel_table!(PowTensor);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        no_truths(Self::NAME, meet(Self::NAME, (a, Operand::Tensor(b)))?)
    }

    fn shown(&self, [a, b]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let pair = (a, Operand::Tensor(b));
        match shown::meet(Self::NAME, pair, self.infer([a, b])?.dtype, None)? {
            Some(shown) => match shown.pair(pair) {
                (a, Operand::Tensor(b)) => self.computed([a, b]).map(Some),
                _ => Ok(None),
            },
            None => Ok(None),
        }
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        power(Operand::Tensor(a), Operand::Tensor(b), out)
    }
}

impl Op for PowOf {
    const NAME: &'static str = "aten::pow";
    const BACKWARD: &'static str = "PowBackward2";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (exponent, out, base) = (ctx.saved(0), ctx.saved(1), self.base.as_f64());
        let slope = ctx.grad().mul(&out.mul(base.ln())?)?;
        grads!(ctx; if base == 0.0 { slope.zero_where(&exponent.ge(0)?)? } else { slope })
    }

    fn arguments(&self, [exponent]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(super::scalar_argument(self.base));
        visit(Argument::Tensor(exponent.argument()));
    }
}

impl Kernel for PowOf {
    const ELEMENTWISE: bool = true;
    kernel_table!(PowOf);

    fn infer(&self, [exponent]: [&Tensor; 1]) -> Result<Spec> {
        let dtype = common_type([Operand::Scalar(self.base), Operand::Tensor(exponent)]);
        no_truths(Self::NAME, Spec::new(exponent.shape(), dtype))
    }

    fn cpu(&self, [exponent]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        power(Operand::Scalar(self.base), Operand::Tensor(exponent), out)
    }
}

fn power(a: Operand<'_>, b: Operand<'_>, out: &Tensor) -> Result<()> {
    cpu::map2(a, b, out.dtype(), out, |a, b, out| elementwise::divide_binary(functions::Power, a, b, out))
}

/// One line per operator with an in-place form.
macro_rules! in_place {
    ($($op:ident)*) => {$(
        impl InPlace for $op {
            const IN_PLACE: &'static str = "aten::pow_";
            kernel_table!(in place $op);
        }
    )*};
}

in_place!(PowTensor);

impl InPlace for PowScalar {
    const IN_PLACE: &'static str = "aten::pow_";
    kernel_table!(in place PowScalar);

    fn shown_in_place(&self, [base]: [&Tensor; 1]) -> Result<Shown> {
        let converted = shown::result_type(base, self.exponent, self.infer([base])?.dtype)?;
        show_exponent(self.exponent, &converted, base)?;
        Ok(Shown::default())
    }

    fn cpu_in_place(&self, [base]: [&Tensor; 1]) -> Result<()> {
        if base.dtype() == DType::Bool || base.dtype() != self.infer([base])?.dtype {
            let result = self.computed([base])?;
            return ops::Copy.cpu_in_place([base, &result]);
        }
        cpu::change(base, [Operand::Scalar(self.exponent)], |base, [exponent]| {
            elementwise::divide_binary_in_place(functions::Power, base, exponent);
        })
    }
}

impl Tensor {
    /// This to the power of `exponent`, a tensor or a number.
    pub fn pow<'a>(&'a self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        match exponent.into() {
            Operand::Tensor(exponent) => PowTensor.call([self, exponent]),
            Operand::Scalar(exponent) => PowScalar { exponent }.call([self]),
        }
    }

    /// As [`pow`](Tensor::pow), in place.
    pub fn pow_<'a>(&'a self, exponent: impl Into<Operand<'a>>) -> Result<()> {
        match exponent.into() {
            Operand::Tensor(exponent) => PowTensor.call_in_place([self, exponent]),
            Operand::Scalar(exponent) => PowScalar { exponent }.call_in_place([self]),
        }
    }

    /// `base`, a tensor or a number, to the power of this.
    pub fn rpow<'a>(&'a self, base: impl Into<Operand<'a>>) -> Result<Tensor> {
        match base.into() {
            Operand::Tensor(base) => base.pow(self),
            Operand::Scalar(base) => PowOf { base }.call([self]),
        }
    }

    /// This to the power of `exponent`, in double precision whatever the operands are.
    pub fn float_power<'a>(&'a self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        let exponent = exponent.into();
        let _span = composite("aten::float_power", (self, exponent), |_| {});
        let base = self.to_dtype(DType::F64)?;
        match exponent {
            Operand::Tensor(exponent) => base.pow(&exponent.to_dtype(DType::F64)?),
            Operand::Scalar(exponent) => base.pow(exponent.as_f64()),
        }
    }

    /// As [`float_power`](Tensor::float_power), in place.
    ///
    /// # Errors
    /// If this is not of double precision, as the result is.
    pub fn float_power_<'a>(&'a self, exponent: impl Into<Operand<'a>>) -> Result<()> {
        let exponent = exponent.into();
        let _span = composite("aten::float_power_", (self, exponent), |_| {});
        if self.dtype() != DType::F64 {
            let text = format_args!("gives f64, which cannot be kept as {}", self.dtype());
            return Err(Error::new(Cause::DType, "aten::float_power_", text));
        }
        match exponent {
            Operand::Tensor(exponent) => self.pow_(&exponent.to_dtype(DType::F64)?),
            Operand::Scalar(exponent) => self.pow_(exponent.as_f64()),
        }
    }

    /// This times 2 to the power of `exponent`. Integers give floats.
    pub fn ldexp(&self, exponent: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::ldexp", [self, exponent], |_| {});
        self.mul(&self.powers_of_two(exponent)?)
    }

    /// As [`ldexp`](Tensor::ldexp), in place.
    pub fn ldexp_(&self, exponent: &Tensor) -> Result<()> {
        let _span = composite("aten::ldexp_", [self, exponent], |_| {});
        self.mul_(&self.powers_of_two(exponent)?)
    }

    /// 2 to the power of `exponent`. Whole exponents give powers as wide as this tensor's floats.
    fn powers_of_two(&self, exponent: &Tensor) -> Result<Tensor> {
        match self.dtype() {
            DType::F64 | DType::F16 | DType::BF16 => self.new_full([], 2.0, ())?.pow(exponent),
            _ => exponent.rpow(2.0),
        }
    }
}
