//! Finds the forward call behind a backward failure.
//!
//! While the mode is on, each recorded call keeps its name and the stack it was made on, and a
//! pass that meets a NaN stops and tells both.

use super::node::{Function, Grads, Node};
use crate::{Cause, DType, Error, Result, Tensor};
use cresset_dispatch::key::ThreadKeys;
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static GUARDS: Cell<usize> = const { Cell::new(0) };
}

/// Until the guard drops, calls that are recorded on this thread keep the stack they were made
/// on, and passes that run on it look for NaN. Both take time: this is for finding mistakes.
pub fn detect_anomaly() -> DetectAnomaly {
    GUARDS.set(GUARDS.get() + 1);
    DetectAnomaly { keys: None, _this_thread: PhantomData }
}

/// Whether this thread looks for anomalies.
pub fn is_anomaly_enabled() -> bool {
    GUARDS.get() > 0
}

/// Guard of [`detect_anomaly`] and [`detect_anomaly_in_results`](super::detect_anomaly_in_results).
#[must_use = "anomalies are looked for only while the guard lives"]
pub struct DetectAnomaly {
    keys: Option<ThreadKeys>,
    _this_thread: PhantomData<*const ()>,
}

impl DetectAnomaly {
    pub(super) fn with_keys(mut self, keys: ThreadKeys) -> DetectAnomaly {
        self.keys = Some(keys);
        self
    }
}

impl Drop for DetectAnomaly {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get() - 1);
    }
}

/// Where a recorded call was made.
pub(super) struct Trace {
    op: &'static str,
    stack: Backtrace,
}

impl Trace {
    /// The stack of the call being recorded, if anomalies are looked for.
    #[inline]
    pub(super) fn here(op: &'static str) -> Option<Box<Trace>> {
        is_anomaly_enabled().then(|| Box::new(Trace { op, stack: Backtrace::force_capture() }))
    }
}

impl Node {
    fn trace(&self) -> Option<&Trace> {
        match &self.function {
            Function::Slices(slices) => slices.changed.trace(),
            _ => self.trace.as_deref(),
        }
    }
}

/// Refuses gradients with a NaN, if anomalies are looked for.
pub(super) fn check(node: &Node, results: &Grads) -> Result<()> {
    if !is_anomaly_enabled() {
        return Ok(());
    }
    for (i, gradient) in results.iter().enumerate() {
        if let Some(gradient) = gradient
            && has_nan(gradient)?
        {
            let text = format_args!("returned NaN in the gradient of input {i}");
            return Err(explain(node, Error::new(Cause::Anomaly, node.name, text)));
        }
    }
    Ok(())
}

/// The error with the forward call that it goes back to, if that was traced.
pub(super) fn explain(node: &Node, error: Error) -> Error {
    match node.trace() {
        Some(Trace { op, stack }) => {
            error.noting(format_args!("the forward call was {op}, made here:\n{stack}"))
        }
        None if is_anomaly_enabled() => {
            error.noting("the forward call was made before detect_anomaly(), its stack is not known")
        }
        None => error,
    }
}

fn has_nan(tensor: &Tensor) -> Result<bool> {
    if !tensor.dtype().is_float() || tensor.is_meta() {
        return Ok(false);
    }
    let host = tensor.on_host("detect_anomaly")?;
    let elements = host.converted(DType::F64)?.to_vec::<f64>()?;
    Ok(elements.iter().any(|element| element.is_nan()))
}
