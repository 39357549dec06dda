//! An encoder and a decoder together.

use super::decoder::{Decode, TransformerDecoder, TransformerDecoderLayer};
use super::encoder::{Encode, TransformerEncoder, TransformerEncoderLayer};
use crate::inputs::inputs;
use crate::{Forward, Hooks, LayerNorm, Module, init};
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::sync::Arc;

inputs! {
    /// What a [`Transformer`] is called with: the sequence to read, and the one to write.
    Transform, Transformed(src, tgt) {
        /// Which steps that are read a step must not see, of bool, or what is added to scores.
        src_mask;
        /// Which steps that are written a step must not see.
        tgt_mask;
        /// Which steps that are read a step that is written must not see.
        memory_mask;
        /// Which steps that are read do not count, `[batch, steps]` of bool, or what is added to their
        /// scores.
        src_key_padding_mask;
        /// Which steps that are written do not count.
        tgt_key_padding_mask;
        /// Which steps that are read do not count for those that are written.
        memory_key_padding_mask;
    } flags {
        /// Says that a step that is read sees only itself and those before. A mask that is given must say
        /// the same.
        src_is_causal = false;
        /// Says the same of steps that are written.
        tgt_is_causal = false;
        /// Says the same of what is written, looking at what is read.
        memory_is_causal = false;
    }
}

/// A transformer that reads one sequence and writes another.
///
/// ```
/// use cresset_nn::{Forward, Tensor, Transform, Transformer};
///
/// let model = Transformer::new(16, 4, 1, 1, 32)?.batch_first(true)?;
/// let (src, tgt) = (Tensor::ones([2, 7, 16], ())?, Tensor::ones([2, 5, 16], ())?);
/// let out = model.call(Transform::new(&src, &tgt).tgt_is_causal(true))?;
/// assert_eq!(out.shape(), [2, 5, 16]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct Transformer {
    /// Reads.
    pub encoder: TransformerEncoder,
    /// Writes.
    pub decoder: TransformerDecoder,
    d_model: usize,
    batch_first: bool,
    hooks: Hooks,
}

/// Changes all layers of a transformer alike.
macro_rules! in_all_layers {
    ($self:ident, |$layer:ident| $changed:expr) => {{
        let (mut encoder, mut decoder) = ($self.encoder, $self.decoder);
        encoder.layers = encoder.layers.into_iter().map(|$layer| $changed).collect::<Result<_>>()?;
        decoder.layers = decoder.layers.into_iter().map(|$layer| $changed).collect::<Result<_>>()?;
        Self { encoder, decoder, ..$self }
    }};
}

impl Transformer {
    /// Of `d_model` numbers per step and `nhead` heads, in so many layers of each kind; torch's own
    /// transformer is 512, 8, 6, 6, 2048.
    ///
    /// # Errors
    /// If one of them is 0, or `d_model` is no multiple of `nhead`.
    pub fn new(
        d_model: usize,
        nhead: usize,
        num_encoder_layers: usize,
        num_decoder_layers: usize,
        dim_feedforward: usize,
    ) -> Result<Self> {
        let encoders = 0..num_encoder_layers;
        let encoders = encoders.map(|_| TransformerEncoderLayer::new(d_model, nhead, dim_feedforward));
        let decoders = 0..num_decoder_layers;
        let decoders = decoders.map(|_| TransformerDecoderLayer::new(d_model, nhead, dim_feedforward));
        let encoder = TransformerEncoder::new(encoders.collect::<Result<_>>()?)?;
        let decoder = TransformerDecoder::new(decoders.collect::<Result<_>>()?)?;
        let transformer = Self {
            encoder: encoder.norm(LayerNorm::new(d_model)?)?,
            decoder: decoder.norm(LayerNorm::new(d_model)?)?,
            d_model,
            batch_first: false,
            hooks: Hooks::default(),
        };
        transformer.start()?;
        Ok(transformer)
    }

    /// As in torch, all matrices start anew, uniform by how many numbers they join.
    fn start(&self) -> Result<()> {
        let parameters = self.parameters();
        let mut matrices = parameters.iter().filter(|parameter| parameter.dim() > 1);
        matrices.try_for_each(|matrix| init::xavier_uniform_(matrix, 1.0))
    }

    /// How likely numbers are dropped while the module is trained: 0.1 unless said otherwise.
    pub fn dropout(self, p: f64) -> Result<Self> {
        Ok(in_all_layers!(self, |layer| layer.dropout(p)))
    }

    /// What is between linear layers: [`Tensor::relu`] unless said otherwise.
    pub fn activation(
        self,
        activation: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared = Arc::new(activation);
        Ok(in_all_layers!(self, |layer| {
            let shared = shared.clone();
            layer.activation(move |x| shared(x))
        }))
    }

    /// What layer norms add to variances: 1e-5 unless said otherwise.
    pub fn layer_norm_eps(self, eps: f64) -> Result<Self> {
        let mut changed = in_all_layers!(self, |layer| layer.layer_norm_eps(eps));
        changed.encoder.norm = changed.encoder.norm.map(|norm| norm.eps(eps)).transpose()?;
        changed.decoder.norm = changed.decoder.norm.map(|norm| norm.eps(eps)).transpose()?;
        Ok(changed)
    }

    /// Whether sequences are `[batch, steps, size]` instead of `[steps, batch, size]`.
    pub fn batch_first(self, batch_first: bool) -> Result<Self> {
        let changed = in_all_layers!(self, |layer| layer.batch_first(batch_first));
        Ok(Self { batch_first, ..changed })
    }

    /// Whether each part normalizes what it reads, instead of what it gives.
    pub fn norm_first(self, norm_first: bool) -> Result<Self> {
        Ok(in_all_layers!(self, |layer| layer.norm_first(norm_first)))
    }

    /// With biases of linear layers and norms, or without.
    pub fn bias(self, bias: bool) -> Result<Self> {
        let mut changed = in_all_layers!(self, |layer| layer.bias(bias));
        changed.encoder.norm = changed.encoder.norm.map(|norm| norm.bias(bias)).transpose()?;
        changed.decoder.norm = changed.decoder.norm.map(|norm| norm.bias(bias)).transpose()?;
        Ok(changed)
    }

    fn check(&self, src: &Tensor, tgt: &Tensor) -> Result<()> {
        let batch = usize::from(!self.batch_first);
        let same_rank = src.dim() == tgt.dim() && (2..=3).contains(&src.dim());
        let same_batch = same_rank && (src.dim() == 2 || src.shape()[batch] == tgt.shape()[batch]);
        let fits = |x: &Tensor| x.shape().last() == Some(&self.d_model);
        if same_batch && fits(src) && fits(tgt) {
            return Ok(());
        }
        let order = if self.batch_first { "batch, steps" } else { "steps, batch" };
        let text = format_args!(
            "src and tgt are {:?} and {:?}, expected [{order}, {2}] of one batch, or [steps, {2}]",
            src.shape(),
            tgt.shape(),
            self.d_model
        );
        Err(Error::new(Cause::Shape, "Transformer", text))
    }
}

impl Forward<Transformed> for Transformer {
    type Output = Tensor;

    fn forward(&self, input: Transform<'_>) -> Result<Tensor> {
        self.check(input.src, input.tgt)?;
        let encode = Encode::new(input.src).mask(input.src_mask).is_causal(input.src_is_causal);
        let memory = self.encoder.call(encode.src_key_padding_mask(input.src_key_padding_mask))?;
        let decode = Decode::new(input.tgt, &memory).tgt_mask(input.tgt_mask).memory_mask(input.memory_mask);
        let decode = decode.tgt_key_padding_mask(input.tgt_key_padding_mask);
        let decode = decode.memory_key_padding_mask(input.memory_key_padding_mask);
        self.decoder.call(decode.tgt_is_causal(input.tgt_is_causal).memory_is_causal(input.memory_is_causal))
    }
}
