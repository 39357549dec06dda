//! Attention by formula: for all that kernels are not for.

use super::{Attention, Dropped, NAME, shown};
use crate::autograd::Saves;
use crate::op::InPlace as _;
use crate::ops::{MaskedFill, SoftmaxBackward, check_dims};
use crate::{
    Backward, Cause, DType, Error, Forward, Grads, NamedDim, Op, Result, Tensor, composite, grads,
    shown as calls,
};
use cresset_dispatch::observe::{self, Argument};

/// Softmax, with zeros where all of a row is `-inf`.
#[derive(Clone, Debug)]
pub struct SafeSoftmax {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for SafeSoftmax {
    const NAME: &'static str = "aten::_safe_softmax";
    const BACKWARD: &'static str = "SafeSoftmaxBackward0";
    const SAVES: Saves = Saves::Outputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; SoftmaxBackward { dim: self.dim.named() }.call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(self.dim.argument());
        visit(Argument::None);
    }
}

impl Forward for SafeSoftmax {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        check_dims(Self::NAME, &[*self.dim], x)?;
        let out = x.softmax(self.dim.named())?;
        if x.shape().get(*self.dim).is_none_or(|&size| size == 0) {
            return Ok(out);
        }
        if !x.device().is_cpu() {
            let [largest, _] = x.max_dim(self.dim.named(), true)?;
            return out.zeros_like()?.where_(&largest.eq(f64::NEG_INFINITY)?, &out);
        }
        let blind = x.isneginf()?.all_dim(self.dim.named(), true)?;
        let zero = observe::is_watched().then(|| shown::number(0.0, x.dtype())).transpose()?;
        let fill = || MaskedFill.cpu_in_place([(&out).into(), 0.into(), (&blind).into()]);
        match &zero {
            Some(zero) => calls::into_out("aten::where", [&blind, zero, &out], &[], &out, fill)?,
            None => fill()?,
        }
        Ok(out)
    }
}

/// What is added to the scores in the place of a mask of truths: 0 where a key is seen.
pub(super) fn added_mask(mask: &Tensor, query: &Tensor) -> Result<Tensor> {
    let dtype = query.dtype();
    if query.device().is_cpu() {
        return mask.choose(0.0, &shown::number(f64::NEG_INFINITY, dtype)?);
    }
    let hidden = Tensor::full([], f64::NEG_INFINITY, (dtype, query.device()))?;
    mask.choose(0.0, &hidden)
}

/// The result, and how much each query makes of each key. A mask is added to the scores.
pub(super) fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    how: Attention<'_>,
) -> Result<[Tensor; 2]> {
    let tensors = [Some(query), Some(key), Some(value), how.mask];
    let _span = composite("aten::_scaled_dot_product_attention_math", tensors, |visit| {
        visit(Argument::Float(how.dropout.map_or(0.0, |dropped| dropped.probability)));
        visit(Argument::Bool(how.causal));
        visit(Argument::None);
        visit(how.scale.map_or(Argument::None, Argument::Float));
        visit(Argument::Bool(how.grouped));
    });
    let dtype = query.dtype();
    let (query, key, value) = (widened(query)?, widened(key)?, widened(value)?);
    let scaled = Scaled::new(&query, &key, how)?;
    let (key, value) =
        if how.grouped { (shared(&query, &key)?, shared(&query, &value)?) } else { (key, value) };
    let mut weights = scaled.weights(&key)?;
    if let Some(dropped) = how.dropout {
        weights = thinned(&weights, dropped)?;
    }
    let told = weights.to(dtype)?;
    Ok([weights.matmul(&value)?.to(dtype)?, told])
}

/// How much each query makes of each key: the softmax of their products, scaled and masked.
pub(super) fn weights(query: &Tensor, key: &Tensor, how: Attention<'_>) -> Result<Tensor> {
    Scaled::new(query, key, how)?.weights(key)
}

/// Queries that are scaled, and what else scores are made of.
struct Scaled {
    query: Tensor,
    /// What keys are scaled by. Each side takes the root, so that products of large numbers stay smaller.
    root: f64,
    mask: Option<Tensor>,
}

impl Scaled {
    fn new(query: &Tensor, key: &Tensor, how: Attention<'_>) -> Result<Scaled> {
        let scale = how.scale(query);
        let root = scale.abs().sqrt();
        let query = query.mul(if scale < 0.0 { -root } else { root })?;
        let mask = match how.mask {
            Some(mask) if mask.dtype() == DType::Bool => Some(added_mask(mask, &query)?),
            None if how.causal => Some(causal_mask(&query, key)?),
            mask => mask.cloned(),
        };
        Ok(Scaled { query, root, mask })
    }

    fn weights(self, key: &Tensor) -> Result<Tensor> {
        let scores = self.query.matmul(&key.transpose(-2, -1)?.mul(self.root)?)?;
        if let Some(mask) = &self.mask {
            scores.add_(mask)?;
        }
        SafeSoftmax { dim: NamedDim::new(scores.dim() - 1, -1) }.call([&scores])
    }
}

/// Half precision is computed in single precision.
pub(super) fn widened(x: &Tensor) -> Result<Tensor> {
    if matches!(x.dtype(), DType::F16 | DType::BF16) { x.to_dtype(DType::F32) } else { Ok(x.clone()) }
}

/// Heads of keys or values repeated, so that each head of queries has its own.
pub(super) fn shared(query: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (wanted, at) = (query.shape()[query.dim() - 3], x.dim() - 3);
    let heads = x.shape()[at];
    if heads == wanted {
        return Ok(x.clone());
    }
    if heads == 0 || !wanted.is_multiple_of(heads) {
        let text = format_args!("{heads} heads cannot be shared evenly by {wanted} of queries");
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    x.repeat_interleave(wanted / heads, Some(-3))
}

/// Minus infinity for keys that come after their query.
fn causal_mask(query: &Tensor, key: &Tensor) -> Result<Tensor> {
    let rows = |x: &Tensor| x.shape()[x.dim() - 2];
    let seen = Tensor::ones([rows(query), rows(key)], DType::Bool)?.tril(0)?;
    let seen = if query.device().is_cpu() { seen } else { seen.to(query.device())? };
    added_mask(&seen, query)
}

/// `weights` without those that are dropped.
fn thinned(weights: &Tensor, Dropped { probability, kept }: Dropped<'_>) -> Result<Tensor> {
    // Queries without a batch have been given one by now.
    let has_all = |kept: &Tensor| weights.shape().ends_with(kept.shape()) && kept.numel() == weights.numel();
    let fits = kept.is_none_or(|kept| has_all(kept) && kept.dtype() == DType::Bool);
    if !(0.0..1.0).contains(&probability) || !fits {
        let text = format_args!(
            "expects a probability from 0 to 1 and which of {:?} are kept, not {probability} and {:?}",
            weights.shape(),
            kept.map(|kept| (kept.dtype(), kept.shape()))
        );
        return Err(Error::new(Cause::Argument, NAME, text));
    }
    let _span = composite("aten::dropout", [weights], |visit| {
        visit(Argument::Float(probability));
        visit(Argument::Bool(true));
    });
    let noise = weights.empty_like()?;
    match kept {
        Some(kept) => noise.copy_(kept)?,
        None => noise.bernoulli_(1.0 - probability)?,
    }
    noise.div_(1.0 - probability)?;
    weights.mul(&noise)
}
