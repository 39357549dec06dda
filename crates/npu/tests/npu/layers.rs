//! Losses, normalization, windows, attention and optimizer steps on the device equal the host's.

use crate::operators::check;
use crate::support::numbers;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Op, Tensor};

#[test]
fn losses() {
    let target = Tensor::new([1i64, 0, 3, -100, 2]).unwrap();
    let inputs = [numbers(&[5, 4], 1), target, numbers(&[4], 2), numbers(&[5], 3)];
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        for weighted in [false, true] {
            check(&format!("{reduction:?}, weighted {weighted}"), &inputs, &|x| {
                let (scores, weight) = (x[0].log_softmax(1)?, x[2].mul(&x[2])?.add(0.1)?);
                let weight = weighted.then_some(&weight);
                let loss = NllLoss { reduction, ignore_index: -100 };
                let [losses, total] = loss.call(([&scores, &x[1]], weight))?;
                let grad = if losses.dim() == 0 { losses.clone() } else { x[3].clone() };
                let back = NllLossBackward { reduction, ignore_index: -100 };
                let gradient = back.call(([&grad, &scores, &x[1], &total], weight))?;
                Ok(vec![losses, total, gradient])
            });
        }
    }
}

#[test]
fn losses_of_distance_and_probability() {
    let inputs = [numbers(&[3, 4], 1), numbers(&[3, 4], 2), numbers(&[4], 3)];
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        check(&format!("{reduction:?}"), &inputs, &|x| {
            let [guess, truth] = [&x[0], &x[1]];
            let (share, weight) = (guess.sigmoid()?, x[2].abs()?);
            Ok(vec![
                guess.mse_loss(truth, reduction)?,
                guess.smooth_l1_loss(truth, 0.3, reduction)?,
                guess.huber_loss(truth, 0.3, reduction)?,
                guess.l1_loss(truth, reduction)?,
                share.binary_cross_entropy(&truth.sigmoid()?, Some(&weight), reduction)?,
                guess.binary_cross_entropy_with_logits(&truth.sigmoid()?, None, Some(&weight), reduction)?,
                guess.log_softmax(1)?.kl_div(&truth.softmax(1)?, false, reduction)?,
                DistanceLossBackward { distance: Square, reduction }.call([truth, guess, truth])?,
                DistanceLossBackward { distance: Huber { delta: 0.3 }, reduction }
                    .call([truth, guess, truth])?,
                BinaryCrossEntropyBackward { reduction }.call(([truth, &share, &share], None))?,
            ])
        });
    }
}

#[test]
fn normalization() {
    let inputs = [numbers(&[3, 4, 5], 1), numbers(&[4], 2), numbers(&[4], 3), numbers(&[4, 5], 4)];
    for training in [true, false] {
        check(&format!("training {training}"), &inputs, &|x| {
            let (mean, variance) = (x[1].copy()?, x[2].abs()?);
            let how = BatchNorm { training, ..BatchNorm::default() };
            let out = x[0].batch_norm([Some(&mean), Some(&variance)], Some(&x[1]), Some(&x[2]), how)?;
            Ok(vec![out, mean, variance])
        });
    }
    check("rows and groups", &inputs, &|x| {
        Ok(vec![
            x[0].layer_norm(&[4, 5], Some(&x[3]), None, 1e-5)?,
            x[0].layer_norm(&[5], None, None, 1e-3)?,
            x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5)?,
            x[0].to_dtype(DType::F16)?.group_norm(4, None, None, 1e-5)?.to_dtype(DType::F32)?,
            x[0].rms_norm(&[5], None, None)?,
        ])
    });
}

#[test]
fn windows() {
    let inputs = [numbers(&[2, 4, 7, 6], 1), numbers(&[6, 2, 3, 2], 2), numbers(&[6], 3)];
    check("convolution and pooling", &inputs, &|x| {
        let [image, weight, bias] = [&x[0], &x[1], &x[2]];
        let two = || PerDim::from_slice(&[2, 1]);
        let grouped =
            Convolving { groups: 2, stride: two(), padding: Margin::By(two()), ..Convolving::default() };
        let pooled = Pooling { padding: PerDim::from_slice(&[1]), ceil_mode: true, ..Pooling::new([3, 2]) };
        let [maxima, places] = image.max_pool2d_with_indices(&pooled)?;
        let averaged = Averaging { windows: pooled, count_include_pad: false, divisor_override: None };
        let [most, found] = image.adaptive_max_pool2d(&[Some(3), Some(4)])?;
        Ok(vec![
            image.conv2d(weight, Some(bias), &grouped)?,
            image.select(2, 0)?.conv1d(
                &weight.select(3, 0)?,
                None,
                &Convolving { groups: 2, ..Convolving::default() },
            )?,
            image.narrow(1, 0, 2)?.conv2d(&weight.transpose(2, 3)?, None, &Convolving::default())?,
            image.conv_transpose2d(
                &numbers(&[4, 3, 2, 2], 4).to(image.device())?,
                None,
                &Convolving { stride: two(), ..Convolving::default() },
            )?,
            maxima,
            places,
            image.avg_pool2d(&averaged)?,
            image.adaptive_avg_pool2d(&[Some(3), Some(4)])?,
            most,
            found,
            image.im2col(&Unfolding::new([2, 3]))?,
        ])
    });
}

#[test]
fn attention_and_its_gradients() {
    let mask = Tensor::new([[true, true, false], [false, true, true], [true, false, true]]).unwrap();
    let inputs = [numbers(&[2, 4, 3, 8], 1), numbers(&[2, 2, 3, 8], 2), numbers(&[2, 2, 3, 8], 3), mask];
    for (name, causal, masked) in [("plain", false, false), ("causal", true, false), ("masked", false, true)]
    {
        check(&format!("{name} attention"), &inputs, &|x| {
            let [query, key, value] = [0, 1, 2].map(|i| x[i].copy().and_then(|x| x.with_grad()));
            let (query, key, value) = (query?, key?, value?);
            let how =
                Attention { causal, grouped: true, mask: masked.then_some(&x[3]), ..Attention::default() };
            let out = query.scaled_dot_product_attention(&key, &value, how)?;
            out.mul(&x[0])?.sum()?.backward()?;
            let grads = [query, key, value].map(|x| x.grad().expect("a leaf has one"));
            Ok([vec![out.detach()?], grads.to_vec()].concat())
        });
    }
}

#[test]
fn images_of_other_sizes() {
    let inputs = [numbers(&[2, 3, 4, 5], 1), numbers(&[2, 3, 6, 4], 2)];
    let resizing = Resizing { to: [6, 4][..].into(), align_corners: false, scales: None };
    check("resized", &inputs, &|x| {
        let from = || x[0].shape().into();
        Ok(vec![
            UpsampleNearest2d(resizing.clone()).call([&x[0]])?,
            UpsampleNearestExact2d(resizing.clone()).call([&x[0]])?,
            UpsampleBilinear2d(resizing.clone()).call([&x[0]])?,
            UpsampleBicubic2d(Resizing { align_corners: true, ..resizing.clone() }).call([&x[0]])?,
            UpsampleNearest2dBackward { resizing: resizing.clone(), from: from() }.call([&x[1]])?,
            UpsampleBilinear2dBackward { resizing: resizing.clone(), from: from() }.call([&x[1]])?,
        ])
    });
}

#[test]
fn steps_of_adam() {
    let base = AdamStep {
        lr: 0.01,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
        step: 0,
    };
    for step in [
        base,
        AdamStep { weight_decay: 0.1, ..base },
        AdamStep { weight_decay: 0.1, decoupled: true, ..base },
        AdamStep { weight_decay: 0.1, maximize: true, ..base },
        AdamStep { maximize: true, beta1: 0.3, ..base },
        AdamStep { amsgrad: true, weight_decay: 0.1, ..base },
    ] {
        let inputs = [numbers(&[3, 4], 1), numbers(&[5], 2), numbers(&[4, 3], 3), numbers(&[5], 4)];
        check(&format!("{step:?}"), &inputs, &|x| {
            let params = [x[0].copy()?, x[1].copy()?];
            let grads = [x[2].t()?, x[3].clone()];
            let mut tensors = Vec::new();
            for (param, grad) in params.iter().zip(&grads) {
                tensors.extend([param.clone(), grad.clone()]);
                let states = if step.amsgrad { 3 } else { 2 };
                (0..states).try_for_each(|_| param.zeros_like().map(|zeros| tensors.push(zeros)))?;
            }
            for count in 1..=5 {
                // The second parameter is a step behind, as one that had no gradient once.
                let rules = [count + 1, count].map(|step_count| AdamStep { step: step_count, ..step });
                FusedAdam.call(Batch { tensors: &tensors, rules: &rules, steps: &[] })?;
            }
            Ok(tensors)
        });
    }
}

#[test]
fn steps_by_lists_of_more_parameters_than_one_call_takes() {
    let sgd = SgdStep {
        lr: 0.1,
        momentum: 0.9,
        dampening: 0.2,
        weight_decay: 0.05,
        nesterov: false,
        maximize: true,
        first: false,
    };
    let inputs: Vec<Tensor> = (0..60).map(|at| numbers(&[at % 5 + 1, 3], at as u64)).collect();
    for (name, odd) in [("all alike", None), ("one jumps", Some(7))] {
        check(name, &inputs, &|x| {
            let mut tensors = Vec::new();
            for (at, x) in x.iter().enumerate() {
                let grad = if Some(at) == odd { x.t()?.copy()?.t()? } else { x.mul(0.5)? };
                tensors.extend([x.copy()?, grad, x.mul(0.25)?]);
            }
            let rules: Vec<_> = (0..60).map(|at| SgdStep { first: at < 3, ..sgd }).collect();
            FusedSgd.call(Batch { tensors: &tensors, rules: &rules, steps: &[] })?;
            Ok(tensors)
        });
    }
}

#[test]
fn gradients_of_normalization_and_convolution() {
    let inputs = [
        numbers(&[2, 4, 5, 5], 1),
        numbers(&[4], 2),
        numbers(&[4], 3),
        numbers(&[6, 2, 3, 3], 4),
        numbers(&[5], 5),
    ];
    check("gradients", &inputs, &|x| {
        let leaves = x.iter().map(|x| x.copy()?.with_grad()).collect::<cresset_tensor::Result<Vec<_>>>()?;
        let [image, weight, bias, kernel, last] = &leaves[..] else { unreachable!("five inputs") };
        let how = BatchNorm { training: true, ..BatchNorm::default() };
        let batch = image.batch_norm([None, None], Some(weight), Some(bias), how)?;
        let group = batch.group_norm(2, Some(weight), None, 1e-5)?;
        let layer = group.layer_norm(&[5], Some(last), None, 1e-5)?.rms_norm(&[5], Some(last), None)?;
        let out = layer.conv2d(kernel, None, &Convolving { groups: 2, ..Convolving::default() })?;
        out.mul(&out)?.sum()?.backward()?;
        Ok(leaves.iter().map(|leaf| leaf.grad().expect("every leaf has one")).collect())
    });
}
