//! Group normalization: a group is some channels of a sample.

use super::frame::{self, Statistics, given, numbers};
use super::{Affine, Frame, Normalization};
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
        let (samples, channels, area) = (shape[0], shape[1], shape[2..].iter().product());
        let shape = [samples, self.groups, channels / self.groups, area];
        Frame { shape: shape[..].into(), along: &[2, 3], repeated: &[0, 3] }
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
    const DIFFERENTIABLE: usize = 1;
    const TOLD: usize = 3;
    type Inputs<'a> = Affine<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let saved = [0, 1, 4, 5].map(|i| ctx.optional(i));
        let [x, weight, mean, scale] = saved;
        let shown = [Some(ctx.grad()), x, mean, scale, weight];
        let _span = composite("aten::native_group_norm_backward", shown, |visit| {
            self.visit_sizes(given(x).shape(), visit);
            visit(Argument::Bools(&frame::wanted(ctx)));
        });
        let frame = self.frame(given(x).shape());
        if !is_grad_enabled() && ctx.grad().device().is_cpu() {
            let room = if observe::is_watched() { shown_room(ctx, given(x))? } else { frame::room(ctx)? };
            let [means, scales] = [numbers(given(mean))?, numbers(given(scale))?];
            let shifts: Vec<_> = means.into_iter().zip(scales).collect();
            return Ok(frame::host_gradients(&frame, true, ctx, [x, weight], &shifts, room));
        }
        if let Some(gradients) = self.device_gradients(ctx, saved)? {
            return Ok(gradients);
        }
        frame::gradients(&frame, Statistics::Own { epsilon: self.epsilon }, ctx, saved)
    }

    fn arguments(&self, inputs: Affine<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
        self.visit_sizes(given(inputs[0]).shape(), visit);
        visit(Argument::Float(self.epsilon));
    }
}

/// Memory for the gradients, with the calls that torch makes before and beside.
fn shown_room(ctx: &Backward<'_>, x: &Tensor) -> Result<[Option<Tensor>; 3]> {
    let _grad = ctx.grad().contiguous()?;
    let mut room = [None, None, None];
    if ctx.needs(0) {
        room[0] = Some(x.empty_like()?);
    }
    for at in [1, 2].into_iter().filter(|at| ctx.needs(*at)) {
        room[at] = Some(shown::empty_in(ctx.shape(at), ctx.dtype(at), shown::CONTIGUOUS)?);
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
