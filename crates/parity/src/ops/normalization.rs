//! Softmax, normalization and attention.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD};
use crate::stream::Stream;
use cresset_tensor::ops::{Attention, BatchNorm, Dropped, LocalResponseNorm};
use cresset_tensor::{DType, Result, Tensor};

pub(super) const OPS: &[Entry] = &[
    Entry::one("softmax", |a| input(a)?.softmax_as(a.get(1, "dim")?, a.get(KEYWORD, "dtype")?)),
    Entry::one("log_softmax", |a| input(a)?.log_softmax_as(a.get(1, "dim")?, a.get(KEYWORD, "dtype")?)),
    Entry::one("nn.functional.softmin", |a| input(a)?.softmin(a.get(1, "dim")?, a.get(3, "dtype")?)),
    Entry::one("nn.functional.batch_norm", |a| {
        let how = BatchNorm {
            training: a.or(5, "training", false)?,
            momentum: a.or(6, "momentum", 0.1)?,
            epsilon: a.or(7, "eps", 1e-5)?,
        };
        let [mean, variance] = [optional(a, 1, "running_mean")?, optional(a, 2, "running_var")?];
        let [weight, bias] = [optional(a, 3, "weight")?, optional(a, 4, "bias")?];
        input(a)?.batch_norm([mean.as_ref(), variance.as_ref()], weight.as_ref(), bias.as_ref(), how)
    }),
    Entry::one("nn.functional.instance_norm", |a| {
        let how = BatchNorm {
            training: a.or(5, "use_input_stats", true)?,
            momentum: a.or(6, "momentum", 0.1)?,
            epsilon: a.or(7, "eps", 1e-5)?,
        };
        let [mean, variance] = [optional(a, 1, "running_mean")?, optional(a, 2, "running_var")?];
        let [weight, bias] = [optional(a, 3, "weight")?, optional(a, 4, "bias")?];
        input(a)?.instance_norm([mean.as_ref(), variance.as_ref()], weight.as_ref(), bias.as_ref(), how)
    }),
    Entry::one("nn.functional.group_norm", |a| {
        let [weight, bias] = [optional(a, 2, "weight")?, optional(a, 3, "bias")?];
        let epsilon = a.or(4, "eps", 1e-5)?;
        input(a)?.group_norm(a.get(1, "num_groups")?, weight.as_ref(), bias.as_ref(), epsilon)
    }),
    Entry::one("nn.functional.layer_norm", |a| {
        let [weight, bias] = [optional(a, 2, "weight")?, optional(a, 3, "bias")?];
        let (normalized, epsilon) = (a.get::<Vec<usize>>(1, "normalized_shape")?, a.or(4, "eps", 1e-5)?);
        input(a)?.layer_norm(&normalized, weight.as_ref(), bias.as_ref(), epsilon)
    }),
    Entry::one("nn.functional.rms_norm", |a| {
        let normalized = a.get::<Vec<usize>>(1, "normalized_shape")?;
        input(a)?.rms_norm(&normalized, optional(a, 2, "weight")?.as_ref(), a.get(3, "eps")?)
    }),
    Entry::one("nn.functional.local_response_norm", |a| {
        let how = LocalResponseNorm {
            size: a.size(1, "size")?,
            alpha: a.or(2, "alpha", 1e-4)?,
            beta: a.or(3, "beta", 0.75)?,
            k: a.or(4, "k", 1.0)?,
        };
        input(a)?.local_response_norm(how)
    }),
    Entry::one("nn.functional.scaled_dot_product_attention", |a| {
        let mask = optional(a, 3, "attn_mask")?;
        let [query, key, value] = [a.get::<Tensor>(0, "query")?, a.get(1, "key")?, a.get(2, "value")?];
        let probability = a.or(4, "dropout_p", 0.0)?;
        let recorded = probability > 0.0 && a.is_recorded();
        let kept = recorded.then(|| kept(&query, &key, probability)).transpose()?;
        let how = Attention {
            mask: mask.as_ref(),
            causal: a.or(5, "is_causal", false)?,
            scale: a.get(KEYWORD, "scale")?,
            grouped: a.or(KEYWORD, "enable_gqa", false)?,
            dropout: (probability > 0.0).then_some(Dropped { probability, kept: kept.as_ref() }),
        };
        query.scaled_dot_product_attention(&key, &value, how)
    }),
];

/// Which weights of an attention were kept when the call was recorded.
fn kept(query: &Tensor, key: &Tensor, probability: f64) -> Result<Tensor> {
    let split = |x: &Tensor| {
        let (stack, [rows, _]) = x.shape().split_last_chunk::<2>()?;
        Some((stack.to_vec(), *rows))
    };
    let (Some((mut shape, queries)), Some((mut others, keys))) = (split(query), split(key)) else {
        return Tensor::zeros([0], DType::Bool);
    };
    if shape.len() < others.len() {
        std::mem::swap(&mut shape, &mut others);
    }
    // Stacks broadcast, and several heads of queries may share one of keys.
    let after = shape.len() - others.len();
    for (size, other) in shape[after..].iter_mut().zip(others) {
        *size = if *size == 0 || other == 0 { 0 } else { other.max(*size) };
    }
    shape.extend([queries, keys]);
    let mut stream = Stream::recorded();
    let count: usize = shape.iter().product();
    let kept: Vec<bool> = (0..count).map(|_| stream.uniform() < 1.0 - probability).collect();
    Tensor::from_slice(&kept, &shape)?.to(query.device())
}

fn input(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

fn optional(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<Option<Tensor>> {
    a.get(position, name)
}
