//! Muon: momentum made orthogonal, for matrices.

use crate::Implementation;
use crate::descent::{Algorithm, Descent, no_fused};
use crate::state::State;
use crate::value::{check as check_number, choices, finite, not_negative, options};
use cresset_tensor::{Cause, DType, Error, Key, Result, Tensor};

/// How the learning rate follows from the shape of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdjustLr {
    /// By the root of rows per column, at least 1.
    Original,
    /// So that steps are as long as AdamW's.
    MatchRmsAdamw,
    /// By the root of rows per column.
    SpectralUnclamped,
}

choices!(AdjustLr, "\"original\", \"match_rms_adamw\" or \"spectral_unclamped\"":
    Original = "original", MatchRmsAdamw = "match_rms_adamw", SpectralUnclamped = "spectral_unclamped");

options! {
    /// The numbers of [`Muon`].
    MuonOptions for "Muon", check {
        /// The learning rate.
        lr: f64 = 1e-3,
        /// How much the parameter decays, apart from the gradient.
        weight_decay: f64 = 0.1,
        /// How much of the running mean of the gradient is kept.
        momentum: f64 = 0.95,
        /// Whether the step looks ahead along the momentum.
        nesterov: bool = true,
        /// The polynomial whose iteration makes a matrix orthogonal.
        ns_coefficients: (f64, f64, f64) = (3.4445, -4.775, 2.0315),
        /// Keeps the norm that a matrix is divided by away from 0.
        eps: f64 = 1e-7,
        /// How often the polynomial is applied.
        ns_steps: usize = 5,
        /// How the learning rate follows from the shape; [`AdjustLr::Original`] if `None`.
        adjust_lr_fn: Option<AdjustLr> = None,
    }
}

fn check(options: &MuonOptions) -> Result<()> {
    let MuonOptions { lr, weight_decay, momentum, eps, ns_steps, .. } = *options;
    not_negative(
        "Muon",
        &[("lr", lr), ("weight_decay", weight_decay), ("momentum", momentum), ("eps", eps)],
    )?;
    let (a, b, c) = options.ns_coefficients;
    finite("Muon", &[("ns_coefficients.0", a), ("ns_coefficients.1", b), ("ns_coefficients.2", c)])?;
    check_number("Muon", "ns_steps", ns_steps as f64, ns_steps < 100, "below 100")
}

/// Steps along the momentum, made orthogonal: all directions of a matrix move equally far.
///
/// For the matrices inside of a model; everything else is for [`AdamW`](crate::AdamW).
pub type Muon = Descent<MuonOptions>;

const MOMENTUM: &str = "momentum_buffer";

impl MuonOptions {
    /// The nearest matrix, roughly, whose directions are all of length 1. In half precision, as torch's.
    fn orthogonal(&self, matrix: &Tensor) -> Result<Tensor> {
        let (a, b, c) = self.ns_coefficients;
        let is_tall = matrix.shape()[0] > matrix.shape()[1];
        let mut x =
            if matrix.dtype() == DType::BF16 { matrix.copy()? } else { matrix.to_dtype(DType::BF16)? };
        if is_tall {
            x = x.numpy_t()?;
        }
        let norm = x.vector_norm(2.0, &[], false, None)?.clamp_between(Some(self.eps.into()), None)?;
        x.div_(&norm)?;
        for _ in 0..self.ns_steps {
            let gram = x.matmul(&x.numpy_t()?)?;
            let polynomial = gram.addmm_scaled(&gram, &gram, b, c)?;
            x = x.addmm_scaled(&polynomial, &x, a, 1.0)?;
        }
        if is_tall { x.numpy_t() } else { Ok(x) }
    }

    fn adjusted_lr(&self, shape: &[usize]) -> f64 {
        let (rows, columns) = (shape[0] as f64, shape[1] as f64);
        self.lr
            * match self.adjust_lr_fn.unwrap_or(AdjustLr::Original) {
                AdjustLr::Original => (rows / columns).max(1.0).sqrt(),
                AdjustLr::MatchRmsAdamw => 0.2 * rows.max(columns).sqrt(),
                AdjustLr::SpectralUnclamped => (rows / columns).sqrt(),
            }
    }
}

impl Algorithm for MuonOptions {
    const STEP: &'static str = "Optimizer.step#Muon.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Muon.zero_grad";
    const NUMBERS: &'static [&'static str] = &[];
    const TENSORS: &'static [&'static str] = &[MOMENTUM];
    type Rule = ();

    fn asked(&self) -> Option<Implementation> {
        None
    }

    /// A step is mostly products of matrices: there is nothing to fuse.
    fn preferred(_key: Key) -> Implementation {
        Implementation::Single
    }

    fn check_parameter(&self, parameter: &Tensor) -> Result<()> {
        if parameter.dim() == 2 {
            return Ok(());
        }
        let text = format_args!("a parameter has shape {:?}, expected a matrix", parameter.shape());
        Err(Error::new(Cause::Shape, "Muon", text))
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let momentum = state.tensor(MOMENTUM)?;
        momentum.lerp_(grad, 1.0 - self.momentum)?;
        let update = if self.nesterov { grad.lerp(&momentum, self.momentum)? } else { momentum };
        let update = self.orthogonal(&update)?;
        parameter.mul_(1.0 - self.lr * self.weight_decay)?;
        parameter.add_scaled_(&update, -self.adjusted_lr(parameter.shape()))
    }

    fn foreach(&self, _parameters: &[Tensor], _grads: Vec<Tensor>, _states: &mut [&mut State]) -> Result<()> {
        Err(no_fused("Muon", "\"single\""))
    }

    fn rule(&self, _state: &mut State) -> Result<()> {
        Err(no_fused("Muon", "\"single\""))
    }

    fn fused(_tensors: &[Tensor], _rules: &[()], _steps: &[Tensor]) -> Result<()> {
        Err(no_fused("Muon", "\"single\""))
    }
}
