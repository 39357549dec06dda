//! The loss of sequences that are not aligned with what they are to say.

use super::Reduction;
use crate::{Forward, Hooks, Module};
use cresset_tensor::ops::Ctc;
use cresset_tensor::{Cause, DType, Error, Result, Tensor};

/// Connectionist temporal classification, as [`Tensor::ctc_loss`] says.
///
/// Called with log-probabilities, labels, and the lengths of inputs and targets, the last two as
/// tensors of integers.
///
/// ```
/// use cresset_nn::{CtcLoss, Forward, Tensor};
///
/// let log_probs = Tensor::zeros([50, 2, 20], ())?.log_softmax(-1)?;
/// let labels = Tensor::new([[1i64, 2, 3], [4, 5, 0]])?;
/// let lengths = (Tensor::new([50i64, 40])?, Tensor::new([3i64, 2])?);
/// let loss = CtcLoss::new().zero_infinity(true)?;
/// assert!(loss.call((&log_probs, &labels, &lengths.0, &lengths.1))?.item()?.as_f64() > 0.0);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct CtcLoss {
    #[module(skip)]
    how: Ctc,
    hooks: Hooks,
}

impl Default for CtcLoss {
    fn default() -> Self {
        Self::new()
    }
}

impl CtcLoss {
    /// Class 0 is the blank; the mean.
    pub fn new() -> CtcLoss {
        CtcLoss { how: Ctc::default(), hooks: Hooks::default() }
    }

    /// The class that stands for no label.
    pub fn blank(self, blank: usize) -> Result<CtcLoss> {
        Ok(CtcLoss { how: Ctc { blank, ..self.how }, ..self })
    }

    /// What becomes of the losses of single samples. A mean is taken of losses per label.
    pub fn reduction(self, reduction: Reduction) -> Result<CtcLoss> {
        Ok(CtcLoss { how: Ctc { reduction, ..self.how }, ..self })
    }

    /// Whether samples that are too short for their labels count for nothing, instead of making the
    /// loss infinite.
    pub fn zero_infinity(self, zero_infinity: bool) -> Result<CtcLoss> {
        Ok(CtcLoss { how: Ctc { zero_infinity, ..self.how }, ..self })
    }
}

impl Forward<(Tensor, Tensor, Tensor, Tensor)> for CtcLoss {
    type Output = Tensor;

    fn forward(
        &self,
        (log_probs, targets, input_lengths, target_lengths): (&Tensor, &Tensor, &Tensor, &Tensor),
    ) -> Result<Tensor> {
        let inputs = lengths("input_lengths", input_lengths)?;
        log_probs.ctc_loss(targets, &inputs, &lengths("target_lengths", target_lengths)?, self.how)
    }
}

fn lengths(name: &str, tensor: &Tensor) -> Result<Vec<usize>> {
    if tensor.dtype().is_float() || tensor.dtype() == DType::Bool {
        let text = format_args!("{name} is of {}, expected integers", tensor.dtype());
        return Err(Error::new(Cause::DType, "CtcLoss", text));
    }
    let numbers: Vec<i64> = tensor.to_dtype(DType::I64)?.reshape([tensor.numel()])?.to_vec()?;
    let lengths = numbers.iter().map(|&length| usize::try_from(length)).collect();
    let lengths: std::result::Result<Vec<usize>, _> = lengths;
    lengths.map_err(|_| {
        Error::new(Cause::Argument, "CtcLoss", format_args!("{name} is {numbers:?}, expected at least 0"))
    })
}
