//! Normalization of rows, channels and groups of them.

use super::cast::{FLOATS, Temporary, expect_dtype};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::normalization::{layer_norm as rows, moments, normalize};
use cresset_kernels::{DType, Layout, View, ViewMut, elementwise, normalization};

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
    let normalized: Vec<usize> = normalized.into_iter().map(|size| size.max(0) as usize).collect();
    let Some(first) =
        x.shape().len().checked_sub(normalized.len()).filter(|&at| x.shape()[at..] == normalized)
    else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} does not end with {normalized:?}", x.shape());
    };
    let mut statistics = x.shape().to_vec();
    statistics[first..].fill(1);
    let (mean, rstd) = both(mean, rstd)?;
    for (name, tensor) in [("mean", &mean), ("rstd", &rstd)] {
        expect(name, tensor, &statistics)?;
        expect_dtype(name, tensor, &[x.dtype(), DType::F32])?;
    }
    let affine = parameters(&x, weight, bias, &normalized)?;
    let (given, size) = (affine.1, normalized.iter().product());
    let [weight, bias] = affine.0;
    let plan = Plan::new(
        c"LayerNormV3",
        [x, weight, bias],
        [out, mean, rstd],
        move |[x, weight, bias], [out, mean, rstd]| {
            let affine = [given[0].then_some(weight), given[1].then_some(bias)];
            rows(x, size, affine, eps, out, [mean, rstd]);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

pub(crate) fn rms_norm(x: Tensor, weight: Tensor, eps: f64, out: Tensor, rstd: Tensor) -> Planned {
    const TYPES: &[DType] = &[DType::F32, DType::F16, DType::BF16];
    expect_dtype("x", &x, TYPES)?;
    expect_dtype("weight", &weight, TYPES)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_dtype("rstd", &rstd, &[DType::F32])?;
    expect("out", &out, x.shape())?;
    let Some(first) = x.shape().len().checked_sub(weight.shape().len()) else {
        fail!(code::NN_PARAM_INVALID, "weight {:?} for x of {:?}", weight.shape(), x.shape());
    };
    expect("weight", &weight, &x.shape()[first..])?;
    let mut statistics = x.shape().to_vec();
    statistics[first..].fill(1);
    expect("rstd", &rstd, &statistics)?;
    let size = weight.layout().len();
    let plan = Plan::new(c"RmsNorm", [x, weight], [out, rstd], move |[x, weight], [out, rstd]| {
        normalization::rms_norm(x, size, Some(weight), eps, out, rstd);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

fn both(mean: Option<Tensor>, rstd: Option<Tensor>) -> Result<(Tensor, Tensor)> {
    match mean.zip(rstd) {
        Some(both) => Ok(both),
        None => fail!(code::NN_PARAM_INVALID, "normalization without mean and rstd is not simulated"),
    }
}

/// Weight and bias and whether each is given; `x` stands in for what is not.
fn parameters(
    x: &Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    shape: &[usize],
) -> Result<([Tensor; 2], [bool; 2])> {
    for (name, tensor) in [("weight", &weight), ("bias", &bias)] {
        let Some(tensor) = tensor else { continue };
        expect(name, tensor, shape)?;
        expect_dtype(name, tensor, FLOATS)?;
    }
    let given = [weight.is_some(), bias.is_some()];
    Ok(([weight, bias].map(|tensor| tensor.unwrap_or_else(|| x.clone())), given))
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
    let &[samples, channels, ref area @ ..] = x.shape() else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no channels", x.shape());
    };
    let groups = [samples, channels, area.iter().product()];
    let (running_mean, running_var) = both(running_mean, running_var)?;
    let (mean, rstd) = both(mean, rstd)?;
    for (name, tensor) in
        [("running_mean", &running_mean), ("running_var", &running_var), ("mean", &mean), ("rstd", &rstd)]
    {
        expect(name, tensor, &[channels])?;
        expect_dtype(name, tensor, FLOATS)?;
    }
    let ([weight, bias], given) = parameters(&x, weight, bias, &[channels])?;
    if !training {
        let reads = [x, weight, bias, running_mean, running_var];
        return Plan::new(c"BatchNorm", reads, [out], move |[x, weight, bias, mean, var], [out]| {
            let found = numbers(mean).into_iter().zip(numbers(var)).collect();
            let affine = [given[0].then_some(weight), given[1].then_some(bias)];
            normalize(x, groups, &shifts(found, eps), groups, affine, out);
            Ok(())
        });
    }
    let writes = [out, mean, rstd, running_mean, running_var];
    let plan = Plan::new(
        c"BatchNormV3",
        [x, weight, bias],
        writes,
        move |[x, weight, bias], [out, mean, rstd, running_mean, running_var]| {
            let (found, count) = (moments(x, groups), (groups[0] * groups[2]) as f64);
            let unbiased = found.iter().map(|(_, var)| var * count / (count - 1.0)).collect();
            moved(running_mean, found.iter().map(|(mean, _)| *mean).collect(), momentum);
            moved(running_var, unbiased, momentum);
            let shifts = shifts(found, eps);
            keep(&shifts, mean, rstd);
            let affine = [given[0].then_some(weight), given[1].then_some(bias)];
            normalize(x, groups, &shifts, groups, affine, out);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
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
    let [n, c, area, groups] = [n, c, area, groups].map(|size| size.max(0) as usize);
    if groups == 0 || c % groups != 0 || n * c * area != x.layout().len() {
        let sizes = [n, c, area, groups];
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} is not of {sizes:?}", x.shape());
    }
    for (name, tensor) in [("mean", &mean), ("rstd", &rstd)] {
        expect(name, tensor, &[n, groups])?;
        expect_dtype(name, tensor, &[x.dtype()])?;
    }
    let ([weight, bias], given) = parameters(&x, weight, bias, &[c])?;
    let (by_group, by_channel) = ([1, n * groups, c / groups * area], [n, c, area]);
    let plan = Plan::new(
        c"GroupNorm",
        [x, weight, bias],
        [out, mean, rstd],
        move |[x, weight, bias], [out, mean, rstd]| {
            let shifts = shifts(moments(x, by_group), eps);
            keep(&shifts, mean, rstd);
            let affine = [given[0].then_some(weight), given[1].then_some(bias)];
            normalize(x, by_group, &shifts, by_channel, affine, out);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

/// Mean and scale of each group.
type Shifts = Vec<(f64, f64)>;

fn shifts(moments: Shifts, eps: f64) -> Shifts {
    moments.into_iter().map(|(mean, variance)| (mean, 1.0 / (variance + eps).sqrt())).collect()
}

fn keep(shifts: &Shifts, mean: ViewMut<'_>, rstd: ViewMut<'_>) {
    write(shifts.iter().map(|shift| shift.0).collect(), mean);
    write(shifts.iter().map(|shift| shift.1).collect(), rstd);
}

/// Moves a running mean towards what a batch has.
fn moved(running: ViewMut<'_>, batch: Vec<f64>, momentum: f64) {
    let old = numbers(running.as_view());
    let new = old.iter().zip(batch).map(|(old, new)| (1.0 - momentum) * old + momentum * new);
    write(new.collect(), running);
}

fn numbers(x: View<'_>) -> Vec<f64> {
    Temporary::of(x, DType::F64).read(|x| x.array::<f64>().iter().copied().collect())
}

fn write(numbers: Vec<f64>, out: ViewMut<'_>) {
    let layout = Layout::contiguous(out.shape()).expect("as many numbers as there are");
    elementwise::copy(View::of(&numbers, &layout), out);
}
