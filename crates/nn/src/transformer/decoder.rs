//! Writing a sequence while looking at another.

use super::feed::feed_forward;
use super::{Activation, options};
use crate::check::positive;
use crate::inputs::inputs;
use crate::{Attend, Dropout, Forward, Hooks, LayerNorm, Linear, Module, MultiheadAttention};
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::sync::Arc;

inputs! {
    /// What decoders are called with: the sequence to write, and what an encoder made of another.
    Decode, Decoded(tgt, memory) {
        /// Which steps a step must not see, of bool, or what is added to scores.
        tgt_mask;
        /// Which steps of the other sequence a step must not see, of bool, or what is added to scores.
        memory_mask;
        /// Which steps do not count, `[batch, steps]` of bool, or what is added to their scores.
        tgt_key_padding_mask;
        /// Which steps of the other sequence do not count.
        memory_key_padding_mask;
    } flags {
        /// Says that a step sees only itself and those before. A mask that is given must say the same.
        tgt_is_causal = false;
        /// Says the same of the other sequence.
        memory_is_causal = false;
    }
}

/// Attention of a sequence to itself and to another, and a small network for each step.
#[derive(Module)]
pub struct TransformerDecoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// Of the sequence to the other.
    pub multihead_attn: MultiheadAttention,
    /// To `dim_feedforward`.
    pub linear1: Linear,
    dropout: Dropout,
    /// And back.
    pub linear2: Linear,
    /// Of the attention to itself.
    pub norm1: LayerNorm,
    /// Of the attention to the other.
    pub norm2: LayerNorm,
    /// Of the small network.
    pub norm3: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    dropout3: Dropout,
    #[module(skip)]
    activation: Activation,
    norm_first: bool,
    hooks: Hooks,
}

impl TransformerDecoderLayer {
    /// Of `d_model` numbers per step, with `nhead` heads, and `dim_feedforward` numbers between the linear
    /// layers, which torch makes 2048 unless told otherwise.
    ///
    /// # Errors
    /// If one of them is 0, or `d_model` is no multiple of `nhead`.
    pub fn new(d_model: usize, nhead: usize, dim_feedforward: usize) -> Result<Self> {
        positive("TransformerDecoderLayer", &[("dim_feedforward", dim_feedforward)])?;
        let layer = Self {
            self_attn: MultiheadAttention::new(d_model, nhead)?,
            multihead_attn: MultiheadAttention::new(d_model, nhead)?,
            linear1: Linear::new(d_model, dim_feedforward)?,
            dropout: Dropout::default(),
            linear2: Linear::new(dim_feedforward, d_model)?,
            norm1: LayerNorm::new(d_model)?,
            norm2: LayerNorm::new(d_model)?,
            norm3: LayerNorm::new(d_model)?,
            dropout1: Dropout::default(),
            dropout2: Dropout::default(),
            dropout3: Dropout::default(),
            activation: Arc::new(Tensor::relu),
            norm_first: false,
            hooks: Hooks::default(),
        };
        layer.dropout(0.1)
    }

    fn attend(&self, x: &Tensor, input: Decode<'_>) -> Result<Tensor> {
        let attend = Attend::new(x, x, x).attn_mask(input.tgt_mask).is_causal(input.tgt_is_causal);
        let attend = attend.key_padding_mask(input.tgt_key_padding_mask).need_weights(false);
        self.dropout1.call(&self.self_attn.call(attend)?.0)
    }

    fn look(&self, x: &Tensor, input: Decode<'_>) -> Result<Tensor> {
        let attend = Attend::new(x, input.memory, input.memory).attn_mask(input.memory_mask);
        let attend = attend.key_padding_mask(input.memory_key_padding_mask).need_weights(false);
        let attend = attend.is_causal(input.memory_is_causal);
        self.dropout2.call(&self.multihead_attn.call(attend)?.0)
    }

    fn feed(&self, x: &Tensor) -> Result<Tensor> {
        let linears = (&self.linear1, &self.linear2);
        self.dropout3.call(&feed_forward(x, linears, &self.activation, &self.dropout)?)
    }
}

options! {
    TransformerDecoderLayer {
        attentions: self_attn, multihead_attn;
        norms: norm1, norm2, norm3;
        dropouts: dropout, dropout1, dropout2, dropout3
    }
}

impl Forward<Decoded> for TransformerDecoderLayer {
    type Output = Tensor;

    fn forward(&self, input: Decode<'_>) -> Result<Tensor> {
        let x = input.tgt;
        if self.norm_first {
            let x = x.add(&self.attend(&self.norm1.call(x)?, input)?)?;
            let x = x.add(&self.look(&self.norm2.call(&x)?, input)?)?;
            return x.add(&self.feed(&self.norm3.call(&x)?)?);
        }
        let x = self.norm1.call(&x.add(&self.attend(x, input)?)?)?;
        let x = self.norm2.call(&x.add(&self.look(&x, input)?)?)?;
        self.norm3.call(&x.add(&self.feed(&x)?)?)
    }
}

/// Decoder layers one after the other, and a norm behind them if there is one.
#[derive(Module)]
pub struct TransformerDecoder {
    /// The layers, which read what the one before gives.
    pub layers: Vec<TransformerDecoderLayer>,
    /// Of what the last layer gives.
    pub norm: Option<LayerNorm>,
    hooks: Hooks,
}

impl TransformerDecoder {
    /// Of at least one layer. Unlike in torch, layers are given one by one, and start with weights of
    /// their own.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(layers: Vec<TransformerDecoderLayer>) -> Result<Self> {
        if layers.is_empty() {
            let text = "expects at least one layer";
            return Err(Error::new(Cause::Argument, "TransformerDecoder", text));
        }
        Ok(Self { layers, norm: None, hooks: Hooks::default() })
    }

    /// With a norm behind the last layer.
    pub fn norm(self, norm: LayerNorm) -> Result<Self> {
        Ok(Self { norm: Some(norm), ..self })
    }
}

impl Forward<Decoded> for TransformerDecoder {
    type Output = Tensor;

    fn forward(&self, input: Decode<'_>) -> Result<Tensor> {
        let mut x = input.tgt.clone();
        for layer in &self.layers {
            x = layer.call(Decode { tgt: &x, ..input })?;
        }
        self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.call(&x))
    }
}
