//! The loss of sequences that are not aligned with what they are to say, step by step.
//!
//! The states of a sample are its labels with blanks between and around them. All samples and states take a
//! step together; what a sample's length leaves out is hidden.

use super::converted;
use crate::aclnn;
use cresset_tensor::ops::{CtcLoss, CtcLossBackward};
use cresset_tensor::{DType, Kernel, Key, Result, Tensor};

pub(super) fn register(npu: Key) {
    CtcLoss::table().register(npu, |op, [log_probs, targets], [losses, log_alpha]| {
        let states = States::new(op, log_probs, targets)?;
        let alpha = states.beginnings()?;
        aclnn::inplace_copy(log_alpha, &alpha)?;
        aclnn::inplace_copy(losses, &states.losses(&alpha)?)
    });
    CtcLossBackward::table().register(npu, |op, [grad, log_probs, targets, losses, log_alpha], out| {
        let states = States::new(&op.0, log_probs, targets)?;
        let gradient = states.gradient(&converted(log_alpha, states.steps.dtype())?, losses)?;
        let grad = converted(grad, gradient.dtype())?.unsqueeze(0)?.unsqueeze(-1)?;
        let mut gradient = gradient.mul(&grad)?;
        if op.0.zero_infinity {
            let endless = losses.eq(f64::INFINITY)?.unsqueeze(0)?.unsqueeze(-1)?;
            gradient = gradient.masked_fill(&endless.expand(gradient.shape())?, 0)?;
        }
        aclnn::inplace_copy(out, &gradient)
    });
}

struct States<'a> {
    op: &'a CtcLoss,
    /// Log-probabilities `[steps, samples, classes]`.
    steps: Tensor,
    /// The class of each state, `[samples, states]`.
    classes: Tensor,
    /// Where a state can be reached from the one before the last: past a blank, between different labels.
    skips: Tensor,
}

impl<'a> States<'a> {
    fn new(op: &'a CtcLoss, log_probs: &Tensor, targets: &Tensor) -> Result<States<'a>> {
        let wide = if log_probs.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let most = op.target_lengths.iter().copied().max().unwrap_or(0);
        // The place of each label among the targets; where a sample has fewer, that of any.
        let mut places = Vec::new();
        let mut start = 0;
        for (sample, &length) in op.target_lengths.iter().enumerate() {
            let first = if targets.dim() == 2 { sample * targets.shape()[1] } else { start };
            places.extend((0..most).map(|at| if at < length { (first + at) as i64 } else { 0 }));
            start += length;
        }
        let samples = op.target_lengths.len();
        let device = log_probs.device();
        let blank = Tensor::full([samples, 1], op.blank as i64, (DType::I64, device))?;
        let mut classes = vec![blank.clone()];
        if most > 0 {
            let places = Tensor::from_slice(&places, [places.len()])?.to(device)?;
            let flat = targets.reshape([targets.numel()])?;
            let labels = flat.index_select(0, &places)?.reshape([samples, most])?;
            for at in 0..most {
                classes.push(labels.narrow(1, at as isize, 1)?);
                classes.push(blank.clone());
            }
        }
        let classes = Tensor::cat(&classes.iter().collect::<Vec<_>>(), 1)?;
        let count = classes.shape()[1];
        let mut skips = classes.ne(op.blank as i64)?;
        if count > 2 {
            let differs = classes.narrow(1, 2, count - 2)?.ne(&classes.narrow(1, 0, count - 2)?)?;
            let never = Tensor::full([samples, 2], false, (DType::Bool, device))?;
            skips = skips.logical_and(&Tensor::cat(&[&never, &differs], 1)?)?;
        } else {
            skips = skips.zeros_like()?;
        }
        Ok(States { op, steps: converted(log_probs, wide)?, classes, skips })
    }

    fn count(&self) -> usize {
        self.classes.shape()[1]
    }

    /// The log-probability of each state's class at a step.
    fn at(&self, step: usize) -> Result<Tensor> {
        self.steps.select(0, step as isize)?.gather(1, &self.classes)
    }

    /// Numbers of samples as a column.
    fn column(&self, numbers: impl Iterator<Item = i64>) -> Result<Tensor> {
        let numbers: Vec<i64> = numbers.collect();
        Tensor::from_slice(&numbers, [numbers.len(), 1])?.to(self.steps.device())
    }

    fn endless(&self, columns: usize) -> Result<Tensor> {
        let shape = [self.classes.shape()[0], columns];
        Tensor::full(shape, f64::NEG_INFINITY, (self.steps.dtype(), self.steps.device()))
    }

    /// What a state is reached from: itself, its neighbour, and the one after that where it may be skipped.
    fn reached(
        &self,
        from: &Tensor,
        skips: &Tensor,
        shift: impl Fn(&Tensor, usize) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (one, two) = (shift(from, 1)?, shift(from, 2)?);
        let two = two.masked_fill(&skips.logical_not()?, f64::NEG_INFINITY)?;
        from.logaddexp(&one)?.logaddexp(&two)
    }

    /// The log-likelihood of all beginnings, `[samples, steps, states]`.
    fn beginnings(&self) -> Result<Tensor> {
        let (steps, count) = (self.steps.shape()[0], self.count());
        let later = |x: &Tensor, by: usize| {
            let by = by.min(count);
            Tensor::cat(&[&self.endless(by)?, &x.narrow(1, 0, count - by)?], 1)
        };
        let first = count.min(2);
        let start = self.at(0)?.narrow(1, 0, first)?;
        let mut alpha =
            if count > first { Tensor::cat(&[&start, &self.endless(count - first)?], 1)? } else { start };
        let mut all = vec![alpha.clone()];
        for step in 1..steps {
            alpha = self.reached(&alpha, &self.skips, later)?.add(&self.at(step)?)?;
            all.push(alpha.clone());
        }
        Tensor::stack(&all.iter().collect::<Vec<_>>(), 1)
    }

    fn losses(&self, alpha: &Tensor) -> Result<Tensor> {
        let count = self.count();
        let last_step = self.column(self.op.input_lengths.iter().map(|&length| length.max(1) as i64 - 1))?;
        let index = last_step.unsqueeze(-1)?.expand([last_step.shape()[0], 1, count])?;
        let last = alpha.gather(1, &index)?.squeeze_dim(1)?;
        let ends = self.column(self.op.target_lengths.iter().map(|&length| 2 * length as i64))?;
        let before =
            self.column(self.op.target_lengths.iter().map(|&length| (2 * length as i64 - 1).max(0)))?;
        let has_labels = self.column(self.op.target_lengths.iter().map(|&length| i64::from(length > 0)))?;
        let of_labels = last.gather(1, &before)?.masked_fill(&has_labels.eq(0)?, f64::NEG_INFINITY)?;
        let losses = last.gather(1, &ends)?.logaddexp(&of_labels)?.neg()?;
        // Of no steps nothing can be said, which is right for no labels.
        let no_steps = self.column(self.op.input_lengths.iter().map(|&length| i64::from(length == 0)))?;
        let losses = losses.masked_fill(&no_steps.eq(1)?.logical_and(&has_labels.eq(0)?)?, 0)?;
        losses.masked_fill(&no_steps.eq(1)?.logical_and(&has_labels.eq(1)?)?, f64::INFINITY)?.squeeze_dim(1)
    }

    /// The gradient of each sample's loss, as torch has it: right behind a log-softmax.
    fn gradient(&self, alpha: &Tensor, losses: &Tensor) -> Result<Tensor> {
        let (steps, count) = (self.steps.shape()[0], self.count());
        let losses = converted(losses, self.steps.dtype())?.unsqueeze(-1)?;
        let earlier = |x: &Tensor, by: usize| {
            let by = by.min(count);
            Tensor::cat(&[&x.narrow(1, by as isize, count - by)?, &self.endless(by)?], 1)
        };
        // From a state the next but one is reached where that may be.
        let none =
            Tensor::full([self.classes.shape()[0], count.min(2)], false, (DType::Bool, self.steps.device()))?;
        let skips = match count > 2 {
            true => Tensor::cat(&[&self.skips.narrow(1, 2, count - 2)?, &none], 1)?,
            false => none,
        };
        let states = Tensor::arange_with(count, (DType::I64, self.steps.device()))?.unsqueeze(0)?;
        let ends = self.column(self.op.target_lengths.iter().map(|&length| 2 * length as i64))?;
        let is_end = states.eq(&ends)?.logical_or(&states.eq(&ends.sub(1)?)?)?;
        let mut beta = self.endless(count)?;
        let mut gradients = Vec::new();
        for step in (0..steps).rev() {
            let here = self.at(step)?;
            let last =
                self.column(self.op.input_lengths.iter().map(|&length| length as i64 - 1 - step as i64))?;
            let begins = here.where_(&is_end, &self.endless(count)?)?;
            let goes_on = self.reached(&beta, &skips, earlier)?.add(&here)?;
            beta = begins.where_(&last.eq(0)?.expand(begins.shape())?, &goes_on)?;
            beta = beta.masked_fill(&last.lt(0)?, f64::NEG_INFINITY)?;
            let through = alpha.select(1, step as isize)?.add(&beta)?.add(&losses)?.sub(&here)?.exp()?;
            // What has no way through has no share, whatever the numbers say.
            let dead = alpha.select(1, step as isize)?.add(&beta)?.eq(f64::NEG_INFINITY)?;
            let through = through.masked_fill(&dead, 0)?;
            let classes = self.steps.select(0, step as isize)?;
            let shares = classes.zeros_like()?.scatter_add(1, &self.classes, &through)?;
            let gradient = classes.exp()?.sub(&shares)?;
            gradients.push(gradient.masked_fill(&last.lt(0)?.expand(gradient.shape())?, 0)?);
        }
        gradients.reverse();
        Tensor::stack(&gradients.iter().collect::<Vec<_>>(), 0)
    }
}
