//! Reading one sequence.

use super::feed::feed_forward;
use super::{Activation, added, options};
use crate::check::positive;
use crate::inputs::inputs;
use crate::{Attend, Dropout, Forward, Hooks, LayerNorm, Linear, Module, MultiheadAttention};
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::sync::Arc;

inputs! {
    /// What encoders are called with: the sequence to read.
    Encode, Encoded(src) {
        /// Which steps a step must not see, of bool, or what is added to scores.
        mask;
        /// Which steps do not count, `[batch, steps]` of bool, or what is added to their scores.
        src_key_padding_mask;
    } flags {
        /// Says that a step sees only itself and those before. A mask that is given must say the same.
        is_causal = false;
    }
}

/// Attention of a sequence to itself, and a small network for each step.
///
/// ```
/// use cresset_nn::{Encode, Forward, Tensor, TransformerEncoderLayer};
///
/// let layer = TransformerEncoderLayer::new(16, 4, 32)?.norm_first(true)?.batch_first(true)?;
/// let x = Tensor::ones([2, 5, 16], ())?;
/// assert_eq!(layer.call(Encode::new(&x).is_causal(true))?.shape(), [2, 5, 16]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct TransformerEncoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// To `dim_feedforward`.
    pub linear1: Linear,
    dropout: Dropout,
    /// And back.
    pub linear2: Linear,
    /// Of the attention.
    pub norm1: LayerNorm,
    /// Of the small network.
    pub norm2: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    #[module(skip)]
    activation: Activation,
    norm_first: bool,
    hooks: Hooks,
}

impl TransformerEncoderLayer {
    /// Of `d_model` numbers per step, with `nhead` heads, and `dim_feedforward` numbers between the linear
    /// layers, which torch makes 2048 unless told otherwise.
    ///
    /// # Errors
    /// If one of them is 0, or `d_model` is no multiple of `nhead`.
    pub fn new(d_model: usize, nhead: usize, dim_feedforward: usize) -> Result<Self> {
        positive("TransformerEncoderLayer", &[("dim_feedforward", dim_feedforward)])?;
        let layer = Self {
            self_attn: MultiheadAttention::new(d_model, nhead)?,
            linear1: Linear::new(d_model, dim_feedforward)?,
            dropout: Dropout::default(),
            linear2: Linear::new(dim_feedforward, d_model)?,
            norm1: LayerNorm::new(d_model)?,
            norm2: LayerNorm::new(d_model)?,
            dropout1: Dropout::default(),
            dropout2: Dropout::default(),
            activation: Arc::new(Tensor::relu),
            norm_first: false,
            hooks: Hooks::default(),
        };
        layer.dropout(0.1)
    }

    fn attend(&self, x: &Tensor, input: Encode<'_>) -> Result<Tensor> {
        let attend = Attend::new(x, x, x).attn_mask(input.mask).is_causal(input.is_causal);
        let attend = attend.key_padding_mask(input.src_key_padding_mask).need_weights(false);
        self.dropout1.call(&self.self_attn.call(attend)?.0)
    }

    fn feed(&self, x: &Tensor) -> Result<Tensor> {
        let linears = (&self.linear1, &self.linear2);
        self.dropout2.call(&feed_forward(x, linears, &self.activation, &self.dropout)?)
    }
}

options! {
    TransformerEncoderLayer {
        attentions: self_attn;
        norms: norm1, norm2;
        dropouts: dropout, dropout1, dropout2
    }
}

impl Forward<Encoded> for TransformerEncoderLayer {
    type Output = Tensor;

    fn forward(&self, input: Encode<'_>) -> Result<Tensor> {
        let (padding, mask) = (added(input.src_key_padding_mask, input.src)?, added(input.mask, input.src)?);
        let input = input.src_key_padding_mask(padding.as_ref()).mask(mask.as_ref());
        let x = input.src;
        if self.norm_first {
            let x = x.add(&self.attend(&self.norm1.call(x)?, input)?)?;
            return x.add(&self.feed(&self.norm2.call(&x)?)?);
        }
        let x = self.norm1.call(&x.add(&self.attend(x, input)?)?)?;
        self.norm2.call(&x.add(&self.feed(&x)?)?)
    }
}

/// Encoder layers one after the other, and a norm behind them if there is one.
#[derive(Module)]
pub struct TransformerEncoder {
    /// The layers, which read what the one before gives.
    pub layers: Vec<TransformerEncoderLayer>,
    /// Of what the last layer gives.
    pub norm: Option<LayerNorm>,
    hooks: Hooks,
}

impl TransformerEncoder {
    /// Of at least one layer. Unlike in torch, layers are given one by one, and start with weights of
    /// their own.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(layers: Vec<TransformerEncoderLayer>) -> Result<Self> {
        if layers.is_empty() {
            let text = "expects at least one layer";
            return Err(Error::new(Cause::Argument, "TransformerEncoder", text));
        }
        Ok(Self { layers, norm: None, hooks: Hooks::default() })
    }

    /// With a norm behind the last layer.
    pub fn norm(self, norm: LayerNorm) -> Result<Self> {
        Ok(Self { norm: Some(norm), ..self })
    }
}

impl Forward<Encoded> for TransformerEncoder {
    type Output = Tensor;

    fn forward(&self, input: Encode<'_>) -> Result<Tensor> {
        let (padding, mask) = (added(input.src_key_padding_mask, input.src)?, added(input.mask, input.src)?);
        let input = input.src_key_padding_mask(padding.as_ref()).mask(mask.as_ref());
        let mut x = input.src.clone();
        for layer in &self.layers {
            x = layer.call(Encode { src: &x, ..input })?;
        }
        self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.call(&x))
    }
}
