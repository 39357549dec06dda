//! Functions of two and three operands, comparison, choice, logic, bits.

use super::Entry;
use crate::arguments::{Arguments, Either, KEYWORD, Term};
use cresset_tensor::ops::{Closeness, Rounding};
use cresset_tensor::{Cause, DType, Error, Result, Scalar, Tensor};

/// The first operand; a number becomes a tensor without dimensions that does not outrank the second.
fn left(a: &Arguments<'_>) -> Result<Tensor> {
    let number = match a.get::<Term>(0, "input")? {
        Term::Tensor(tensor) => return Ok(tensor),
        Term::Scalar(number) => number,
    };
    let other: Tensor = a.get(1, "other")?;
    let dtype = match number {
        Scalar::Float(_) if !other.dtype().is_float() => DType::F32,
        Scalar::Int(_) if other.dtype() == DType::Bool => DType::I64,
        _ => other.dtype(),
    };
    Tensor::full([], number, (dtype, other.device()))
}

fn alpha(a: &Arguments<'_>) -> Result<Scalar> {
    a.or(KEYWORD, "alpha", Scalar::Int(1))
}

fn rounding(a: &Arguments<'_>) -> Result<Rounding> {
    match a.get::<String>(KEYWORD, "rounding_mode")?.as_str() {
        "floor" => Ok(Rounding::Floor),
        "trunc" => Ok(Rounding::Trunc),
        other => Err(Error::new(Cause::Argument, "aten::div", format_args!("rounding mode {other:?}"))),
    }
}

/// Bounds of which one may be missing.
fn clamp(x: &Tensor, min: Option<Term>, max: Option<Term>) -> Result<Tensor> {
    x.clamp_between(min.as_ref().map(Into::into), max.as_ref().map(Into::into))
}

fn clamp_(x: &Tensor, min: Option<Term>, max: Option<Term>) -> Result<()> {
    x.clamp_between_(min.as_ref().map(Into::into), max.as_ref().map(Into::into))
}

/// A method of a tensor and an operand.
macro_rules! operand {
    ($name:literal, $method:ident) => {
        Entry::one($name, |a| a.get::<Tensor>(0, "input")?.$method(&a.get::<Term>(1, "other")?))
    };
    ($name:literal, $method:ident, $method_:ident) => {
        operand!($name, $method).in_place(|x, a| x.$method_(&a.get::<Term>(1, "other")?))
    };
}

/// A method of two tensors: torch takes no number there.
macro_rules! tensors {
    ($name:literal, $method:ident) => {
        Entry::one($name, |a| a.get::<Tensor>(0, "input")?.$method(&a.get::<Tensor>(1, "other")?))
    };
    ($name:literal, $method:ident, $method_:ident) => {
        tensors!($name, $method).in_place(|x, a| x.$method_(&a.get::<Tensor>(1, "other")?))
    };
}

/// A method whose first operand may be a number.
macro_rules! either {
    ($name:literal, $method:ident, $method_:ident) => {
        Entry::one($name, |a| left(a)?.$method(&a.get::<Term>(1, "other")?))
            .in_place(|x, a| x.$method_(&a.get::<Term>(1, "other")?))
    };
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("add", |a| left(a)?.add_scaled(&a.get::<Term>(1, "other")?, alpha(a)?))
        .in_place(|x, a| x.add_scaled_(&a.get::<Term>(1, "other")?, alpha(a)?)),
    Entry::one("addcdiv", |a| {
        let (x, b, c): (Tensor, Tensor, Tensor) =
            (a.get(0, "input")?, a.get(1, "tensor1")?, a.get(2, "tensor2")?);
        x.addcdiv(&b, &c, a.or(KEYWORD, "value", Scalar::Int(1))?)
    })
    .in_place(|x, a| {
        let (b, c): (Tensor, Tensor) = (a.get(1, "tensor1")?, a.get(2, "tensor2")?);
        x.addcdiv_(&b, &c, a.or(KEYWORD, "value", Scalar::Int(1))?)
    }),
    Entry::one("addcmul", |a| {
        let (x, b, c): (Tensor, Tensor, Tensor) =
            (a.get(0, "input")?, a.get(1, "tensor1")?, a.get(2, "tensor2")?);
        x.addcmul(&b, &c, a.or(KEYWORD, "value", Scalar::Int(1))?)
    })
    .in_place(|x, a| {
        let (b, c): (Tensor, Tensor) = (a.get(1, "tensor1")?, a.get(2, "tensor2")?);
        x.addcmul_(&b, &c, a.or(KEYWORD, "value", Scalar::Int(1))?)
    }),
    tensors!("atan2", atan2, atan2_),
    operand!("bitwise_and", bitwise_and, bitwise_and_),
    operand!("bitwise_or", bitwise_or, bitwise_or_),
    operand!("bitwise_xor", bitwise_xor, bitwise_xor_),
    Entry::one("clamp", |a| clamp(&a.get(0, "input")?, a.get(1, "min")?, a.get(2, "max")?))
        .in_place(|x, a| clamp_(x, a.get(1, "min")?, a.get(2, "max")?)),
    operand!("clamp_max", clamp_max, clamp_max_),
    operand!("clamp_min", clamp_min, clamp_min_),
    operand!("copysign", copysign, copysign_),
    either!("div.no_rounding_mode", div, div_),
    Entry::one("div", |a| left(a)?.div_rounded(&a.get::<Term>(1, "other")?, rounding(a)?))
        .in_place(|x, a| x.div_rounded_(&a.get::<Term>(1, "other")?, rounding(a)?)),
    operand!("eq", eq, eq_),
    operand!("float_power", float_power, float_power_),
    either!("floor_divide", floor_divide, floor_divide_),
    tensors!("fmax", fmax),
    tensors!("fmin", fmin),
    operand!("fmod", fmod, fmod_),
    operand!("ge", ge, ge_),
    operand!("gt", gt, gt_),
    tensors!("heaviside", heaviside, heaviside_),
    tensors!("hypot", hypot, hypot_),
    Entry::one("isclose", |a| {
        let (x, other): (Tensor, Tensor) = (a.get(0, "input")?, a.get(1, "other")?);
        let closeness = Closeness {
            relative: a.or(2, "rtol", 1e-5)?,
            absolute: a.or(3, "atol", 1e-8)?,
            equal_nan: a.or(4, "equal_nan", false)?,
        };
        x.isclose(&other, closeness)
    }),
    tensors!("ldexp", ldexp, ldexp_),
    operand!("le", le, le_),
    Entry::one("lerp", |a| {
        let (x, end): (Tensor, Tensor) = (a.get(0, "input")?, a.get(1, "end")?);
        x.lerp(&end, &a.get::<Term>(2, "weight")?)
    })
    .in_place(|x, a| x.lerp_(&a.get(1, "end")?, &a.get::<Term>(2, "weight")?)),
    tensors!("logaddexp", logaddexp),
    tensors!("logical_and", logical_and, logical_and_),
    tensors!("logical_or", logical_or, logical_or_),
    tensors!("logical_xor", logical_xor, logical_xor_),
    operand!("lt", lt, lt_),
    Entry::one("max.binary", |a| match a.get::<Either<Tensor, isize>>(1, "other")? {
        Either::One(other) => a.get::<Tensor>(0, "input")?.max_of(&other),
        Either::Other(dim) => a.get::<Tensor>(0, "input")?.max_dim(dim, false).map(|[values, _]| values),
    }),
    tensors!("maximum", maximum),
    Entry::one("min.binary", |a| match a.get::<Either<Tensor, isize>>(1, "other")? {
        Either::One(other) => a.get::<Tensor>(0, "input")?.min_of(&other),
        Either::Other(dim) => a.get::<Tensor>(0, "input")?.min_dim(dim, false).map(|[values, _]| values),
    }),
    tensors!("minimum", minimum),
    either!("mul", mul, mul_),
    operand!("ne", ne, ne_),
    Entry::one("pow", |a| match (a.get(0, "input")?, a.get::<Term>(1, "exponent")?) {
        (Term::Tensor(base), exponent) => base.pow(&exponent),
        (base, Term::Tensor(exponent)) => exponent.rpow(&base),
        _ => Err(Error::new(Cause::Argument, "aten::pow", "takes a tensor and a number, or two tensors")),
    })
    .in_place(|x, a| x.pow_(&a.get::<Term>(1, "exponent")?)),
    operand!("remainder", remainder, remainder_),
    operand!("__rpow__", rpow),
    operand!("__radd__", add),
    operand!("__rdiv__", rdiv),
    operand!("__rmul__", mul),
    operand!("__rsub__", rsub),
    Entry::one("rsub", |a| {
        let (x, other): (Tensor, Term) = (a.get(0, "input")?, a.get(1, "other")?);
        x.rsub_scaled(&other, alpha(a)?)
    }),
    Entry::one("sub", |a| left(a)?.sub_scaled(&a.get::<Term>(1, "other")?, alpha(a)?))
        .in_place(|x, a| x.sub_scaled_(&a.get::<Term>(1, "other")?, alpha(a)?)),
    either!("true_divide", div, div_),
    Entry::one("where", |a| {
        let (x, condition, other): (Term, Tensor, Term) =
            (a.get(0, "input")?, a.get(1, "condition")?, a.get(2, "other")?);
        condition.choose(&x, &other)
    }),
    operand!("xlogy", xlogy, xlogy_),
];
