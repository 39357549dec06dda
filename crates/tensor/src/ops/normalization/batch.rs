//! Batch and instance normalization: a group is a channel of all samples, or of one.

use super::frame::{self, given, numbers};
use super::gradient::{self, Gradients, Normalized, Wanted};
use super::second::{self, Grouped};
use super::{Frame, Normalization};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, Error, Forward, Grads, Inputs as _, Kernel, MemoryFormat, Op, Result, Spec, Tensor,
    composite, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::DType;

/// Elements without the mean and spread of their channel, and these two.
#[derive(Clone, Debug)]
pub struct NativeBatchNorm {
    /// Whether mean and spread are those of the batch; if not, the running ones are taken.
    pub training: bool,
    /// The share of the batch's mean and variance in the new running ones.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
    /// The running mean and variance as the gradient sees them: as they are then.
    pub running: [Option<Tensor>; 2],
}

/// A tensor, a weight and a bias, and the running mean and variance.
type Running<'a> = [Option<&'a Tensor>; 5];

fn frame(shape: &[usize]) -> Frame {
    let shape = [shape[0], shape[1], shape[2..].iter().product()];
    Frame { shape: shape[..].into(), along: &[0, 2], repeated: &[0, 2] }
}

impl Op for NativeBatchNorm {
    const NAME: &'static str = "aten::native_batch_norm";
    const BACKWARD: &'static str = "NativeBatchNormBackward0";
    const SAVES: Saves = Saves::FirstAndOutputsFrom(2, 1);
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Running<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [x, weight, mean, scale] = [0, 1, 6, 7].map(|i| ctx.optional(i));
        let op = NativeBatchNormBackward { norm: self.clone(), wanted: gradient::wanted(ctx) };
        Ok(op.call([Some(ctx.grad()), x, weight, mean, scale])?.into_iter().collect())
    }

    fn arguments(&self, inputs: Running<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Bool(self.training));
        visit(Argument::Float(self.momentum));
        visit(Argument::Float(self.epsilon));
    }
}

impl Kernel for NativeBatchNorm {
    kernel_table!(NativeBatchNorm);

    fn infer(&self, [x, weight, bias, mean, variance]: Running<'_>) -> Result<[Spec; 3]> {
        let tensor = given(x);
        let &[_, channels, ..] = tensor.shape() else {
            let text = format_args!("expects samples and channels, not shape {:?}", tensor.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if self.training && tensor.numel() == 0 {
            let text =
                format_args!("expects at least one element when training, not shape {:?}", tensor.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        for (running, name) in [(mean, "running mean"), (variance, "running variance")] {
            frame::check_parameter(Self::NAME, tensor, running, name, &[channels])?;
            if running.is_none() && !self.training {
                let text = format_args!("expects a {name} unless training");
                return Err(Error::new(Cause::Argument, Self::NAME, text));
            }
        }
        frame::infer(Self::NAME, &frame(tensor.shape()), [x, weight, bias], &[channels])
    }

    fn shown(&self, inputs: Running<'_>) -> Result<Option<[Tensor; 3]>> {
        let [_, statistics, _] = self.infer(inputs)?;
        let (x, empty) = (given(inputs[0]), |shape: &[usize]| shown::empty(shape, statistics.dtype));
        let each = |shape: &[usize]| Ok::<_, Error>([empty(shape)?, empty(shape)?]);
        let out = x.empty_like_with(MemoryFormat::Contiguous)?;
        let [mean, scale] = each(if self.training { &statistics.shape } else { &[0] })?;
        let more = each(&statistics.shape)?;
        let outputs = if self.training {
            if pixels_only(x) {
                let sums = Tensor::zeros([shown::THREADS, statistics.shape[0]], statistics.dtype)?;
                sums.zero_()?;
                let _more = (sums, each(&statistics.shape)?);
            } else {
                let _more = each(&statistics.shape)?;
            }
            let outputs = [out, mean, scale];
            self.fill(inputs, &outputs, x.device())?;
            outputs
        } else {
            let [used_mean, used_scale] = more;
            let filled = [out, used_mean, used_scale];
            self.fill(inputs, &filled, x.device())?;
            let [out, ..] = filled;
            [out, mean, scale]
        };
        self.changed(inputs);
        Ok(Some(outputs))
    }

    fn cpu(&self, [x, weight, bias, mean, variance]: Running<'_>, outputs: &[Tensor; 3]) -> Result<()> {
        let frame = frame(given(x).shape());
        let moments = if self.training {
            let moments = frame::moments(&frame, given(x));
            let count = frame.count() as f64;
            let unbiased = count / (count - 1.0);
            self.update(mean, moments.iter().map(|moments| moments.0))?;
            self.update(variance, moments.iter().map(|moments| moments.1 * unbiased))?;
            moments
        } else {
            numbers(given(mean))?.into_iter().zip(numbers(given(variance))?).collect()
        };
        frame::fill(&frame, [x, weight, bias], moments, self.epsilon, outputs)
    }

    fn changed(&self, [.., mean, variance]: Running<'_>) {
        if self.training {
            [mean, variance].into_iter().flatten().for_each(|running| running.storage().changed(Self::NAME));
        }
    }
}

/// Whether channels have one element per sample, which torch has kernels of its own for.
fn pixels_only(x: &Tensor) -> bool {
    x.is_contiguous() && x.strides()[1] == 1
}

impl NativeBatchNorm {
    /// Mean and scale of each channel: those that were kept, or else the running ones.
    fn shifts(&self, kept: [Option<&Tensor>; 2]) -> Result<Vec<(f64, f64)>> {
        let [mean, scale] = kept.map(given);
        let [running_mean, variance] = self.running.each_ref().map(Option::as_ref);
        if let (0, Some(running_mean), Some(variance)) = (mean.numel(), running_mean, variance) {
            let scales =
                numbers(variance)?.into_iter().map(|variance| 1.0 / (variance + self.epsilon).sqrt());
            let dtype = frame::wide(running_mean.dtype());
            let narrow = |number: f64| if dtype == DType::F64 { number } else { f64::from(number as f32) };
            return Ok(numbers(running_mean)?.into_iter().zip(scales.map(narrow)).collect());
        }
        Ok(numbers(mean)?.into_iter().zip(numbers(scale)?).collect())
    }

    /// Memory for the gradients, with the calls that torch makes before and beside.
    fn shown_room(&self, wanted: &Wanted, from: Normalized<'_>) -> Result<Gradients> {
        let (x, mut room) = (from.x, [None, None, None]);
        let like = || x.empty_like_with(MemoryFormat::Contiguous);
        if wanted[0].is_some() {
            room[0] = Some(like()?);
        }
        for (room, spec) in room.iter_mut().zip(wanted).skip(1) {
            *room = spec.as_ref().map(|spec| shown::empty(&spec.shape, spec.dtype)).transpose()?;
        }
        if !x.is_contiguous() || !from.grad.is_contiguous() {
            let over: Vec<isize> = (0..x.dim() as isize).filter(|&dim| dim != 1).collect();
            from.grad.sum_dims(&over, false)?;
            return Ok(room);
        }
        if wanted[0].is_some() {
            // The first one is given up when the second is there.
            room[0] = Some(like()?);
        }
        if pixels_only(x) {
            let (channels, dtype) = (x.shape()[1], frame::wide(x.dtype()));
            let _weight = from.weight.is_none().then(|| Tensor::ones([channels], dtype)).transpose()?;
            let scale = shown::empty_output(dtype)?;
            let _scale =
                (!self.training).then(|| shown::grown(&scale, &[channels], Argument::None)).transpose()?;
            Tensor::zeros([2, shown::THREADS, channels], dtype)?;
        }
        Ok(room)
    }

    /// Moves running numbers towards those of the batch.
    fn update(&self, running: Option<&Tensor>, batch: impl Iterator<Item = f64>) -> Result<()> {
        let Some(running) = running else { return Ok(()) };
        let old = numbers(running)?;
        let moved = old.iter().zip(batch).map(|(old, new)| (1.0 - self.momentum) * old + self.momentum * new);
        frame::keep(moved, running);
        Ok(())
    }
}

/// The gradients of [`NativeBatchNorm`] for input, weight and bias.
#[derive(Clone, Debug)]
pub struct NativeBatchNormBackward {
    /// What was normalized how.
    pub norm: NativeBatchNorm,
    /// Which gradients are wanted, and what they look like.
    pub wanted: [Option<Spec>; 3],
}

impl Op for NativeBatchNormBackward {
    const NAME: &'static str = "aten::native_batch_norm_backward";
    const BACKWARD: &'static str = "NativeBatchNormBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    const TAKES_MISSING: bool = true;
    /// The gradient, the input, the weight, and the mean and scale of the batch.
    type Inputs<'a> = [Option<&'a Tensor>; 5];
    type Output = [Option<Tensor>; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, weight) = (ctx.saved(0), ctx.saved(1), ctx.optional(2));
        let [again, to_weight, to_bias] = [0, 1, 2].map(|i| ctx.grad_if_any(i));
        let one = || Tensor::ones([], (grad.dtype(), grad.device()));
        let spread = |x: Option<&Tensor>| x.map(|x| over_channels(x, grad)).transpose();
        let factor = weight.map_or_else(one, |weight| over_channels(weight, grad))?;
        let (to_weight, to_bias) = (spread(to_weight)?, spread(to_bias)?);
        let sum = |x: &Tensor| sum_of_channels(x, true);
        let [mean, scale] = self.statistics(ctx, x)?;
        let (mean, scale) = (|| beside_channels(&mean, x), || beside_channels(&scale, x));
        let of = Grouped::new(x, mean, scale, x.numel() / x.shape()[1].max(1), &sum)?;
        let sums = of.sums(grad)?;
        let mut grads = Grads::from_elem(None, 5);
        if ctx.needs(1) {
            let found = if self.norm.training {
                let bent = again.map(|again| factor.mul(&of.bend(grad, &sums, again)?)).transpose()?;
                let through_weight = to_weight.as_ref().map(|to_weight| {
                    let direct = grad.mul(&of.scale)?;
                    let shifted = of.less_shifts(direct, &sums.total, || sum(&grad.mul(&of.centred)?))?;
                    to_weight.mul(&shifted)
                });
                second::joined(bent, through_weight.transpose()?)?
            } else {
                to_weight.as_ref().map(|to_weight| to_weight.mul(&of.scale)?.mul(grad)).transpose()?
            };
            grads[1] = found;
        }
        if let (Some(again), true) = (again, ctx.needs(2)) {
            let each = match self.norm.training {
                true => {
                    let plain = of.gradient(grad, &one()?)?;
                    again.mul(&plain)?
                }
                false => again.mul(grad)?.mul(&of.scale)?,
            };
            grads[2] = Some(sum_of_channels(&each, false)?);
        }
        if ctx.needs(0) {
            let straight = again.map(|again| match self.norm.training {
                true => of.gradient(again, &factor),
                false => again.mul(&of.scale)?.mul(&factor),
            });
            let weighted = to_weight.map(|to_weight| to_weight.mul(&of.centred)?.mul(&of.scale));
            grads[0] =
                second::joined(second::joined(straight.transpose()?, weighted.transpose()?)?, to_bias)?;
        }
        Ok(grads)
    }

    fn arguments(
        &self,
        [grad, x, weight, mean, scale]: Self::Inputs<'_>,
        visit: &mut dyn FnMut(Argument<'_>),
    ) {
        let [running_mean, variance] = self.norm.running.each_ref().map(Option::as_ref);
        [grad, x, weight, running_mean, variance, mean, scale].each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Bool(self.norm.training));
        visit(Argument::Float(self.norm.epsilon));
        visit(Argument::Bools(&gradient::mask(&self.wanted)));
    }
}

impl NativeBatchNormBackward {
    /// Mean and scale of channels.
    fn statistics(&self, ctx: &Backward<'_>, x: &Tensor) -> Result<[Tensor; 2]> {
        if let ([Some(mean), Some(variance)], false) = (&self.norm.running, self.norm.training) {
            let scale = variance.add(self.norm.epsilon)?;
            scale.pow_(-0.5)?;
            return Ok([mean.clone(), scale]);
        }
        let along: Vec<isize> = (0..x.dim() as isize).filter(|&dim| dim != 1).collect();
        let again = second::statistics(x, self.norm.epsilon, &along)?;
        let kept = |i: usize| ctx.saved(i).to(ctx.saved(i).dtype());
        again.map_or_else(|| Ok([kept(3)?, kept(4)?]), Ok)
    }
}

impl Forward for NativeBatchNormBackward {
    fn forward(&self, [grad, x, weight, mean, scale]: Self::Inputs<'_>) -> Result<Gradients> {
        let from = Normalized::new(given(grad), [x, weight, mean, scale]);
        let (norm, frame) = (&self.norm, frame(from.x.shape()));
        if from.grad.device().is_cpu() {
            let room = match observe::is_watched() {
                true => norm.shown_room(&self.wanted, from)?,
                false => gradient::room(&self.wanted, from.x.device())?,
            };
            let shifts = norm.shifts([mean, scale])?;
            return Ok(frame::host_gradients(&frame, norm.training, from, &shifts, room));
        }
        match norm.device_gradients(from, &self.wanted)? {
            Some(gradients) => Ok(gradients),
            None => frame::gradients(&frame, norm.training, from, &self.wanted),
        }
    }
}

/// What there is for each channel, once for each element of `like`.
fn over_channels(x: &Tensor, like: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    for _ in 2..like.dim() {
        x = x.unsqueeze(1)?;
    }
    x.expand_as(like)
}

/// What there is for each channel, shaped so that it meets elements, if it is not.
fn beside_channels(x: &Tensor, like: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    if x.dim() == like.dim() {
        return Ok(x);
    }
    for _ in 2..like.dim() {
        x = x.unsqueeze(1)?;
    }
    x.unsqueeze(0)
}

/// The sum of each channel, one dimension after another.
fn sum_of_channels(x: &Tensor, keep: bool) -> Result<Tensor> {
    let mut sum = x.sum_dims(&[0], keep)?;
    let first = if keep { 2 } else { 1 };
    for dim in (first..sum.dim() as isize).rev() {
        sum = sum.sum_dims(&[dim], keep)?;
    }
    Ok(sum)
}

/// How [`Tensor::batch_norm`] treats running statistics.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm {
    /// Whether mean and spread are those of the batch, and the running ones are moved towards them.
    pub training: bool,
    /// How far they are moved.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
}

impl Default for BatchNorm {
    /// Not training; a tenth of the way; `1e-5`.
    fn default() -> BatchNorm {
        BatchNorm { training: false, momentum: 0.1, epsilon: 1e-5 }
    }
}

impl Tensor {
    /// Elements without the mean and spread of their channel, the second dimension, times a weight
    /// and plus a bias per channel. `running` are the mean and variance kept from batch to batch.
    pub fn batch_norm(
        &self,
        running: [Option<&Tensor>; 2],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        how: BatchNorm,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::batch_norm";
        let BatchNorm { training, momentum, epsilon } = how;
        let inputs = [Some(self), weight, bias, running[0], running[1]];
        let arguments = |visit: &mut dyn FnMut(Argument<'_>)| {
            visit(Argument::Bool(training));
            visit(Argument::Float(momentum));
            visit(Argument::Float(epsilon));
            visit(Argument::Bool(true));
        };
        let _span = composite(NAME, inputs, arguments);
        if training {
            check_batch(NAME, self)?;
        }
        let span = composite("aten::_batch_norm_impl_index", inputs, arguments);
        let watched = observe::is_watched() && self.device().is_cpu();
        let norm = NativeBatchNorm { training, momentum, epsilon, running: running.map(|one| one.cloned()) };
        if watched {
            if self.numel() > 0 {
                // What does not fit together fails here in torch, before the call inside.
                norm.infer(inputs)?;
            }
            shown::empty_output(DType::U8)?;
        }
        if self.numel() == 0 {
            if watched {
                shown::empty_output(DType::F64)?;
                shown::empty_output(DType::F64)?;
            }
            return self.empty_batch_norm(weight, bias);
        }
        let [out, _mean, _scale] = norm.call(inputs)?;
        // What else was computed is given up by the outer call.
        drop(span);
        Ok(out)
    }

    /// No elements have no statistics: the running ones stay, and what is given has gradients of 0.
    fn empty_batch_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
        let first = |x: &&Tensor| x.numel() > 0;
        let mut out = self.copy_in(MemoryFormat::Preserve)?;
        if let Some(weight) = weight.filter(first) {
            out = out.mul(&weight.select(0, 0)?)?;
        }
        if let Some(bias) = bias.filter(first) {
            out = out.add(&bias.select(0, 0)?)?;
        }
        Ok(out)
    }

    /// Elements without the mean and spread of their sample's channel, times a weight and plus a
    /// bias per channel. Running statistics, if given, are used unless `how` is training, else moved.
    pub fn instance_norm(
        &self,
        running: [Option<&Tensor>; 2],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        how: BatchNorm,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::instance_norm";
        let _span = composite(NAME, [Some(self), weight, bias, running[0], running[1]], |visit| {
            visit(Argument::Bool(how.training));
            visit(Argument::Float(how.momentum));
            visit(Argument::Float(how.epsilon));
            visit(Argument::Bool(true));
        });
        let &[samples, channels, ref area @ ..] = self.shape() else {
            let text = format_args!("expects samples and channels, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        if how.training && area.iter().product::<usize>() == 1 {
            let text =
                format_args!("expects more than one element per channel, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        // Each channel of each sample is a channel of one batch; what is per channel is repeated.
        let merged: Vec<usize> = [1, samples * channels].into_iter().chain(area.iter().copied()).collect();
        let repeated = |x: Option<&Tensor>| x.map(|x| x.repeat([samples])).transpose();
        let (weight, bias) = (repeated(weight)?, repeated(bias)?);
        let statistics = [repeated(running[0])?, repeated(running[1])?];
        let kept = statistics.each_ref().map(Option::as_ref);
        let out = self.contiguous()?.view(&merged)?.batch_norm(kept, weight.as_ref(), bias.as_ref(), how)?;
        if how.training {
            for (running, moved) in running.into_iter().zip(&statistics) {
                if let (Some(running), Some(moved)) = (running, moved) {
                    running.copy_(&moved.view([samples, channels])?.mean_dims(&[0], false)?)?;
                }
            }
        }
        out.view(self.shape())
    }
}

/// A mean and spread over one element say nothing.
fn check_batch(op: &'static str, x: &Tensor) -> Result<()> {
    let others = x.shape().iter().skip(2).product::<usize>();
    if x.shape().first().copied().unwrap_or(1) * others != 1 {
        return Ok(());
    }
    let text =
        format_args!("expects more than one element per channel when training, not shape {:?}", x.shape());
    Err(Error::new(Cause::Shape, op, text))
}
