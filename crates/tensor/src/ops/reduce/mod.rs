//! Reductions: many elements to one, over all dimensions or some.
//!
//! In an operator's attributes no dimensions means none; in the public methods it means all, as
//! in torch, but for `any` and `all`.

mod choose;
mod extremes;
mod logic;
mod logsumexp;
mod moments;
mod norm;
mod prod;
mod quantile;
mod sort;
mod sum;
mod unique;

pub use choose::*;
pub use extremes::*;
pub use logic::*;
pub use logsumexp::*;
pub use moments::*;
pub use norm::*;
pub use prod::*;
pub use quantile::*;
pub use sort::*;
pub use sum::*;
pub use unique::*;

pub(super) use sort::rank;

use super::{Expand, check_dims, dtype_argument, sizes};
use crate::{Cause, DType, Error, Layout, NamedDim, NamedDims, Op as _, Result, Tensor, composite, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, View, ViewMut};

/// The shape of `from` with `dims` reduced to size 1.
pub(super) fn kept(from: &[usize], dims: &[usize]) -> Dims {
    let mut kept = Dims::from_slice(from);
    for &dim in dims {
        // A tensor without dimensions has none to reduce, and may be asked to.
        if let Some(size) = kept.get_mut(dim) {
            *size = 1;
        }
    }
    kept
}

/// As [`check_dims`], but a tensor without dimensions has none to reduce.
fn check_reduced(op: &'static str, dims: &[usize], x: &Tensor) -> Result<()> {
    match x.dim() == 0 && !dims.is_empty() {
        true => check_dims(op, &[usize::MAX], x),
        false => check_dims(op, dims, x),
    }
}

/// The shape of `from` reduced over `dims`.
fn reduced(from: &[usize], dims: &[usize], keep: bool) -> Dims {
    if keep {
        return kept(from, dims);
    }
    if dims.len() == from.len() {
        return Dims::new();
    }
    from.iter().enumerate().filter(|(dim, _)| !dims.contains(dim)).map(|(_, &size)| size).collect()
}

/// How many elements become one.
fn group_size(from: &[usize], dims: &[usize]) -> usize {
    dims.iter().filter_map(|&dim| from.get(dim)).product()
}

/// Fills `out`, seen as if the reduced dimensions had stayed.
fn fill(x: &Tensor, dims: &[usize], out: &Tensor, run: impl FnOnce(View<'_>, ViewMut<'_>)) -> Result<()> {
    let layout = kept_layout(x.shape(), dims);
    let reading = x.read();
    let mut writing = out.write();
    run(x.elements(&reading), ViewMut::new(writing.bytes(), out.dtype(), &layout));
    Ok(())
}

/// The layout of a fresh output, seen as if the reduced dimensions had stayed.
fn kept_layout(from: &[usize], dims: &[usize]) -> Layout {
    Layout::contiguous(&kept(from, dims)).expect("a fresh output can be seen with dimensions of size 1")
}

/// A gradient spread over the elements that were reduced.
fn spread(grad: &Tensor, from: &[usize], dims: &NamedDims, keep: bool) -> Result<Tensor> {
    let grad = if keep { grad.clone() } else { with_reduced(grad, from.len(), dims)? };
    Expand::from(from).call([&grad])
}

/// A reduced tensor with the reduced dimensions back, of size 1. Where all went unnamed it stays a number.
fn with_reduced(x: &Tensor, rank: usize, dims: &NamedDims) -> Result<Tensor> {
    match dims.named() {
        _ if rank == 0 => Ok(x.clone()),
        [] => Ok(x.clone()),
        &[dim] => x.unsqueeze(dim),
        _ => {
            let reduced = (0..rank).filter(|dim| dims.contains(dim));
            reduced.map(|dim| dim as isize).try_fold(x.clone(), |x, dim| x.unsqueeze(dim))
        }
    }
}

/// Whether all dimensions go, for which torch has operators of their own.
fn is_full(dims: &NamedDims, keep: bool) -> bool {
    !keep && dims.named().is_empty()
}

/// Dimensions as observers see them where those that were not named are nothing at all.
fn told<'a>(dims: &NamedDims, told: &'a [i64]) -> Argument<'a> {
    if dims.named().is_empty() { Argument::None } else { Argument::Ints(told) }
}

fn reduce_arguments(
    x: &Tensor,
    dims: &NamedDims,
    keep: bool,
    dtype: Option<DType>,
    visit: &mut dyn FnMut(Argument<'_>),
) {
    visit(Argument::Tensor(x.argument()));
    if !is_full(dims, keep) {
        visit(Argument::Ints(&dims.told()));
        visit(Argument::Bool(keep));
    }
    visit(dtype_argument(dtype));
}

/// A tensor without dimensions as if it had one.
fn as_vector(x: &Tensor) -> Result<Tensor> {
    let line = x.layout().view(&[1]).filter(|_| x.dim() == 0);
    Ok(line.map_or_else(|| x.alias(), |line| x.with_layout(line)))
}

/// What elements are added up and multiplied as: integers in their widest type.
pub(super) fn sum_type(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

/// Refuses to add up or multiply as bool.
pub(super) fn check_sum_type(op: &'static str, dtype: DType) -> Result<()> {
    if dtype != DType::Bool {
        return Ok(());
    }
    Err(Error::new(Cause::DType, op, "computes numbers, not bool; use any() or all() for truth values"))
}

fn is_nan(x: &Tensor) -> Result<Tensor> {
    x.eq(x)?.eq(false)
}

/// A tensor of `shape` that holds `grad` where `indices` point along `dim`, and zeros elsewhere.
///
/// `grad` and `indices` have all dimensions of `shape`, of any size along `dim`.
pub(super) fn placed(grad: &Tensor, dim: usize, indices: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let stride: usize = shape.iter().skip(dim + 1).product();
    let picked = indices.shape().get(dim).copied().unwrap_or(1);
    let size = shape.get(dim).copied().unwrap_or(1);
    let start = |at: usize| (at / (picked * stride) * size * stride + at % stride) as i64;
    let starts: Vec<i64> = (0..indices.numel()).map(start).collect();
    let starts = Tensor::from_slice(&starts, [starts.len()])?.to(grad.device())?;
    let places = indices.reshape([indices.numel()])?.mul(stride as i64)?.add(&starts)?;
    let zeros = Tensor::zeros([count], (grad.dtype(), grad.device()))?;
    zeros.index_add(0, &places, &grad.reshape([grad.numel()])?)?.reshape(shape)
}

/// The gradient of elements chosen along `dim`, where they were chosen: as [`placed`], for indices that
/// name no element twice.
fn selected(grad: &Tensor, dim: NamedDim, indices: &Tensor, shape: &[usize], keep: bool) -> Result<Tensor> {
    if !grad.device().is_cpu() {
        let kept = |x: &Tensor| if keep { Ok(x.clone()) } else { x.reshape(kept(shape, &[*dim])) };
        return placed(&kept(grad)?, *dim, &kept(indices)?, shape);
    }
    let sizes = sizes(shape);
    let _span = composite("aten::value_selecting_reduction_backward", [grad], |visit| {
        visit(dim.argument());
        visit(Argument::Tensor(indices.argument()));
        visit(Argument::Ints(&sizes));
        visit(Argument::Bool(keep));
    });
    let whole = |x: &Tensor| match keep || shape.is_empty() {
        true => Ok(x.clone()),
        false => x.unsqueeze(dim.named()),
    };
    let (grad, indices) = (whole(grad)?, whole(indices)?);
    let zeros = Tensor::zeros(shape, (grad.dtype(), grad.device()))?;
    zeros.scatter_(dim.named(), &indices, &grad)?;
    Ok(zeros)
}

/// Shows how torch writes a single element over a tensor that is one.
pub(super) fn show_filled(out: &Tensor, with: &Tensor) -> Result<()> {
    shown::within("aten::fill_", [out, with], &[], || out.copy_(with).map(|()| out.clone())).map(drop)
}

impl Tensor {
    /// The dimensions that `dims` name, each once.
    pub(crate) fn dim_indices(&self, op: &'static str, dims: &[isize]) -> Result<Dims> {
        check_rank(op, self)?;
        let mut indices = Dims::new();
        for &dim in dims {
            let index = self.dim_index(op, dim)?;
            if indices.contains(&index) {
                return Err(Error::new(
                    Cause::Argument,
                    op,
                    format_args!("dimension {dim} is named twice in {dims:?}"),
                ));
            }
            // A tensor without dimensions has none to reduce, whatever it is called.
            if self.dim() > 0 {
                indices.push(index);
            }
        }
        Ok(indices)
    }

    /// As [`dim_indices`](Tensor::dim_indices), where none named means all.
    fn dims_or_all(&self, op: &'static str, dims: &[isize]) -> Result<NamedDims> {
        check_rank(op, self)?;
        let at = if dims.is_empty() { (0..self.dim()).collect() } else { self.dim_indices(op, dims)? };
        Ok(NamedDims::new(at, dims))
    }
}

/// Shows a reduction over dimensions that are not there.
fn failed(op: &'static str, x: &Tensor, dims: &[isize], keep: bool, error: Error) -> Error {
    let named: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
    shown::failed(op, [x], &[Argument::Ints(&named), Argument::Bool(keep), Argument::None], error)
}

/// The most dimensions that torch reduces.
const MOST_DIMS: usize = 64;

fn check_rank(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dim() <= MOST_DIMS {
        return Ok(());
    }
    let text = format_args!("reduces tensors of up to {MOST_DIMS} dimensions, not {}", x.dim());
    Err(Error::new(Cause::Shape, op, text))
}
