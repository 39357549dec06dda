//! The error function, the gamma function and their kin.

use super::{functions, kind};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::functions;
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

functions! {
    /// The error function of each element.
    Erf, erf, erf_: float, saves Inputs, |grad, x| bell(x)?.mul(FRAC_2_SQRT_PI)?.mul(grad);
    /// `1 - erf(x)` of each element, exact where that is near 0.
    Erfc, erfc, erfc_: float, saves Inputs, |grad, x| bell(x)?.mul(-FRAC_2_SQRT_PI)?.mul(grad);
    /// The number whose error function is each element.
    Erfinv, erfinv, erfinv_: float, saves Inputs,
        |grad, x| x.erfinv()?.pow(2)?.exp()?.mul(0.5 * PI.sqrt())?.mul(grad);
    /// The logarithm of the size of the gamma function of each element.
    Lgamma, lgamma, lgamma_: float, saves Inputs, |grad, x| grad.mul(&x.digamma()?);
    /// The slope of the logarithm of the gamma function at each element.
    Digamma, digamma, digamma_: float, saves Inputs, |grad, x| grad.mul(&x.polygamma(1)?);
    /// `sin(pi x) / (pi x)` of each element, and 1 at 0.
    Sinc, sinc, sinc_: float, saves Inputs, |grad, x| {
        let (angle, square) = (x.mul(PI)?, x.mul(x)?.mul(PI)?);
        let slope = angle.mul(&angle.cos()?)?.sub(&angle.sin()?)?.div(&square)?;
        grad.mul(&slope)?.zero_where(&square.eq(0.0)?)
    };
}

/// `e^(-x^2)`
fn bell(x: &Tensor) -> Result<Tensor> {
    x.pow(2)?.neg()?.exp()
}

/// A derivative of [`Digamma`].
#[derive(Clone, Debug)]
pub struct Polygamma {
    /// How many times it is differentiated.
    pub n: u32,
}

impl Op for Polygamma {
    const NAME: &'static str = "aten::polygamma";
    const BACKWARD: &'static str = "PolygammaBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(&ctx.saved(0).polygamma(self.n.saturating_add(1))?)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(self.n.into()));
        visit(Argument::Tensor(x.argument()));
    }
}

impl Kernel for Polygamma {
    const ELEMENTWISE: bool = true;
    kernel_table!(Polygamma);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        kind::float::infer(Self::NAME, x)
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        kind::float::map(functions::Polygamma { n: self.n }, x, out)
    }
}

impl Tensor {
    /// The `n`th derivative of [`digamma`](Tensor::digamma) at each element.
    pub fn polygamma(&self, n: u32) -> Result<Tensor> {
        Polygamma { n }.call([self])
    }
}
