//! Losses of classes that start from logits, and their gradients.

use super::cast::{FLOATS, expect_dtype};
use super::index::out_of_range;
use super::loss::{expect_per_sample, reduction_of};
use super::numbers::{integers, numbers, store};
use super::shape::{broadcast_to, common, expect, expect_one, expect_rank};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::loss::Reduction;
use cresset_kernels::{DType, OutOfRange, ViewMut};

/// The logarithm of 1 and an exponential, without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Two tensors that are not needed may be missing: the first stands in for them.
fn stand_in(x: &Tensor, others: [Option<Tensor>; 2], shape: &[usize]) -> Result<([Tensor; 2], [bool; 2])> {
    let given = others.each_ref().map(Option::is_some);
    let [a, b] = others.map(|other| broadcast_to("a weight", other.as_ref().unwrap_or(x), shape));
    Ok(([a?, b?], given))
}

pub(crate) fn binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    positive: Option<Tensor>,
    reduction: i64,
    out: Tensor,
) -> Planned {
    let reduction = reduction_of(reduction)?;
    let shape = common(x.shape(), target.shape())?;
    match reduction {
        Reduction::None => expect("out", &out, &shape)?,
        Reduction::Mean | Reduction::Sum => expect_one("out", &out)?,
    }
    let (x, target) = (broadcast_to("x", &x, &shape)?, broadcast_to("target", &target, &shape)?);
    let ([weight, positive], [weighted, raised]) = stand_in(&x, [weight, positive], &shape)?;
    let reads = [x, target, weight, positive];
    let plan = Plan::new(
        c"SigmoidCrossEntropyWithLogitsV2",
        reads,
        [out],
        move |[x, target, weight, positive], [out]| {
            let (x, target, weight, positive) =
                (numbers(x), numbers(target), numbers(weight), numbers(positive));
            let loss = |at: usize| {
                let log_weight = 1.0 + if raised { (positive[at] - 1.0) * target[at] } else { 0.0 };
                let loss = (1.0 - target[at]) * x[at] + log_weight * softplus(-x[at]);
                if weighted { loss * weight[at] } else { loss }
            };
            reduced((0..x.len()).map(loss).collect(), reduction, out);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

/// Losses, or their sum or mean.
fn reduced(losses: Vec<f64>, reduction: Reduction, out: ViewMut<'_>) {
    let sum = losses.iter().sum::<f64>();
    match reduction {
        Reduction::None => store(&losses, out),
        Reduction::Sum => store(&[sum], out),
        Reduction::Mean => store(&[sum / losses.len() as f64], out),
    }
}

pub(crate) fn binary_cross_entropy_with_logits_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    positive: Option<Tensor>,
    reduction: i64,
    out: Tensor,
) -> Planned {
    let reduction = reduction_of(reduction)?;
    expect_dtype("out", &out, FLOATS)?;
    let shape = out.shape().to_vec();
    let spread = |name: &str, tensor: &Tensor| broadcast_to(name, tensor, &shape);
    let (grad, x, target) = (spread("grad", &grad)?, spread("x", &x)?, spread("target", &target)?);
    let ([weight, positive], [weighted, raised]) = stand_in(&x, [weight, positive], &shape)?;
    let count = out.layout().len() as f64;
    let share = if reduction == Reduction::Mean { 1.0 / count } else { 1.0 };
    let reads = [grad, x, target, weight, positive];
    Plan::new(
        c"SigmoidCrossEntropyWithLogitsGradV2",
        reads,
        [out],
        move |[grad, x, target, weight, positive], [out]| {
            let (grad, x, target) = (numbers(grad), numbers(x), numbers(target));
            let (weight, positive) = (numbers(weight), numbers(positive));
            let slope = |at: usize| {
                let share = share * grad[at] * if weighted { weight[at] } else { 1.0 };
                let raised = if raised { positive[at] * target[at] } else { target[at] };
                share * ((raised + 1.0 - target[at]) * logistic(x[at]) - raised)
            };
            store(&(0..x.len()).map(slope).collect::<Vec<f64>>(), out);
            Ok(())
        },
    )
}

pub(crate) fn softmax_cross_entropy_with_logits(
    x: Tensor,
    labels: Tensor,
    out: Tensor,
    gradient: Tensor,
) -> Planned {
    expect_rank("x", &x, 2)?;
    let classes = x.shape()[1];
    expect("labels", &labels, x.shape())?;
    expect("gradient", &gradient, x.shape())?;
    expect("out", &out, &x.shape()[..1])?;
    for (name, tensor) in [("x", &x), ("labels", &labels), ("out", &out), ("gradient", &gradient)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    let kernel = c"SoftmaxCrossEntropyWithLogits";
    Plan::new(kernel, [x, labels], [out, gradient], move |[x, labels], [out, gradient]| {
        let (mut logs, labels) = (numbers(x), numbers(labels));
        for row in logs.chunks_mut(classes.max(1)) {
            log_softmax(row);
        }
        let loss =
            |(logs, labels): (&[f64], &[f64])| -logs.iter().zip(labels).map(|(a, b)| a * b).sum::<f64>();
        let rows = logs.chunks(classes.max(1)).zip(labels.chunks(classes.max(1)));
        store(&rows.map(loss).collect::<Vec<f64>>(), out);
        let slopes: Vec<f64> = logs.iter().zip(&labels).map(|(log, label)| log.exp() - label).collect();
        store(&slopes, gradient);
        Ok(())
    })
}

/// A row of logits as logarithms of probabilities; gives the logarithm of the sum of exponentials.
fn log_softmax(row: &mut [f64]) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log_sum = largest + row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln();
    row.iter_mut().for_each(|x| *x -= log_sum);
    log_sum
}

fn named_reduction(name: Option<&str>) -> Result<Reduction> {
    match name {
        None | Some("mean") => Ok(Reduction::Mean),
        Some("sum") => Ok(Reduction::Sum),
        Some("none") => Ok(Reduction::None),
        Some(other) => fail!(code::NN_PARAM_INVALID, "there is no reduction {other:?}"),
    }
}

/// What the loss and its gradient share: the weight of each class and how targets are told.
struct Entropy {
    classes: usize,
    ignore: i64,
    smoothing: f64,
    reduction: Reduction,
}

impl Entropy {
    /// The target of each sample; none where it is ignored.
    fn targets(&self, targets: Vec<i64>) -> Result<Vec<Option<usize>>> {
        let class = |target: i64| match usize::try_from(target) {
            _ if target == self.ignore => Ok(None),
            Ok(class) if class < self.classes => Ok(Some(class)),
            _ => Err(out_of_range(OutOfRange { index: target, size: self.classes })),
        };
        targets.into_iter().map(class).collect()
    }

    /// How much a sample with this target says about each class.
    fn shares(&self, target: usize, weights: &[f64]) -> Vec<f64> {
        let even = self.smoothing / self.classes as f64;
        let own = |class: usize| if class == target { 1.0 - self.smoothing } else { 0.0 };
        (0..self.classes).map(|class| weights[class] * (own(class) + even)).collect()
    }

    /// What all losses are divided by.
    fn total(&self, targets: &[Option<usize>], weights: &[f64]) -> f64 {
        match self.reduction {
            Reduction::Mean => targets.iter().flatten().map(|&class| weights[class]).sum(),
            Reduction::None | Reduction::Sum => 1.0,
        }
    }
}

fn check_classes(x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<usize> {
    expect_rank("x", x, 2)?;
    expect_dtype("x", x, FLOATS)?;
    expect("target", target, &x.shape()[..1])?;
    expect_dtype("target", target, &[DType::I64, DType::I32])?;
    weight.map_or(Ok(()), |weight| expect("weight", weight, &x.shape()[1..]))?;
    Ok(x.shape()[1])
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn cross_entropy_loss(
    x: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    reduction: Option<String>,
    ignore: i64,
    smoothing: f64,
    square_scale: f64,
    with_square: bool,
    out: Tensor,
    log_prob: Tensor,
    square: Option<Tensor>,
    log_sum: Option<Tensor>,
) -> Planned {
    let classes = check_classes(&x, &target, weight.as_ref())?;
    let reduction = named_reduction(reduction.as_deref())?;
    expect_per_sample("out", &out, &target, reduction)?;
    expect("log_prob", &log_prob, x.shape())?;
    let how = Entropy { classes, ignore, smoothing, reduction };
    let weighted = weight.is_some();
    let weight = weight.unwrap_or_else(|| x.clone());
    // What is not asked for may be given without elements.
    let squares = square.zip(log_sum).filter(|_| with_square);
    if let Some((square, log_sum)) = &squares {
        expect_per_sample("square", square, &target, reduction)?;
        expect("log_sum", log_sum, target.shape())?;
    }
    let writes = [vec![out, log_prob], squares.map_or(vec![], |(a, b)| vec![a, b])].concat();
    let plan = Plan::lists(c"CrossEntropyLoss", vec![x, target, weight], writes, move |reads, writes| {
        let mut logs = numbers(reads[0]);
        let log_sums: Vec<f64> = logs.chunks_mut(classes.max(1)).map(log_softmax).collect();
        let targets = how.targets(integers(reads[1]))?;
        let weights = if weighted { numbers(reads[2]) } else { vec![1.0; classes] };
        let loss = |(target, logs): (&Option<usize>, &[f64])| {
            let Some(target) = *target else { return 0.0 };
            let shares = how.shares(target, &weights);
            // What has no share says nothing, however unlikely it is.
            shares.iter().zip(logs).filter(|(share, _)| **share != 0.0).map(|(share, log)| -share * log).sum()
        };
        let losses: Vec<f64> = targets.iter().zip(logs.chunks(classes.max(1))).map(loss).collect();
        let mut writes = writes.into_iter();
        let mut next = || writes.next().expect("one per result");
        match reduction {
            Reduction::None => store(&losses, next()),
            _ => store(&[losses.iter().sum::<f64>() / how.total(&targets, &weights)], next()),
        }
        store(&logs, next());
        if with_square {
            let squares: Vec<f64> = log_sums.iter().map(|log_sum| square_scale * log_sum * log_sum).collect();
            reduced(squares, reduction, next());
            store(&log_sums, next());
        }
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn cross_entropy_loss_grad(
    grad: Tensor,
    log_prob: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    grad_square: Option<Tensor>,
    log_sum: Option<Tensor>,
    reduction: Option<String>,
    ignore: i64,
    smoothing: f64,
    square_scale: f64,
    out: Tensor,
) -> Planned {
    let classes = check_classes(&log_prob, &target, weight.as_ref())?;
    let reduction = named_reduction(reduction.as_deref())?;
    expect_per_sample("grad", &grad, &target, reduction)?;
    expect("out", &out, log_prob.shape())?;
    let how = Entropy { classes, ignore, smoothing, reduction };
    let (weighted, squares) = (weight.is_some(), grad_square.is_some() && log_sum.is_some());
    let weight = weight.unwrap_or_else(|| grad.clone());
    let grad_square = grad_square.unwrap_or_else(|| grad.clone());
    let log_sum = log_sum.unwrap_or_else(|| grad.clone());
    let reads = [grad, log_prob, target, weight, grad_square, log_sum];
    let plan = Plan::new(
        c"CrossEntropyLossGrad",
        reads,
        [out],
        move |[grad, logs, target, weight, grad_square, log_sum], [out]| {
            let (grad, mut slopes) = (numbers(grad), numbers(logs));
            let targets = how.targets(integers(target))?;
            let weights = if weighted { numbers(weight) } else { vec![1.0; classes] };
            let total = how.total(&targets, &weights);
            let (grad_square, log_sum) = (numbers(grad_square), numbers(log_sum));
            let count = targets.len() as f64;
            for (at, row) in slopes.chunks_mut(classes.max(1)).enumerate() {
                let of = |grads: &[f64]| if grads.len() == 1 { grads[0] } else { grads[at] };
                let square_slope = match squares {
                    true if reduction == Reduction::Mean => 1.0 / count,
                    true => 1.0,
                    false => 0.0,
                };
                let square = match square_slope == 0.0 {
                    true => 0.0,
                    false => of(&grad_square) * square_slope * 2.0 * square_scale * log_sum[at],
                };
                let shares = targets[at].map(|target| how.shares(target, &weights));
                let shares = shares.unwrap_or_else(|| vec![0.0; classes]);
                let (sum, share) = (shares.iter().sum::<f64>(), of(&grad) / total);
                for (log, own) in row.iter_mut().zip(&shares) {
                    let probability = log.exp();
                    *log = share * (sum * probability - own) + square * probability;
                }
            }
            store(&slopes, out);
            Ok(())
        },
    );
    plan.map(Plan::with_workspace)
}

/// Logits `[n, classes, height, width]` as `[n * height * width, classes]`, and the way back.
fn rows_of(x: &[f64], [n, classes, area]: [usize; 3]) -> Vec<f64> {
    (0..n * area)
        .flat_map(|at| (0..classes).map(move |class| (at / area * classes + class) * area + at % area))
        .map(|at| x[at])
        .collect()
}

fn check_image(
    x: &Tensor,
    target: &Tensor,
    weight: &Tensor,
    reduction: i64,
    ignore: i64,
    loss: (&str, &Tensor),
    total: &Tensor,
) -> Result<(Entropy, [usize; 3])> {
    expect_rank("x", x, 4)?;
    expect_dtype("x", x, FLOATS)?;
    let &[n, classes, height, width] = x.shape() else { unreachable!("of rank 4") };
    expect("target", target, &[n, height, width])?;
    expect_dtype("target", target, &[DType::I64, DType::I32, DType::U8])?;
    expect("weight", weight, &[classes])?;
    let reduction = reduction_of(reduction)?;
    expect_per_sample(loss.0, loss.1, target, reduction)?;
    expect_one("total", total)?;
    Ok((Entropy { classes, ignore, smoothing: 0.0, reduction }, [n, classes, height * width]))
}

pub(crate) fn nll_loss2d(
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    reduction: i64,
    ignore: i64,
    out: Tensor,
    total: Tensor,
) -> Planned {
    let (how, sizes) = check_image(&x, &target, &weight, reduction, ignore, ("out", &out), &total)?;
    let plan =
        Plan::new(c"NLLLoss", [x, target, weight], [out, total], move |[x, target, weight], [out, total]| {
            let (rows, weights) = (rows_of(&numbers(x), sizes), numbers(weight));
            let targets = how.targets(integers(target))?;
            let loss = |(at, target): (usize, &Option<usize>)| {
                target.map_or(0.0, |class| -weights[class] * rows[at * how.classes + class])
            };
            let losses: Vec<f64> = targets.iter().enumerate().map(loss).collect();
            let sum = targets.iter().flatten().map(|&class| weights[class]).sum::<f64>();
            match how.reduction {
                Reduction::None => store(&losses, out),
                _ => store(&[losses.iter().sum::<f64>() / how.total(&targets, &weights)], out),
            }
            store(&[sum], total);
            Ok(())
        });
    plan.map(Plan::with_workspace)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn nll_loss2d_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    reduction: i64,
    ignore: i64,
    total: Tensor,
    out: Tensor,
) -> Planned {
    let (how, [_, classes, area]) =
        check_image(&x, &target, &weight, reduction, ignore, ("grad", &grad), &total)?;
    expect("out", &out, x.shape())?;
    let reads = [grad, target, weight, total];
    Plan::new(c"NLLLossGrad", reads, [out], move |[grad, target, weight, total], [out]| {
        let (grad, weights, total) = (numbers(grad), numbers(weight), numbers(total)[0]);
        let mut slopes = vec![0.0; out.layout().len()];
        for (at, target) in how.targets(integers(target))?.into_iter().enumerate() {
            let Some(class) = target else { continue };
            let grad = if how.reduction == Reduction::None { grad[at] } else { grad[0] };
            let share = if how.reduction == Reduction::Mean { 1.0 / total } else { 1.0 };
            slopes[(at / area * classes + class) * area + at % area] = -weights[class] * grad * share;
        }
        store(&slopes, out);
        Ok(())
    })
}
