//! Normalization of rows, channels and groups of them.

use super::cast::{FLOATS, Temporary, expect_dtype};
use super::numbers::{numbers, store};
use super::optional::{placed, present};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::Add;
use cresset_kernels::normalization::{layer_norm as rows, moments, normalize};
use cresset_kernels::{DType, Scalar, ViewMut, elementwise, normalization};

/// The part of a shape that is normalized: how many dimensions come before, and how many elements it has.
pub(super) fn tail(x: &Tensor, normalized: &[usize]) -> Result<(usize, usize)> {
    let first = x.shape().len().checked_sub(normalized.len()).filter(|&at| x.shape()[at..] == *normalized);
    match first {
        Some(first) => Ok((first, normalized.iter().product())),
        None => fail!(code::NN_PARAM_INVALID, "x of shape {:?} does not end with {normalized:?}", x.shape()),
    }
}

pub(super) fn sizes(given: &[i64]) -> Vec<usize> {
    given.iter().map(|&size| size.max(0) as usize).collect()
}

/// A shape whose normalized dimensions are of size 1.
pub(super) fn statistics(x: &Tensor, first: usize) -> Vec<usize> {
    let mut shape = x.shape().to_vec();
    shape[first..].fill(1);
    shape
}

/// Fails unless a parameter that is given has this shape.
pub(super) fn expect_parameter(name: &str, tensor: Option<&Tensor>, shape: &[usize]) -> Result {
    let Some(tensor) = tensor else { return Ok(()) };
    expect(name, tensor, shape)?;
    expect_dtype(name, tensor, FLOATS)
}

/// A result that may not be wanted: written there, or to memory of the kernel's own.
fn wanted(out: Option<ViewMut<'_>>, shape: &[usize], body: impl FnOnce(ViewMut<'_>)) {
    match out {
        Some(out) => body(out),
        None => Temporary::new(DType::F32, shape).write(body),
    }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn layer_norm(
    x: Tensor,
    normalized: Vec<i64>,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    eps: f64,
    out: Tensor,
    mean: Option<Tensor>,
    rstd: Option<Tensor>,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let normalized = sizes(&normalized);
    let (first, size) = tail(&x, &normalized)?;
    let statistics = statistics(&x, first);
    for (name, tensor) in [("mean", &mean), ("rstd", &rstd)] {
        let Some(tensor) = tensor else { continue };
        expect(name, tensor, &statistics)?;
        expect_dtype(name, tensor, &[x.dtype(), DType::F32])?;
    }
    expect_parameter("weight", weight.as_ref(), &normalized)?;
    expect_parameter("bias", bias.as_ref(), &normalized)?;
    let (affine, given) = present([weight, bias]);
    let (results, kept) = present([Some(out), mean, rstd]);
    let plan = Plan::lists(c"LayerNormV3", [vec![x], affine].concat(), results, move |reads, writes| {
        let affine = placed(given, reads[1..].iter().copied());
        let [out, mean, rstd] = placed(kept, writes);
        let out = out.expect("the result is always wanted");
        wanted(mean, &statistics, |mean| {
            wanted(rstd, &statistics, |rstd| rows(reads[0], size, affine, eps, out, [mean, rstd]));
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn layer_norm_with_impl_mode(
    x: Tensor,
    normalized: Vec<i64>,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    eps: f64,
    out: Tensor,
    mean: Option<Tensor>,
    rstd: Option<Tensor>,
    mode: i32,
) -> Planned {
    if !(0..=2).contains(&mode) {
        fail!(code::NN_PARAM_INVALID, "there is no mode {mode}");
    }
    layer_norm(x, normalized, weight, bias, eps, out, mean, rstd)
}

const TYPES: &[DType] = &[DType::F32, DType::F16, DType::BF16];

pub(crate) fn rms_norm(x: Tensor, weight: Tensor, eps: f64, out: Tensor, rstd: Tensor) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let size = check_rms(&x, &weight, &rstd)?;
    let plan = Plan::new(c"RmsNorm", [x, weight], [out, rstd], move |[x, weight], [out, rstd]| {
        normalization::rms_norm(x, size, Some(weight), eps, out, rstd);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Checks what is normalized by the root of its squares; gives the elements of a row.
pub(super) fn check_rms(x: &Tensor, weight: &Tensor, rstd: &Tensor) -> Result<usize> {
    expect_dtype("x", x, TYPES)?;
    expect_dtype("weight", weight, TYPES)?;
    expect_dtype("rstd", rstd, &[DType::F32])?;
    let (first, size) = tail(x, weight.shape())?;
    expect("rstd", rstd, &statistics(x, first))?;
    Ok(size)
}

pub(crate) fn add_rms_norm(
    x: Tensor,
    other: Tensor,
    weight: Tensor,
    eps: f64,
    out: Tensor,
    rstd: Tensor,
    sum: Tensor,
) -> Planned {
    for (name, tensor) in [("other", &other), ("out", &out), ("sum", &sum)] {
        expect(name, tensor, x.shape())?;
        expect_dtype(name, tensor, &[x.dtype()])?;
    }
    let size = check_rms(&x, &weight, &rstd)?;
    let plan = Plan::new(
        c"AddRmsNorm",
        [x, other, weight],
        [out, rstd, sum],
        move |[x, other, weight], [out, rstd, mut sum]| {
            elementwise::binary(Add { alpha: Scalar::Int(1) }, x, other, sum.reborrow());
            normalization::rms_norm(sum.as_view(), size, Some(weight), eps, out, rstd);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn batch_norm(
    x: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    running_mean: Option<Tensor>,
    running_var: Option<Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
    out: Tensor,
    mean: Option<Tensor>,
    rstd: Option<Tensor>,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let groups = by_channel(&x)?;
    let channels = [groups[1]];
    for (name, tensor) in
        [("weight", &weight), ("bias", &bias), ("running_mean", &running_mean), ("running_var", &running_var)]
    {
        expect_parameter(name, tensor.as_ref(), &channels)?;
    }
    let (affine, given) = present([weight, bias]);
    if !training {
        let Some((running_mean, running_var)) = running_mean.zip(running_var) else {
            fail!(code::NN_PARAM_NULLPTR, "running_mean or running_var is null, but not in training");
        };
        let reads = [vec![x, running_mean, running_var], affine].concat();
        return Plan::listed(c"BatchNorm", reads, [out], move |reads, [out]| {
            let found = numbers(reads[1]).into_iter().zip(numbers(reads[2])).collect();
            let affine = placed(given, reads[3..].iter().copied());
            normalize(reads[0], groups, &shifts(found, eps), groups, affine, out);
            Ok(())
        });
    }
    let some = |tensor: Option<Tensor>| tensor.filter(|tensor| !tensor.layout().is_empty());
    let (mean, rstd) = (some(mean), some(rstd));
    expect_parameter("mean", mean.as_ref(), &channels)?;
    expect_parameter("rstd", rstd.as_ref(), &channels)?;
    let (results, kept) = present([Some(out), mean, rstd, running_mean, running_var]);
    let plan = Plan::lists(c"BatchNormV3", [vec![x], affine].concat(), results, move |reads, writes| {
        let affine = placed(given, reads[1..].iter().copied());
        let [out, mean, rstd, running_mean, running_var] = placed(kept, writes);
        let (found, count) = (moments(reads[0], groups), (groups[0] * groups[2]) as f64);
        if let Some(running) = running_mean {
            moved(running, found.iter().map(|(mean, _)| *mean).collect(), momentum);
        }
        if let Some(running) = running_var {
            moved(running, found.iter().map(|(_, var)| var * count / (count - 1.0)).collect(), momentum);
        }
        let shifts = shifts(found, eps);
        keep(&shifts, mean, rstd);
        normalize(reads[0], groups, &shifts, groups, affine, out.expect("the result is always wanted"));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// How channels lie in a tensor: samples, channels, all else.
pub(super) fn by_channel(x: &Tensor) -> Result<[usize; 3]> {
    match x.shape() {
        &[samples, channels, ref area @ ..] => Ok([samples, channels, area.iter().product()]),
        shape => fail!(code::NN_PARAM_INVALID, "x of shape {shape:?} has no channels"),
    }
}

/// How groups and channels lie, by the numbers that an operator was given.
pub(super) fn by_group(x: &Tensor, n: i64, c: i64, area: i64, groups: i64) -> Result<[[usize; 3]; 2]> {
    let [n, c, area, groups] = [n, c, area, groups].map(|size| size.max(0) as usize);
    if groups == 0 || c % groups != 0 || n * c * area != x.layout().len() {
        let sizes = [n, c, area, groups];
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} is not of {sizes:?}", x.shape());
    }
    Ok([[1, n * groups, c / groups * area], [n, c, area]])
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn group_norm(
    x: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    n: i64,
    c: i64,
    area: i64,
    groups: i64,
    eps: f64,
    out: Tensor,
    mean: Tensor,
    rstd: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let [by_group, by_channel] = by_group(&x, n, c, area, groups)?;
    for (name, tensor) in [("mean", &mean), ("rstd", &rstd)] {
        expect(name, tensor, &[n as usize, groups as usize])?;
        expect_dtype(name, tensor, &[x.dtype(), DType::F32])?;
    }
    expect_parameter("weight", weight.as_ref(), &[c as usize])?;
    expect_parameter("bias", bias.as_ref(), &[c as usize])?;
    let (affine, given) = present([weight, bias]);
    let reads = [vec![x], affine].concat();
    let plan = Plan::listed(c"GroupNorm", reads, [out, mean, rstd], move |reads, [out, mean, rstd]| {
        let shifts = shifts(moments(reads[0], by_group), eps);
        keep(&shifts, Some(mean), Some(rstd));
        let affine = placed(given, reads[1..].iter().copied());
        normalize(reads[0], by_group, &shifts, by_channel, affine, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Mean and scale of each group.
type Shifts = Vec<(f64, f64)>;

fn shifts(moments: Shifts, eps: f64) -> Shifts {
    moments.into_iter().map(|(mean, variance)| (mean, 1.0 / (variance + eps).sqrt())).collect()
}

fn keep(shifts: &Shifts, mean: Option<ViewMut<'_>>, rstd: Option<ViewMut<'_>>) {
    let (means, scales): (Vec<f64>, Vec<f64>) = shifts.iter().copied().unzip();
    if let Some(mean) = mean {
        store(&means, mean);
    }
    if let Some(rstd) = rstd {
        store(&scales, rstd);
    }
}

/// Moves a running mean towards what a batch has.
fn moved(running: ViewMut<'_>, batch: Vec<f64>, momentum: f64) {
    let old = numbers(running.as_view());
    let new = old.iter().zip(batch).map(|(old, new)| (1.0 - momentum) * old + momentum * new);
    store(&new.collect::<Vec<f64>>(), running);
}
