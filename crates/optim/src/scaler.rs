//! Losses scaled up, so that gradients in half precision do not vanish.

use crate::Optimizer;
use crate::scope::listed;
use crate::value::check;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};

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

/// Where a [`GradScaler`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradScalerState {
    /// The scale.
    pub scale: f64,
    /// How many steps there were since the scale changed.
    pub growth_tracker: u64,
}

/// Scales losses up and gradients down, and leaves out steps whose gradients are not finite.
///
/// ```
/// use cresset_optim::{GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions, Tensor};
///
/// let weight = Tensor::new([1.0f32])?.with_grad()?;
/// let mut optimizer = Sgd::new(vec![weight.clone()], SgdOptions { lr: 0.5, ..Default::default() })?;
/// let mut scaler = GradScaler::new(GradScalerOptions::default())?;
/// scaler.scale(&weight.sum()?)?.backward()?;
/// assert!(scaler.step(&mut optimizer)?);
/// scaler.update();
/// assert_eq!(weight.to_vec::<f32>()?, [0.5]);
/// # Ok::<(), cresset_optim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GradScaler {
    options: GradScalerOptions,
    /// In single precision, as torch's.
    scale: f32,
    growth_tracker: u64,
    /// Whether a gradient of this step was not finite; none before gradients were divided.
    found_inf: Option<bool>,
}

impl GradScaler {
    /// A scaler.
    ///
    /// # Errors
    /// If a scale is not above 0, a growth not above 1, or a backoff not below 1.
    pub fn new(options: GradScalerOptions) -> Result<GradScaler> {
        let GradScalerOptions { init_scale, growth_factor, backoff_factor, growth_interval, .. } = options;
        let name = "GradScaler";
        check(name, "init_scale", init_scale, init_scale > 0.0 && init_scale.is_finite(), "above 0")?;
        check(name, "growth_factor", growth_factor, growth_factor > 1.0, "above 1")?;
        let allowed = backoff_factor > 0.0 && backoff_factor < 1.0;
        check(name, "backoff_factor", backoff_factor, allowed, "above 0 and below 1")?;
        check(name, "growth_interval", growth_interval as f64, growth_interval > 0, "at least 1")?;
        Ok(GradScaler { options, scale: init_scale as f32, growth_tracker: 0, found_inf: None })
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
    /// If it was done since the last [`update`](GradScaler::update), or gradients are in `f16`, where the
    /// quotients would vanish.
    pub fn unscale(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        if self.found_inf.is_some() {
            let text = "gradients are unscaled already, expected once between updates";
            return Err(Error::new(Cause::Argument, "GradScaler", text));
        }
        let _guard = no_grad();
        let grads: Vec<Tensor> = optimizer.parameters().iter().flatten().filter_map(Tensor::grad).collect();
        if grads.iter().any(|grad| grad.dtype() == cresset_tensor::DType::F16) {
            let text = "a gradient is f16, expected parameters in single precision";
            return Err(Error::new(Cause::DType, "GradScaler", text));
        }
        let inverse = f64::from((1.0 / f64::from(self.scale)) as f32);
        let _span = listed("aten::_amp_foreach_non_finite_check_and_unscale_", &grads);
        let mut is_finite = true;
        for grad in &grads {
            is_finite &= grad.isfinite()?.all()?.item()?.as_f64() != 0.0;
            grad.mul_(inverse)?;
        }
        self.found_inf = Some(!is_finite);
        Ok(())
    }

    /// Takes the optimizer's step, unless a gradient is not finite; gives whether it was taken.
    ///
    /// # Errors
    /// As [`unscale`](GradScaler::unscale), and if the step fails.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<bool> {
        if !self.options.enabled {
            return optimizer.step().map(|()| true);
        }
        if self.found_inf.is_none() {
            self.unscale(optimizer)?;
        }
        if self.found_inf == Some(true) {
            return Ok(false);
        }
        optimizer.step().map(|()| true)
    }

    /// Makes the scale smaller after an infinite gradient, and larger after a while without any.
    pub fn update(&mut self) {
        let Some(found_inf) = self.found_inf.take() else { return };
        if found_inf {
            self.scale *= self.options.backoff_factor as f32;
            self.growth_tracker = 0;
            return;
        }
        self.growth_tracker += 1;
        if self.growth_tracker == self.options.growth_interval {
            let grown = self.scale * self.options.growth_factor as f32;
            // A scale that is infinite would never come back.
            if grown.is_finite() {
                self.scale = grown;
            }
            self.growth_tracker = 0;
        }
    }

    /// The scale; 1 if nothing is scaled.
    pub fn get_scale(&self) -> f64 {
        if self.options.enabled { f64::from(self.scale) } else { 1.0 }
    }

    /// The numbers that it was made with.
    pub fn options(&self) -> GradScalerOptions {
        self.options
    }

    /// Where it is.
    pub fn state_dict(&self) -> GradScalerState {
        GradScalerState { scale: f64::from(self.scale), growth_tracker: self.growth_tracker }
    }

    /// Goes on from where another was.
    ///
    /// # Errors
    /// If the scale is not above 0 and finite.
    pub fn load_state_dict(&mut self, state: GradScalerState) -> Result<()> {
        let allowed = state.scale > 0.0 && state.scale.is_finite();
        check("GradScaler", "scale", state.scale, allowed, "above 0")?;
        (self.scale, self.growth_tracker) = (state.scale as f32, state.growth_tracker);
        Ok(())
    }
}
