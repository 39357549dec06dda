//! Convolutions, pooling and what windows see.

use super::Entry;
use crate::arguments::{Arguments, Either, Zero};
use cresset_tensor::ops::{
    Averaging, Bagging, Border, Convolving, EmbeddingBagging, Interpolation, Margin, Method, PerDim, Pooling,
    Resize, Sampling, Unfolding,
};
use cresset_tensor::{Cause, Error, Result, Tensor};

pub(super) const OPS: &[Entry] = &[
    Entry::one("nn.functional.conv1d", |a| convolved(a, Tensor::conv1d)),
    Entry::one("nn.functional.conv2d", |a| convolved(a, Tensor::conv2d)),
    Entry::one("nn.functional.conv3d", |a| convolved(a, Tensor::conv3d)),
    Entry::one("nn.functional.conv_transpose1d", |a| transposed(a, Tensor::conv_transpose1d)),
    Entry::one("nn.functional.conv_transpose2d", |a| transposed(a, Tensor::conv_transpose2d)),
    Entry::one("nn.functional.conv_transpose3d", |a| transposed(a, Tensor::conv_transpose3d)),
    Entry::one("nn.functional.unfold", |a| {
        let windows = Unfolding {
            kernel: numbers(a, 1, "kernel_size", &[])?,
            dilation: numbers(a, 2, "dilation", &[1])?,
            padding: numbers(a, 3, "padding", &[0])?,
            stride: numbers(a, 4, "stride", &[1])?,
        };
        input(a)?.im2col(&windows)
    }),
    Entry::one("nn.functional.fold", |a| {
        let windows = Unfolding {
            kernel: numbers(a, 2, "kernel_size", &[])?,
            dilation: numbers(a, 3, "dilation", &[1])?,
            padding: numbers(a, 4, "padding", &[0])?,
            stride: numbers(a, 5, "stride", &[1])?,
        };
        let image: Vec<usize> = a.get(1, "output_size")?;
        let image = match image[..] {
            [size] => [size, size],
            [height, width] => [height, width],
            _ => {
                return Err(Error::new(
                    Cause::Argument,
                    "aten::col2im",
                    "takes one or two sizes of an image",
                ));
            }
        };
        input(a)?.col2im(image, &windows)
    }),
    Entry::many("nn.functional.max_pool1d", |a| {
        largest(a, Tensor::max_pool1d, Tensor::max_pool1d_with_indices)
    }),
    Entry::many("nn.functional.max_pool2d", |a| {
        largest(a, Tensor::max_pool2d, Tensor::max_pool2d_with_indices)
    }),
    Entry::many("nn.functional.max_pool3d", |a| {
        largest(a, Tensor::max_pool3d, Tensor::max_pool3d_with_indices)
    }),
    Entry::one("nn.functional.avg_pool1d", |a| averaged(a, Tensor::avg_pool1d)),
    Entry::one("nn.functional.avg_pool2d", |a| averaged(a, Tensor::avg_pool2d)),
    Entry::one("nn.functional.avg_pool3d", |a| averaged(a, Tensor::avg_pool3d)),
    Entry::one("nn.functional.adaptive_avg_pool1d", |a| input(a)?.adaptive_avg_pool1d(only(a)?)),
    Entry::one("nn.functional.adaptive_avg_pool2d", |a| {
        input(a)?.adaptive_avg_pool2d(&a.get::<Vec<Option<isize>>>(1, "output_size")?)
    }),
    Entry::many("nn.functional.adaptive_max_pool1d", |a| {
        first_unless_asked(a, 2, input(a)?.adaptive_max_pool1d(only(a)?))
    }),
    Entry::many("nn.functional.adaptive_max_pool2d", |a| {
        first_unless_asked(
            a,
            2,
            input(a)?.adaptive_max_pool2d(&a.get::<Vec<Option<isize>>>(1, "output_size")?),
        )
    }),
    Entry::one("nn.functional.adaptive_avg_pool3d", |a| {
        input(a)?.adaptive_avg_pool3d(&a.get::<Vec<Option<isize>>>(1, "output_size")?)
    }),
    Entry::one("nn.functional.pixel_shuffle", |a| input(a)?.pixel_shuffle(a.size(1, "upscale_factor")?)),
    Entry::one("nn.functional.pixel_unshuffle", |a| {
        input(a)?.pixel_unshuffle(a.size(1, "downscale_factor")?)
    }),
    Entry::one("nn.functional.channel_shuffle", |a| input(a)?.channel_shuffle(a.size(1, "groups")?)),
    Entry::one("nn.functional.interpolate", |a| {
        let method = Interpolation::named(&a.or(3, "mode", "nearest".to_owned())?)?;
        a.or(6, "antialias", Zero)?;
        input(a)?.interpolate(&resize(a, method)?, method, a.get(4, "align_corners")?)
    }),
    Entry::one("nn.functional.embedding_bag", |a| {
        // Recorded with the table first, as the method here has it.
        let (table, indices): (Tensor, Tensor) = (a.get(0, "weight")?, a.get(1, "input")?);
        let offsets: Option<Tensor> = a.get(2, "offsets")?;
        if let Some(norm) = a.get::<Option<f64>>(3, "max_norm")? {
            table.embedding_renorm_(&indices, norm, a.or(4, "norm_type", 2.0)?)?;
        }
        a.or(7, "sparse", Zero)?;
        let bagging = bagging(a, &table)?;
        let weights: Option<Tensor> = a.get(8, "per_sample_weights")?;
        let offsets = match offsets {
            Some(offsets) if a.or(9, "include_last_offset", false)? => {
                let bags = offsets.numel().checked_sub(1);
                let missing = || Error::new(Cause::Argument, "", "there is no last offset");
                Some(offsets.narrow(0, 0, bags.ok_or_else(missing)?)?)
            }
            other => other,
        };
        table.embedding_bag(&indices, offsets.as_ref(), weights.as_ref(), bagging)
    }),
    Entry::one("nn.functional.grid_sample", |a| {
        input(a)?.grid_sample(&a.get::<Tensor>(1, "grid")?, sampling(a)?)
    }),
];

fn resize(a: &Arguments<'_>, method: Interpolation) -> Result<Resize> {
    let recompute = a.or(5, "recompute_scale_factor", method == Interpolation::Area)?;
    match (a.get(1, "size")?, a.get(2, "scale_factor")?) {
        (Some(sizes), None) => Ok(Resize::To(sizes)),
        (None, Some(factors)) => Ok(Resize::By { factors, recompute }),
        _ => Err(Error::new(Cause::Argument, "", "expects a size or a factor")),
    }
}

fn bagging(a: &Arguments<'_>, table: &Tensor) -> Result<EmbeddingBagging> {
    let mode = match &a.or(6, "mode", "mean".to_owned())?[..] {
        "sum" => Bagging::Sum,
        "mean" => Bagging::Mean,
        "max" => Bagging::Max,
        other => return Err(Error::new(Cause::Argument, "", format_args!("{other:?} is unknown"))),
    };
    let rows = table.shape().first().copied().unwrap_or(0) as i64;
    let row = |padding: i64| {
        let row = usize::try_from(if padding < 0 { padding.saturating_add(rows) } else { padding });
        row.ok()
            .filter(|&row| row < rows as usize)
            .ok_or_else(|| Error::new(Cause::Index, "", format_args!("there is no row {padding} of {rows}")))
    };
    let padding = a.get::<Option<i64>>(10, "padding_idx")?.map(row).transpose()?;
    Ok(EmbeddingBagging { mode, padding, scale_by_frequency: a.or(5, "scale_grad_by_freq", false)? })
}

fn sampling(a: &Arguments<'_>) -> Result<Sampling> {
    let unknown = |name: &str| Err(Error::new(Cause::Argument, "", format_args!("{name:?} is unknown")));
    let method = match &a.or(2, "mode", "bilinear".to_owned())?[..] {
        "bilinear" => Method::Linear,
        "nearest" => Method::Nearest,
        "bicubic" => Method::Cubic,
        other => return unknown(other),
    };
    let border = match &a.or(3, "padding_mode", "zeros".to_owned())?[..] {
        "zeros" => Border::Zeros,
        "border" => Border::Nearest,
        "reflection" => Border::Mirrored,
        other => return unknown(other),
    };
    Ok(Sampling { method, border, align_corners: a.or(4, "align_corners", false)? })
}

fn input(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

fn numbers(a: &Arguments<'_>, position: usize, name: &'static str, default: &[isize]) -> Result<PerDim> {
    Ok(a.get::<Option<Vec<isize>>>(position, name)?.map_or_else(|| default.into(), PerDim::from_vec))
}

/// One size, or a list of one.
fn only(a: &Arguments<'_>) -> Result<isize> {
    match a.get::<Vec<isize>>(1, "output_size")?[..] {
        [one] => Ok(one),
        ref others => Err(Error::new(Cause::Argument, "", format_args!("expects one size, not {others:?}"))),
    }
}

type Convolve = fn(&Tensor, &Tensor, Option<&Tensor>, &Convolving) -> Result<Tensor>;

fn convolved(a: &Arguments<'_>, convolve: Convolve) -> Result<Tensor> {
    let padding = match a.get::<Option<Either<String, Vec<isize>>>>(4, "padding")? {
        Some(Either::One(name)) => margin(&name)?,
        Some(Either::Other(numbers)) => Margin::By(numbers.into()),
        None => Margin::By(PerDim::from_elem(0, 1)),
    };
    let how = Convolving {
        stride: numbers(a, 3, "stride", &[1])?,
        padding,
        dilation: numbers(a, 5, "dilation", &[1])?,
        groups: a.or(6, "groups", 1)?,
        ..Convolving::default()
    };
    let bias: Option<Tensor> = a.get(2, "bias")?;
    convolve(&input(a)?, &a.get::<Tensor>(1, "weight")?, bias.as_ref(), &how)
}

fn margin(name: &str) -> Result<Margin> {
    match name {
        "same" => Ok(Margin::Same),
        "valid" => Ok(Margin::Valid),
        other => Err(Error::new(Cause::Argument, "", format_args!("{other:?} is no padding"))),
    }
}

fn transposed(a: &Arguments<'_>, convolve: Convolve) -> Result<Tensor> {
    let how = Convolving {
        stride: numbers(a, 3, "stride", &[1])?,
        padding: Margin::By(numbers(a, 4, "padding", &[0])?),
        output_padding: numbers(a, 5, "output_padding", &[0])?,
        groups: a.or(6, "groups", 1)?,
        dilation: numbers(a, 7, "dilation", &[1])?,
    };
    let bias: Option<Tensor> = a.get(2, "bias")?;
    convolve(&input(a)?, &a.get::<Tensor>(1, "weight")?, bias.as_ref(), &how)
}

fn windows(a: &Arguments<'_>) -> Result<Pooling> {
    Ok(Pooling {
        stride: numbers(a, 2, "stride", &[])?,
        padding: numbers(a, 3, "padding", &[0])?,
        ..Pooling::new(a.get::<Vec<isize>>(1, "kernel_size")?)
    })
}

fn averaged(a: &Arguments<'_>, average: fn(&Tensor, &Averaging) -> Result<Tensor>) -> Result<Tensor> {
    let windows = Pooling { ceil_mode: a.or(4, "ceil_mode", false)?, ..windows(a)? };
    let count_include_pad = a.or(5, "count_include_pad", true)?;
    let divisor_override = a.get(6, "divisor_override")?;
    average(&input(a)?, &Averaging { windows, count_include_pad, divisor_override })
}

fn largest(
    a: &Arguments<'_>,
    alone: fn(&Tensor, &Pooling) -> Result<Tensor>,
    with_indices: fn(&Tensor, &Pooling) -> Result<[Tensor; 2]>,
) -> Result<Vec<Tensor>> {
    let windows = Pooling {
        dilation: numbers(a, 4, "dilation", &[1])?,
        ceil_mode: a.or(5, "ceil_mode", false)?,
        ..windows(a)?
    };
    if a.or(6, "return_indices", false)? {
        with_indices(&input(a)?, &windows).map(Vec::from)
    } else {
        alone(&input(a)?, &windows).map(|out| vec![out])
    }
}

fn first_unless_asked(a: &Arguments<'_>, position: usize, both: Result<[Tensor; 2]>) -> Result<Vec<Tensor>> {
    let asked = a.or(position, "return_indices", false)?;
    let mut both = Vec::from(both?);
    both.truncate(if asked { 2 } else { 1 });
    Ok(both)
}
