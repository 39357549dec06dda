//! `x` times the share of a normal distribution that lies below `x`.

use super::{infer_like, map2};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::unary::kind;
use crate::{Backward, DType, Device, Grads, Kernel, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Float, functions};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// How the distribution's share is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximate {
    /// By the error function: not at all.
    None,
    /// By the hyperbolic tangent.
    Tanh,
}

impl Approximate {
    fn name(self) -> &'static str {
        match self {
            Approximate::None => "none",
            Approximate::Tanh => "tanh",
        }
    }
}

/// `x` times the share of a normal distribution that lies below `x`.
#[derive(Clone, Copy, Debug)]
pub struct Gelu {
    /// How the share is computed.
    pub approximate: Approximate,
}

impl Op for Gelu {
    const NAME: &'static str = "aten::gelu";
    const BACKWARD: &'static str = "GeluBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let approximate = self.approximate;
        grads!(ctx; GeluBackward { approximate }.call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, inputs: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        super::visit(inputs, &[], visit);
        visit(Argument::Text(self.approximate.name()));
    }
}

impl Kernel for Gelu {
    const ELEMENTWISE: bool = true;
    kernel_table!(Gelu);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        kind::only_float::infer(Self::NAME, x)
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        match self.approximate {
            Approximate::None => kind::only_float::map(Exact, x, out),
            Approximate::Tanh => kind::only_float::map(ByTanh, x, out),
        }
    }
}

/// The gradient times the slope of [`Gelu`] at the input.
#[derive(Clone, Copy, Debug)]
pub struct GeluBackward {
    /// How the share was computed.
    pub approximate: Approximate,
}

impl Op for GeluBackward {
    const NAME: &'static str = "aten::gelu_backward";
    const BACKWARD: &'static str = "GeluBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; self.call([ctx.grad(), x])?, {
            let bend = self.curvature(x)?;
            ctx.grad().mul(grad)?.mul(&bend)?
        })
    }

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        super::visit(inputs, &[], visit);
        visit(Argument::Text(self.approximate.name()));
    }
}

impl Kernel for GeluBackward {
    const ELEMENTWISE: bool = true;
    kernel_table!(GeluBackward);

    fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
        infer_like(Self::NAME, grad, x)
    }

    /// Torch's library for the exact derivative copies gradients that do not lie in rows.
    fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let [grad, x] = inputs;
        let by_library =
            self.approximate == Approximate::None && x.dtype() == DType::F32 && x.is_contiguous();
        if !by_library || grad.is_contiguous() {
            return Ok(None);
        }
        let out = self.room(inputs)?;
        let copies = if grad.layout().is_dense() { 2 } else { 1 };
        let _copies: Vec<_> = (0..copies).map(|_| self.room(inputs)).collect::<Result<_>>()?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        match self.approximate {
            Approximate::None => map2(Exact, grad, x, out),
            Approximate::Tanh => map2(ByTanh, grad, x, out),
        }
    }
}

impl GeluBackward {
    /// The second derivative.
    fn curvature(self, x: &Tensor) -> Result<Tensor> {
        match self.approximate {
            Approximate::None => {
                let square = x.mul(x)?;
                let density = square.mul(-0.5)?.exp()?.mul(DENSITY_AT_0)?;
                let falling = square.mul(&density)?;
                density.mul(2)?.sub(&falling)
            }
            Approximate::Tanh => curvature_by_tanh(x),
        }
    }
}

/// With `u` the argument of the hyperbolic tangent `t`: `(1 - t^2) (u' + x (u''/2 - t u'^2))`, term by term.
fn curvature_by_tanh(x: &Tensor) -> Result<Tensor> {
    let u = x.add(&x.pow(3)?.mul(CUBIC)?)?.mul(LINEAR)?;
    let (t, secant) = (u.tanh()?, shown::over(1, &u.cosh()?)?);
    let half = x.mul(0.5)?;
    let slope_of_t = shown::less(1, &t.mul(&t)?)?;
    let slope = x.mul(3.0 * CUBIC)?.mul(x)?.add(1)?.mul(LINEAR)?;
    let first = slope_of_t.mul(0.5)?.mul(&slope)?;
    let falling = secant.neg()?.mul(&t)?;
    let bend_of_t = secant.mul(2)?.mul(&falling)?.mul(&slope)?;
    let second = half.mul(&slope)?.mul(&bend_of_t)?;
    let bend = x.mul(6.0 * CUBIC)?.mul(LINEAR)?;
    let third = half.mul(&slope_of_t)?.mul(&bend)?;
    first.mul(2)?.add(&second)?.add(&third)
}

/// The normal distribution's density at 0.
const DENSITY_AT_0: f64 = FRAC_1_SQRT_2 * FRAC_2_SQRT_PI / 2.0;
/// `2 share(x) - 1` is about `tanh(LINEAR * (x + CUBIC * x^3))`.
const LINEAR: f64 = FRAC_1_SQRT_2 * FRAC_2_SQRT_PI;
const CUBIC: f64 = 0.044_715;

#[derive(Clone, Copy)]
struct Exact;

#[derive(Clone, Copy)]
struct ByTanh;

impl functions::Unary for Exact {
    #[inline(always)]
    fn apply<T: Float>(self, x: T) -> T {
        x * T::narrow(0.5) * (T::ONE + Float::erf(x * T::narrow(FRAC_1_SQRT_2)))
    }
}

impl functions::FloatBinary for Exact {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        let half = T::narrow(0.5);
        let share = half * (T::ONE + Float::erf(x * T::narrow(FRAC_1_SQRT_2)));
        let density = (-half * x * x).exponential() * T::narrow(DENSITY_AT_0);
        grad * (share + x * density)
    }
}

/// Twice the argument of the hyperbolic tangent `t`: `(1 + t) / 2` is its sigmoid, with one
/// exponential less and all digits where `t` is near -1.
#[inline(always)]
fn twice_argument<T: Float>(x: T) -> T {
    T::narrow(2.0 * LINEAR) * x * (T::ONE + T::narrow(CUBIC) * x * x)
}

impl functions::Unary for ByTanh {
    #[inline(always)]
    fn apply<T: Float>(self, x: T) -> T {
        x * Float::sigmoid(twice_argument(x))
    }
}

impl functions::FloatBinary for ByTanh {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        let share = Float::sigmoid(twice_argument(x));
        let slope = T::narrow(2.0 * LINEAR) * (T::ONE + T::narrow(3.0 * CUBIC) * x * x);
        grad * share * (T::ONE + x * (T::ONE - share) * slope)
    }
}

impl Tensor {
    /// `x` times the share of a normal distribution that lies below `x`.
    pub fn gelu(&self, approximate: Approximate) -> Result<Tensor> {
        Gelu { approximate }.call([self])
    }
}
