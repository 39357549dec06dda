//! What windows see, and the way back, where several operators are needed for it.

use cresset_tensor::op::casting;
use cresset_tensor::ops::{Averaging, Pooling};
use cresset_tensor::{Cause, Error, Result, Tensor, composite};

/// `(sum of x^norm_type)^(1/norm_type)` of windows over lines.
pub fn lp_pool1d(input: &Tensor, norm_type: f64, windows: Pooling) -> Result<Tensor> {
    lp_pool::<1>(input, norm_type, windows, Tensor::avg_pool1d)
}

/// `(sum of x^norm_type)^(1/norm_type)` of windows over images.
pub fn lp_pool2d(input: &Tensor, norm_type: f64, windows: Pooling) -> Result<Tensor> {
    lp_pool::<2>(input, norm_type, windows, Tensor::avg_pool2d)
}

/// `(sum of x^norm_type)^(1/norm_type)` of windows over volumes.
pub fn lp_pool3d(input: &Tensor, norm_type: f64, windows: Pooling) -> Result<Tensor> {
    lp_pool::<3>(input, norm_type, windows, Tensor::avg_pool3d)
}

/// The same over `D` dimensions; `average` is what averages windows.
pub(crate) fn lp_pool<const D: usize>(
    input: &Tensor,
    p: f64,
    windows: Pooling,
    average: fn(&Tensor, &Averaging) -> Result<Tensor>,
) -> Result<Tensor> {
    // One number stands for all dimensions.
    let times = if windows.kernel.len() == 1 { D as u32 } else { 1 };
    let places = windows.kernel.iter().map(|&size| size as i64).product::<i64>().pow(times);
    let how = Averaging { windows, count_include_pad: true, divisor_override: None };
    let mean = average(&input.pow(p)?, &how)?;
    // As torch has it: the sign is kept, and nothing below 0 is left to take a root of.
    mean.sign()?.mul(&mean.abs()?.relu()?)?.mul(places)?.pow(p.recip())
}

/// The largest elements of windows that share the last three dimensions evenly, `sizes` of them, and
/// where each is in its volume.
pub fn adaptive_max_pool3d(input: &Tensor, sizes: [Option<usize>; 3]) -> Result<[Tensor; 2]> {
    const NAME: &str = "aten::adaptive_max_pool3d";
    crate::check::rank(NAME, input, &[4, 5])?;
    if input.shape()[input.dim() - 4..].contains(&0) {
        let text =
            format_args!("expects no dimension of size 0 but the batch, not shape {:?}", input.shape());
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    if input.device().is_cpu() {
        let sizes = sizes.map(|size| size.map(|size| isize::try_from(size).unwrap_or(isize::MAX)));
        return input.adaptive_max_pool3d(&sizes);
    }
    let _span = composite(NAME, [input], |_| {});
    if let Some(cast) = casting(NAME, [input], |[input]| adaptive_max_pool3d(input, sizes)) {
        return cast;
    }
    let (outer, own) = input.shape().split_at(input.dim() - 3);
    let [depth, height, width]: [usize; 3] = std::array::from_fn(|dim| own[dim]);
    let [planes, rows, columns]: [usize; 3] = std::array::from_fn(|dim| sizes[dim].unwrap_or(own[dim]));
    let count: usize = outer.iter().product();
    let signed = |size: usize| Some(isize::try_from(size).unwrap_or(isize::MAX));
    // First in each plane, then across planes: the first of several largest is found first in both.
    let flat = input.reshape([count, depth, height, width])?;
    let [best, place] = flat.adaptive_max_pool2d(&[signed(rows), signed(columns)])?;
    let lines = |x: &Tensor| x.reshape([count, depth, rows * columns])?.transpose(1, 2);
    let [best, plane] = lines(&best)?.contiguous()?.adaptive_max_pool1d(planes as isize)?;
    let place = lines(&place)?.gather(2, &plane)?.add(&plane.mul((height * width) as i64)?)?;
    let shape: Vec<usize> = outer.iter().copied().chain([planes, rows, columns]).collect();
    let back = |x: &Tensor| x.transpose(1, 2)?.reshape(shape.as_slice());
    Ok([back(&best)?, back(&place)?])
}

/// Puts elements where `indices` say within planes of the given size, and zeros elsewhere.
///
/// # Errors
/// For indices of another shape, or outside of their plane.
pub fn max_unpool(input: &Tensor, indices: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    const NAME: &str = "max_unpool";
    let fits = input.shape() == indices.shape() && input.dim() > sizes.len();
    if !fits {
        let text = format_args!(
            "expects an index for each element of an input of more than {} dimensions, not shapes {:?} and {:?}",
            sizes.len(),
            input.shape(),
            indices.shape()
        );
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    // As torch has it: lines are planes of one row.
    let listed = if sizes.len() == 3 { "aten::max_unpool3d" } else { "aten::max_unpool2d" };
    if let Some(cast) = casting(listed, [input, indices], |[x, indices]| max_unpool(x, indices, sizes)) {
        return cast;
    }
    let outer = &input.shape()[..input.dim() - sizes.len()];
    let flat: Vec<usize> = outer.iter().copied().chain([sizes.iter().product()]).collect();
    let line: Vec<isize> = outer.iter().map(|&size| size as isize).chain([-1]).collect();
    let shape: Vec<usize> = outer.iter().chain(sizes).copied().collect();
    if input.numel() == 0 {
        return Tensor::zeros(shape, (input.dtype(), input.device()));
    }
    let empty = Tensor::zeros(flat, (input.dtype(), input.device()))?;
    let (places, values) = (indices.reshape(line.as_slice())?, input.reshape(line.as_slice())?);
    empty.scatter(-1, &places, &values)?.reshape(shape.as_slice())
}
