//! Samples at the places of a grid made of other operators, where a device has no kernel for them.

use super::{Border, Method, Sampling};
use crate::{DType, Result, Tensor};

/// The samples of `x` at the places of `grid`, both as the operators take them. Derivatives are those of what
/// it is made of.
pub(super) fn sampled(x: &Tensor, grid: &Tensor, how: Sampling) -> Result<Tensor> {
    let dtype = x.dtype();
    if matches!(dtype, DType::F16 | DType::BF16) {
        // Sums are rounded once.
        return sampled(&x.to_dtype(DType::F32)?, &grid.to_dtype(DType::F32)?, how)?.to_dtype(dtype);
    }
    let rank = x.dim() - 2;
    let (samples, channels) = (x.shape()[0], x.shape()[1]);
    let sizes = &x.shape()[2..];
    let places: usize = grid.shape()[1..=rank].iter().product();
    let shape: Vec<usize> = x.shape()[..2].iter().chain(&grid.shape()[1..=rank]).copied().collect();
    let grid = grid.reshape([samples, places, rank])?;
    // The grid has the last dimension first.
    let axes: Vec<Vec<Tap>> = (0..rank)
        .map(|dim| {
            let place = grid.select(2, (rank - 1 - dim) as isize)?;
            taps(&place, sizes[dim], how)
        })
        .collect::<Result<_>>()?;
    let flat = x.reshape([samples, channels, sizes.iter().product()])?;
    let mut sum: Option<Tensor> = None;
    let mut corner = vec![0; rank];
    loop {
        let (mut index, mut weight) = (None::<Tensor>, None::<Tensor>);
        for (dim, &at) in corner.iter().enumerate() {
            let tap = &axes[dim][at];
            index = Some(match index {
                Some(index) => index.mul(sizes[dim] as i64)?.add(&tap.index)?,
                None => tap.index.clone(),
            });
            weight = match (weight, &tap.weight) {
                (Some(one), Some(other)) => Some(one.mul(other)?),
                (one, other) => one.or_else(|| other.clone()),
            };
        }
        let index =
            index.expect("an image has a dimension").unsqueeze(1)?.expand([samples, channels, places])?;
        let mut part = flat.gather(2, &index)?;
        if let Some(weight) = weight {
            part = part.mul(&weight.unsqueeze(1)?)?;
        }
        sum = Some(match sum {
            Some(sum) => sum.add(&part)?,
            None => part,
        });
        let Some(dim) = (0..rank).rev().find(|&dim| corner[dim] + 1 < axes[dim].len()) else { break };
        corner[dim] += 1;
        corner[dim + 1..].fill(0);
    }
    sum.expect("there is a corner").reshape(shape)
}

/// An element that takes part in a sample along one dimension: where it is, and how much it counts; without a
/// weight, all.
struct Tap {
    index: Tensor,
    weight: Option<Tensor>,
}

/// What takes part along a dimension of `size` elements.
fn taps(place: &Tensor, size: usize, how: Sampling) -> Result<Vec<Tap>> {
    let n = size as f64;
    let place = match how.align_corners {
        true => place.add(1)?.mul((n - 1.0) / 2.0)?,
        false => place.add(1)?.mul(n)?.sub(1)?.mul(0.5)?,
    };
    match how.method {
        Method::Linear => {
            let place = bordered(&place, size, how)?;
            let below = place.floor()?.detach()?;
            let share = place.sub(&below)?;
            Ok(vec![tap(&below, Some(share.rsub(1)?), size)?, tap(&below.add(1)?, Some(share), size)?])
        }
        Method::Nearest | Method::NearestExact => {
            let nearest = bordered(&place, size, how)?.round()?.detach()?;
            // The place has a part in the result, though moving it a little changes nothing.
            let always = nearest.full_like_with(true, DType::Bool)?;
            Ok(vec![tap(&nearest, Some(place.ones_like()?.where_(&always, &place)?), size)?])
        }
        Method::Cubic => {
            let below = place.floor()?.detach()?;
            let shares = cubic(&place.sub(&below)?)?;
            let taps = shares.into_iter().zip(-1i64..).map(|(share, at)| {
                let place = bordered(&below.add(at)?, size, how)?.detach()?;
                tap(&place, Some(share), size)
            });
            taps.collect()
        }
    }
}

/// The element at `place`, which counts for nothing outside.
fn tap(place: &Tensor, weight: Option<Tensor>, size: usize) -> Result<Tap> {
    let inside = place.ge(0)?.logical_and(&place.le(size as f64 - 1.0)?)?;
    let index = place.masked_fill(&inside.logical_not()?, 0)?.to(DType::I64)?;
    let weight = weight.map(|weight| weight.mul(&inside.to(weight.dtype())?)).transpose()?;
    Ok(Tap { index, weight })
}

/// A place outside, moved inside as the border says.
fn bordered(place: &Tensor, size: usize, how: Sampling) -> Result<Tensor> {
    match how.border {
        Border::Zeros => Ok(place.clone()),
        Border::Nearest => clipped(place, size),
        Border::Mirrored => {
            let (low, high) = match how.align_corners {
                true => (0.0, size as f64 - 1.0),
                false => (-0.5, size as f64 - 0.5),
            };
            if low == high {
                return place.zeros_like();
            }
            let span = high - low;
            let from = place.sub(low)?.abs()?;
            let rest = from.fmod(span)?;
            let flips = from.detach()?.div(span)?.floor()?;
            let is_even = flips.fmod(2.0)?.eq(0)?;
            let mirrored = rest.where_(&is_even, &rest.rsub(span)?)?.add(low)?;
            clipped(&mirrored, size)
        }
    }
}

/// A place between the first element and the last; at these and beyond, moving it changes nothing.
fn clipped(place: &Tensor, size: usize) -> Result<Tensor> {
    let last = size as f64 - 1.0;
    let inside = place.gt(0)?.logical_and(&place.lt(last)?)?;
    let fixed = place.detach()?.clamp(0.0, last)?;
    let fixed = fixed.masked_fill(&fixed.ne(&fixed)?, 0)?;
    place.where_(&inside, &fixed)
}

/// How much the four elements around a place count, `t` after the second.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    let near = |x: &Tensor| x.mul(A + 2.0)?.sub(A + 3.0)?.mul(x)?.mul(x)?.add(1);
    let far = |x: &Tensor| x.mul(A)?.sub(5.0 * A)?.mul(x)?.add(8.0 * A)?.mul(x)?.sub(4.0 * A);
    let back = t.rsub(1)?;
    Ok([far(&t.add(1)?)?, near(t)?, near(&back)?, far(&back.add(1)?)?])
}
