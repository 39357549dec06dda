//! A small GPT: characters in, scores of the next one out.

use crate::nn::{Dropout, Embedding, Forward, LayerNorm, Linear, Module};
use crate::{Result, Tensor};
use cresset_tensor::ops::{Approximate, Attention};
use cresset_tensor::{Cause, Error};

/// How large a [`Gpt`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GptOptions {
    /// How many characters there are.
    pub vocabulary: usize,
    /// The most characters it looks at.
    pub context: usize,
    /// Blocks of attention and linear layers.
    pub layers: usize,
    /// Numbers per character inside.
    pub features: usize,
    /// Parts that attention is computed in; divides the features.
    pub heads: usize,
    /// Share of numbers that is dropped while training.
    pub dropout: f64,
}

/// Embeddings of characters and places, blocks, and a linear layer that gives scores.
///
/// ```
/// use cresset::models::{Gpt, GptOptions};
/// use cresset::prelude::*;
///
/// let size = GptOptions { vocabulary: 65, context: 32, layers: 2, features: 16, heads: 4, dropout: 0.0 };
/// let scores = Gpt::new(size)?.call(&Tensor::zeros([3, 20], DType::I64)?)?;
/// assert_eq!(scores.shape(), [3, 20, 65]);
/// # Ok::<(), cresset::Error>(())
/// ```
#[derive(Module)]
pub struct Gpt {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
    #[module(skip)]
    options: GptOptions,
}

impl Gpt {
    /// A model with weights by chance.
    ///
    /// # Errors
    /// If the heads do not divide the features, or there is no memory for it.
    pub fn new(options: GptOptions) -> Result<Gpt> {
        let GptOptions { vocabulary, context, layers, features, heads, dropout } = options;
        if heads == 0 || features % heads != 0 {
            let text = format_args!("{heads} heads do not divide {features} features");
            return Err(Error::new(Cause::Argument, "Gpt", text));
        }
        Ok(Gpt {
            tokens: Embedding::new(vocabulary, features)?,
            positions: Embedding::new(context, features)?,
            blocks: (0..layers).map(|_| Block::new(features, heads, dropout)).collect::<Result<_>>()?,
            norm: LayerNorm::new(features)?,
            head: Linear::new(features, vocabulary)?,
            options,
        })
    }

    /// How large it is.
    pub fn options(&self) -> GptOptions {
        self.options
    }
}

impl Forward for Gpt {
    type Output = Tensor;

    fn forward(&self, characters: &Tensor) -> Result<Tensor> {
        let length = characters.shape().last().copied().unwrap_or(0);
        let places = Tensor::arange(length as i64)?.to(characters.device())?;
        let x = self.tokens.call(characters)?.add(&self.positions.call(&places)?)?;
        let x = self.blocks.iter().try_fold(x, |x, block| block.call(&x))?;
        self.head.call(&self.norm.call(&x)?)
    }
}

/// Attention, then two linear layers; each adds to what comes in.
#[derive(Module)]
struct Block {
    attention_norm: LayerNorm,
    query_key_value: Linear,
    projection: Linear,
    linear_norm: LayerNorm,
    up: Linear,
    down: Linear,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
}

impl Block {
    fn new(features: usize, heads: usize, dropout: f64) -> Result<Block> {
        Ok(Block {
            attention_norm: LayerNorm::new(features)?,
            query_key_value: Linear::new(features, 3 * features)?,
            projection: Linear::new(features, features)?,
            linear_norm: LayerNorm::new(features)?,
            up: Linear::new(features, 4 * features)?,
            down: Linear::new(4 * features, features)?,
            dropout: Dropout::new(dropout)?,
            heads,
        })
    }

    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let &[samples, length, features] = x.shape() else {
            let text = format_args!("expects samples of characters, not {:?}", x.shape());
            return Err(Error::new(Cause::Shape, "Gpt", text));
        };
        let parts = self.query_key_value.call(x)?.split(features, -1)?;
        let heads =
            |part: &Tensor| part.view([samples, length, self.heads, features / self.heads])?.transpose(1, 2);
        let how = Attention { causal: true, ..Attention::default() };
        let mixed =
            heads(&parts[0])?.scaled_dot_product_attention(&heads(&parts[1])?, &heads(&parts[2])?, how)?;
        self.projection.call(&mixed.transpose(1, 2)?.reshape(x.shape())?)
    }
}

impl Forward for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.add(&self.dropout.call(&self.attend(&self.attention_norm.call(x)?)?)?)?;
        let hidden = self.up.call(&self.linear_norm.call(&x)?)?.gelu(Approximate::Tanh)?;
        x.add(&self.dropout.call(&self.down.call(&hidden)?)?)
    }
}
