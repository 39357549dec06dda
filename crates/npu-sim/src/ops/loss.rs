//! Losses of classes, distances and probabilities, and their gradients.

use super::cast::{FLOATS, Temporary, compute, converted, expect_dtype};
use super::index::out_of_range;
use super::shape::{broadcast, broadcast_to, expect, expect_one, expect_rank};
use super::unary::only_float;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::{code, constant};
use cresset_kernels::functions::{self, FloatBinary, FloatTernary, Mul};
use cresset_kernels::loss::{self, BinaryCrossEntropy, Loss, LossBackward, Reduction, SmoothL1, Square};
use cresset_kernels::{DType, Float, View, ViewMut, elementwise, reduce};
use std::ffi::CStr;

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
    reduction_of(reduction)
}

pub(super) fn reduction_of(reduction: i64) -> Result<Reduction> {
    match reduction {
        constant::reduction::NONE => Ok(Reduction::None),
        constant::reduction::MEAN => Ok(Reduction::Mean),
        constant::reduction::SUM => Ok(Reduction::Sum),
        _ => fail!(code::NN_PARAM_INVALID, "there is no reduction {reduction}"),
    }
}

/// A loss has one element per sample, or just one.
pub(super) fn expect_per_sample(name: &str, x: &Tensor, target: &Tensor, reduction: Reduction) -> Result {
    expect_dtype(name, x, FLOATS)?;
    if reduction == Reduction::None { expect(name, x, target.shape()) } else { expect_one(name, x) }
}

pub(crate) fn mse_loss(x: Tensor, target: Tensor, reduction: i64, out: Tensor) -> Planned {
    distance(c"MseLoss", Loss(Square), [x, target], None, reduction, out)
}

pub(crate) fn mse_loss_out(x: Tensor, target: Tensor, reduction: i64, out: Tensor) -> Planned {
    mse_loss(x, target, reduction, out)
}

pub(crate) fn l1_loss(x: Tensor, target: Tensor, reduction: i64, out: Tensor) -> Planned {
    distance(c"LpLoss", Absolute, [x, target], None, reduction, out)
}

/// How far two numbers are apart.
#[derive(Clone, Copy)]
struct Absolute;

impl FloatBinary for Absolute {
    fn apply<T: Float>(self, a: T, b: T) -> T {
        (a - b).abs()
    }
}

pub(crate) fn l1_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    out: Tensor,
) -> Planned {
    gradient(c"L1LossGrad", AbsoluteSlope { share: share(reduction, &out)? }, [grad, x, target], None, out)
}

#[derive(Clone, Copy)]
struct AbsoluteSlope {
    share: f64,
}

impl FloatTernary for AbsoluteSlope {
    fn apply<T: Float>(self, grad: T, x: T, target: T) -> T {
        let sign = if x > target {
            T::ONE
        } else if x < target {
            -T::ONE
        } else {
            T::ZERO
        };
        grad * sign * T::narrow(self.share)
    }
}

pub(crate) fn kl_div(x: Tensor, target: Tensor, reduction: i64, log_target: bool, out: Tensor) -> Planned {
    let kernel = c"KLDiv";
    distance(kernel, Divergence { log_target }, [x, target], None, reduction, out)
}

/// How a distribution diverges from a target, of which logarithms are given or not.
#[derive(Clone, Copy)]
struct Divergence {
    log_target: bool,
}

impl FloatBinary for Divergence {
    fn apply<T: Float>(self, x: T, target: T) -> T {
        match self.log_target {
            true => target.exp() * (target - x),
            false if target > T::ZERO => target * (target.ln() - x),
            false => T::ZERO * x,
        }
    }
}

pub(crate) fn kl_div_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    log_target: bool,
    out: Tensor,
) -> Planned {
    let f = DivergenceSlope { log_target, share: share(reduction, &out)? };
    gradient(c"KlDivLossGrad", f, [grad, x, target], None, out)
}

#[derive(Clone, Copy)]
struct DivergenceSlope {
    log_target: bool,
    share: f64,
}

impl FloatTernary for DivergenceSlope {
    fn apply<T: Float>(self, grad: T, _x: T, target: T) -> T {
        let weight = match self.log_target {
            true => target.exp(),
            false if target > T::ZERO => target,
            false => T::ZERO,
        };
        -(weight * grad) * T::narrow(self.share)
    }
}

/// The gradient of a divergence for what is compared with.
pub(crate) fn kl_div_target_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    log_target: bool,
    out: Tensor,
) -> Planned {
    let f = DivergenceTargetSlope { log_target, share: share(reduction, &out)? };
    gradient(c"KlDivTargetBackward", f, [grad, x, target], None, out)
}

#[derive(Clone, Copy)]
struct DivergenceTargetSlope {
    log_target: bool,
    share: f64,
}

impl FloatTernary for DivergenceTargetSlope {
    fn apply<T: Float>(self, grad: T, x: T, target: T) -> T {
        let slope = match self.log_target {
            true => (target - x + T::ONE) * target.exp(),
            false if target > T::ZERO => target.ln() + T::ONE - x,
            false => T::ZERO,
        };
        slope * grad * T::narrow(self.share)
    }
}

pub(crate) fn soft_margin_loss(x: Tensor, target: Tensor, reduction: i64, out: Tensor) -> Planned {
    distance(c"SoftMarginLoss", SoftMargin, [x, target], None, reduction, out)
}

#[derive(Clone, Copy)]
struct SoftMargin;

impl FloatBinary for SoftMargin {
    fn apply<T: Float>(self, x: T, target: T) -> T {
        T::narrow((-(x * target)).wide().exp().ln_1p())
    }
}

pub(crate) fn soft_margin_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    out: Tensor,
) -> Planned {
    gradient(
        c"SoftMarginLossGrad",
        SoftMarginSlope { share: share(reduction, &out)? },
        [grad, x, target],
        None,
        out,
    )
}

#[derive(Clone, Copy)]
struct SoftMarginSlope {
    share: f64,
}

impl FloatTernary for SoftMarginSlope {
    fn apply<T: Float>(self, grad: T, x: T, target: T) -> T {
        let z = (-(x * target)).exp();
        -(target * z) / (z + T::ONE) * grad * T::narrow(self.share)
    }
}

pub(crate) fn smooth_l1_loss(x: Tensor, target: Tensor, reduction: i64, beta: f32, out: Tensor) -> Planned {
    let f = Loss(SmoothL1 { beta: check_beta(beta)? });
    distance(c"SmoothL1LossV2", f, [x, target], None, reduction, out)
}

pub(crate) fn binary_cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    reduction: i64,
    out: Tensor,
) -> Planned {
    distance(c"BinaryCrossEntropy", BinaryCrossEntropy, [x, target], weight, reduction, out)
}

fn check_beta(beta: f32) -> Result<f64> {
    if beta.is_nan() || beta <= 0.0 {
        fail!(code::NN_PARAM_INVALID, "beta is {beta}, expected a number above 0");
    }
    Ok(beta.into())
}

/// A loss of each element, weighted, and what becomes of all.
fn distance<F>(
    kernel: &'static CStr,
    f: F,
    [x, target]: [Tensor; 2],
    weight: Option<Tensor>,
    reduction: i64,
    out: Tensor,
) -> Planned
where
    F: FloatBinary + Send + 'static,
{
    let reduction = reduction_of(reduction)?;
    for (name, tensor) in [("x", &x), ("target", &target), ("out", &out)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    let dtype = out.dtype();
    let shape = super::shape::common(x.shape(), target.shape())?;
    let spread = |name: &str, tensor: &Tensor| broadcast_to(name, tensor, &shape);
    let (x, target) = (spread("x", &x)?, spread("target", &target)?);
    let weighted = weight.is_some();
    let weight = spread("weight", weight.as_ref().unwrap_or(&target))?;
    match reduction {
        Reduction::None => expect("out", &out, &shape)?,
        Reduction::Mean | Reduction::Sum => expect_one("out", &out)?,
    }
    let plan = compute(kernel, [x, target, weight], dtype, out, dtype, move |[x, target, weight], out| {
        let losses = Temporary::new(dtype, x.shape());
        losses.write(|mut losses| {
            elementwise::float_binary(f, x, target, losses.reborrow());
            if weighted {
                elementwise::binary_in_place(Mul, losses, weight);
            }
        });
        losses.read(|losses| reduced(losses, reduction, out));
    });
    plan.map(Plan::with_workspace)
}

fn reduced(losses: View<'_>, reduction: Reduction, mut out: ViewMut<'_>) {
    let dims: Vec<usize> = (0..losses.shape().len()).collect();
    let ones = cresset_kernels::Layout::contiguous(&vec![1; dims.len()]).expect("one element");
    match reduction {
        Reduction::None => elementwise::copy(losses, out),
        Reduction::Mean => reduce::mean(losses, &dims, out.with_layout(&ones)),
        Reduction::Sum => reduce::sum(losses, &dims, out.with_layout(&ones)),
    }
}

pub(crate) fn mse_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    out: Tensor,
) -> Planned {
    let f = LossBackward { distance: Square, share: share(reduction, &out)? };
    gradient(c"MseLossGrad", f, [grad, x, target], None, out)
}

pub(crate) fn smooth_l1_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    reduction: i64,
    beta: f32,
    out: Tensor,
) -> Planned {
    let distance = SmoothL1 { beta: check_beta(beta)? };
    let f = LossBackward { distance, share: share(reduction, &out)? };
    gradient(c"SmoothL1LossGradV2", f, [grad, x, target], None, out)
}

pub(crate) fn binary_cross_entropy_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    reduction: i64,
    out: Tensor,
) -> Planned {
    let f = loss::BinaryCrossEntropyBackward { share: share(reduction, &out)? };
    gradient(c"BinaryCrossEntropyGrad", f, [grad, x, target], weight, out)
}

/// What one loss counts among all.
fn share(reduction: i64, out: &Tensor) -> Result<f64> {
    Ok(match reduction_of(reduction)? {
        Reduction::Mean => 1.0 / out.layout().len() as f64,
        Reduction::None | Reduction::Sum => 1.0,
    })
}

fn gradient<F>(
    kernel: &'static CStr,
    f: F,
    inputs: [Tensor; 3],
    weight: Option<Tensor>,
    out: Tensor,
) -> Planned
where
    F: FloatTernary + Send + 'static,
{
    for tensor in inputs.iter().chain([&out]) {
        expect_dtype("an operand", tensor, FLOATS)?;
    }
    let (dtype, weighted) = (out.dtype(), weight.is_some());
    let [grad, x, target] = inputs;
    let grad = broadcast_to("grad", &grad, out.shape())?;
    let weight = weight.unwrap_or_else(|| target.clone());
    let inputs = broadcast([grad, x, target, weight], &out)?;
    compute(kernel, inputs, dtype, out, dtype, move |[grad, x, target, weight], mut out| {
        elementwise::float_ternary(f, grad, x, target, out.reborrow());
        if weighted {
            elementwise::binary_in_place(Mul, out, weight);
        }
    })
}

pub(crate) fn logit(x: Tensor, eps: f64, out: Tensor) -> Planned {
    let [low, high] = if eps < 0.0 { [f64::NEG_INFINITY, f64::INFINITY] } else { [eps, 1.0 - eps] };
    only_float(c"Logit", functions::Logit { low, high }, x, out)
}

pub(crate) fn logit_grad(x: Tensor, grad: Tensor, eps: f64, out: Tensor) -> Planned {
    super::unary::gradient(c"LogitGrad", LogitSlope { eps }, grad, x, out)
}

#[derive(Clone, Copy)]
struct LogitSlope {
    eps: f64,
}

impl FloatBinary for LogitSlope {
    /// Nothing where the forward moved `x`; outside of 0 to 1 there is no slope.
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        let (low, high) = (T::narrow(self.eps.max(0.0)), T::narrow(1.0 - self.eps.max(0.0)));
        if x >= low && x <= high {
            grad / (x * (T::ONE - x))
        } else if self.eps < 0.0 {
            T::nan()
        } else {
            T::ZERO
        }
    }
}
