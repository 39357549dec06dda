//! Powers, logarithms, circular and hyperbolic functions.

use super::{functions, kind};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_kernels::functions;
use std::f64::consts::{LN_2, LN_10, PI};

functions! {
    /// `e` to the power of each element.
    Exp, exp, exp_: float, saves Outputs, |grad, y| grad.mul(y);
    /// 2 to the power of each element.
    Exp2, exp2, exp2_: float, saves Outputs, |grad, y| grad.mul(y)?.mul(LN_2);
    /// `e^x - 1` of each element, exact near 0.
    Expm1, expm1, expm1_: float, saves Outputs, |grad, y| grad.mul(&y.add(1)?);
    /// The natural logarithm of each element.
    Log, log, log_: float, saves Inputs, |grad, x| grad.div(x);
    /// The logarithm of each element to base 2.
    Log2, log2, log2_: float, saves Inputs, |grad, x| grad.div(&x.mul(LN_2)?);
    /// The logarithm of each element to base 10.
    Log10, log10, log10_: float, saves Inputs, |grad, x| grad.div(&x.mul(LN_10)?);
    /// `log(1 + x)` of each element, exact near 0.
    Log1p, log1p, log1p_: float, saves Inputs, |grad, x| grad.div(&x.add(1)?);
    /// The square root of each element.
    Sqrt, sqrt, sqrt_: float, saves Outputs, |grad, y| grad.div(&y.mul(2)?);
    /// One divided by the square root of each element.
    Rsqrt, rsqrt, rsqrt_: float, saves Outputs, |grad, y| {
        let cube = y.pow(3)?;
        grad.mul(-0.5)?.mul(&cube)
    };
    /// One divided by each element.
    Reciprocal, reciprocal, reciprocal_: float, saves Outputs, |grad, y| {
        let square = y.mul(y)?;
        grad.neg()?.mul(&square)
    };
    /// `1 / (1 + e^-x)` of each element.
    Sigmoid, sigmoid, sigmoid_: float, saves Outputs, |grad, y| grad.sigmoid_backward(y);

    /// The sine of each element.
    Sin, sin, sin_: float, saves Inputs, |grad, x| grad.mul(&x.cos()?);
    /// The cosine of each element.
    Cos, cos, cos_: float, saves Inputs, |grad, x| grad.mul(&x.sin()?.neg()?);
    /// The tangent of each element.
    Tan, tan, tan_: float, saves Outputs, |grad, y| grad.mul(&y.pow(2)?.add(1)?);
    /// The angle whose sine is each element.
    Asin, asin, asin_: float, saves Inputs, |grad, x| grad.mul(&x.mul(x)?.rsub(1)?.rsqrt()?);
    /// The angle whose cosine is each element.
    Acos, acos, acos_: float, saves Inputs, |grad, x| grad.mul(&x.mul(x)?.rsub(1)?.rsqrt()?.neg()?);
    /// The angle whose tangent is each element.
    Atan, atan, atan_: float, saves Inputs, |grad, x| grad.div(&x.mul(x)?.add(1)?);
    /// The hyperbolic sine of each element.
    Sinh, sinh, sinh_: float, saves Inputs, |grad, x| grad.mul(&x.cosh()?);
    /// The hyperbolic cosine of each element.
    Cosh, cosh, cosh_: float, saves Inputs, |grad, x| grad.mul(&x.sinh()?);
    /// The hyperbolic tangent of each element.
    Tanh, tanh, tanh_: float, saves Outputs, |grad, y| grad.tanh_backward(y);
    /// The number whose hyperbolic sine is each element.
    Asinh, asinh, asinh_: float, saves Inputs, |grad, x| grad.mul(&x.pow(2)?.add(1)?.rsqrt()?);
    /// The number whose hyperbolic cosine is each element.
    Acosh, acosh, acosh_: float, saves Inputs, |grad, x| grad.mul(&x.pow(2)?.sub(1)?.rsqrt()?);
    /// The number whose hyperbolic tangent is each element.
    Atanh, atanh, atanh_: float, saves Inputs, |grad, x| grad.div(&x.pow(2)?.rsub(1)?);
    /// Degrees as radians.
    Deg2rad, deg2rad, deg2rad_: float, saves Nothing, |grad, _x| grad.mul(PI / 180.0);
    /// Radians as degrees.
    Rad2deg, rad2deg, rad2deg_: float, saves Nothing, |grad, _x| grad.mul(180.0 / PI);
}

impl Tensor {
    /// The square of each element.
    pub fn square(&self) -> Result<Tensor> {
        let _span = composite("aten::square", [self], |_| ());
        self.pow(2)
    }

    /// [`square`](Tensor::square) in place.
    pub fn square_(&self) -> Result<()> {
        let _span = composite("aten::square_", [self], |_| ());
        self.pow_(2)
    }
}
