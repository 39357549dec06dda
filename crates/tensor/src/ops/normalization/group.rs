//! Group normalization: a group is some channels of a sample.

use super::frame::{self, given, numbers};
use super::gradient::{self, Gradients, Normalized, Wanted};
use super::{Affine, Frame, Normalization, second};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::{
    Backward, Cause, Error, Grads, Inputs as _, Kernel, MemoryFormat, Op, Result, Spec, Tensor, composite,
    shown,
};
use cresset_dispatch::observe::{self, Argument};

/// Elements without the mean and spread of their group of channels, and these two.
#[derive(Clone, Debug)]
pub struct NativeGroupNorm {
    /// How many groups the channels are split into.
    pub groups: usize,
    /// Added to the variance.
    pub epsilon: f64,
}

impl NativeGroupNorm {
    fn frame(&self, shape: &[usize]) -> Frame {
        Frame { shape: self.sizes(shape)[..].into(), along: &[2, 3], repeated: &[0, 3] }
    }

    /// How many samples, groups, channels in a group and elements in a channel there are.
    fn sizes(&self, shape: &[usize]) -> [usize; 4] {
        [shape[0], self.groups, shape[1] / self.groups, shape[2..].iter().product()]
    }

    fn visit_sizes(&self, shape: &[usize], visit: &mut dyn FnMut(Argument<'_>)) {
        if let [samples, channels, area @ ..] = shape {
            visit(Argument::Int(*samples as i64));
            visit(Argument::Int(*channels as i64));
            visit(Argument::Int(area.iter().product::<usize>() as i64));
        }
        visit(Argument::Int(self.groups as i64));
    }
}

impl Op for NativeGroupNorm {
    const NAME: &'static str = "aten::native_group_norm";
    const BACKWARD: &'static str = "NativeGroupNormBackward0";
    const SAVES: Saves = Saves::AndOutputsFrom(1);
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = Affine<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let saved = [0, 1, 4, 5].map(|i| ctx.optional(i));
        let wanted = gradient::wanted(ctx);
        let through_output = ctx.grad_if_any(0).map(|grad| {
            let from = Normalized::new(grad, saved);
            if is_grad_enabled() {
                self.recorded_gradients(from, &wanted)
            } else {
                self.gradients(from, &wanted)
            }
        });
        let mut grads = through_output.transpose()?.unwrap_or_default();
        let (to_mean, to_scale) = (ctx.grad_if_any(1), ctx.grad_if_any(2));
        if let Some(one) = to_mean.or(to_scale) {
            let given =
                |grad: Option<&Tensor>| grad.map_or_else(|| one.zeros_like(), |grad| Ok(grad.clone()));
            let through = self.statistics_gradients(ctx, [&given(to_mean)?, &given(to_scale)?], &wanted)?;
            for (grad, through) in grads.iter_mut().zip(through) {
                *grad = second::joined(grad.take(), through)?;
            }
        }
        Ok(grads.into_iter().collect())
    }

    fn arguments(&self, inputs: Affine<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
        self.visit_sizes(given(inputs[0]).shape(), visit);
        visit(Argument::Float(self.epsilon));
    }
}

impl NativeGroupNorm {
    /// The gradients of input, weight and bias, without derivatives of their own.
    fn gradients(&self, from: Normalized<'_>, wanted: &Wanted) -> Result<Gradients> {
        let shown = [Some(from.grad), Some(from.x), from.mean, from.scale, from.weight];
        let _span = composite("aten::native_group_norm_backward", shown, |visit| {
            self.visit_sizes(from.x.shape(), visit);
            visit(Argument::Bools(&gradient::mask(wanted)));
        });
        let frame = self.frame(from.x.shape());
        if from.grad.device().is_cpu() {
            let room = match observe::is_watched() {
                true => shown_room(from, wanted)?,
                false => gradient::room(wanted, from.x.device())?,
            };
            let [means, scales] = [numbers(given(from.mean))?, numbers(given(from.scale))?];
            let shifts: Vec<_> = means.into_iter().zip(scales).collect();
            return Ok(frame::host_gradients(&frame, true, from, &shifts, room));
        }
        match self.device_gradients(from, wanted)? {
            Some(gradients) => Ok(gradients),
            None => frame::gradients(&frame, true, from, wanted),
        }
    }

    /// The same of operators that have derivatives; mean and scale have them too.
    fn recorded_gradients(&self, from: Normalized<'_>, wanted: &Wanted) -> Result<Gradients> {
        let [samples, groups, channels, area] = self.sizes(from.x.shape());
        let (whole, each) = ([samples, groups, channels, area], [samples, groups, 1, 1]);
        let x = from.x.reshape(whole)?;
        let (mean, scale) = (given(from.mean).reshape(each)?, given(from.scale).reshape(each)?);
        let grad = from.grad.reshape(whole)?;
        let along = grad.mul(&x)?.sum_dims(&[3], true)?;
        let total = grad.sum_dims(&[3], true)?;
        let to_x = || {
            let weight = from.weight.map(|weight| weight.reshape([1, groups, channels, 1])).transpose()?;
            let cube = scale.mul(&scale)?.mul(&scale)?;
            let summed = |x: &Tensor| match &weight {
                Some(weight) => x.mul(weight)?.sum_dims(&[2], true),
                None => x.sum_dims(&[2], true),
            };
            let direct = weight.as_ref().map_or_else(|| Ok(scale.clone()), |weight| scale.mul(weight))?;
            let (along, total) = (summed(&along)?, summed(&total)?);
            let share = 1.0 / (channels * area) as f64;
            let tilt = total.mul(&mean)?.sub(&along)?.mul(&cube)?.mul(share)?;
            let mean_share = total.mul(&scale)?.mul(share)?;
            let shift = tilt.neg()?.mul(&mean)?.sub(&mean_share)?;
            let tilted = tilt.mul(&x)?;
            direct.mul(&grad)?.add(&tilted)?.add(&shift)?.reshape_as(from.x)
        };
        let parameter = |x: &Tensor, spec: &Spec| x.sum_dims(&[0], false)?.reshape(&spec.shape);
        let [of_x, of_weight, of_bias] = wanted.each_ref().map(Option::as_ref);
        Ok([
            of_x.map(|_| to_x()).transpose()?,
            of_weight
                .map(|spec| parameter(&along.sub(&total.mul(&mean)?)?.mul(&scale)?, spec))
                .transpose()?,
            of_bias.map(|spec| parameter(&total, spec)).transpose()?,
        ])
    }

    /// What input, weight and bias get of the gradients of mean and scale.
    fn statistics_gradients(
        &self,
        ctx: &Backward<'_>,
        [to_mean, to_scale]: [&Tensor; 2],
        wanted: &Wanted,
    ) -> Result<Gradients> {
        let (x, scale) = (ctx.saved(0), ctx.saved(5));
        let mut grads = [None, None, None];
        for (grad, spec) in grads.iter_mut().zip(wanted).skip(1) {
            let zeros = |spec: &Spec| Tensor::zeros(&spec.shape, (spec.dtype, x.device()));
            *grad = spec.as_ref().map(zeros).transpose()?;
        }
        if wanted[0].is_none() {
            return Ok(grads);
        }
        let [samples, groups, channels, area] = self.sizes(x.shape());
        let (whole, each, count) =
            ([samples, groups, channels * area], [samples, groups, 1], channels * area);
        let scale = scale.reshape(each)?;
        let to_scale = to_scale.view(each)?;
        let to_variance = scale.mul(-0.5)?.mul(&scale)?.mul(&scale)?.mul(&to_scale)?;
        let (seen, to_mean) = (x.reshape(whole)?, to_mean.reshape(each)?);
        let centred = seen.sub(&seen.mean_dims(&[2], true)?)?;
        let through_variance = to_variance.mul(2.0 / count as f64)?.mul(&centred)?;
        let through_mean = to_mean.expand(whole)?.div(count as i64)?;
        grads[0] = Some(through_variance.add(&through_mean)?.reshape(x.shape())?);
        Ok(grads)
    }
}

/// Memory for the gradients, with the calls that torch makes before and beside.
fn shown_room(from: Normalized<'_>, wanted: &Wanted) -> Result<Gradients> {
    let x = from.x;
    let _grad = from.grad.contiguous()?;
    let mut room = [None, None, None];
    if wanted[0].is_some() {
        room[0] = Some(x.empty_like()?);
    }
    for (room, spec) in room.iter_mut().zip(wanted).skip(1) {
        let make = |spec: &Spec| shown::empty_in(&spec.shape, spec.dtype, shown::CONTIGUOUS);
        *room = spec.as_ref().map(make).transpose()?;
    }
    let sums = [x.shape()[0], x.shape()[1]];
    let _sums = [shown::empty(&sums, frame::wide(x.dtype()))?, shown::empty(&sums, frame::wide(x.dtype()))?];
    Ok(room)
}

impl Kernel for NativeGroupNorm {
    kernel_table!(NativeGroupNorm);

    fn infer(&self, inputs: Affine<'_>) -> Result<[Spec; 3]> {
        let x = given(inputs[0]);
        let refused = |why: &str| {
            let text =
                format_args!("{why} for {} groups, not an input of shape {:?}", self.groups, x.shape());
            Err(Error::new(Cause::Shape, Self::NAME, text))
        };
        let &[_, channels, ref area @ ..] = x.shape() else {
            return refused("expects at least two dimensions");
        };
        if channels == 0 || area.contains(&0) {
            return refused("expects channels, and something in them,");
        }
        if self.groups == 0 || !channels.is_multiple_of(self.groups) {
            return refused("expects channels that can be divided evenly");
        }
        let [out, mut mean, _] = frame::infer(Self::NAME, &self.frame(x.shape()), inputs, &[channels])?;
        mean.shape = [x.shape()[0], self.groups][..].into();
        Ok([out, mean.clone(), mean])
    }

    fn shown(&self, inputs: Affine<'_>) -> Result<Option<[Tensor; 3]>> {
        let [_, mean, scale] = self.infer(inputs)?;
        let out = given(inputs[0]).empty_like_with(MemoryFormat::Contiguous)?;
        let [mean, scale] = [
            shown::empty_in(&mean.shape, mean.dtype, shown::CONTIGUOUS)?,
            shown::empty_in(&scale.shape, scale.dtype, shown::CONTIGUOUS)?,
        ];
        let outputs = [out, mean, scale];
        self.fill(inputs, &outputs, given(inputs[0]).device())?;
        Ok(Some(outputs))
    }

    fn cpu(&self, inputs: Affine<'_>, outputs: &[Tensor; 3]) -> Result<()> {
        let (x, frame) = (given(inputs[0]), self.frame(given(inputs[0]).shape()));
        frame::fill(&frame, inputs, frame::moments(&frame, x), self.epsilon, outputs)
    }
}

impl Tensor {
    /// Elements without the mean and spread of their sample's group of channels, of which there
    /// are `groups`, times a weight and plus a bias per channel.
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        let _span = composite("aten::group_norm", [self], |visit| {
            visit(Argument::Int(groups as i64));
            [weight, bias].each(|tensor| visit(tensor.into_argument()));
            visit(Argument::Float(epsilon));
            visit(Argument::Bool(true));
        });
        let norm = NativeGroupNorm { groups, epsilon };
        if observe::is_watched() {
            // What does not fit together fails here in torch, before the call inside.
            norm.infer([Some(self), weight, bias])?;
        }
        let [out, _, _] = norm.call([Some(self), weight, bias])?;
        Ok(out)
    }
}
