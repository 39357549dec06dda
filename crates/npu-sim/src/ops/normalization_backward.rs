//! Gradients of normalization.

use super::cast::{FLOATS, expect_dtype};
use super::normalization::{by_channel, by_group, check_rms, expect_parameter, sizes, statistics, tail};
use super::numbers::numbers;
use super::optional::{placed, present};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::normalization::{Grouped, Normalized, grouped_backward, norm_backward};
use cresset_kernels::{View, ViewMut};

/// The gradients that are wanted: asked for by the mask, and with a place.
fn wanted(
    mask: &[bool],
    gradients: [Option<Tensor>; 3],
    x: &Tensor,
    affine: &[usize],
) -> Result<[Option<Tensor>; 3]> {
    if mask.len() != 3 {
        fail!(code::NN_PARAM_INVALID, "a mask of {} for three gradients", mask.len());
    }
    let mut at = 0;
    let gradients = gradients.map(|gradient| {
        at += 1;
        gradient.filter(|_| mask[at - 1])
    });
    expect_parameter("to_x", gradients[0].as_ref(), x.shape())?;
    expect_parameter("to_weight", gradients[1].as_ref(), affine)?;
    expect_parameter("to_bias", gradients[2].as_ref(), affine)?;
    Ok(gradients)
}

fn check(grad: &Tensor, x: &Tensor) -> Result {
    expect_dtype("x", x, FLOATS)?;
    expect_dtype("grad", grad, FLOATS)?;
    expect("grad", grad, x.shape())
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    normalized: Vec<i64>,
    mean: Tensor,
    rstd: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    mask: Vec<bool>,
    to_x: Option<Tensor>,
    to_weight: Option<Tensor>,
    to_bias: Option<Tensor>,
) -> Planned {
    check(&grad, &x)?;
    let normalized = sizes(&normalized);
    let (first, size) = tail(&x, &normalized)?;
    expect("mean", &mean, &statistics(&x, first))?;
    expect("rstd", &rstd, &statistics(&x, first))?;
    expect_parameter("weight", weight.as_ref(), &normalized)?;
    expect_parameter("bias", bias.as_ref(), &normalized)?;
    let gradients = wanted(&mask, [to_x, to_weight, to_bias], &x, &normalized)?;
    let (weight, weighted) = present([weight]);
    let (results, kept) = present(gradients);
    let reads = [vec![grad, x, mean, rstd], weight].concat();
    let plan = Plan::lists(c"LayerNormGradV3", reads, results, move |reads, writes| {
        let [weight] = placed(weighted, reads[4..].iter().copied());
        let of = Normalized { x: reads[1], size, weight, mean: Some(reads[2]), scale: reads[3] };
        norm_backward(reads[0], of, placed(kept, writes));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn rms_norm_grad(
    grad: Tensor,
    x: Tensor,
    rstd: Tensor,
    weight: Tensor,
    to_x: Tensor,
    to_weight: Tensor,
) -> Planned {
    check(&grad, &x)?;
    let size = check_rms(&x, &weight, &rstd)?;
    expect("to_x", &to_x, x.shape())?;
    expect("to_weight", &to_weight, weight.shape())?;
    let reads = [grad, x, rstd, weight];
    let plan = Plan::new(
        c"RmsNormGrad",
        reads,
        [to_x, to_weight],
        move |[grad, x, rstd, weight], [to_x, to_weight]| {
            let of = Normalized { x, size, weight: Some(weight), mean: None, scale: rstd };
            norm_backward(grad, of, [Some(to_x), Some(to_weight), None]);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

/// The gradients of groups with these means and scales.
fn grouped(
    reads: [View<'_>; 2],
    weight: Option<View<'_>>,
    shifts: &[(f64, f64)],
    [groups, channels]: [[usize; 3]; 2],
    own: bool,
    gradients: [Option<ViewMut<'_>>; 3],
) {
    grouped_backward(reads[0], &Grouped { x: reads[1], groups, shifts, own, channels, weight }, gradients);
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Option<Tensor>,
    running_mean: Option<Tensor>,
    running_var: Option<Tensor>,
    mean: Option<Tensor>,
    rstd: Option<Tensor>,
    training: bool,
    eps: f64,
    mask: Vec<bool>,
    to_x: Option<Tensor>,
    to_weight: Option<Tensor>,
    to_bias: Option<Tensor>,
) -> Planned {
    check(&grad, &x)?;
    let groups = by_channel(&x)?;
    let channels = [groups[1]];
    expect_parameter("weight", weight.as_ref(), &channels)?;
    let statistics = if training { mean.zip(rstd) } else { running_mean.zip(running_var) };
    let Some((mean, spread)) = statistics else {
        fail!(code::NN_PARAM_NULLPTR, "mean or spread is null");
    };
    expect("mean", &mean, &channels)?;
    expect("spread", &spread, &channels)?;
    let gradients = wanted(&mask, [to_x, to_weight, to_bias], &x, &channels)?;
    let (weight, weighted) = present([weight]);
    let (results, kept) = present(gradients);
    let reads = [vec![grad, x, mean, spread], weight].concat();
    let plan = Plan::lists(c"BatchNormGradV3", reads, results, move |reads, writes| {
        let [weight] = placed(weighted, reads[4..].iter().copied());
        let scale = |spread: f64| if training { spread } else { 1.0 / (spread + eps).sqrt() };
        let spreads = numbers(reads[3]).into_iter().map(scale);
        let shifts: Vec<(f64, f64)> = numbers(reads[2]).into_iter().zip(spreads).collect();
        grouped([reads[0], reads[1]], weight, &shifts, [groups, groups], training, placed(kept, writes));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn group_norm_backward(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Option<Tensor>,
    n: i64,
    c: i64,
    area: i64,
    groups: i64,
    mask: Vec<bool>,
    to_x: Option<Tensor>,
    to_weight: Option<Tensor>,
    to_bias: Option<Tensor>,
) -> Planned {
    check(&grad, &x)?;
    let lie = by_group(&x, n, c, area, groups)?;
    for (name, tensor) in [("mean", &mean), ("rstd", &rstd)] {
        expect(name, tensor, &[n as usize, groups as usize])?;
    }
    expect_parameter("weight", weight.as_ref(), &[c as usize])?;
    let gradients = wanted(&mask, [to_x, to_weight, to_bias], &x, &[c as usize])?;
    let (weight, weighted) = present([weight]);
    let (results, kept) = present(gradients);
    let reads = [vec![grad, x, mean, rstd], weight].concat();
    let plan = Plan::lists(c"GroupNormGrad", reads, results, move |reads, writes| {
        let [weight] = placed(weighted, reads[4..].iter().copied());
        let shifts: Vec<(f64, f64)> = numbers(reads[2]).into_iter().zip(numbers(reads[3])).collect();
        grouped([reads[0], reads[1]], weight, &shifts, lie, true, placed(kept, writes));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}
