//! The largest elements of windows that lie at random, as Graham described.

use crate::check::{all_positive, rank, refused};
use cresset_tensor::op::casting;
use cresset_tensor::{Cause, DType, Error, Result, Tensor, composite};

/// How many windows there are in each of `D` dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fraction<const D: usize> {
    /// So many.
    Size([usize; D]),
    /// This share of the places, between 0 and 1.
    Ratio([f64; D]),
}

impl<const D: usize> Fraction<D> {
    /// Refuses sizes of 0 and shares that are none.
    pub(crate) fn check(&self, layer: &'static str) -> Result<()> {
        match self {
            Fraction::Size(sizes) => all_positive(layer, "output_size", sizes),
            Fraction::Ratio(shares) if shares.iter().all(|&share| share > 0.0 && share < 1.0) => Ok(()),
            Fraction::Ratio(shares) => {
                Err(refused(layer, format_args!("output_ratio is {shares:?}, expected above 0 and below 1")))
            }
        }
    }

    fn of(&self, places: &[usize]) -> [usize; D] {
        match self {
            Fraction::Size(sizes) => *sizes,
            Fraction::Ratio(shares) => std::array::from_fn(|dim| (places[dim] as f64 * shares[dim]) as usize),
        }
    }
}

/// The largest elements of windows of size `kernel` that lie at random over images, and where each is in its
/// image. `samples`, `[batch, channels, 2]` from 0 to 1, say where windows lie; they are drawn if `None`.
///
/// # Errors
/// If windows are too large for so many of them, or the samples are not as many.
pub fn fractional_max_pool2d(
    input: &Tensor,
    kernel: [usize; 2],
    to: Fraction<2>,
    samples: Option<&Tensor>,
) -> Result<[Tensor; 2]> {
    // As in torch: the first sample is for the width.
    pool("aten::fractional_max_pool2d", input, kernel, to, samples, [1, 0])
}

/// As [`fractional_max_pool2d`], of volumes.
///
/// # Errors
/// As [`fractional_max_pool2d`].
pub fn fractional_max_pool3d(
    input: &Tensor,
    kernel: [usize; 3],
    to: Fraction<3>,
    samples: Option<&Tensor>,
) -> Result<[Tensor; 2]> {
    pool("aten::fractional_max_pool3d", input, kernel, to, samples, [0, 1, 2])
}

fn pool<const D: usize>(
    name: &'static str,
    input: &Tensor,
    kernel: [usize; D],
    to: Fraction<D>,
    samples: Option<&Tensor>,
    sample_of: [usize; D],
) -> Result<[Tensor; 2]> {
    let _span = composite(name, [input], |_| {});
    if let Some(cast) = casting(name, [input], |[input]| pool(name, input, kernel, to, samples, sample_of)) {
        return cast;
    }
    rank(name, input, &[D + 1, D + 2])?;
    to.check(name)?;
    all_positive(name, "kernel_size", &kernel)?;
    let (outer, places) = input.shape().split_at(input.dim() - D);
    let sizes = to.of(places);
    if let Some(dim) =
        (0..D).find(|&dim| sizes[dim] == 0 || sizes[dim].saturating_add(kernel[dim]) > places[dim] + 1)
    {
        let text = format_args!(
            "{} windows of {} places do not fit into {} in dimension {dim}",
            sizes[dim], kernel[dim], places[dim]
        );
        return Err(Error::new(Cause::Shape, name, text));
    }
    let planes: usize = outer.iter().product();
    let samples = numbers(name, input, samples, planes * D)?;
    let starts = |plane: usize, dim: usize| {
        starts(samples[plane * D + sample_of[dim]], places[dim], sizes[dim], kernel[dim], input.dtype())
    };
    let mut looked = Vec::new();
    for plane in 0..planes {
        let starts: [Vec<usize>; D] = std::array::from_fn(|dim| starts(plane, dim));
        look(&starts, kernel, places, &mut looked);
    }
    let (windows, window) = (sizes.iter().product::<usize>(), kernel.iter().product::<usize>());
    let looked = Tensor::from_vec(looked, [planes, windows * window])?.to(input.device())?;
    let flat = input.reshape([planes, places.iter().product()])?;
    let seen = flat.gather(1, &looked)?.reshape([planes, windows, window])?;
    let [largest, at] = seen.max_dim(-1, false)?;
    let places = looked.reshape([planes, windows, window])?.gather(2, &at.unsqueeze(2)?)?.squeeze_dim(2)?;
    let shape: Vec<usize> = outer.iter().copied().chain(sizes).collect();
    Ok([largest.reshape(shape.as_slice())?, places.reshape(shape.as_slice())?])
}

/// The samples that are given, or new ones.
fn numbers(name: &'static str, input: &Tensor, samples: Option<&Tensor>, count: usize) -> Result<Vec<f64>> {
    let samples = match samples {
        Some(samples) if samples.numel() == count => samples.clone(),
        Some(samples) => {
            let text = format_args!("samples are {:?}, expected {count} numbers", samples.shape());
            return Err(Error::new(Cause::Shape, name, text));
        }
        None => Tensor::rand([count], if input.dtype() == DType::F64 { DType::F64 } else { DType::F32 })?,
    };
    samples.detach()?.to_dtype(DType::F64)?.reshape([count])?.to_vec()
}

/// Where windows begin along a dimension. In the precision of the input, as torch computes it.
fn starts(sample: f64, places: usize, windows: usize, window: usize, dtype: DType) -> Vec<usize> {
    let last = places - window;
    let step = last as f64 / (windows.max(2) - 1) as f64;
    let at = |i: usize| match dtype {
        DType::F64 => ((i as f64 + sample) * step) as usize,
        _ => ((i as f32 + sample as f32) * step as f32) as usize,
    };
    (0..windows).map(|i| if i + 1 == windows { last } else { at(i) - at(0) }).collect()
}

/// The places of each window, the last dimension fastest.
fn look<const D: usize>(
    starts: &[Vec<usize>; D],
    kernel: [usize; D],
    places: &[usize],
    looked: &mut Vec<i64>,
) {
    let digits = |mut number: usize, of: [usize; D]| {
        let mut digits = [0; D];
        for dim in (0..D).rev() {
            digits[dim] = number % of[dim];
            number /= of[dim];
        }
        digits
    };
    let sizes: [usize; D] = std::array::from_fn(|dim| starts[dim].len());
    for window in 0..sizes.iter().product() {
        let corner = digits(window, sizes);
        for place in 0..kernel.iter().product() {
            let offset = digits(place, kernel);
            let flat =
                (0..D).fold(0, |flat, dim| flat * places[dim] + starts[dim][corner[dim]] + offset[dim]);
            looked.push(flat as i64);
        }
    }
}
