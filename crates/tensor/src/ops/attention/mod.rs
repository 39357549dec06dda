//! Scaled dot-product attention.

mod flash;
mod formula;
mod fused;
mod shown;

pub use flash::*;
pub use formula::SafeSoftmax;
pub use fused::*;

use crate::autocast;
use crate::{Cause, DType, Error, Result, Tensor, composite};
use cresset_dispatch::observe::{self, Argument};

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

/// Weights that are dropped. The others grow, so that the sum is expected to stay.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<'a> {
    /// How likely each is dropped; below 1.
    pub probability: f64,
    /// Which are kept, of bool and shape `[.., queries, keys]`; drawn at random unless given.
    pub kept: Option<&'a Tensor>,
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
        if let Some(out) = fused::attention(self, key, value, how)? {
            return Ok(out);
        }
        if self.dim() != 3 {
            return on_host(self, key, value, how);
        }
        let [query, key, value] = [self.unsqueeze(0)?, key.unsqueeze(0)?, value.unsqueeze(0)?];
        let mut mask = how.mask.cloned();
        while let Some(smaller) = mask.as_ref().filter(|mask| mask.dim() < 4) {
            mask = Some(smaller.unsqueeze(0)?);
        }
        on_host(&query, &key, &value, Attention { mask: mask.as_ref(), ..how })?.squeeze_dim(0)
    }
}

/// Attention in blocks where that can be, else by formula.
fn on_host(query: &Tensor, key: &Tensor, value: &Tensor, how: Attention<'_>) -> Result<Tensor> {
    let added = match how.mask {
        Some(mask)
            if mask.dtype() == DType::Bool
                && (observe::is_watched() || !flash::suits(query, key, value, how)) =>
        {
            Some(formula::added_mask(mask, query)?)
        }
        _ => None,
    };
    let how = Attention { mask: added.as_ref().or(how.mask), ..how };
    match flash::attention(query, key, value, how)? {
        Some(out) => Ok(out),
        None => formula::attention(query, key, value, how).map(|[out, _]| out),
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
