//! Models inside autocast, held against what torch 2.15 computed for them.
//!
//! `recorded.txt` has a line for each tensor: model, region, what it is, element type, elements.

use super::{parameter, wave};
use cresset_tensor::ops::{Approximate, Attention, BatchNorm, Convolving, Pooling, Reduction};
use cresset_tensor::{DType, Result, Tensor, autocast, tensor};

/// Outputs, the loss and the parameters whose gradients are looked at.
struct Ran {
    outputs: Vec<Tensor>,
    loss: Tensor,
    parameters: Vec<Tensor>,
}

fn perceptron() -> Result<Ran> {
    let (first, bias) = (parameter(0.2, &[5, 6])?, parameter(0.3, &[5])?);
    let (scale, shift, last) = (parameter(0.4, &[5])?, parameter(0.5, &[5])?, parameter(0.6, &[3, 5])?);
    let hidden = wave(0.1, &[4, 6])?.linear(&first, Some(&bias))?;
    let normal = hidden.gelu(Approximate::None)?.layer_norm(&[5], Some(&scale), Some(&shift), 1e-5)?;
    let scores = normal.linear(&last, None)?;
    let loss = scores.cross_entropy(&tensor![0i64, 2, 1, 1]?)?;
    Ok(Ran { outputs: vec![hidden, normal, scores], loss, parameters: vec![first, bias, scale, last] })
}

fn convolution() -> Result<Ran> {
    let (weight, bias) = (parameter(0.2, &[4, 3, 3, 3])?, parameter(0.3, &[4])?);
    let (scale, shift, last) = (parameter(0.4, &[4])?, parameter(0.5, &[4])?, parameter(0.6, &[2, 16])?);
    let seen = wave(0.1, &[2, 3, 6, 6])?.conv2d(&weight, Some(&bias), &Convolving::default())?;
    let training = BatchNorm { training: true, ..BatchNorm::default() };
    let normal = seen.batch_norm([None, None], Some(&scale), Some(&shift), training)?;
    let pooled = normal.relu()?.max_pool2d(&Pooling::new([2]))?;
    let scores = pooled.flatten(1, -1)?.linear(&last, None)?;
    let loss = scores.mse_loss(&wave(0.7, &[2, 2])?, Reduction::Mean)?;
    Ok(Ran { outputs: vec![pooled, scores], loss, parameters: vec![weight, scale, last] })
}

fn attention() -> Result<Ran> {
    let (x, last) = (wave(0.1, &[2, 3, 4])?, parameter(0.6, &[2, 8])?);
    let weights = [parameter(0.2, &[4, 4])?, parameter(0.3, &[4, 4])?, parameter(0.4, &[4, 4])?];
    let [query, key, value] = weights.each_ref().map(|weight| x.linear(weight, None));
    let seen = query?.scaled_dot_product_attention(&key?, &value?, Attention::default())?;
    let joined = Tensor::cat(&[&seen, &x], -1)?;
    let scores = joined.linear(&last, None)?;
    let loss = scores.huber_loss(&wave(0.7, &[2, 3, 2])?, 1.0, Reduction::Mean)?;
    let [query, _, value] = weights;
    Ok(Ran { outputs: vec![seen, joined, scores], loss, parameters: vec![query, value, last] })
}

/// What torch's own tests allow a type: a share, and an absolute difference.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::BF16 => (1.6e-2, 1e-5),
        _ => (1e-3, 1e-5),
    }
}

fn check(name: &str, lower: DType, model: fn() -> Result<Ran>) -> Result<()> {
    let ran = autocast(lower, model)?;
    ran.loss.backward()?;
    let grads = ran.parameters.iter().map(|parameter| parameter.grad().expect("a gradient"));
    let got: Vec<Tensor> = ran.outputs.iter().cloned().chain([ran.loss.clone()]).chain(grads).collect();
    let wanted = format!("{name} {lower} ");
    let lines: Vec<&str> =
        include_str!("recorded.txt").lines().filter_map(|line| line.strip_prefix(&*wanted)).collect();
    assert_eq!(lines.len(), got.len());
    let (share, least) = tolerance(lower);
    for (line, got) in lines.iter().zip(&got) {
        let mut words = line.split(' ');
        let (kind, dtype) = (words.next().unwrap(), words.next().unwrap());
        assert_eq!(got.dtype().to_string(), dtype, "{wanted}{kind}");
        let expected: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let got = got.detach()?.to(DType::F64)?.flatten(0, -1)?.to_vec::<f64>()?;
        assert_eq!(got.len(), expected.len(), "{wanted}{kind}");
        let largest = expected.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        for (got, expected) in got.iter().zip(&expected) {
            // In sums much cancels, but not what was rounded on the way: the largest element says how much.
            let near = (got - expected).abs() <= least + share * largest;
            assert!(near, "{wanted}{kind}: {got}, torch has {expected}");
        }
    }
    Ok(())
}

#[test]
fn models_compute_what_torch_computes() -> Result<()> {
    for lower in [DType::BF16, DType::F16] {
        check("perceptron", lower, perceptron)?;
        check("convolution", lower, convolution)?;
        check("attention", lower, attention)?;
    }
    Ok(())
}
