//! Whether a module trains.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A flag of modules that behave differently while they are trained, such as dropout.
/// [`train`](crate::Module::train) and [`eval`](crate::Module::eval) set it in all of a model.
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Training {
    /// Whether the module is being trained.
    pub fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Says whether the module is being trained.
    pub fn set(&self, on: bool) {
        self.0.store(on, Relaxed);
    }
}

impl Default for Training {
    /// As in torch, a new module trains.
    fn default() -> Training {
        Training(AtomicBool::new(true))
    }
}
