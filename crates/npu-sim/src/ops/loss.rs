//! Negative log likelihood, and its gradient.

use super::cast::{FLOATS, converted, expect_dtype};
use super::index::out_of_range;
use super::shape::{expect, expect_one, expect_rank};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::{code, constant};
use cresset_kernels::loss::{self, Reduction};
use cresset_kernels::{DType, View};

const CLASSES: &[DType] = &[DType::I64, DType::I32, DType::U8];

pub(crate) fn nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    reduction: i64,
    ignore: i64,
    out: Tensor,
    total: Tensor,
) -> Planned {
    let reduction = check(&x, &target, &weight, reduction)?;
    expect_per_sample("out", &out, &target, reduction)?;
    expect_one("total", &total)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_dtype("total", &total, &[x.dtype()])?;
    let plan =
        Plan::new(c"NLLLoss", [x, target, weight], [out, total], move |[x, target, weight], [out, total]| {
            let run =
                |target: View<'_>| loss::nll_loss(x, target, Some(weight), reduction, ignore, out, total);
            converted(target, DType::I64, run).map_err(out_of_range)
        });
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    reduction: i64,
    ignore: i64,
    total: Tensor,
    out: Tensor,
) -> Planned {
    let reduction = check(&x, &target, &weight, reduction)?;
    expect_per_sample("grad", &grad, &target, reduction)?;
    expect_one("total", &total)?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let reads = [grad, target, weight, total];
    Plan::new(c"NLLLossGrad", reads, [out], move |[grad, target, weight, total], [out]| {
        let run = |target: View<'_>| {
            loss::nll_loss_backward(grad, target, Some(weight), reduction, ignore, total, out)
        };
        converted(target, DType::I64, run).map_err(out_of_range)
    })
}

fn check(x: &Tensor, target: &Tensor, weight: &Tensor, reduction: i64) -> Result<Reduction> {
    expect_rank("x", x, 2)?;
    expect_dtype("x", x, FLOATS)?;
    expect("target", target, &x.shape()[..1])?;
    expect_dtype("target", target, CLASSES)?;
    expect("weight", weight, &x.shape()[1..])?;
    expect_dtype("weight", weight, FLOATS)?;
    match reduction {
        constant::reduction::NONE => Ok(Reduction::None),
        constant::reduction::MEAN => Ok(Reduction::Mean),
        constant::reduction::SUM => Ok(Reduction::Sum),
        _ => fail!(code::NN_PARAM_INVALID, "there is no reduction {reduction}"),
    }
}

/// A loss has one element per sample, or just one.
fn expect_per_sample(name: &str, x: &Tensor, target: &Tensor, reduction: Reduction) -> Result {
    expect_dtype(name, x, FLOATS)?;
    if reduction == Reduction::None { expect(name, x, target.shape()) } else { expect_one(name, x) }
}
