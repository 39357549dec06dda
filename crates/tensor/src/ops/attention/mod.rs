//! Scaled dot-product attention.

mod flash;
mod fused;
mod shown;

pub use flash::*;
pub use fused::*;

use super::{SoftmaxBackward, check_dims};
use crate::autocast;
use crate::autograd::Saves;
use crate::{Backward, Cause, DType, Error, Forward, Grads, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Softmax, with zeros where all of a row is `-inf`.
#[derive(Clone, Debug)]
pub struct SafeSoftmax {
    /// Which dimension.
    pub dim: usize,
}

impl Op for SafeSoftmax {
    const NAME: &'static str = "aten::_safe_softmax";
    const BACKWARD: &'static str = "SafeSoftmaxBackward0";
    const SAVES: Saves = Saves::Outputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; SoftmaxBackward { dim: self.dim as isize }.call([ctx.grad(), ctx.saved(0)])?)
    }
}

impl Forward for SafeSoftmax {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        check_dims(Self::NAME, &[self.dim], x)?;
        let dim = self.dim as isize;
        let out = x.softmax(dim)?;
        if x.shape().get(self.dim).is_none_or(|&size| size == 0) {
            return Ok(out);
        }
        let [largest, _] = x.max_dim(dim, true)?;
        out.zeros_like()?.where_(&largest.eq(f64::NEG_INFINITY)?, &out)
    }
}

/// The options of [`Tensor::scaled_dot_product_attention`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Which keys a query sees, as bool, or what is added to their scores.
    pub mask: Option<&'a Tensor>,
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// What scores are multiplied by; one over the root of the width unless given.
    pub scale: Option<f64>,
    /// Whether several heads of queries may share one of keys and values.
    pub grouped: bool,
    /// Which weights are dropped.
    pub dropout: Option<Dropped<'a>>,
}

impl Attention<'_> {
    fn scale(&self, query: &Tensor) -> f64 {
        self.scale.unwrap_or_else(|| 1.0 / (query.shape()[query.dim() - 1] as f64).sqrt())
    }
}

/// Weights that are dropped, chosen by the caller. The others grow, so that the sum is expected to stay.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<'a> {
    /// How likely each was to be dropped; below 1.
    pub probability: f64,
    /// Which are kept, of bool and shape `[.., queries, keys]`.
    pub kept: &'a Tensor,
}

const NAME: &str = "aten::scaled_dot_product_attention";

impl Tensor {
    /// For each query, these, the average of `value` weighted by the softmax of how well it
    /// matches each `key`: `[.., queries, width]`, `[.., keys, width]` and `[.., keys, size]` to
    /// `[.., queries, size]`.
    pub fn scaled_dot_product_attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        how: Attention<'_>,
    ) -> Result<Tensor> {
        let tensors = [Some(self), Some(key), Some(value), how.mask];
        let arguments = |visit: &mut dyn FnMut(Argument<'_>)| {
            visit(Argument::Float(how.dropout.map_or(0.0, |dropped| dropped.probability)));
            visit(Argument::Bool(how.causal));
            visit(how.scale.map_or(Argument::None, Argument::Float));
            visit(Argument::Bool(how.grouped));
        };
        let _span = composite(NAME, tensors, arguments);
        let again = |[query, key, value, mask]: [Option<&Tensor>; 4]| match (query, key, value) {
            (Some(query), Some(key), Some(value)) => {
                query.scaled_dot_product_attention(key, value, Attention { mask, ..how })
            }
            _ => unreachable!("what was given is given again"),
        };
        if let Some(cast) = autocast::casting(NAME, tensors, again) {
            return cast;
        }
        check(self, key, value, how)?;
        if let Some(out) = flash::attention(self, key, value, how)? {
            return Ok(out);
        }
        if let Some(out) = fused::attention(self, key, value, how)? {
            return Ok(out);
        }
        let _span = composite("aten::_scaled_dot_product_attention_math", tensors, arguments);
        let [query, key, value] = [self, key, value].map(widened);
        let (query, mut key, mut value) = (query?, key?, value?);
        if how.grouped {
            (key, value) = (shared(&query, &key)?, shared(&query, &value)?);
        }
        let weights = weights(&query, &key, how.scale(&query), how.mask, how.causal)?;
        let weights =
            how.dropout.map_or_else(|| Ok(weights.clone()), |dropped| thinned(&weights, dropped))?;
        weights.matmul(&value)?.to_dtype(self.dtype())
    }
}

fn check(query: &Tensor, key: &Tensor, value: &Tensor, how: Attention<'_>) -> Result<()> {
    let refused = |cause, what: &str| {
        let text = format_args!(
            "{what}: query {} {:?}, key {} {:?}, value {} {:?}, mask {:?}",
            query.dtype(),
            query.shape(),
            key.dtype(),
            key.shape(),
            value.dtype(),
            value.shape(),
            how.mask.map(|mask| (mask.dtype(), mask.shape()))
        );
        Err(Error::new(cause, NAME, text))
    };
    let tensors = [query, key, value];
    if !query.dtype().is_float() || tensors.iter().any(|x| x.dtype() != query.dtype()) {
        return refused(Cause::DType, "expects floats of one type");
    }
    if tensors.iter().any(|x| x.dim() < 2) {
        return refused(Cause::Shape, "expects at least two dimensions");
    }
    if how.grouped && tensors.iter().any(|x| x.dim() < 3) {
        return refused(Cause::Shape, "expects heads to group");
    }
    match how.mask {
        Some(_) if how.causal => refused(Cause::Argument, "takes a mask or is causal, not both"),
        Some(mask) if mask.dtype() != DType::Bool && mask.dtype() != query.dtype() => {
            refused(Cause::DType, "expects a mask of bool or of the query's type")
        }
        _ => Ok(()),
    }
}

/// Half precision is computed in single precision.
fn widened(x: &Tensor) -> Result<Tensor> {
    if matches!(x.dtype(), DType::F16 | DType::BF16) { x.to_dtype(DType::F32) } else { Ok(x.clone()) }
}

/// Heads of keys or values repeated, so that each head of queries has its own.
fn shared(query: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (wanted, at) = (query.shape()[query.dim() - 3], x.dim() - 3);
    let heads = x.shape()[at];
    if heads == wanted {
        return Ok(x.clone());
    }
    if heads == 0 || !wanted.is_multiple_of(heads) {
        let text = format_args!("{heads} heads cannot be shared evenly by {wanted} of queries");
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    let (mut repeated, mut merged) = (Dims::from_slice(x.shape()), Dims::from_slice(x.shape()));
    repeated.insert(at + 1, wanted / heads);
    merged[at] = wanted;
    x.unsqueeze(at as isize + 1)?.expand(repeated)?.reshape(merged)
}

/// How much each query makes of each key: the softmax of their products, scaled and masked.
fn weights(query: &Tensor, key: &Tensor, scale: f64, mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
    let scores = query.mul(scale)?.matmul(&key.transpose(-2, -1)?)?;
    let scores = masked(scores, mask, causal)?;
    SafeSoftmax { dim: scores.dim() - 1 }.call([&scores])
}

/// Scores with `-inf` where a query does not see a key, or with the mask added.
fn masked(scores: Tensor, mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
    let hidden = || Tensor::full([], f64::NEG_INFINITY, (scores.dtype(), scores.device()));
    match mask {
        Some(mask) if mask.dtype() == DType::Bool => scores.where_(mask, &hidden()?),
        Some(mask) => scores.add(&mask.to_dtype(scores.dtype())?),
        None if causal => {
            let (queries, keys) = (scores.shape()[scores.dim() - 2], scores.shape()[scores.dim() - 1]);
            let later =
                Tensor::arange(keys)?.gt(&Tensor::arange(queries)?.unsqueeze(1)?)?.to(scores.device())?;
            hidden()?.where_(&later, &scores)
        }
        None => Ok(scores),
    }
}

/// `weights` without those that are dropped.
fn thinned(weights: &Tensor, Dropped { probability, kept }: Dropped<'_>) -> Result<Tensor> {
    if !(0.0..1.0).contains(&probability) || kept.shape() != weights.shape() || kept.dtype() != DType::Bool {
        let text = format_args!(
            "expects a probability from 0 to 1 and which of {:?} are kept, not {probability} and {} {:?}",
            weights.shape(),
            kept.dtype(),
            kept.shape()
        );
        return Err(Error::new(Cause::Argument, NAME, text));
    }
    weights.mul(&kept.to_dtype(weights.dtype())?.div(1.0 - probability)?)
}
