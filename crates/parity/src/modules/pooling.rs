//! Pooling.

use super::{Entry, Made, dims, dims_or, optional_dims, unknown};
use crate::arguments::Arguments;
use cresset_nn::*;

macro_rules! maximum {
    ($name:ident, $dims:literal, $a:ident) => {{
        let mut layer = $name::new(dims::<$dims>($a, 0, "kernel_size")?)?;
        if let Some(stride) = optional_dims::<$dims>($a, 1, "stride")? {
            layer = layer.stride(stride)?;
        }
        let layer = layer.dilation(dims_or::<$dims>($a, 3, "dilation", 1)?)?;
        let layer = layer.padding(dims_or::<$dims>($a, 2, "padding", 0)?)?;
        let layer = layer.ceil_mode($a.or(5, "ceil_mode", false)?)?;
        if $a.or(4, "return_indices", false)? {
            Made::with(layer.return_indices(), |layer, a| layer.call(&a.get::<Tensor>(0, "input")?))
        } else {
            Made::layer(layer)
        }
    }};
}

macro_rules! unpool {
    ($name:ident, $dims:literal, $a:ident) => {{
        let mut layer = $name::new(dims::<$dims>($a, 0, "kernel_size")?)?;
        if let Some(stride) = optional_dims::<$dims>($a, 1, "stride")? {
            layer = layer.stride(stride)?;
        }
        let layer = layer.padding(dims_or::<$dims>($a, 2, "padding", 0)?)?;
        Made::with(layer, |layer, a| {
            let [input, indices]: [Tensor; 2] = [a.get(0, "input")?, a.get(1, "indices")?];
            match a.get::<Option<Vec<usize>>>(2, "output_size")? {
                None => layer.call((&input, &indices)),
                Some(sizes) => {
                    let last = &sizes[sizes.len().saturating_sub($dims)..];
                    let sizes: [usize; $dims] =
                        last.try_into().map_err(|_| unknown("output_size", "too short"))?;
                    layer.call_to(&input, &indices, sizes)
                }
            }
        })
    }};
}

macro_rules! average {
    ($name:ident, $dims:literal, $a:ident) => {{
        let mut layer = $name::new(dims::<$dims>($a, 0, "kernel_size")?)?;
        if let Some(stride) = optional_dims::<$dims>($a, 1, "stride")? {
            layer = layer.stride(stride)?;
        }
        let layer = layer.padding(dims_or::<$dims>($a, 2, "padding", 0)?)?;
        let layer = layer.ceil_mode($a.or(3, "ceil_mode", false)?)?;
        let layer = layer.count_include_pad($a.or(4, "count_include_pad", true)?)?;
        Made::layer(layer.divisor_override($a.get::<Option<i64>>(5, "divisor_override")?)?)
    }};
}

macro_rules! power {
    ($name:ident, $dims:literal, $a:ident) => {{
        let mut layer = $name::new($a.get(0, "norm_type")?, dims::<$dims>($a, 1, "kernel_size")?)?;
        if let Some(stride) = optional_dims::<$dims>($a, 2, "stride")? {
            layer = layer.stride(stride)?;
        }
        Made::layer(layer.ceil_mode($a.or(3, "ceil_mode", false)?)?)
    }};
}

macro_rules! adaptive {
    ($name:ident, $dims:literal, $a:ident) => {
        $name::new(output_size::<$dims>($a)?)?
    };
    (maximum $name:ident, $dims:literal, $a:ident) => {{
        let layer = $name::new(output_size::<$dims>($a)?)?;
        if $a.or(1, "return_indices", false)? {
            Made::with(layer.return_indices(), |layer, a| layer.call(&a.get::<Tensor>(0, "input")?))
        } else {
            Made::layer(layer)
        }
    }};
}

pub(super) const MODULES: &[Entry] = &[
    Entry::new("MaxPool1d", |a| maximum!(MaxPool1d, 1, a)),
    Entry::new("MaxPool2d", |a| maximum!(MaxPool2d, 2, a)),
    Entry::new("MaxPool3d", |a| maximum!(MaxPool3d, 3, a)),
    Entry::new("MaxUnpool1d", |a| unpool!(MaxUnpool1d, 1, a)),
    Entry::new("MaxUnpool2d", |a| unpool!(MaxUnpool2d, 2, a)),
    Entry::new("MaxUnpool3d", |a| unpool!(MaxUnpool3d, 3, a)),
    Entry::new("AvgPool1d", |a| average!(AvgPool1d, 1, a)),
    Entry::new("AvgPool2d", |a| average!(AvgPool2d, 2, a)),
    Entry::new("AvgPool3d", |a| average!(AvgPool3d, 3, a)),
    Entry::new("LPPool1d", |a| power!(LpPool1d, 1, a)),
    Entry::new("LPPool2d", |a| power!(LpPool2d, 2, a)),
    Entry::new("LPPool3d", |a| power!(LpPool3d, 3, a)),
    Entry::new("AdaptiveAvgPool1d", |a| Made::layer(adaptive!(AdaptiveAvgPool1d, 1, a))),
    Entry::new("AdaptiveAvgPool2d", |a| Made::layer(adaptive!(AdaptiveAvgPool2d, 2, a))),
    Entry::new("AdaptiveAvgPool3d", |a| Made::layer(adaptive!(AdaptiveAvgPool3d, 3, a))),
    Entry::new("AdaptiveMaxPool1d", |a| adaptive!(maximum AdaptiveMaxPool1d, 1, a)),
    Entry::new("AdaptiveMaxPool2d", |a| adaptive!(maximum AdaptiveMaxPool2d, 2, a)),
    Entry::new("AdaptiveMaxPool3d", |a| adaptive!(maximum AdaptiveMaxPool3d, 3, a)),
];

fn output_size<const D: usize>(a: &Arguments<'_>) -> Result<[Option<usize>; D]> {
    // None alone is as many windows as places, too.
    let given: Vec<Option<usize>> =
        a.get::<Option<Vec<Option<usize>>>>(0, "output_size")?.unwrap_or(vec![None]);
    match given[..] {
        [one] => Ok([one; D]),
        ref all => all.try_into().map_err(|_| unknown("output_size", &format!("{all:?}"))),
    }
}
