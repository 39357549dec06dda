//! Activations.

use super::{Entry, Made};
use cresset_nn::{Relu, Sigmoid, Tanh};

pub(super) const MODULES: &[Entry] = &[
    Entry::new("ReLU", |_| Made::layer(Relu)),
    Entry::new("Sigmoid", |_| Made::layer(Sigmoid)),
    Entry::new("Tanh", |_| Made::layer(Tanh)),
];
