//! Softmax, normalization and attention.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD, Zero};
use cresset_tensor::ops::{Attention, BatchNorm, LocalResponseNorm};
use cresset_tensor::{Result, Tensor};

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
        // What is dropped depends on the generator, which is not torch's.
        a.or(4, "dropout_p", Zero)?;
        let how = Attention {
            mask: mask.as_ref(),
            causal: a.or(5, "is_causal", false)?,
            scale: a.get(KEYWORD, "scale")?,
            grouped: a.or(KEYWORD, "enable_gqa", false)?,
        };
        let (key, value) = (a.get::<Tensor>(1, "key")?, a.get::<Tensor>(2, "value")?);
        a.get::<Tensor>(0, "query")?.scaled_dot_product_attention(&key, &value, how)
    }),
];

fn input(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

fn optional(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<Option<Tensor>> {
    a.get(position, name)
}
