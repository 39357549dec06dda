//! Fully connected layers, tables, and distances.

use super::{Entry, Made};
use crate::arguments::{Arguments, Zero};
use cresset_nn::*;

pub(super) const MODULES: &[Entry] = &[
    Entry::new("Linear", |a| {
        let layer = Linear::new(a.size(0, "in_features")?, a.size(1, "out_features")?)?;
        Made::layer(layer.bias(a.or(2, "bias", true)?)?)
    }),
    Entry::new("Bilinear", |a| {
        let [left, right] = [a.size(0, "in1_features")?, a.size(1, "in2_features")?];
        let layer = Bilinear::new(left, right, a.size(2, "out_features")?)?.bias(a.or(3, "bias", true)?)?;
        Made::with(layer, |layer, a| {
            layer.call((&a.get::<Tensor>(0, "input1")?, &a.get::<Tensor>(1, "input2")?))
        })
    }),
    Entry::new("Identity", |a| {
        let _ = a;
        Made::layer(Identity)
    }),
    Entry::new("Embedding", |a| {
        let mut layer = Embedding::new(a.size(0, "num_embeddings")?, a.size(1, "embedding_dim")?)?;
        if let Some(row) = a.get(2, "padding_idx")? {
            layer = layer.padding_idx(row)?;
        }
        layer =
            layer.max_norm(a.get::<Option<f64>>(3, "max_norm")?)?.norm_type(a.or(4, "norm_type", 2.0)?)?;
        a.or(6, "sparse", Zero)?;
        Made::layer(layer.scale_grad_by_freq(a.or(5, "scale_grad_by_freq", false)?)?)
    }),
    Entry::new("EmbeddingBag", |a| {
        let layer = EmbeddingBag::new(a.size(0, "num_embeddings")?, a.size(1, "embedding_dim")?)?;
        let layer =
            layer.max_norm(a.get::<Option<f64>>(2, "max_norm")?)?.norm_type(a.or(3, "norm_type", 2.0)?)?;
        let layer = layer.scale_grad_by_freq(a.or(4, "scale_grad_by_freq", false)?)?.mode(mode(a)?)?;
        let mut layer = layer.include_last_offset(a.or(8, "include_last_offset", false)?)?;
        if let Some(row) = a.get(9, "padding_idx")? {
            layer = layer.padding_idx(row)?;
        }
        a.or(6, "sparse", Zero)?;
        Made::with(layer, |layer, a| {
            let [offsets, weights]: [Option<Tensor>; 2] =
                [a.get(1, "offsets")?, a.get(2, "per_sample_weights")?];
            layer.call((&a.get::<Tensor>(0, "input")?, offsets.as_ref(), weights.as_ref()))
        })
    }),
    Entry::new("CosineSimilarity", |a| {
        Made::with(CosineSimilarity { dim: a.or(0, "dim", 1)?, eps: a.or(1, "eps", 1e-8)? }, |layer, a| {
            layer.call((&a.get::<Tensor>(0, "x1")?, &a.get::<Tensor>(1, "x2")?))
        })
    }),
    Entry::new("PairwiseDistance", |a| {
        let layer = PairwiseDistance {
            p: a.or(0, "p", 2.0)?,
            eps: a.or(1, "eps", 1e-6)?,
            keepdim: a.or(2, "keepdim", false)?,
        };
        Made::with(layer, |layer, a| layer.call((&a.get::<Tensor>(0, "x1")?, &a.get::<Tensor>(1, "x2")?)))
    }),
];

fn mode(a: &Arguments<'_>) -> Result<Bagging> {
    match a.or(5, "mode", "mean".to_owned())?.as_str() {
        "sum" => Ok(Bagging::Sum),
        "mean" => Ok(Bagging::Mean),
        "max" => Ok(Bagging::Max),
        other => Err(super::unknown("mode", other)),
    }
}
