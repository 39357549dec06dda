//! What is recorded: modes of the thread, as guards and around closures, and the tensors that
//! inference mode makes.

use crate::{Cause, Error, Key, Result, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::key::{self, ThreadKeys};

/// Calls on this thread are not recorded until the guard drops.
pub fn no_grad() -> ThreadKeys {
    key::exclude(KeySet::AUTOGRAD)
}

/// Calls on this thread are recorded again until the guard drops; in
/// [inference mode](inference_mode) they are not.
pub fn enable_grad() -> ThreadKeys {
    set_grad_enabled(true)
}

/// Calls on this thread are recorded or not until the guard drops.
pub fn set_grad_enabled(enabled: bool) -> ThreadKeys {
    if enabled && !is_inference_mode() { key::include(KeySet::AUTOGRAD) } else { no_grad() }
}

/// Nothing on this thread is recorded until the guard drops, and new tensors never will be:
/// they cannot require grad, cannot be kept for a derivative, and cannot be changed in place
/// outside this mode.
pub fn inference_mode() -> ThreadKeys {
    key::exclude(KeySet::AUTOGRAD | KeySet::CHANGES)
}

/// Runs `f` without recording its calls. See [`no_grad`].
pub fn without_grad<R>(f: impl FnOnce() -> R) -> R {
    with_grad_enabled(false, f)
}

/// Runs `f` with or without recording its calls. See [`set_grad_enabled`].
pub fn with_grad_enabled<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
    let _guard = set_grad_enabled(enabled);
    f()
}

/// Runs `f` in [inference mode](inference_mode).
pub fn in_inference_mode<R>(f: impl FnOnce() -> R) -> R {
    let _guard = inference_mode();
    f()
}

/// Whether calls on this thread are recorded.
pub fn is_grad_enabled() -> bool {
    !key::excluded().contains(Key::AUTOGRAD)
}

/// Whether this thread is in [inference mode](inference_mode).
pub fn is_inference_mode() -> bool {
    key::excluded().contains(Key::CHANGES)
}

/// Refuses to change a tensor of inference mode outside it.
pub(crate) fn check_inference(op: &'static str, target: &Tensor) -> Result<()> {
    if !target.is_inference() || is_inference_mode() {
        return Ok(());
    }
    let text = "a tensor made in inference mode cannot be changed in place outside it; change a copy instead";
    Err(Error::new(Cause::Graph, op, text))
}

/// Refuses a leaf that was made in inference mode.
pub(super) fn check_inference_leaf(tensor: &Tensor) -> Result<()> {
    if !tensor.is_inference() {
        return Ok(());
    }
    let text = "a tensor made in inference mode cannot require grad; a copy made outside can";
    Err(Error::new(Cause::Graph, "requires_grad", text))
}

/// Refuses to keep a tensor of inference mode for a derivative.
pub(super) fn check_savable(op: &'static str, tensor: &Tensor) -> Result<()> {
    if !tensor.is_inference() {
        return Ok(());
    }
    let text = format_args!(
        "a tensor of shape {:?} made in inference mode cannot be saved for the gradient; pass a copy made outside, or use no_grad() instead of inference_mode()",
        tensor.shape()
    );
    Err(Error::new(Cause::Graph, op, text))
}
