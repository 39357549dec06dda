//! Rprop: steps by the sign of the gradient alone.

use super::{fused_by, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, kept, map_by, towards};
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
        step_sizes: (f64, f64) = (1e-6, 50.0),
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

impl RpropOptions {
    /// Makes signs of products the factors of the steps.
    fn factors(&self, signs: &Tensor) -> Result<()> {
        signs.masked_fill_(&signs.gt(0)?, self.etas.1)?;
        signs.masked_fill_(&signs.lt(0)?, self.etas.0)?;
        signs.masked_fill_(&signs.eq(0)?, 1)
    }
}

impl Algorithm for RpropOptions {
    const STEP: &'static str = "Optimizer.step#Rprop.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Rprop.zero_grad";
    const TENSORS: &'static [&'static str] = &[LAST, SIZE];

    const COUNTS_FROM_ZEROS: bool = true;

    fused_by!(FusedRprop, RpropStep);

    fn first_tensor(&self, name: &'static str, parameter: &Tensor, _grad: &Tensor) -> Result<Tensor> {
        if name == SIZE { parameter.full_like(self.lr) } else { parameter.zeros_like() }
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let [last, size] = [state.tensor(LAST)?, state.tensor(SIZE)?];
        let factors = grad.mul(&last)?.sign()?;
        self.factors(&factors)?;
        size.mul_(&factors)?;
        size.clamp_(self.step_sizes.0, self.step_sizes.1)?;
        let grad = grad.copy_in(MemoryFormat::Preserve)?;
        grad.masked_fill_(&factors.eq(self.etas.0)?, 0)?;
        parameter.addcmul_(&grad.sign()?, &size, -1)?;
        last.copy_(&grad)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        count(states)?;
        let grads = towards(grads, parameters, self.maximize, 0.0)?;
        let [last, sizes] = [kept(states, LAST)?, kept(states, SIZE)?];
        let factors =
            map_by("aten::_foreach_mul", &grads, &[More::List(&last)], |i, grad| grad.mul(&last[i]))?;
        each_by("aten::_foreach_copy_", &last, &[More::List(&grads)], |i, last| last.copy_(&grads[i]))?;
        each("aten::_foreach_sign_", &factors, |_, factor| factor.sign_())?;
        factors.iter().try_for_each(|factors| self.factors(factors))?;
        each_by("aten::_foreach_mul_", &sizes, &[More::List(&factors)], |i, size| size.mul_(&factors[i]))?;
        sizes.iter().try_for_each(|size| size.clamp_(self.step_sizes.0, self.step_sizes.1))?;
        for (last, factors) in last.iter().zip(&factors) {
            last.masked_fill_(&factors.eq(self.etas.0)?, 0)?;
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
