//! Fully connected layers.

use super::{Entry, Made};
use cresset_nn::Linear;

pub(super) const MODULES: &[Entry] = &[Entry::new("Linear", |a| {
    let layer = Linear::new(a.size(0, "in_features")?, a.size(1, "out_features")?)?;
    Made::layer(layer.bias(a.or(2, "bias", true)?)?)
})];
