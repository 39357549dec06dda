//! Batch and instance normalization: a group is a channel of all samples, or of one.

use super::frame::{self, Statistics, given, numbers};
use super::{Frame, Normalization};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::{
    Backward, Cause, Error, Grads, Inputs as _, Kernel, MemoryFormat, Op, Result, Spec, Tensor, composite,
    shown,
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
        let [running_mean, running_variance] = self.running.each_ref().map(Option::as_ref);
        let shown = [Some(ctx.grad()), x, weight, running_mean, running_variance, mean, scale];
        let _span = composite("aten::native_batch_norm_backward", shown, |visit| {
            visit(Argument::Bool(self.training));
            visit(Argument::Float(self.epsilon));
            visit(Argument::Bools(&frame::wanted(ctx)));
        });
        let frame = frame(given(x).shape());
        if !is_grad_enabled() && ctx.grad().device().is_cpu() {
            let room =
                if observe::is_watched() { self.shown_room(ctx, given(x))? } else { frame::room(ctx)? };
            let shifts = self.shifts([mean, scale])?;
            return Ok(frame::host_gradients(&frame, self.training, ctx, [x, weight], &shifts, room));
        }
        if let Some(gradients) = self.device_gradients(ctx, [x, weight, mean, scale])? {
            return Ok(gradients);
        }
        let statistics =
            if self.training { Statistics::Own { epsilon: self.epsilon } } else { Statistics::Fixed };
        let kept = [mean, scale].map(|kept| kept.filter(|kept| kept.numel() > 0));
        if kept[0].is_none() && given(x).numel() > 0 {
            let shifts = self.shifts([mean, scale])?;
            let like = |which: fn(&(f64, f64)) -> f64| -> Result<Tensor> {
                let kept = Tensor::uninit(&[shifts.len()], frame::wide(given(x).dtype()), given(x).device())?;
                frame::keep(shifts.iter().map(which), &kept);
                Ok(kept)
            };
            let (mean, scale) = (like(|shift| shift.0)?, like(|shift| shift.1)?);
            return frame::gradients(&frame, statistics, ctx, [x, weight, Some(&mean), Some(&scale)]);
        }
        frame::gradients(&frame, statistics, ctx, [x, weight, mean, scale])
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
    fn shown_room(&self, ctx: &Backward<'_>, x: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let mut room = [None, None, None];
        let like = || x.empty_like_with(MemoryFormat::Contiguous);
        if ctx.needs(0) {
            room[0] = Some(like()?);
        }
        for at in [1, 2].into_iter().filter(|at| ctx.needs(*at)) {
            room[at] = Some(shown::empty(ctx.shape(at), ctx.dtype(at))?);
        }
        if !x.is_contiguous() || !ctx.grad().is_contiguous() {
            let over: Vec<isize> = (0..x.dim() as isize).filter(|&dim| dim != 1).collect();
            ctx.grad().sum_dims(&over, false)?;
            return Ok(room);
        }
        if ctx.needs(0) {
            // The first one is given up when the second is there.
            room[0] = Some(like()?);
        }
        if pixels_only(x) {
            let (channels, dtype) = (x.shape()[1], frame::wide(x.dtype()));
            let _weight = ctx.optional(1).is_none().then(|| Tensor::ones([channels], dtype)).transpose()?;
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
