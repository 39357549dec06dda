//! Activations and softmax.

use super::{Entry, Made};
use crate::arguments::Arguments;
use cresset_nn::*;

/// A layer that writes over its input, if the argument at `position` says so.
pub(super) fn written<L: Overwrite>(layer: L, a: &Arguments<'_>, position: usize) -> Result<Made> {
    if a.or(position, "inplace", false)? { Made::layer(layer.inplace()) } else { Made::layer(layer) }
}

/// A layer whose output is new memory.
fn apart<L: Forward<Output = Tensor>>(layer: L, _a: &Arguments<'_>, _position: usize) -> Result<Made> {
    Made::layer(layer)
}

macro_rules! plain {
    ($($name:literal: $module:ident, $written:ident;)*) => {
        &[$(Entry::new($name, |a| $written($module, a, 0))),*]
    };
}

pub(super) const PLAIN: &[Entry] = plain! {
    "ReLU": Relu, written;
    "ReLU6": Relu6, written;
    "SELU": Selu, written;
    "SiLU": Silu, written;
    "Mish": Mish, written;
    "Hardsigmoid": Hardsigmoid, written;
    "Hardswish": Hardswish, written;
    "Sigmoid": Sigmoid, apart;
    "Tanh": Tanh, apart;
    "LogSigmoid": LogSigmoid, apart;
    "Softsign": Softsign, apart;
    "Tanhshrink": Tanhshrink, apart;
    "Softmax2d": Softmax2d, apart;
};

pub(super) const MODULES: &[Entry] = &[
    Entry::new("LeakyReLU", |a| {
        written(LeakyRelu { negative_slope: a.or(0, "negative_slope", 0.01)? }, a, 1)
    }),
    Entry::new("ELU", |a| written(Elu { alpha: a.or(0, "alpha", 1.0)? }, a, 1)),
    Entry::new("CELU", |a| written(Celu { alpha: a.or(0, "alpha", 1.0)? }, a, 1)),
    Entry::new("Softplus", |a| {
        Made::layer(Softplus { beta: a.or(0, "beta", 1.0)?, threshold: a.or(1, "threshold", 20.0)? })
    }),
    Entry::new("Hardtanh", |a| {
        let layer = Hardtanh { min_val: a.or(0, "min_val", -1.0)?, max_val: a.or(1, "max_val", 1.0)? };
        written(layer, a, 2)
    }),
    Entry::new("Hardshrink", |a| Made::layer(Hardshrink { lambd: a.or(0, "lambd", 0.5)? })),
    Entry::new("Softshrink", |a| Made::layer(Softshrink { lambd: a.or(0, "lambd", 0.5)? })),
    Entry::new("GELU", |a| Made::layer(Gelu { approximate: approximate(a)? })),
    Entry::new("GLU", |a| Made::layer(Glu { dim: a.or(0, "dim", -1)? })),
    Entry::new("Threshold", |a| written(Threshold::new(a.get(0, "threshold")?, a.get(1, "value")?), a, 2)),
    Entry::new("PReLU", |a| {
        let count: i64 = a.or(0, "num_parameters", 1)?;
        let layer = Prelu::new()?.init(a.or(1, "init", 0.25)?)?;
        Made::layer(layer.num_parameters(super::whole("num_parameters", count)?)?)
    }),
    Entry::new("RReLU", |a| {
        written(Rrelu::new(a.or(0, "lower", 0.125)?, a.or(1, "upper", 1.0 / 3.0)?)?, a, 2)
    }),
    Entry::new("Softmax", |a| Made::layer(Softmax::new(a.get(0, "dim")?))),
    Entry::new("Softmin", |a| Made::layer(Softmin::new(a.get(0, "dim")?))),
    Entry::new("LogSoftmax", |a| Made::layer(LogSoftmax::new(a.get(0, "dim")?))),
];

fn approximate(a: &Arguments<'_>) -> Result<Approximate> {
    match a.or(0, "approximate", "none".to_owned())?.as_str() {
        "none" => Ok(Approximate::None),
        "tanh" => Ok(Approximate::Tanh),
        other => Err(super::unknown("approximate", other)),
    }
}
