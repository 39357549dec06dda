//! Training steps of a small GPT: four layers of 128 features over 128 characters.

use super::Outcome;
use super::harness::{Harness, Work};
use super::training::{adamw, classes, step};
use cresset::Result;
use cresset::nn::{Embedding, LayerNorm};
use cresset::prelude::*;
use cresset::tensor::ops::{Approximate, Attention};

const LAYERS: usize = 4;
const FEATURES: usize = 128;
const HEADS: usize = 4;
const WIDTH: usize = FEATURES / HEADS;
const CONTEXT: usize = 128;
const BATCH: usize = 16;
const VOCABULARY: usize = 65;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    let workloads = [
        ("w6/gpt_adamw", Attend::Fused, false),
        ("w6/gpt_adamw_fused", Attend::Fused, true),
        ("w6/gpt_manualattn", Attend::ByOperators, false),
    ];
    for (name, attend, fused) in workloads {
        harness.bench(name, Work::Step, || {
            let model = Gpt::new(attend)?;
            let x = classes(VOCABULARY, [BATCH, CONTEXT])?;
            let y = classes(VOCABULARY, [BATCH * CONTEXT])?;
            step(adamw(model.parameters(), fused)?, move || {
                model.call(&x)?.view([BATCH * CONTEXT, VOCABULARY])?.cross_entropy(&y)
            })
        })?;
    }
    Ok(())
}

/// How attention is computed.
#[derive(Clone, Copy)]
enum Attend {
    /// By the operator for it.
    Fused,
    /// By products, a mask and softmax.
    ByOperators,
}

#[derive(Module)]
struct Gpt {
    tokens: Embedding,
    positions: Embedding,
    blocks: Sequential,
    norm: LayerNorm,
    head: Linear,
    #[module(skip)]
    places: Tensor,
}

impl Gpt {
    fn new(attend: Attend) -> Result<Gpt> {
        let mut blocks = Sequential::new();
        for _ in 0..LAYERS {
            blocks = blocks.push(Block::new(attend)?);
        }
        Ok(Gpt {
            tokens: Embedding::new(VOCABULARY, FEATURES)?,
            positions: Embedding::new(CONTEXT, FEATURES)?,
            blocks,
            norm: LayerNorm::new(FEATURES)?,
            head: Linear::new(FEATURES, VOCABULARY)?,
            places: Tensor::arange(CONTEXT as i64)?,
        })
    }
}

impl Forward for Gpt {
    type Output = Tensor;

    fn forward(&self, indices: &Tensor) -> Result<Tensor> {
        let x = self.tokens.call(indices)?.add(&self.positions.call(&self.places)?)?;
        self.head.call(&self.norm.call(&self.blocks.call(&x)?)?)
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
    #[module(skip)]
    attend: Attend,
    /// Which keys are later than the query.
    #[module(skip)]
    later: Tensor,
}

impl Block {
    fn new(attend: Attend) -> Result<Block> {
        Ok(Block {
            attention_norm: LayerNorm::new(FEATURES)?,
            query_key_value: Linear::new(FEATURES, 3 * FEATURES)?,
            projection: Linear::new(FEATURES, FEATURES)?,
            linear_norm: LayerNorm::new(FEATURES)?,
            up: Linear::new(FEATURES, 4 * FEATURES)?,
            down: Linear::new(4 * FEATURES, FEATURES)?,
            attend,
            later: Tensor::ones([CONTEXT, CONTEXT], DType::Bool)?.triu(1)?,
        })
    }

    fn attention(&self, x: &Tensor) -> Result<Tensor> {
        let heads = |x: &Tensor| x.view([BATCH, CONTEXT, HEADS, WIDTH])?.transpose(1, 2);
        let parts = self.query_key_value.call(x)?.split(FEATURES, -1)?;
        let (query, key, value) = (heads(&parts[0])?, heads(&parts[1])?, heads(&parts[2])?);
        let out = match self.attend {
            Attend::Fused => {
                let how = Attention { causal: true, ..Attention::default() };
                query.scaled_dot_product_attention(&key, &value, how)?
            }
            Attend::ByOperators => {
                let scores = query.matmul(&key.transpose(-2, -1)?)?.mul((WIDTH as f64).powf(-0.5))?;
                scores.masked_fill(&self.later, f64::NEG_INFINITY)?.softmax(-1)?.matmul(&value)?
            }
        };
        self.projection.call(&out.transpose(1, 2)?.reshape(x.shape())?)
    }
}

impl Forward for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.add(&self.attention(&self.attention_norm.call(x)?)?)?;
        let wide = self.up.call(&self.linear_norm.call(&x)?)?.gelu(Approximate::Tanh)?;
        x.add(&self.down.call(&wide)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_as_large_as_its_peers() {
        let parameters = Gpt::new(Attend::Fused).unwrap().parameters();
        assert_eq!(parameters.len(), 2 + LAYERS * 12 + 4);
        assert_eq!(parameters.iter().map(Tensor::numel).sum::<usize>(), 826_433);
    }

    #[test]
    fn both_ways_to_attend_give_the_same() {
        let fused = Gpt::new(Attend::Fused).unwrap();
        let by_operators = Gpt::new(Attend::ByOperators).unwrap();
        by_operators.load_state_dict(&fused.state_dict()).unwrap();
        let x = classes(VOCABULARY, [BATCH, CONTEXT]).unwrap();
        let difference = fused.call(&x).unwrap().sub(&by_operators.call(&x).unwrap()).unwrap();
        assert!(difference.abs().unwrap().max().unwrap().item().unwrap().as_f64() < 1e-4);
    }
}
