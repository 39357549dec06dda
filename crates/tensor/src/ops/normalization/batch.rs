//! Batch and instance normalization: a group is a channel of all samples, or of one.

use super::Frame;
use super::frame::{self, Statistics, given};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, Error, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
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
    const SAVES: Saves = Saves::FirstAndOutputs(2);
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Running<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let saved = [0, 1, 6, 7].map(|i| ctx.optional(i));
        let statistics =
            if self.training { Statistics::Own { epsilon: self.epsilon } } else { Statistics::Fixed };
        let frame = frame(ctx.saved(0).shape());
        frame::gradients("aten::native_batch_norm_backward", &frame, statistics, ctx, saved)
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
        for (running, name) in [(mean, "running mean"), (variance, "running variance")] {
            frame::check_parameter(Self::NAME, tensor, running, name, &[channels])?;
            if running.is_none() && !self.training {
                let text = format_args!("expects a {name} unless training");
                return Err(Error::new(Cause::Argument, Self::NAME, text));
            }
        }
        frame::infer(Self::NAME, &frame(tensor.shape()), [x, weight, bias], &[channels])
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

impl NativeBatchNorm {
    /// Moves running numbers towards those of the batch.
    fn update(&self, running: Option<&Tensor>, batch: impl Iterator<Item = f64>) -> Result<()> {
        let Some(running) = running else { return Ok(()) };
        let old = numbers(running)?;
        let moved = old.iter().zip(batch).map(|(old, new)| (1.0 - self.momentum) * old + self.momentum * new);
        frame::keep(moved, running);
        Ok(())
    }
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    let x = x.converted(DType::F64)?;
    let numbers = x.elements(&x.read()).array::<f64>().iter().copied().collect();
    Ok(numbers)
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
        };
        let _span = composite(NAME, inputs, arguments);
        if training {
            check_batch(NAME, self)?;
        }
        let _span = composite("aten::_batch_norm_impl_index", inputs, arguments);
        if self.numel() == 0 && self.dim() < 2 {
            return self.copy();
        }
        let [out, _, _] = NativeBatchNorm { training, momentum, epsilon }.call(inputs)?;
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
        let repeated = |x: Option<&Tensor>| {
            x.map(|x| x.unsqueeze(0)?.expand([samples, channels])?.reshape([samples * channels])).transpose()
        };
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
