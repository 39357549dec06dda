//! The attention of each head.

use super::mask::Masks;
use super::{Attend, MultiheadAttention};
use crate::{Parameter, functional};
use cresset_tensor::ops::{Attention, Dropped};
use cresset_tensor::{Result, Tensor};

impl MultiheadAttention {
    /// What all heads give together, projected to `[steps, batch, embed_dim]`, and the weights if they are wanted.
    pub(super) fn attend(
        &self,
        input: Attend<'_>,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mut masks: Masks,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (steps, batch) = (query.shape()[0], query.shape()[1]);
        let (key, value) = match (&self.bias_k, &self.bias_v) {
            (Some(bias_k), Some(bias_v)) => {
                masks.see_one_more()?;
                (with_row(&key, bias_k, batch)?, with_row(&value, bias_v, batch)?)
            }
            _ => (key, value),
        };
        let [query, mut key, mut value] = [self.heads(&query)?, self.heads(&key)?, self.heads(&value)?];
        if self.add_zero_attn {
            masks.see_one_more()?;
            let zeros = Tensor::zeros([key.shape()[0], 1, key.shape()[2]], (key.dtype(), key.device()))?;
            key = Tensor::cat(&[&key, &zeros], 1)?;
            value = Tensor::cat(&[&value, &zeros], 1)?;
        }
        let rows = [steps * batch, self.embed_dim];
        if !input.need_weights {
            let out = self.fused(&query, &key, &value, masks, batch)?;
            let out = self.projected(&out.permute(&[2, 0, 1, 3])?.reshape(rows)?)?;
            return Ok((out.view([steps, batch, self.embed_dim])?, None));
        }
        let (out, weights) = self.weighted(&query, &key, &value, masks)?;
        let out = self.projected(&out.transpose(0, 1)?.contiguous()?.view(rows)?)?;
        let out = out.view([steps, batch, self.embed_dim])?;
        let weights = weights.view([batch, self.num_heads, steps, key.shape()[1]])?;
        let averaged = input.average_attn_weights;
        Ok((out, Some(if averaged { weights.mean_dims(&[1], false)? } else { weights })))
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
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: Masks,
    ) -> Result<(Tensor, Tensor)> {
        let query = query.mul((1.0 / query.shape()[2] as f64).sqrt())?;
        let key = key.transpose(-2, -1)?;
        let scores = match masks.joined()? {
            Some(mask) => mask.baddbmm(&query, &key)?,
            None => query.bmm(&key)?,
        };
        let mut weights = scores.softmax(-1)?;
        if self.dropping() > 0.0 {
            weights = functional::dropout(&weights, self.dropping(), true)?;
        }
        Ok((weights.bmm(value)?, weights))
    }

    fn fused(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: Masks,
        batch: usize,
    ) -> Result<Tensor> {
        let apart = |x: &Tensor| x.view([batch, self.num_heads, x.shape()[1], x.shape()[2]]);
        let (is_causal, p) = (masks.is_causal, self.dropping());
        // Keys that were added come last, where a causal query would not see them.
        let is_plain = self.added_keys() == 0;
        let mask = match masks.joined()? {
            Some(mask) if mask.shape()[0] == 1 => Some(mask.unsqueeze(0)?),
            Some(mask) => Some(apart(&mask)?),
            None if is_causal && !is_plain => Some(seen(query, key, self.added_keys())?),
            None => None,
        };
        let causal = is_causal && is_plain;
        let [query, key, value] = [apart(query)?, apart(key)?, apart(value)?];
        let mut how = Attention { mask: mask.as_ref(), causal, ..Attention::default() };
        let out = if p > 0.0 && p < 1.0 {
            let shape = [batch, self.num_heads, query.shape()[2], key.shape()[2]];
            let kept = Tensor::rand(shape, (query.dtype(), query.device()))?.ge(p)?;
            how.dropout = Some(Dropped { probability: p, kept: &kept });
            query.scaled_dot_product_attention(&key, &value, how)?
        } else {
            let out = query.scaled_dot_product_attention(&key, &value, how)?;
            if p == 1.0 { out.mul(0.0)? } else { out }
        };
        Ok(out)
    }

    fn added_keys(&self) -> usize {
        usize::from(self.bias_k.is_some()) + usize::from(self.add_zero_attn)
    }
}

/// `[steps, batch, size]` with one more step, the same for all of the batch.
fn with_row(x: &Tensor, row: &Parameter, batch: usize) -> Result<Tensor> {
    let row = row.tensor();
    let row = row.expand([1, batch, row.shape()[2]])?;
    Tensor::cat(&[x, &row], 0)
}

/// The causal mask of keys of which the last `added` are for all.
fn seen(query: &Tensor, key: &Tensor, added: usize) -> Result<Tensor> {
    let (queries, keys) = (query.shape()[1], key.shape()[1] - added);
    let mask = Tensor::full([queries, keys], f64::NEG_INFINITY, (query.dtype(), query.device()))?.triu(1)?;
    mask.constant_pad_nd(&[0, added as isize], 0.0)
}
