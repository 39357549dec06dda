//! Quantiles: what a given part of the elements stays below.

use crate::autocast;
use crate::op::Operand;
use crate::{Cause, DType, Error, Result, Scalar, Tensor, composite};
use cresset_kernels::Dims;

/// What a quantile is that falls between two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// On the line from one to the other.
    Linear,
    /// The one below.
    Lower,
    /// The one above.
    Higher,
    /// The nearer of the two, halfway the one of even rank.
    Nearest,
    /// Halfway.
    Midpoint,
}

const NAME: &str = "aten::quantile";

/// More elements than this torch refuses to rank.
const MOST: usize = 16_000_000;

impl Tensor {
    /// The quantiles `q`, a number from 0 to 1 or a vector of them, along `dim`, or among all elements if
    /// none is named. A vector of them comes first among the dimensions; with `keep` what was reduced
    /// stays, with size 1.
    pub fn quantile<'a>(
        &self,
        q: impl Into<Operand<'a>>,
        dim: Option<isize>,
        keep: bool,
        between: Between,
    ) -> Result<Tensor> {
        let q = q.into();
        if autocast::is_on() {
            let inputs = [Operand::Tensor(self), q];
            let _span = composite(NAME, inputs, |_| {});
            let again = |[x, q]: [Operand<'_>; 2]| x.tensor().unwrap_or(self).quantile(q, dim, keep, between);
            if let Some(cast) = autocast::casting(NAME, inputs, again) {
                return cast;
            }
        }
        let q = match q {
            Operand::Tensor(q) => q.clone(),
            Operand::Scalar(q) => Tensor::full([], q, (self.dtype(), self.device()))?,
        };
        let _span = composite(NAME, [self, &q], |_| {});
        check(self, &q)?;
        let dim = dim.map(|dim| self.dim_index(NAME, dim)).transpose()?;
        let quantiles = ranked(&lines(self, dim)?, &q, between)?;
        let quantiles =
            if q.dim() == 0 { quantiles.select(-1, 0)? } else { quantiles.movedim(&[-1], &[0])? };
        if keep {
            return Ok(quantiles);
        }
        let reduced =
            super::reduced(self.shape(), &dim.map_or_else(|| (0..self.dim()).collect(), one), false);
        let shape: Dims = q.shape().iter().copied().chain(reduced).collect();
        quantiles.reshape(shape)
    }
}

fn one(dim: usize) -> Dims {
    Dims::from_slice(&[dim])
}

fn check(x: &Tensor, q: &Tensor) -> Result<()> {
    let refused = |cause: Cause, text: std::fmt::Arguments<'_>| Err(Error::new(cause, NAME, text));
    if x.numel() == 0 || x.numel() > MOST {
        return refused(
            Cause::Shape,
            format_args!("expects 1 to {MOST} elements, not shape {:?}", x.shape()),
        );
    }
    if q.dim() > 1 {
        return refused(
            Cause::Shape,
            format_args!("expects a number or a vector of them, not {:?}", q.shape()),
        );
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) || q.dtype() != x.dtype() {
        let text = format_args!("expects two of f32 or of f64, not {} and {}", x.dtype(), q.dtype());
        return refused(Cause::DType, text);
    }
    let inside = |q: &f64| (0.0..=1.0).contains(q);
    if q.device().is_cpu() && !q.detach()?.to_dtype(DType::F64)?.to_vec::<f64>()?.iter().all(inside) {
        return refused(Cause::Argument, format_args!("expects quantiles from 0 to 1"));
    }
    Ok(())
}

/// What is reduced as the last dimension, and size 1 in its place.
fn lines(x: &Tensor, dim: Option<usize>) -> Result<Tensor> {
    match dim {
        Some(dim) if x.dim() > 0 => x.unsqueeze(-1)?.transpose(dim as isize, -1),
        _ => {
            let shape: Dims = std::iter::repeat_n(1, x.dim()).chain([x.numel()]).collect();
            x.reshape(shape)
        }
    }
}

/// The quantiles of each line, in the last dimension.
fn ranked(lines: &Tensor, q: &Tensor, between: Between) -> Result<Tensor> {
    let [sorted, _] = lines.sort(-1, false, false)?;
    let last = Scalar::Int(sorted.shape()[sorted.dim() - 1] as i64 - 1);
    let mut shape = Dims::from_slice(sorted.shape());
    shape.pop();
    shape.push(q.numel());
    let ranks = q.reshape([q.numel()])?.mul(last)?.expand(&shape)?;
    // NaN is sorted to the end, and is every quantile of its line.
    let has_nan = super::is_nan(&sorted.detach()?)?.any_dims(&[-1], true)?;
    let ranks = ranks.masked_fill(&has_nan, last)?;
    let at = |ranks: &Tensor| sorted.gather(-1, &ranks.detach()?.to_dtype(DType::I64)?);
    match between {
        Between::Lower => at(&ranks.floor()?),
        Between::Higher => at(&ranks.ceil()?),
        Between::Nearest => at(&ranks.round()?),
        Between::Linear | Between::Midpoint => {
            let (below, above) = (at(&ranks.floor()?)?, at(&ranks.ceil()?)?);
            let distance = above.sub(&below)?;
            match between {
                Between::Midpoint => below.add(&distance.mul(0.5)?),
                _ => below.add(&distance.mul(&ranks.sub(&ranks.detach()?.floor()?)?)?),
            }
        }
    }
}
