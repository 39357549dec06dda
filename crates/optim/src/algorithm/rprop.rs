//! Rprop: steps by the sign of the gradient alone.

use super::{fused_by, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, kept, map_by};
use crate::scope::More;
use crate::state::State;
use crate::value::{check as check_number, not_negative, options};
use cresset_tensor::ops::{FusedRprop, RpropStep};
use cresset_tensor::{MemoryFormat, Result, Tensor};

options! {
    /// The numbers of [`Rprop`].
    RpropOptions for "Rprop", check {
        /// The length of the first step.
        lr: f64 = 1e-2,
        /// What a step is multiplied by after a change of sign, and after none.
        etas: (f64, f64) = (0.5, 1.2),
        /// The shortest and the longest step.
        step_sizes: (f64, f64) = (1e-6, LONGEST as f64),
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &RpropOptions) -> Result<()> {
    let RpropOptions { lr, etas: (minus, plus), step_sizes: (shortest, longest), .. } = *options;
    not_negative("Rprop", &[("lr", lr), ("step_sizes.0", shortest), ("step_sizes.1", longest)])?;
    check_number("Rprop", "etas.0", minus, minus > 0.0 && minus < 1.0, "above 0 and below 1")?;
    check_number("Rprop", "etas.1", plus, plus > 1.0 && plus.is_finite(), "a finite number above 1")
}

/// Steps that grow while the gradient keeps its sign, and shrink when it turns.
pub type Rprop = Descent<RpropOptions>;

const LAST: &str = "prev";
const SIZE: &str = "step_size";

/// The longest step if none is said.
const LONGEST: i64 = 50;

impl RpropOptions {
    /// Makes signs of products the factors of the steps.
    fn factors(&self, signs: &Tensor) -> Result<()> {
        signs.masked_fill_(&signs.gt(0)?, self.etas.1)?;
        signs.masked_fill_(&signs.lt(0)?, self.etas.0)?;
        signs.masked_fill_(&signs.eq(0)?, 1)
    }

    /// Keeps the steps between the shortest and the longest.
    fn bound(&self, size: &Tensor) -> Result<()> {
        let (shortest, longest) = self.step_sizes;
        // Torch's own longest step is a whole number.
        match longest == LONGEST as f64 {
            true => size.clamp_(shortest, LONGEST),
            false => size.clamp_(shortest, longest),
        }
    }
}

impl Algorithm for RpropOptions {
    const STEP: &'static str = "Optimizer.step#Rprop.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Rprop.zero_grad";
    const TENSORS: &'static [&'static str] = &[LAST, SIZE];

    const COUNTS_FROM_ZEROS: bool = true;

    fused_by!(FusedRprop, RpropStep);

    fn first_tensor(&self, name: &'static str, parameter: &Tensor, _grad: &Tensor) -> Result<Tensor> {
        match name {
            SIZE => parameter.full_like(self.lr),
            _ => parameter.zeros_like_with(MemoryFormat::Preserve),
        }
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let [last, size] = [state.tensor(LAST)?, state.tensor(SIZE)?];
        let factors = grad.mul(&last)?.sign()?;
        self.factors(&factors)?;
        size.mul_(&factors)?;
        self.bound(&size)?;
        let grad = grad.copy_named(MemoryFormat::Preserve)?;
        grad.masked_fill_(&factors.eq(self.etas.0)?, 0)?;
        parameter.addcmul_(&grad.sign()?, &size, -1)?;
        last.copy_(&grad)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        count(states)?;
        let [last, sizes] = [kept(states, LAST)?, kept(states, SIZE)?];
        let factors =
            map_by("aten::_foreach_mul", &grads, &[More::List(&last)], |i, grad| grad.mul(&last[i]))?;
        if self.maximize {
            each("aten::_foreach_neg_", &factors, |_, factor| factor.neg_())?;
        }
        let more = [More::List(&grads), More::Bool(false)];
        each_by("aten::_foreach_copy_", &last, &more, |i, last| last.copy_(&grads[i]))?;
        if self.maximize {
            each("aten::_foreach_neg_", &last, |_, last| last.neg_())?;
        }
        each("aten::_foreach_sign_", &factors, |_, factor| factor.sign_())?;
        factors.iter().try_for_each(|factors| self.factors(factors))?;
        each_by("aten::_foreach_mul_", &sizes, &[More::List(&factors)], |i, size| size.mul_(&factors[i]))?;
        sizes.iter().try_for_each(|size| self.bound(size))?;
        for (last, factors) in last.iter().zip(&factors) {
            last.copy_(&factors.eq(self.etas.0)?.choose(0, last)?)?;
        }
        let signs = last.iter().map(Tensor::sign).collect::<Result<Vec<_>>>()?;
        let more = [More::List(&signs), More::List(&sizes), More::Int(-1)];
        each_by("aten::_foreach_addcmul_", parameters, &more, |i, parameter| {
            parameter.addcmul_(&signs[i], &sizes[i], -1)
        })
    }

    fn rule(&self, state: &mut State) -> Result<RpropStep> {
        state.numbers[0].count();
        Ok(RpropStep { etas: self.etas, step_sizes: self.step_sizes, maximize: self.maximize })
    }
}
