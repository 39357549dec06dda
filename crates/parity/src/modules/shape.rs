//! Padding, and layers that only move elements around.

use super::{Entry, Made, dims, dims_or, unknown};
use crate::arguments::Arguments;
use cresset_nn::*;

pub(super) const MODULES: &[Entry] = &[
    Entry::new("ZeroPad1d", |a| Made::layer(ZeroPad1d::new(edges::<2>(a)?))),
    Entry::new("ZeroPad2d", |a| Made::layer(ZeroPad2d::new(edges::<4>(a)?))),
    Entry::new("ZeroPad3d", |a| Made::layer(ZeroPad3d::new(edges::<6>(a)?))),
    Entry::new("ConstantPad1d", |a| Made::layer(ConstantPad1d::new(edges::<2>(a)?, a.get(1, "value")?))),
    Entry::new("ConstantPad2d", |a| Made::layer(ConstantPad2d::new(edges::<4>(a)?, a.get(1, "value")?))),
    Entry::new("ConstantPad3d", |a| Made::layer(ConstantPad3d::new(edges::<6>(a)?, a.get(1, "value")?))),
    Entry::new("ReflectionPad1d", |a| Made::layer(ReflectionPad1d::new(edges::<2>(a)?))),
    Entry::new("ReflectionPad2d", |a| Made::layer(ReflectionPad2d::new(edges::<4>(a)?))),
    Entry::new("ReflectionPad3d", |a| Made::layer(ReflectionPad3d::new(edges::<6>(a)?))),
    Entry::new("ReplicationPad1d", |a| Made::layer(ReplicationPad1d::new(edges::<2>(a)?))),
    Entry::new("ReplicationPad2d", |a| Made::layer(ReplicationPad2d::new(edges::<4>(a)?))),
    Entry::new("ReplicationPad3d", |a| Made::layer(ReplicationPad3d::new(edges::<6>(a)?))),
    Entry::new("CircularPad1d", |a| Made::layer(CircularPad1d::new(edges::<2>(a)?))),
    Entry::new("CircularPad2d", |a| Made::layer(CircularPad2d::new(edges::<4>(a)?))),
    Entry::new("CircularPad3d", |a| Made::layer(CircularPad3d::new(edges::<6>(a)?))),
    Entry::new("Flatten", |a| Made::layer(Flatten::new(a.or(0, "start_dim", 1)?, a.or(1, "end_dim", -1)?))),
    Entry::new("Unflatten", |a| {
        Made::layer(Unflatten::new(a.get(0, "dim")?, a.get::<Vec<i64>>(1, "unflattened_size")?))
    }),
    Entry::new("PixelShuffle", |a| Made::layer(PixelShuffle::new(a.size(0, "upscale_factor")?)?)),
    Entry::new("PixelUnshuffle", |a| Made::layer(PixelUnshuffle::new(a.size(0, "downscale_factor")?)?)),
    Entry::new("ChannelShuffle", |a| Made::layer(ChannelShuffle::new(a.size(0, "groups")?)?)),
    Entry::new("Upsample", |a| {
        let mode = Interpolation::named(&a.or(2, "mode", "nearest".to_owned())?)?;
        let layer =
            match (a.get::<Option<Vec<usize>>>(0, "size")?, a.get::<Option<Vec<f64>>>(1, "scale_factor")?) {
                (Some(size), None) => Upsample::to_size(size),
                (None, Some(factors)) => Upsample::by_each(factors),
                _ => return Err(unknown("size", "beside a scale_factor, or neither")),
            };
        let layer = layer.mode(mode)?.align_corners(a.get::<Option<bool>>(3, "align_corners")?)?;
        let again = a.or(4, "recompute_scale_factor", mode == Interpolation::Area)?;
        Made::layer(layer.recompute_scale_factor(again)?)
    }),
    Entry::new("Unfold", |a| {
        let layer =
            Unfold::new(dims::<2>(a, 0, "kernel_size")?)?.dilation(dims_or::<2>(a, 1, "dilation", 1)?)?;
        Made::layer(
            layer.padding(dims_or::<2>(a, 2, "padding", 0)?)?.stride(dims_or::<2>(a, 3, "stride", 1)?)?,
        )
    }),
    Entry::new("Fold", |a| {
        let layer = Fold::new(dims::<2>(a, 0, "output_size")?, dims::<2>(a, 1, "kernel_size")?)?;
        let layer = layer.dilation(dims_or::<2>(a, 2, "dilation", 1)?)?;
        Made::layer(
            layer.padding(dims_or::<2>(a, 3, "padding", 0)?)?.stride(dims_or::<2>(a, 4, "stride", 1)?)?,
        )
    }),
];

/// One number for all edges, or one for each.
fn edges<const N: usize>(a: &Arguments<'_>) -> Result<[isize; N]> {
    let given: Vec<isize> = a.get(0, "padding")?;
    match given[..] {
        [one] => Ok([one; N]),
        ref all => all.try_into().map_err(|_| unknown("padding", &format!("{all:?}"))),
    }
}
