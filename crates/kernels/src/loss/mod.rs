//! Losses with their gradients: of classes, of sequences of them, of distances, of probabilities.

mod classes;
mod ctc;
mod distance;
mod multi_margin;
mod multilabel;
mod probability;

pub use classes::{nll_loss, nll_loss_backward};
pub use ctc::{Aligned, Sequences, ctc_loss, ctc_loss_backward};
pub use distance::{Distance, Huber, Loss, LossBackward, SmoothL1, Square};
pub use multi_margin::{ClassMargin, multi_margin, multi_margin_backward};
pub use multilabel::{multilabel_margin, multilabel_margin_backward};
pub use probability::{BinaryCrossEntropy, BinaryCrossEntropyBackward};

/// What becomes of the losses of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Each is kept.
    None,
    /// Their weighted mean.
    Mean,
    /// Their sum.
    Sum,
}
