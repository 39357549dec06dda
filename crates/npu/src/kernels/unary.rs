//! Functions of one operand.

use super::converted;
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};
use std::f64::consts::PI;

/// One line per operator that the library has as it is.
macro_rules! functions {
    ($npu:ident; $($op:ident: $call:ident;)*) => {
        $($op::table().register($npu, |_, [x], out| aclnn::$call(x, out));)*
    };
}

pub(super) fn register(npu: Key) {
    functions! { npu;
        Neg: neg;
        Abs: abs;
        Sign: sign;
        Sgn: sign;
        Exp: exp;
        Exp2: exp2;
        Expm1: expm1;
        Log: log;
        Log2: log2;
        Log10: log10;
        Log1p: log1p;
        Sqrt: sqrt;
        Rsqrt: rsqrt;
        Reciprocal: reciprocal;
        Tanh: tanh;
        Sigmoid: sigmoid;
        Sin: sin;
        Cos: cos;
        Tan: tan;
        Asin: asin;
        Acos: acos;
        Atan: atan;
        Sinh: sinh;
        Cosh: cosh;
        Asinh: asinh;
        Acosh: acosh;
        Atanh: atanh;
        Erf: erf;
        Erfc: erfc;
        Erfinv: erfinv;
        Sinc: sinc;
        Frac: frac;
        BitwiseNot: bitwise_not;
        LogicalNot: logical_not;
        IsPosInf: is_pos_inf;
        IsNegInf: is_neg_inf;
        Signbit: signbit;
    }
    // To the library only floats have parts to round.
    Floor::table().register(npu, |_, [x], out| rounded(aclnn::floor, x, out));
    Ceil::table().register(npu, |_, [x], out| rounded(aclnn::ceil, x, out));
    Round::table().register(npu, |_, [x], out| rounded(aclnn::round, x, out));
    Trunc::table().register(npu, |_, [x], out| rounded(aclnn::trunc, x, out));
    RoundDecimals::table().register(npu, |op, [x], out| aclnn::round_decimals(x, op.decimals, out));
    Deg2rad::table().register(npu, |_, [x], out| scaled(x, PI / 180.0, out));
    Rad2deg::table().register(npu, |_, [x], out| scaled(x, 180.0 / PI, out));
    NanToNum::table().register(npu, |op, [x], out| nan_to_num(*op, x, out));
}

fn rounded(function: fn(&Tensor, &Tensor) -> Result<()>, x: &Tensor, out: &Tensor) -> Result<()> {
    if x.dtype().is_float() { function(x, out) } else { aclnn::inplace_copy(out, x) }
}

fn scaled(x: &Tensor, factor: f64, out: &Tensor) -> Result<()> {
    aclnn::muls(&converted(x, out.dtype())?, Scalar::Float(factor), out)
}

/// The library takes single precision, in which the largest number of `f64` is infinite.
fn nan_to_num(op: NanToNum, x: &Tensor, out: &Tensor) -> Result<()> {
    let largest = match x.dtype() {
        DType::F16 => 65504.0,
        DType::BF16 => f32::from_bits(0x7f7f_0000),
        _ => f32::MAX,
    };
    if x.dtype() != DType::F64 {
        let posinf = op.posinf.map_or(largest, |number| number as f32);
        let neginf = op.neginf.map_or(-largest, |number| number as f32);
        return aclnn::nan_to_num(x, op.nan.unwrap_or(0.0) as f32, posinf, neginf, out);
    }
    aclnn::inplace_copy(out, x)?;
    let fill = |mask: Tensor, value: f64| aclnn::inplace_masked_fill_scalar(out, &mask, Scalar::Float(value));
    fill(x.ne(x)?, op.nan.unwrap_or(0.0))?;
    fill(x.eq(f64::INFINITY)?, op.posinf.unwrap_or(f64::MAX))?;
    fill(x.eq(f64::NEG_INFINITY)?, op.neginf.unwrap_or(f64::MIN))
}
