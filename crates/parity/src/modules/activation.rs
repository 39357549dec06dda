//! Activations and softmax.

use super::{Entry, Made};
use crate::arguments::Arguments;
use cresset_nn::*;

/// Where elements are written is nobody's business in a module here: only the values count.
fn in_place(a: &Arguments<'_>, position: usize) -> Result<()> {
    a.or(position, "inplace", false).map(drop)
}

macro_rules! plain {
    ($($name:literal: $module:ident $(, $inplace:ident)?;)*) => {
        &[$(Entry::new($name, |a| {
            $($inplace(a, 0)?;)?
            let _ = a;
            Made::layer($module)
        })),*]
    };
}

pub(super) const PLAIN: &[Entry] = plain! {
    "ReLU": Relu, in_place;
    "ReLU6": Relu6, in_place;
    "SELU": Selu, in_place;
    "SiLU": Silu, in_place;
    "Mish": Mish, in_place;
    "Hardsigmoid": Hardsigmoid, in_place;
    "Hardswish": Hardswish, in_place;
    "Sigmoid": Sigmoid;
    "Tanh": Tanh;
    "LogSigmoid": LogSigmoid;
    "Softsign": Softsign;
    "Tanhshrink": Tanhshrink;
    "Softmax2d": Softmax2d;
};

pub(super) const MODULES: &[Entry] = &[
    Entry::new("LeakyReLU", |a| {
        in_place(a, 1)?;
        Made::layer(LeakyRelu { negative_slope: a.or(0, "negative_slope", 0.01)? })
    }),
    Entry::new("ELU", |a| {
        in_place(a, 1)?;
        Made::layer(Elu { alpha: a.or(0, "alpha", 1.0)? })
    }),
    Entry::new("CELU", |a| {
        in_place(a, 1)?;
        Made::layer(Celu { alpha: a.or(0, "alpha", 1.0)? })
    }),
    Entry::new("Softplus", |a| {
        Made::layer(Softplus { beta: a.or(0, "beta", 1.0)?, threshold: a.or(1, "threshold", 20.0)? })
    }),
    Entry::new("Hardtanh", |a| {
        in_place(a, 2)?;
        Made::layer(Hardtanh { min_val: a.or(0, "min_val", -1.0)?, max_val: a.or(1, "max_val", 1.0)? })
    }),
    Entry::new("Hardshrink", |a| Made::layer(Hardshrink { lambd: a.or(0, "lambd", 0.5)? })),
    Entry::new("Softshrink", |a| Made::layer(Softshrink { lambd: a.or(0, "lambd", 0.5)? })),
    Entry::new("GELU", |a| Made::layer(Gelu { approximate: approximate(a)? })),
    Entry::new("GLU", |a| Made::layer(Glu { dim: a.or(0, "dim", -1)? })),
    Entry::new("Threshold", |a| {
        in_place(a, 2)?;
        Made::layer(Threshold::new(a.get(0, "threshold")?, a.get(1, "value")?))
    }),
    Entry::new("PReLU", |a| {
        let count: i64 = a.or(0, "num_parameters", 1)?;
        let layer = Prelu::new()?.init(a.or(1, "init", 0.25)?)?;
        Made::layer(layer.num_parameters(super::whole("num_parameters", count)?)?)
    }),
    Entry::new("RReLU", |a| {
        in_place(a, 2)?;
        Made::layer(Rrelu::new(a.or(0, "lower", 0.125)?, a.or(1, "upper", 1.0 / 3.0)?)?)
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
