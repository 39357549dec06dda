//! Normalization and dropout.

use super::activation::written;
use super::{Entry, Made};
use crate::arguments::KEYWORD;
use cresset_nn::*;

macro_rules! statistical {
    ($name:ident, $a:ident, $affine:literal, $track:literal) => {{
        let layer = $name::new($a.size(0, "num_features")?)?.eps($a.or(1, "eps", 1e-5)?)?;
        let layer = layer.affine($a.or(3, "affine", $affine)?)?.bias($a.or(KEYWORD, "bias", true)?)?;
        layer.track_running_stats($a.or(4, "track_running_stats", $track)?)?
    }};
}

macro_rules! batch {
    ($name:ident, $a:ident) => {{
        let layer = statistical!($name, $a, true, true);
        let given = $a.has(2, "momentum");
        let momentum: Option<f64> = $a.get(2, "momentum")?;
        Made::layer(if given { layer.momentum(momentum)? } else { layer })
    }};
}

macro_rules! instance {
    ($name:ident, $a:ident) => {{
        let layer = statistical!($name, $a, false, false);
        Made::layer(layer.momentum($a.or(2, "momentum", 0.1)?)?)
    }};
}

macro_rules! dropout {
    ($name:ident, $a:ident) => {{ written($name::new($a.or(0, "p", 0.5)?)?, $a, 1) }};
}

pub(super) const MODULES: &[Entry] = &[
    Entry::new("BatchNorm1d", |a| batch!(BatchNorm1d, a)),
    Entry::new("BatchNorm2d", |a| batch!(BatchNorm2d, a)),
    Entry::new("BatchNorm3d", |a| batch!(BatchNorm3d, a)),
    Entry::new("InstanceNorm1d", |a| instance!(InstanceNorm1d, a)),
    Entry::new("InstanceNorm2d", |a| instance!(InstanceNorm2d, a)),
    Entry::new("InstanceNorm3d", |a| instance!(InstanceNorm3d, a)),
    Entry::new("LayerNorm", |a| {
        let layer =
            LayerNorm::new(a.get::<Vec<usize>>(0, "normalized_shape")?)?.eps(a.or(1, "eps", 1e-5)?)?;
        let layer = layer.elementwise_affine(a.or(2, "elementwise_affine", true)?)?;
        Made::layer(layer.bias(a.or(3, "bias", true)?)?)
    }),
    Entry::new("RMSNorm", |a| {
        let layer = RmsNorm::new(a.get::<Vec<usize>>(0, "normalized_shape")?)?;
        let layer = layer.eps(a.get::<Option<f64>>(1, "eps")?)?;
        let layer = layer.elementwise_affine(a.or(2, "elementwise_affine", true)?)?;
        Made::with(layer, |layer, a| layer.call(&a.get::<Tensor>(0, "x")?))
    }),
    Entry::new("GroupNorm", |a| {
        let layer = GroupNorm::new(a.size(0, "num_groups")?, a.size(1, "num_channels")?)?;
        let layer = layer.eps(a.or(2, "eps", 1e-5)?)?.affine(a.or(3, "affine", true)?)?;
        Made::layer(layer.bias(a.or(KEYWORD, "bias", true)?)?)
    }),
    Entry::new("LocalResponseNorm", |a| {
        let layer = LocalResponseNorm::new(a.size(0, "size")?)?.alpha(a.or(1, "alpha", 1e-4)?)?;
        Made::layer(layer.beta(a.or(2, "beta", 0.75)?)?.k(a.or(3, "k", 1.0)?)?)
    }),
    Entry::new("Dropout", |a| dropout!(Dropout, a)),
    Entry::new("Dropout1d", |a| dropout!(Dropout1d, a)),
    Entry::new("Dropout2d", |a| dropout!(Dropout2d, a)),
    Entry::new("Dropout3d", |a| dropout!(Dropout3d, a)),
    Entry::new("AlphaDropout", |a| dropout!(AlphaDropout, a)),
    Entry::new("FeatureAlphaDropout", |a| dropout!(FeatureAlphaDropout, a)),
];
