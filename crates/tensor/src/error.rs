//! Why an operation failed.

use cresset_dispatch::observe;
use std::fmt;

/// Why an operation failed: who, what, with values. One pointer wide, so that
/// `Result<Tensor>` stays small.
pub struct Error(Box<Inner>);

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

struct Inner {
    cause: Cause,
    op: &'static str,
    /// The module it came out of first; empty if it was none.
    layer: &'static str,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Shapes do not fit together.
    Shape,
    /// An element type that the operator cannot take.
    DType,
    /// Tensors on different devices, or a device that does not exist.
    Device,
    /// An index, dimension or size out of range.
    Index,
    /// The operator has no kernel for the device.
    NoKernel,
    /// The backward graph does not allow it.
    Graph,
    /// Memory could not be had.
    Memory,
    /// A device or its library failed.
    DeviceFailure,
    /// An argument makes no sense.
    Argument,
    /// A gradient that is not what it should be, where someone looked: it is NaN, or differs
    /// from finite differences.
    Anomaly,
}

impl Error {
    /// An error of `op`; the text says what was found and what would have been accepted.
    #[cold]
    pub fn new(cause: Cause, op: &'static str, message: impl fmt::Display) -> Error {
        observe::fault();
        Error(Box::new(Inner { cause, op, layer: "", message: message.to_string(), source: None }))
    }

    /// An error that nobody is to hear of: it only ends calls early.
    #[cold]
    pub(crate) fn stop(op: &'static str, message: &'static str) -> Error {
        let (cause, message) = (Cause::Graph, message.to_owned());
        Error(Box::new(Inner { cause, op, layer: "", message, source: None }))
    }

    /// A device's own error, told by `op`.
    #[cold]
    pub fn device_failure(
        op: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        observe::fault();
        let source = source.into();
        let message = source.to_string();
        Error(Box::new(Inner { cause: Cause::DeviceFailure, op, layer: "", message, source: Some(source) }))
    }

    /// The same error, told by `op` if nobody has told it yet.
    #[must_use]
    pub(crate) fn in_op(mut self, op: &'static str) -> Error {
        if self.0.op.is_empty() {
            self.0.op = op;
        }
        self
    }

    /// The same error, out of the module of class `layer`, unless it came out of another before.
    #[must_use]
    pub fn in_layer(mut self, layer: &'static str) -> Error {
        if self.0.layer.is_empty() {
            self.0.layer = layer;
        }
        self
    }

    /// The same error with more to say.
    #[must_use]
    pub(crate) fn noting(mut self, note: impl fmt::Display) -> Error {
        self.0.message = format!("{}; {note}", self.0.message);
        self
    }

    /// The same error with another cause.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Error {
        self.0.cause = cause;
        self
    }

    /// What kind of thing went wrong.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// The operator that failed, e.g. `aten::add`; empty if it was none.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The class of the innermost module that failed, e.g. `Linear`; empty if it was none.
    pub fn layer(&self) -> &'static str {
        self.0.layer
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { op, layer, .. } = *self.0;
        // A module that refuses its input has told its name already.
        if !layer.is_empty() && layer != op {
            write!(f, "{layer}: ")?;
        }
        if !op.is_empty() {
            write!(f, "{op}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

impl From<cresset_dispatch::device::UnknownDevice> for Error {
    fn from(error: cresset_dispatch::device::UnknownDevice) -> Error {
        Error::new(Cause::Device, "", error)
    }
}
