//! Which keys a query sees, as numbers that are added to scores.

use super::{Attend, NAME};
use cresset_tensor::ops::Padding;
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
    /// `[batch, keys]`
    padding: Option<Tensor>,
    pub(super) is_causal: bool,
}

impl Masks {
    /// The masks that are given, as numbers of the type that queries have.
    pub(super) fn given(
        input: Attend<'_>,
        heads: usize,
        [batch, queries, keys]: [usize; 3],
    ) -> Result<Masks> {
        let like = input.query;
        let padding = match input.key_padding_mask {
            Some(mask) => {
                let expected: &[usize] = if like.dim() == 3 { &[batch, keys] } else { &[keys] };
                check("key_padding_mask", mask, &[expected])?;
                Some(added(mask, like.dtype())?)
            }
            None => None,
        };
        let attn = match input.attn_mask {
            Some(mask) => {
                check("attn_mask", mask, &[&[queries, keys], &[batch * heads, queries, keys]])?;
                Some(added(mask, like.dtype())?)
            }
            None => None,
        };
        Ok(Masks { attn, padding, is_causal: input.is_causal })
    }

    /// The masks as heads see them. As in torch, that a query sees only keys up to its own position is enough
    /// where nothing else is asked for; otherwise it is a mask like others.
    pub(super) fn of_heads(&self, input: Attend<'_>, queries: usize, keys: usize) -> Result<Masks> {
        let like = input.query;
        let padding = match &self.padding {
            Some(mask) if like.dim() == 2 => Some(mask.unsqueeze(0)?),
            padding => padding.clone(),
        };
        let is_causal = self.is_causal && !input.need_weights && padding.is_none();
        let attn = match &self.attn {
            _ if is_causal => None,
            Some(mask) if mask.dim() == 2 => Some(mask.unsqueeze(0)?),
            None if self.is_causal => {
                let ones = Tensor::full([queries, keys], f64::NEG_INFINITY, (like.dtype(), like.device()))?;
                Some(ones.triu(1)?.unsqueeze(0)?)
            }
            attn => attn.clone(),
        };
        Ok(Masks { attn, padding, is_causal })
    }

    /// Lets all queries see one more key.
    pub(super) fn see_one_more(&mut self) -> Result<()> {
        for mask in [&mut self.attn, &mut self.padding].into_iter().flatten() {
            *mask = mask.pad(&[0, 1], Padding::Zeros)?;
        }
        Ok(())
    }

    /// Both masks in one: `[1 or batch * heads, queries or 1, keys]`.
    pub(super) fn join(&mut self, batch: usize, heads: usize, keys: usize) -> Result<Option<&Tensor>> {
        if let Some(padding) = self.padding.take() {
            let spread = padding.view([batch, 1, 1, keys])?.expand([-1, heads as isize, -1, -1])?;
            let padding = spread.reshape([batch * heads, 1, keys])?;
            self.attn = Some(match self.attn.take() {
                Some(attn) => attn.add(&padding)?,
                None => padding,
            });
        }
        Ok(self.attn.as_ref())
    }
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
pub(crate) fn added(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        let differs = mask.dtype().is_float() && mask.dtype() != dtype;
        return if differs { mask.to_dtype(dtype) } else { Ok(mask.clone()) };
    }
    let added = mask.zeros_like_with(dtype)?;
    added.masked_fill_(mask, f64::NEG_INFINITY)?;
    Ok(added)
}
