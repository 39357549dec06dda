//! Attention and transformers.

use super::recurrent::within;
use super::{Entry, Made};
use crate::arguments::Arguments;
use cresset_nn::*;
use cresset_tensor::{Cause, Error, Result};

/// The options that all layers of transformers have, from the position of `dropout` on.
macro_rules! options {
    ($a:ident, $layer:expr, $dropout:literal, $eps:literal) => {{
        let a = $a;
        let layer = $layer.dropout(a.or($dropout, "dropout", 0.1)?)?;
        let layer = match &*a.or($dropout + 1, "activation", "relu".to_owned())? {
            "relu" => layer,
            "gelu" => layer.activation(|x| x.gelu(Approximate::None))?,
            other => {
                let text = format_args!("activation is {other:?}, expected \"relu\" or \"gelu\"");
                return Err(Error::new(Cause::Argument, "", text));
            }
        };
        let layer = layer.layer_norm_eps(a.or($eps, "layer_norm_eps", 1e-5)?)?;
        let layer = layer.batch_first(a.or($eps + 1, "batch_first", false)?)?;
        layer.norm_first(a.or($eps + 2, "norm_first", false)?)?.bias(a.or($eps + 3, "bias", true)?)?
    }};
}

/// The sizes of a layer: numbers per step, heads, and numbers between linear layers.
fn sizes(a: &Arguments<'_>) -> Result<(usize, usize, usize)> {
    Ok((a.size(0, "d_model")?, a.size(1, "nhead")?, count(a, 2, "dim_feedforward", 2048)?))
}

fn count(a: &Arguments<'_>, position: usize, name: &'static str, default: usize) -> Result<usize> {
    a.get::<Option<i64>>(position, name)?.map_or(Ok(default), |_| a.size(position, name))
}

pub(super) const MODULES: &[Entry] = &[
    Entry::new("MultiheadAttention", |a| {
        let layer = MultiheadAttention::new(a.size(0, "embed_dim")?, a.size(1, "num_heads")?)?;
        let layer = layer.dropout(a.or(2, "dropout", 0.0)?)?.bias(a.or(3, "bias", true)?)?;
        let layer = layer.add_bias_kv(a.or(4, "add_bias_kv", false)?)?;
        let layer = layer.add_zero_attn(a.or(5, "add_zero_attn", false)?)?;
        let layer = match a.get(6, "kdim")? {
            Some(kdim) => layer.kdim(kdim)?,
            None => layer,
        };
        let layer = match a.get(7, "vdim")? {
            Some(vdim) => layer.vdim(vdim)?,
            None => layer,
        };
        Made::with(layer.batch_first(a.or(8, "batch_first", false)?)?, |layer, a| {
            let [query, key, value]: [Tensor; 3] = [a.get(0, "query")?, a.get(1, "key")?, a.get(2, "value")?];
            let [padding, mask] = [optional(a, 3, "key_padding_mask")?, optional(a, 5, "attn_mask")?];
            let input =
                Attend::new(&query, &key, &value).key_padding_mask(padding.as_ref()).attn_mask(mask.as_ref());
            let input = input.need_weights(a.or(4, "need_weights", true)?);
            let input = input.average_attn_weights(a.or(6, "average_attn_weights", true)?);
            layer.call(input.is_causal(a.or(7, "is_causal", false)?))
        })
    }),
    Entry::new("TransformerEncoderLayer", |a| {
        let (d_model, nhead, between) = sizes(a)?;
        let layer = options!(a, TransformerEncoderLayer::new(d_model, nhead, between)?, 3, 5);
        Made::with(layer, |layer, a| {
            let src = a.get(0, "src")?;
            let [mask, padding] = [optional(a, 1, "src_mask")?, optional(a, 2, "src_key_padding_mask")?];
            let input = Encode::new(&src).mask(mask.as_ref()).src_key_padding_mask(padding.as_ref());
            layer.call(input.is_causal(a.or(3, "is_causal", false)?))
        })
    }),
    Entry::new("TransformerDecoderLayer", |a| {
        let (d_model, nhead, between) = sizes(a)?;
        let layer = options!(a, TransformerDecoderLayer::new(d_model, nhead, between)?, 3, 5);
        Made::with(layer, |layer, a| {
            let [tgt, memory]: [Tensor; 2] = [a.get(0, "tgt")?, a.get(1, "memory")?];
            let [tgt_mask, memory_mask] = [optional(a, 2, "tgt_mask")?, optional(a, 3, "memory_mask")?];
            let tgt_padding = optional(a, 4, "tgt_key_padding_mask")?;
            let memory_padding = optional(a, 5, "memory_key_padding_mask")?;
            let input =
                Decode::new(&tgt, &memory).tgt_mask(tgt_mask.as_ref()).memory_mask(memory_mask.as_ref());
            let input = input.tgt_key_padding_mask(tgt_padding.as_ref());
            let input = input.memory_key_padding_mask(memory_padding.as_ref());
            let input = input.tgt_is_causal(a.or(6, "tgt_is_causal", false)?);
            layer.call(input.memory_is_causal(a.or(7, "memory_is_causal", false)?))
        })
    }),
    Entry::new("Transformer", |a| {
        let (d_model, nhead) = (count(a, 0, "d_model", 512)?, count(a, 1, "nhead", 8)?);
        let layers = (count(a, 2, "num_encoder_layers", 6)?, count(a, 3, "num_decoder_layers", 6)?);
        let between = count(a, 4, "dim_feedforward", 2048)?;
        within("num_encoder_layers", layers.0)?;
        within("num_decoder_layers", layers.1)?;
        let model = Transformer::new(d_model, nhead, layers.0, layers.1, between)?;
        Made::with(options!(a, model, 5, 9), |model, a| {
            let [src, tgt]: [Tensor; 2] = [a.get(0, "src")?, a.get(1, "tgt")?];
            let names = ["src_mask", "tgt_mask", "memory_mask"];
            let [src_mask, tgt_mask, memory_mask] = masks(a, 2, names)?;
            let names = ["src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"];
            let [src_padding, tgt_padding, memory_padding] = masks(a, 5, names)?;
            let input = Transform::new(&src, &tgt).src_mask(src_mask.as_ref()).tgt_mask(tgt_mask.as_ref());
            let input = input.memory_mask(memory_mask.as_ref()).src_key_padding_mask(src_padding.as_ref());
            let input = input.tgt_key_padding_mask(tgt_padding.as_ref());
            let input = input.memory_key_padding_mask(memory_padding.as_ref());
            let input = input.src_is_causal(a.or(8, "src_is_causal", false)?);
            let input = input.tgt_is_causal(a.or(9, "tgt_is_causal", false)?);
            model.call(input.memory_is_causal(a.or(10, "memory_is_causal", false)?))
        })
    }),
];

fn masks(a: &Arguments<'_>, from: usize, names: [&'static str; 3]) -> Result<[Option<Tensor>; 3]> {
    Ok([optional(a, from, names[0])?, optional(a, from + 1, names[1])?, optional(a, from + 2, names[2])?])
}

fn optional(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<Option<Tensor>> {
    a.get(position, name)
}
