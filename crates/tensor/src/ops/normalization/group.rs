//! Group normalization: a group is some channels of a sample.

use super::frame::{self, Statistics, given};
use super::{Affine, Frame};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, Error, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;

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
}

impl Op for NativeGroupNorm {
    const NAME: &'static str = "aten::native_group_norm";
    const BACKWARD: &'static str = "NativeGroupNormBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Affine<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let frame = self.frame(ctx.saved(0).shape());
        let saved = [0, 1, 4, 5].map(|i| ctx.optional(i));
        let statistics = Statistics::Own { epsilon: self.epsilon };
        frame::gradients("aten::native_group_norm_backward", &frame, statistics, ctx, saved)
    }

    fn arguments(&self, inputs: Affine<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
        let shape = given(inputs[0]).shape();
        if let [samples, channels, area @ ..] = shape {
            visit(Argument::Int(*samples as i64));
            visit(Argument::Int(*channels as i64));
            visit(Argument::Int(area.iter().product::<usize>() as i64));
        }
        visit(Argument::Int(self.groups as i64));
        visit(Argument::Float(self.epsilon));
    }
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
        frame::infer(Self::NAME, &self.frame(x.shape()), inputs, &[channels])
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
        let _span = composite("aten::group_norm", [Some(self), weight, bias], |visit| {
            visit(Argument::Int(groups as i64));
            visit(Argument::Float(epsilon));
        });
        let [out, _, _] = NativeGroupNorm { groups, epsilon }.call([Some(self), weight, bias])?;
        Ok(out)
    }
}
