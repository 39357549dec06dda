//! What memory was for: parameters, activations, gradients and the rest, as torch tells them apart.
//!
//! Nothing says so while it is recorded. It follows afterwards, from who touched which memory:
//!
//! ```text
//! memory reports, arguments ──► storage ──► flow ──► category ──► timeline
//! ```
//!
//! - `storage` finds which memory an address meant at a moment: addresses are used again;
//! - `flow` makes a node of each outermost operator: what it read, changed, took and gave back;
//! - `category` spreads what is certain (gradients, what an optimizer owns) along the nodes;
//! - `timeline` puts it in order of time.

mod category;
mod flow;
mod storage;
mod timeline;

pub(crate) use timeline::Timeline;
pub use timeline::{MemoryAction, MemoryChange};

/// What a piece of memory is for.
///
/// ```
/// use cresset_profiler::MemoryCategory;
/// let saved = [MemoryCategory::Activation, MemoryCategory::Gradient];
/// assert_eq!(saved.map(MemoryCategory::as_str), ["ACTIVATION", "GRADIENT"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryCategory {
    /// What a model learns.
    Parameter,
    /// What an optimizer keeps from step to step.
    OptimizerState,
    /// What a model is given.
    Input,
    /// Taken and given back within one operator.
    Temporary,
    /// What a model computed on its way to the loss.
    Activation,
    /// The gradient of a parameter.
    Gradient,
    /// What the backward pass computed on its way to gradients.
    AutogradDetail,
    /// None of these, or not to be told.
    Unknown,
}

impl MemoryCategory {
    /// All of them, in the order of torch's numbers.
    ///
    /// ```
    /// # use cresset_profiler::MemoryCategory;
    /// assert_eq!(MemoryCategory::ALL[5], MemoryCategory::Gradient);
    /// ```
    pub const ALL: [MemoryCategory; 8] = [
        MemoryCategory::Parameter,
        MemoryCategory::OptimizerState,
        MemoryCategory::Input,
        MemoryCategory::Temporary,
        MemoryCategory::Activation,
        MemoryCategory::Gradient,
        MemoryCategory::AutogradDetail,
        MemoryCategory::Unknown,
    ];

    /// torch's name.
    ///
    /// ```
    /// assert_eq!(cresset_profiler::MemoryCategory::OptimizerState.as_str(), "OPTIMIZER_STATE");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryCategory::Parameter => "PARAMETER",
            MemoryCategory::OptimizerState => "OPTIMIZER_STATE",
            MemoryCategory::Input => "INPUT",
            MemoryCategory::Temporary => "TEMPORARY",
            MemoryCategory::Activation => "ACTIVATION",
            MemoryCategory::Gradient => "GRADIENT",
            MemoryCategory::AutogradDetail => "AUTOGRAD_DETAIL",
            MemoryCategory::Unknown => "unknown",
        }
    }
}
