//! The attention of each head.

use super::mask::Masks;
use super::project::Projections;
use super::{Attend, MultiheadAttention};
use crate::{Parameter, functional};
use cresset_tensor::ops::{Attention, Dropped};
use cresset_tensor::{Result, Tensor};

impl MultiheadAttention {
    /// What all heads give together, projected to `[steps, batch, embed_dim]`, and the weights if they are wanted.
    pub(super) fn attend(&self, input: Attend<'_>, masks: &Masks) -> Result<(Tensor, Option<Tensor>)> {
        let [batch, steps, keys] = self.sizes(input);
        let Projections { query, mut key, mut value } = self.project(input)?;
        let mut masks = masks.of_heads(input, steps, keys)?;
        if let (Some(bias_k), Some(bias_v)) = (&self.bias_k, &self.bias_v) {
            key = with_row(&key, bias_k, batch)?;
            value = with_row(&value, bias_v, batch)?;
            masks.see_one_more()?;
        }
        let [query, mut key, mut value] = [self.heads(&query)?, self.heads(&key)?, self.heads(&value)?];
        if self.add_zero_attn {
            key = with_zeros(&key)?;
            value = with_zeros(&value)?;
            masks.see_one_more()?;
        }
        if input.need_weights {
            return self.weighted(input, [&query, &key, &value], masks);
        }
        let mut out = self.fused([&query, &key, &value], &mut masks, batch)?;
        out = out.permute(&[2, 0, 1, 3])?.reshape([steps * batch, self.embed_dim])?;
        out = self.projected(&out)?;
        Ok((out.view([steps, batch, self.embed_dim])?, None))
    }

    /// Rows as they are given out.
    fn projected(&self, rows: &Tensor) -> Result<Tensor> {
        let (weight, bias) =
            (self.out_proj.weight.tensor(), self.out_proj.bias.as_ref().map(Parameter::tensor));
        rows.linear(&weight, bias.as_ref())
    }

    /// `[steps, batch, embed_dim]` as `[batch * heads, steps, size]`.
    fn heads(&self, x: &Tensor) -> Result<Tensor> {
        let (steps, batch) = (x.shape()[0], x.shape()[1]);
        x.view([steps, batch * self.num_heads, self.embed_dim / self.num_heads])?.transpose(0, 1)
    }

    fn weighted(
        &self,
        input: Attend<'_>,
        [query, key, value]: [&Tensor; 3],
        mut masks: Masks,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let [batch, steps, _] = self.sizes(input);
        let (heads, keys) = (self.num_heads, key.shape()[1]);
        let mask = masks.join(batch, heads, keys)?;
        let query = query.mul((1.0 / query.shape()[2] as f64).sqrt())?;
        let scores = match mask {
            Some(mask) => mask.baddbmm(&query, &key.transpose(-2, -1)?)?,
            None => query.bmm(&key.transpose(-2, -1)?)?,
        };
        let mut weights = scores.softmax(-1)?;
        drop(scores);
        if self.dropping() > 0.0 {
            weights = functional::dropout(&weights, self.dropping(), true)?;
        }
        let mut out = weights.bmm(value)?;
        out = out.transpose(0, 1)?.reshape([steps * batch, self.embed_dim])?;
        out = self.projected(&out)?;
        out = out.view([steps, batch, self.embed_dim])?;
        weights = weights.view([batch, heads, steps, keys])?;
        if input.average_attn_weights {
            weights = weights.mean_dims(&[1], false)?;
        }
        Ok((out, Some(weights)))
    }

    fn fused(&self, [query, key, value]: [&Tensor; 3], masks: &mut Masks, batch: usize) -> Result<Tensor> {
        let apart = |x: &Tensor| x.view([batch, self.num_heads, x.shape()[1], x.shape()[2]]);
        let (is_causal, p) = (masks.is_causal, self.dropping());
        // Keys that were added come last, where a causal query would not see them.
        let is_plain = self.added_keys() == 0;
        let mask = match masks.join(batch, self.num_heads, key.shape()[1])? {
            Some(mask) if mask.shape()[0] == 1 => Some(mask.unsqueeze(0)?),
            Some(mask) => {
                Some(mask.view([batch as isize, self.num_heads as isize, -1, key.shape()[1] as isize])?)
            }
            None if is_causal && !is_plain => Some(seen(query, key, self.added_keys())?),
            None => None,
        };
        let causal = is_causal && is_plain;
        let [query, key, value] = [apart(query)?, apart(key)?, apart(value)?];
        let mut how = Attention { mask: mask.as_ref(), causal, ..Attention::default() };
        if p > 0.0 && p < 1.0 {
            how.dropout = Some(Dropped { probability: p, kept: None });
        }
        let out = query.scaled_dot_product_attention(&key, &value, how)?;
        if p == 1.0 { out.mul(0.0) } else { Ok(out) }
    }

    fn added_keys(&self) -> usize {
        usize::from(self.bias_k.is_some()) + usize::from(self.add_zero_attn)
    }
}

/// `[steps, batch, size]` with one more step, the same for all of the batch.
fn with_row(x: &Tensor, row: &Parameter, batch: usize) -> Result<Tensor> {
    Tensor::cat(&[x, &row.tensor().repeat([1, batch, 1])?], 0)
}

/// `[batch * heads, steps, size]` with one more step of zeros.
fn with_zeros(x: &Tensor) -> Result<Tensor> {
    let zeros = Tensor::zeros([x.shape()[0], 1, x.shape()[2]], (x.dtype(), x.device()))?;
    Tensor::cat(&[x, &zeros], 1)
}

/// The causal mask of keys of which the last `added` are for all.
fn seen(query: &Tensor, key: &Tensor, added: usize) -> Result<Tensor> {
    let (queries, keys) = (query.shape()[1], key.shape()[1] - added);
    let mask = Tensor::full([queries, keys], f64::NEG_INFINITY, (query.dtype(), query.device()))?.triu(1)?;
    mask.constant_pad_nd(&[0, added as isize], 0.0)
}
