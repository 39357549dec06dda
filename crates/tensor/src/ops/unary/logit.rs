//! The logarithm of the odds, which is the inverse of sigmoid.

use super::kind;
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::functions::FloatBinary;
use cresset_kernels::{Float, elementwise, functions};

/// `log(x / (1 - x))`
#[derive(Clone, Copy, Debug)]
pub struct Logit {
    /// How near to 0 or 1 an element may come; any, if not given or negative.
    pub eps: Option<f64>,
}

impl Logit {
    fn function(self) -> functions::Logit {
        match bound(self.eps) {
            Some(eps) => functions::Logit { low: eps, high: 1.0 - eps },
            None => functions::Logit { low: f64::NEG_INFINITY, high: f64::INFINITY },
        }
    }
}

/// The bound that is one: torch takes negative ones for none.
fn bound(eps: Option<f64>) -> Option<f64> {
    eps.filter(|eps| *eps >= 0.0)
}

fn visit_eps(eps: Option<f64>, visit: &mut dyn FnMut(Argument<'_>)) {
    visit(eps.map_or(Argument::None, Argument::Float));
}

impl Op for Logit {
    const NAME: &'static str = "aten::logit";
    const BACKWARD: &'static str = "LogitBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; LogitBackward { eps: self.eps }.call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit_eps(self.eps, visit);
    }
}

impl Kernel for Logit {
    const ELEMENTWISE: bool = true;
    kernel_table!(Logit);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        kind::float::infer(Self::NAME, x)
    }

    fn shown(&self, inputs: [&Tensor; 1]) -> Result<Option<Tensor>> {
        match inputs[0].dtype().is_float() {
            true => shown::into_iterated(self, inputs).map(Some),
            false => Ok(None),
        }
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        kind::float::map(self.function(), x, out)
    }
}

impl InPlace for Logit {
    const IN_PLACE: &'static str = "aten::logit_";
    kernel_table!(in place Logit);

    fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
        kind::float::change(self.function(), x)
    }
}

/// `grad / (x (1 - x))`; 0 where [`Logit`] had moved `x`, and NaN outside of 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct LogitBackward {
    /// How near to 0 or 1 an element may have come.
    pub eps: Option<f64>,
}

impl Op for LogitBackward {
    const NAME: &'static str = "aten::logit_backward";
    const BACKWARD: &'static str = "LogitBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx;
            self.call([ctx.grad(), x])?,
            self.call([&self.call([&ctx.grad().mul(grad)?, x])?, x])?.mul(&x.mul(2.0)?.sub(1.0)?)?,
        )
    }

    fn arguments(&self, [grad, x]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        [grad, x].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit_eps(self.eps, visit);
    }
}

impl Kernel for LogitBackward {
    const ELEMENTWISE: bool = true;
    kernel_table!(LogitBackward);

    fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
        crate::ops::check_float(Self::NAME, grad)?;
        if grad.shape() != x.shape() {
            let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), x.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(grad))
    }

    fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (grad, x) = (Operand::Tensor(grad), Operand::Tensor(x));
        cpu::map2(grad, x, out.dtype(), out, |grad, x, out| elementwise::float_binary(*self, grad, x, out))
    }
}

impl FloatBinary for LogitBackward {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        let low = T::narrow(bound(self.eps).unwrap_or(0.0));
        if x < low || x > T::ONE - low {
            return if bound(self.eps).is_some() { T::ZERO } else { T::nan() };
        }
        let odds = x * (T::ONE - x);
        if odds == T::ZERO { grad * T::infinity() } else { grad / odds }
    }
}

impl Tensor {
    /// `log(x / (1 - x))`, the inverse of [`sigmoid`](Tensor::sigmoid), for elements that are kept at
    /// least `eps` away from 0 and 1 if that is given.
    pub fn logit(&self, eps: Option<f64>) -> Result<Tensor> {
        Logit { eps }.call([self])
    }

    /// [`logit`](Tensor::logit) in place.
    pub fn logit_(&self, eps: Option<f64>) -> Result<()> {
        Logit { eps }.call_in_place([self])
    }
}
