//! Losses scaled up, so that gradients in half precision do not vanish.

use crate::Optimizer;
use crate::scope::listed;
use crate::value::check;
use cresset_tensor::{Cause, DType, Error, Result, Tensor, no_grad};

/// The numbers of a [`GradScaler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradScalerOptions {
    /// The first scale.
    pub init_scale: f64,
    /// What the scale is multiplied by after a while without infinite gradients.
    pub growth_factor: f64,
    /// What the scale is multiplied by after an infinite gradient.
    pub backoff_factor: f64,
    /// How many steps without infinite gradients are a while.
    pub growth_interval: u64,
    /// Whether to scale at all.
    pub enabled: bool,
}

impl Default for GradScalerOptions {
    fn default() -> GradScalerOptions {
        GradScalerOptions {
            init_scale: 65536.0,
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
            enabled: true,
        }
    }
}

/// Where a [`GradScaler`] is, and the numbers it goes on by: what torch's state dict has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradScalerState {
    /// The scale.
    pub scale: f64,
    /// What the scale is multiplied by after a while without infinite gradients.
    pub growth_factor: f64,
    /// What the scale is multiplied by after an infinite gradient.
    pub backoff_factor: f64,
    /// How many steps without infinite gradients are a while.
    pub growth_interval: u64,
    /// How many steps there were since the scale changed.
    pub growth_tracker: u64,
}

/// Scales losses up and gradients down, and leaves out steps whose gradients are not finite.
///
/// Several optimizers may share one: each is stepped by its own gradients, and the scale shrinks if those
/// of any are not finite.
///
/// ```
/// use cresset_optim::{GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions, Tensor};
///
/// let weight = Tensor::new([1.0f32])?.with_grad()?;
/// let mut optimizer = Sgd::new(vec![weight.clone()], SgdOptions { lr: 0.5, ..Default::default() })?;
/// let mut scaler = GradScaler::new(GradScalerOptions::default())?;
/// scaler.scale(&weight.sum()?)?.backward()?;
/// assert!(scaler.step(&mut optimizer)?);
/// scaler.update()?;
/// assert_eq!(weight.to_vec::<f32>()?, [0.5]);
/// # Ok::<(), cresset_optim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GradScaler {
    options: GradScalerOptions,
    /// In single precision, as torch's.
    scale: f32,
    growth_tracker: u64,
    /// The optimizers whose gradients were looked at since the last update.
    seen: Vec<Seen>,
}

/// An optimizer since the last update.
#[derive(Clone, Debug)]
struct Seen {
    /// By which it is known again.
    first_parameter: Tensor,
    /// Whether a gradient was not finite.
    found_inf: bool,
    stepped: bool,
}

const NAME: &str = "GradScaler";

fn fault(text: &str) -> Error {
    Error::new(Cause::Argument, NAME, text)
}

impl GradScaler {
    /// A scaler.
    ///
    /// # Errors
    /// If a scale is not above 0, a growth not above 1, a backoff not between 0 and 1, or an interval 0.
    pub fn new(options: GradScalerOptions) -> Result<GradScaler> {
        let GradScalerOptions { init_scale, growth_factor, backoff_factor, growth_interval, .. } = options;
        check(NAME, "init_scale", init_scale, init_scale > 0.0 && init_scale.is_finite(), "above 0")?;
        check_factors(growth_factor, backoff_factor, growth_interval)?;
        Ok(GradScaler { options, scale: init_scale as f32, growth_tracker: 0, seen: Vec::new() })
    }

    /// The loss times the scale.
    ///
    /// # Errors
    /// If it cannot be multiplied.
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        if self.options.enabled { loss.mul(f64::from(self.scale)) } else { Ok(loss.clone()) }
    }

    /// Divides the gradients of `optimizer` by the scale, and looks whether all are finite. Needed before
    /// gradients are clipped; [`step`](GradScaler::step) does it otherwise.
    ///
    /// # Errors
    /// If it was done since the last [`update`](GradScaler::update), if there are no gradients, or if some
    /// are in `f16`, where the quotients would vanish.
    pub fn unscale(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        match self.find(optimizer).map(|at| self.seen[at].stepped) {
            Some(true) => Err(fault("the step was taken already, expected gradients to be unscaled before")),
            Some(false) => Err(fault("gradients are unscaled already, expected once between updates")),
            None => self.look(optimizer),
        }
    }

    /// Where the optimizer is among those seen.
    fn find(&self, optimizer: &dyn Optimizer) -> Option<usize> {
        let parameters = optimizer.parameters();
        let first = parameters.iter().flatten().next()?;
        self.seen.iter().position(|seen| seen.first_parameter.same_as(first))
    }

    fn look(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        let _guard = no_grad();
        let parameters: Vec<Tensor> = optimizer.parameters().into_iter().flatten().collect();
        let grads = parameters.iter().map(|parameter| parameter.own_grad());
        let grads: Vec<Tensor> = grads.filter_map(Result::transpose).collect::<Result<_>>()?;
        if grads.is_empty() {
            return Err(fault(
                "no parameter of the optimizer has a gradient, expected a backward pass before",
            ));
        }
        if grads.iter().any(|grad| grad.dtype() == DType::F16) {
            let text = "a gradient is f16, expected parameters in single precision";
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let inverse = f64::from((1.0 / f64::from(self.scale)) as f32);
        let _span = listed("aten::_amp_foreach_non_finite_check_and_unscale_", &grads, &[]);
        let mut is_finite = true;
        for grad in &grads {
            is_finite &= grad.isfinite()?.all()?.item()?.as_f64() != 0.0;
            grad.mul_(inverse)?;
        }
        let first_parameter = parameters[0].clone();
        self.seen.push(Seen { first_parameter, found_inf: !is_finite, stepped: false });
        Ok(())
    }

    /// Takes the optimizer's step, unless one of its gradients is not finite; gives whether it was taken.
    ///
    /// # Errors
    /// As [`unscale`](GradScaler::unscale), if the step was taken since the last
    /// [`update`](GradScaler::update), and if it fails.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<bool> {
        if !self.options.enabled {
            return optimizer.step().map(|()| true);
        }
        let at = match self.find(optimizer) {
            Some(at) if self.seen[at].stepped => {
                return Err(fault("the step was taken already, expected once between updates"));
            }
            Some(at) => at,
            None => {
                self.look(optimizer)?;
                self.seen.len() - 1
            }
        };
        self.seen[at].stepped = true;
        if self.seen[at].found_inf {
            return Ok(false);
        }
        optimizer.step().map(|()| true)
    }

    /// Makes the scale smaller after an infinite gradient, and larger after a while without any.
    ///
    /// # Errors
    /// If no gradients were looked at since the last update.
    pub fn update(&mut self) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        let seen = std::mem::take(&mut self.seen);
        if seen.is_empty() {
            return Err(fault("no gradients were looked at, expected step() or unscale() before update()"));
        }
        let times = |factor: f64| (f64::from(self.scale) * factor) as f32;
        if seen.iter().any(|seen| seen.found_inf) {
            self.scale = times(self.options.backoff_factor);
            self.growth_tracker = 0;
            return Ok(());
        }
        self.growth_tracker += 1;
        if self.growth_tracker == self.options.growth_interval {
            let grown = times(self.options.growth_factor);
            // A scale that is infinite would never come back.
            if grown.is_finite() {
                self.scale = grown;
            }
            self.growth_tracker = 0;
        }
        Ok(())
    }

    /// As [`update`](GradScaler::update), but sets the scale: torch's `update(new_scale)`.
    ///
    /// # Errors
    /// If the scale is not above 0 and finite.
    pub fn update_to(&mut self, scale: f64) -> Result<()> {
        check(NAME, "scale", scale, scale > 0.0 && scale.is_finite(), "above 0")?;
        if self.options.enabled {
            self.scale = scale as f32;
            self.seen.clear();
        }
        Ok(())
    }

    /// The scale; 1 if nothing is scaled.
    pub fn get_scale(&self) -> f64 {
        if self.options.enabled { f64::from(self.scale) } else { 1.0 }
    }

    /// The numbers that it works with.
    pub fn options(&self) -> GradScalerOptions {
        self.options
    }

    /// Where it is.
    pub fn state_dict(&self) -> GradScalerState {
        let GradScalerOptions { growth_factor, backoff_factor, growth_interval, .. } = self.options;
        GradScalerState {
            scale: f64::from(self.scale),
            growth_factor,
            backoff_factor,
            growth_interval,
            growth_tracker: self.growth_tracker,
        }
    }

    /// Goes on from where another was, with its factors.
    ///
    /// # Errors
    /// If the scale is not above 0 and finite, or a factor is not as [`new`](GradScaler::new) takes it.
    pub fn load_state_dict(&mut self, state: GradScalerState) -> Result<()> {
        let GradScalerState { scale, growth_factor, backoff_factor, growth_interval, growth_tracker } = state;
        check(NAME, "scale", scale, scale > 0.0 && scale.is_finite(), "above 0")?;
        check_factors(growth_factor, backoff_factor, growth_interval)?;
        self.options = GradScalerOptions { growth_factor, backoff_factor, growth_interval, ..self.options };
        (self.scale, self.growth_tracker) = (scale as f32, growth_tracker);
        Ok(())
    }
}

fn check_factors(growth: f64, backoff: f64, interval: u64) -> Result<()> {
    check(NAME, "growth_factor", growth, growth > 1.0, "above 1")?;
    check(NAME, "backoff_factor", backoff, backoff > 0.0 && backoff < 1.0, "above 0 and below 1")?;
    check(NAME, "growth_interval", interval as f64, interval > 0, "at least 1")
}
