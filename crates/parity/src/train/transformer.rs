//! The transformer of the recorded runs: characters in, scores of the next one out.

use super::case::Case;
use super::model::Model;
use crate::golden::Golden;
use crate::replay::{Outcome, Verdict, failed, refused};
use cresset_nn::{Embedding, Forward, LayerNorm, Linear, Module};
use cresset_tensor::ops::{Approximate, Attention};
use cresset_tensor::{Result, Tensor};

#[derive(Module)]
pub(super) struct Transformer {
    tok: Embedding,
    pos: Embedding,
    lnf: LayerNorm,
    head: Linear,
    blocks: Vec<Block>,
}

#[derive(Module)]
struct Block {
    ln1: LayerNorm,
    qkv: Linear,
    proj: Linear,
    ln2: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    heads: usize,
}

/// What the blocks compute and in which order, as it is recorded.
const BLOCK: &str = "x += proj(sdpa(qkv(ln1(x)),";
const FEED: &str = "x += fc2(gelu(fc1(ln2(x))))";

impl Transformer {
    /// Sizes are those of the recorded weights; the heads are told in words alone.
    pub(super) fn make(golden: &Golden, case: &Case) -> Outcome<Transformer> {
        let text = &case.model;
        let heads = text
            .split_once(" heads")
            .and_then(|(before, _)| before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        let (Some(heads), true) = (heads, ["causal", BLOCK, FEED].iter().all(|part| text.contains(part)))
        else {
            return Err(Verdict::Unsupported(format!("model {text:?}")));
        };
        let sizes = |name: &str| {
            let found = case.init.iter().find(|(other, _)| other == name);
            let (_, key) = found.ok_or_else(|| failed(format!("{name} is missing")))?;
            let shape = golden.tensor(key).map_err(failed)?.shape();
            <[usize; 2]>::try_from(shape).map_err(|_| failed(format!("{name} has shape {shape:?}")))
        };
        let has = |name: &str| case.init.iter().any(|(other, _)| other == name);
        let [[words, width], [positions, _]] = [sizes("tok.weight")?, sizes("pos.weight")?];
        let blocks = (0..).take_while(|i| has(&format!("blocks.{i}.qkv.weight")));
        let hidden = blocks.map(|i| sizes(&format!("blocks.{i}.fc1.weight")).map(|[hidden, _]| hidden));
        let hidden = hidden.collect::<Outcome<Vec<usize>>>()?;
        let make = || {
            Ok(Transformer {
                tok: Embedding::new(words, width)?,
                pos: Embedding::new(positions, width)?,
                lnf: LayerNorm::new([width])?,
                head: Linear::new(width, words)?.bias(has("head.bias"))?,
                blocks: hidden
                    .iter()
                    .map(|&hidden| Block::new(width, hidden, heads))
                    .collect::<Result<_>>()?,
            })
        };
        make().map_err(|error| refused(&error))
    }
}

impl Block {
    fn new(width: usize, hidden: usize, heads: usize) -> Result<Block> {
        Ok(Block {
            ln1: LayerNorm::new([width])?,
            qkv: Linear::new(width, 3 * width)?,
            proj: Linear::new(width, width)?,
            ln2: LayerNorm::new([width])?,
            fc1: Linear::new(width, hidden)?,
            fc2: Linear::new(hidden, width)?,
            heads,
        })
    }

    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, length, width] = [x.shape()[0], x.shape()[1], x.shape()[2]];
        let all = self.qkv.call(x)?;
        let heads = |part: usize| {
            let part = all.narrow(-1, (part * width) as isize, width)?;
            part.reshape([batch, length, self.heads, width / self.heads])?.transpose(1, 2)
        };
        let how = Attention { causal: true, ..Attention::default() };
        let mixed = heads(0)?.scaled_dot_product_attention(&heads(1)?, &heads(2)?, how)?;
        self.proj.call(&mixed.transpose(1, 2)?.reshape([batch, length, width])?)
    }
}

impl Forward for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.add(&self.attend(&self.ln1.call(x)?)?)?;
        let hidden = self.fc1.call(&self.ln2.call(&x)?)?.gelu(Approximate::None)?;
        x.add(&self.fc2.call(&hidden)?)
    }
}

impl Forward for Transformer {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let places = Tensor::arange(x.shape()[1] as i64)?.to(x.device())?;
        let x = self.tok.call(x)?.add(&self.pos.call(&places)?)?;
        let x = self.blocks.iter().try_fold(x, |x, block| block.call(&x))?;
        self.head.call(&self.lnf.call(&x)?)
    }
}

impl Model for Transformer {
    fn scores(&self, x: &Tensor) -> Outcome<Tensor> {
        self.call(x).map_err(|error| refused(&error))
    }
}
