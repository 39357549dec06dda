//! Convolutions.

use super::{Entry, Made, dims, dims_or, unknown};
use crate::arguments::{Arguments, Either};
use cresset_nn::*;

macro_rules! straight {
    ($name:ident, $dims:literal, $a:ident) => {{
        let kernel = dims::<$dims>($a, 2, "kernel_size")?;
        let layer = $name::new($a.size(0, "in_channels")?, $a.size(1, "out_channels")?, kernel)?;
        let layer = layer.stride(dims_or::<$dims>($a, 3, "stride", 1)?)?;
        let layer = match named_padding($a)? {
            Some(true) => layer.padding_same()?,
            Some(false) => layer,
            None => layer.padding(dims_or::<$dims>($a, 4, "padding", 0)?)?,
        };
        let layer = layer.dilation(dims_or::<$dims>($a, 5, "dilation", 1)?)?.groups(groups($a, 6)?)?;
        Made::layer(layer.bias($a.or(7, "bias", true)?)?.padding_mode(padding_mode($a, 8)?)?)
    }};
}
macro_rules! transposed {
    ($name:ident, $dims:literal, $a:ident) => {{
        let kernel = dims::<$dims>($a, 2, "kernel_size")?;
        let layer = $name::new($a.size(0, "in_channels")?, $a.size(1, "out_channels")?, kernel)?;
        let layer = layer.stride(dims_or::<$dims>($a, 3, "stride", 1)?)?;
        let layer = layer.padding(dims_or::<$dims>($a, 4, "padding", 0)?)?;
        let layer = layer.dilation(dims_or::<$dims>($a, 8, "dilation", 1)?)?;
        let layer = layer.output_padding(dims_or::<$dims>($a, 5, "output_padding", 0)?)?;
        let layer = layer.groups(groups($a, 6)?)?.bias($a.or(7, "bias", true)?)?;
        if padding_mode($a, 9)? != PaddingMode::Zeros {
            return Err(unknown("padding_mode", "of a transposed convolution"));
        }
        Made::with(layer, |layer, a| {
            let input: Tensor = a.get(0, "input")?;
            match a.get::<Option<Vec<usize>>>(1, "output_size")? {
                None => layer.call(&input),
                Some(sizes) => {
                    let last = &sizes[sizes.len().saturating_sub($dims)..];
                    let sizes: [usize; $dims] =
                        last.try_into().map_err(|_| unknown("output_size", "too short"))?;
                    layer.call_to(&input, sizes)
                }
            }
        })
    }};
}
pub(super) const MODULES: &[Entry] = &[
    Entry::new("Conv1d", |a| straight!(Conv1d, 1, a)),
    Entry::new("Conv2d", |a| straight!(Conv2d, 2, a)),
    Entry::new("Conv3d", |a| straight!(Conv3d, 3, a)),
    Entry::new("ConvTranspose1d", |a| transposed!(ConvTranspose1d, 1, a)),
    Entry::new("ConvTranspose2d", |a| transposed!(ConvTranspose2d, 2, a)),
    Entry::new("ConvTranspose3d", |a| transposed!(ConvTranspose3d, 3, a)),
];

/// Whether padding is given by the name "same", or "valid".
fn named_padding(a: &Arguments<'_>) -> Result<Option<bool>> {
    match a.get::<Option<Either<String, Vec<i64>>>>(4, "padding")? {
        Some(Either::One(name)) => match name.as_str() {
            "same" => Ok(Some(true)),
            "valid" => Ok(Some(false)),
            other => Err(unknown("padding", other)),
        },
        _ => Ok(None),
    }
}

fn groups(a: &Arguments<'_>, position: usize) -> Result<usize> {
    super::whole("groups", a.or(position, "groups", 1)?)
}

fn padding_mode(a: &Arguments<'_>, position: usize) -> Result<PaddingMode> {
    match a.or(position, "padding_mode", "zeros".to_owned())?.as_str() {
        "zeros" => Ok(PaddingMode::Zeros),
        "reflect" => Ok(PaddingMode::Reflect),
        "replicate" => Ok(PaddingMode::Replicate),
        "circular" => Ok(PaddingMode::Circular),
        other => Err(unknown("padding_mode", other)),
    }
}
