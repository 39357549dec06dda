//! Shape rules that many operators share.

use crate::error::{Result, fail};
use crate::objects::Tensor;
use cresset_acl::code;
use cresset_kernels::Layout;

/// The inputs broadcast against each other; fails unless that gives the shape of `out`.
pub(super) fn broadcast<const N: usize>(inputs: [Tensor; N], out: &Tensor) -> Result<[Tensor; N]> {
    let mut shape = Vec::new();
    for x in &inputs {
        shape = common(&shape, x.shape())?;
    }
    expect("out", out, &shape)?;
    Ok(inputs.map(|x| expand(&x, &shape)))
}

/// A tensor repeated to fill `shape`, which it is known to fit.
fn expand(x: &Tensor, shape: &[usize]) -> Tensor {
    x.with_layout(x.layout().broadcast_to(shape).expect("shapes were broadcast against each other"))
}

/// One tensor repeated to fill `shape`.
pub(super) fn broadcast_to(name: &str, x: &Tensor, shape: &[usize]) -> Result<Tensor> {
    match x.layout().broadcast_to(shape) {
        Some(layout) => Ok(x.with_layout(layout)),
        None => {
            fail!(code::NN_PARAM_INVALID, "{name} of shape {:?} does not broadcast to {shape:?}", x.shape())
        }
    }
}

/// The shape that both broadcast to.
pub(super) fn common(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size =
        |shape: &[usize], dim: usize| (dim + shape.len()).checked_sub(rank).map_or(1, |dim| shape[dim]);
    let merged = (0..rank).map(|dim| match (size(a, dim), size(b, dim)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    match merged.collect() {
        Some(shape) => Ok(shape),
        None => fail!(code::NN_PARAM_INVALID, "shapes {a:?} and {b:?} do not broadcast"),
    }
}

/// Fails unless a tensor has this shape.
pub(super) fn expect(name: &str, x: &Tensor, shape: &[usize]) -> Result {
    if x.shape() != shape {
        fail!(code::NN_PARAM_INVALID, "{name} has shape {:?}, expected {shape:?}", x.shape());
    }
    Ok(())
}

/// Fails unless a tensor has so many dimensions.
pub(super) fn expect_rank(name: &str, x: &Tensor, rank: usize) -> Result {
    if x.shape().len() != rank {
        fail!(code::NN_PARAM_INVALID, "{name} has shape {:?}, expected {rank} dimensions", x.shape());
    }
    Ok(())
}

/// Fails unless a tensor has exactly one element.
pub(super) fn expect_one(name: &str, x: &Tensor) -> Result {
    if x.layout().len() != 1 {
        fail!(code::NN_PARAM_INVALID, "{name} has shape {:?}, expected one element", x.shape());
    }
    Ok(())
}

/// A dimension of `rank` many; negative ones count from the end. A number by itself has one.
pub(super) fn dim(dim: i64, rank: usize) -> Result<usize> {
    let count = rank.max(1) as i64;
    if !(-count..count).contains(&dim) {
        fail!(code::NN_PARAM_INVALID, "dimension {dim} is out of range {}..{count}", -count);
    }
    Ok(dim.rem_euclid(count) as usize)
}

/// The dimensions to reduce: sorted, each once; none given means all.
pub(super) fn dims(given: &[i64], rank: usize) -> Result<Vec<usize>> {
    if given.is_empty() || rank == 0 {
        given.iter().try_for_each(|&given| dim(given, rank).map(drop))?;
        return Ok((0..rank).collect());
    }
    let mut dims = given.iter().map(|&given| dim(given, rank)).collect::<Result<Vec<usize>>>()?;
    dims.sort_unstable();
    if dims.windows(2).any(|pair| pair[0] == pair[1]) {
        fail!(code::NN_PARAM_INVALID, "dimensions {given:?} name one twice");
    }
    Ok(dims)
}

/// `out` of a reduction of `shape` over `dims`, with reduced dimensions of size 1.
pub(super) fn kept(name: &str, out: &Tensor, shape: &[usize], dims: &[usize], keep: bool) -> Result<Tensor> {
    let full: Vec<usize> =
        shape.iter().enumerate().map(|(dim, &size)| if dims.contains(&dim) { 1 } else { size }).collect();
    if keep {
        expect(name, out, &full)?;
        return Ok(out.clone());
    }
    let rest: Vec<usize> = (0..shape.len()).filter(|dim| !dims.contains(dim)).map(|dim| shape[dim]).collect();
    expect(name, out, &rest)?;
    let mut strides = out.layout().strides().iter().copied();
    let strides: Vec<usize> = (0..shape.len())
        .map(
            |dim| {
                if dims.contains(&dim) { 1 } else { strides.next().expect("one stride per kept dimension") }
            },
        )
        .collect();
    let layout = Layout::strided(&full, &strides, 0).expect("no element is added");
    Ok(out.with_layout(layout))
}
