//! Which keys a query sees, as numbers that are added to scores.

use super::{Attend, NAME};
use cresset_tensor::{Cause, DType, Error, Options, Result, Tensor};

/// The mask of `size` steps each of which sees only itself and those before: 0 where it sees, and
/// negative infinity elsewhere.
pub fn causal_mask(size: usize, options: impl Into<Options>) -> Result<Tensor> {
    Tensor::full([size, size], f64::NEG_INFINITY, options)?.triu(1)
}

/// What is added to scores, and whether only causality is asked for.
pub(super) struct Masks {
    /// `[1 or batch * heads, queries, keys]`
    attn: Option<Tensor>,
    /// `[batch * heads, 1, keys]`
    padding: Option<Tensor>,
    pub(super) is_causal: bool,
}

impl Masks {
    pub(super) fn new(heads: usize, input: Attend<'_>, [batch, queries, keys]: [usize; 3]) -> Result<Masks> {
        let like = input.query;
        // As in torch, the hint alone is enough where nothing else is asked for.
        let is_causal = input.is_causal && !input.need_weights && input.key_padding_mask.is_none();
        let attn = match input.attn_mask {
            _ if is_causal => None,
            Some(mask) => Some(attn_mask(mask, like, [batch * heads, queries, keys])?),
            None if input.is_causal => {
                let ones = Tensor::full([queries, keys], f64::NEG_INFINITY, (like.dtype(), like.device()))?;
                Some(ones.triu(1)?.unsqueeze(0)?)
            }
            None => None,
        };
        let padding = input.key_padding_mask.map(|mask| {
            let is_batch = like.dim() == 3;
            let expected: &[usize] = if is_batch { &[batch, keys] } else { &[keys] };
            check("key_padding_mask", mask, &[expected])?;
            let mask = added(mask, like)?.reshape([batch, 1, 1, keys])?;
            mask.expand([batch, heads, 1, keys])?.reshape([batch * heads, 1, keys])
        });
        Ok(Masks { attn, padding: padding.transpose()?, is_causal })
    }

    /// Lets all queries see one more key.
    pub(super) fn see_one_more(&mut self) -> Result<()> {
        for mask in [&mut self.attn, &mut self.padding].into_iter().flatten() {
            *mask = mask.constant_pad_nd(&[0, 1], 0.0)?;
        }
        Ok(())
    }

    /// Both masks in one.
    pub(super) fn joined(self) -> Result<Option<Tensor>> {
        match (self.attn, self.padding) {
            (Some(attn), Some(padding)) => attn.add(&padding).map(Some),
            (attn, padding) => Ok(attn.or(padding)),
        }
    }
}

fn attn_mask(mask: &Tensor, like: &Tensor, [all, queries, keys]: [usize; 3]) -> Result<Tensor> {
    check("attn_mask", mask, &[&[queries, keys], &[all, queries, keys]])?;
    let mask = added(mask, like)?;
    if mask.dim() == 2 { mask.unsqueeze(0) } else { Ok(mask) }
}

fn check(name: &str, mask: &Tensor, allowed: &[&[usize]]) -> Result<()> {
    if mask.dtype() != DType::Bool && !mask.dtype().is_float() {
        let text = format_args!("{name} is of {}, expected bool or floats", mask.dtype());
        return Err(Error::new(Cause::DType, NAME, text));
    }
    if allowed.contains(&mask.shape()) {
        return Ok(());
    }
    let expected: Vec<String> = allowed.iter().map(|shape| format!("{shape:?}")).collect();
    let text = format_args!("{name} is {:?}, expected {}", mask.shape(), expected.join(" or "));
    Err(Error::new(Cause::Shape, NAME, text))
}

/// A mask as what is added: negative infinity where a mask of bool is true.
fn added(mask: &Tensor, like: &Tensor) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return mask.to_dtype(like.dtype());
    }
    Tensor::zeros(mask.shape(), (like.dtype(), like.device()))?.masked_fill(mask, f64::NEG_INFINITY)
}
