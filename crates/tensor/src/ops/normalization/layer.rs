//! Layer normalization: a group is what the last dimensions hold.

use super::frame::{self, given};
use super::gradient::{self, Gradients, Normalized, Wanted};
use super::second::{self, Grouped};
use super::{Affine, Frame, Normalization};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::sizes;
use crate::{
    Backward, Cause, Error, Forward, Grads, Inputs as _, Kernel, MemoryFormat, Op, Result, Spec, Tensor,
    composite, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::normalization;

/// Elements without the mean and spread over the last dimensions, and these two.
#[derive(Clone, Debug)]
pub struct NativeLayerNorm {
    /// How many dimensions a group has.
    pub dims: usize,
    /// Added to the variance.
    pub epsilon: f64,
}

impl NativeLayerNorm {
    fn frame(&self, shape: &[usize]) -> Frame {
        let (rows, group) = shape.split_at(shape.len() - self.dims);
        let shape = [rows.iter().product(), group.iter().product()];
        Frame { shape: shape[..].into(), along: &[1], repeated: &[0] }
    }
}

impl Op for NativeLayerNorm {
    const NAME: &'static str = "aten::native_layer_norm";
    const BACKWARD: &'static str = "NativeLayerNormBackward0";
    const SAVES: Saves = Saves::AndOutputsFrom(1);
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Affine<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [x, weight, bias, mean, scale] = [0, 1, 2, 4, 5].map(|i| ctx.optional(i));
        let op = NativeLayerNormBackward { norm: self.clone(), wanted: gradient::wanted(ctx) };
        Ok(op.call([Some(ctx.grad()), x, mean, scale, weight, bias])?.into_iter().collect())
    }

    fn arguments(&self, [x, weight, bias]: Affine<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        let x = given(x);
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&x.shape()[x.dim().saturating_sub(self.dims)..])));
        [weight, bias].each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Float(self.epsilon));
    }
}

impl Kernel for NativeLayerNorm {
    kernel_table!(NativeLayerNorm);

    fn infer(&self, inputs: Affine<'_>) -> Result<[Spec; 3]> {
        let x = given(inputs[0]);
        if self.dims == 0 || self.dims > x.dim() {
            let text =
                format_args!("shape {:?} has no last {} dimensions to normalize", x.shape(), self.dims);
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let (rows, group) = x.shape().split_at(x.dim() - self.dims);
        let [out, mut mean, _] = frame::infer(Self::NAME, &self.frame(x.shape()), inputs, group)?;
        mean.shape = rows.iter().copied().chain(std::iter::repeat_n(1, self.dims)).collect();
        Ok([out, mean.clone(), mean])
    }

    fn shown(&self, inputs: Affine<'_>) -> Result<Option<[Tensor; 3]>> {
        let [out, mean, scale] = self.infer(inputs)?;
        let _plain = given(inputs[0]).contiguous()?;
        let out = shown::empty_in(&out.shape, out.dtype, shown::CONTIGUOUS)?;
        let rows = mean.shape.iter().product();
        let [means, scales] = [shown::empty(&[rows], mean.dtype)?, shown::empty(&[rows], scale.dtype)?];
        let outputs = [out, means.view(&mean.shape[..])?, scales.view(&scale.shape[..])?];
        self.fill(inputs, &outputs, given(inputs[0]).device())?;
        Ok(Some(outputs))
    }

    fn cpu(&self, [x, weight, bias]: Affine<'_>, [out, mean, scale]: &[Tensor; 3]) -> Result<()> {
        let x = given(x);
        let (reading, weights, biases) = (x.read(), weight.map(Tensor::read), bias.map(Tensor::read));
        let affine = [weight.zip(weights.as_ref()), bias.zip(biases.as_ref())];
        normalization::layer_norm(
            x.elements(&reading),
            self.frame(x.shape()).count(),
            affine.map(|given| given.map(|(tensor, reading)| tensor.elements(reading))),
            self.epsilon,
            out.elements_mut(&mut out.write()),
            [mean.elements_mut(&mut mean.write()), scale.elements_mut(&mut scale.write())],
        );
        Ok(())
    }
}

/// The gradients of [`NativeLayerNorm`] for input, weight and bias.
#[derive(Clone, Debug)]
pub struct NativeLayerNormBackward {
    /// What was normalized how.
    pub norm: NativeLayerNorm,
    /// Which gradients are wanted, and what they look like.
    pub wanted: [Option<Spec>; 3],
}

impl Op for NativeLayerNormBackward {
    const NAME: &'static str = "aten::native_layer_norm_backward";
    const BACKWARD: &'static str = "NativeLayerNormBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    const TAKES_MISSING: bool = true;
    /// The gradient, the input, the mean and scale of rows, the weight and the bias.
    type Inputs<'a> = [Option<&'a Tensor>; 6];
    type Output = [Option<Tensor>; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [grad, x, mean, scale] = [0, 1, 2, 3].map(|i| ctx.saved(i));
        let weight = ctx.optional(4);
        let &[rows, size] = &self.norm.frame(x.shape()).shape[..] else {
            unreachable!("a frame of rows has two dimensions")
        };
        let sum = |x: &Tensor| x.sum_dims(&[1], true);
        let (whole, row) = ([rows, size], [1, size]);
        let (x2, grad2) = (x.reshape(whole)?, grad.reshape(whole)?);
        let kept = [mean.reshape([rows, 1])?, scale.reshape([rows, 1])?];
        let [mean, scale] = second::statistics(&x2, self.norm.epsilon, &[1])?.unwrap_or(kept);
        let factor = match weight {
            Some(weight) => weight.reshape(row)?,
            None => Tensor::ones([1], (grad.dtype(), grad.device()))?,
        };
        let seen =
            |i: usize, shape: [usize; 2]| ctx.grad_if_any(i).map(|again| again.reshape(shape)).transpose();
        let (to_weight, to_bias, again) = (seen(1, row)?, seen(2, row)?, seen(0, whole)?);
        let (mean, scale) = (|| mean.to(mean.dtype()), || scale.to(scale.dtype()));
        let of = Grouped::new(&x2, mean, scale, size, &sum)?;
        let mut grads = Grads::from_elem(None, 6);
        if ctx.needs(1) {
            let bent = again.as_ref().map(|again| {
                let weighted = grad2.mul(&factor)?;
                of.bend(&weighted, &of.sums(&weighted)?, again)
            });
            let through_weight = to_weight.as_ref().map(|to_weight| {
                let direct = grad2.mul(to_weight)?.mul(&of.scale)?;
                let total = sum(&grad2.mul(to_weight)?)?;
                of.less_shifts(direct, &total, || sum(&grad2.mul(to_weight)?.mul(&of.centred)?))
            });
            let found = second::joined(bent.transpose()?, through_weight.transpose()?)?;
            grads[1] = found.map(|found| found.reshape_as(x)).transpose()?;
        }
        if let (Some(weight), Some(again), true) = (weight, &again, ctx.needs(4)) {
            let one = Tensor::ones([], (grad.dtype(), grad.device()))?;
            let plain = of.gradient(again, &one)?;
            grads[4] = Some(grad2.mul(&plain)?.sum_dims(&[0], false)?.reshape_as(weight)?);
        }
        if ctx.needs(0) {
            let straight = again.as_ref().map(|again| of.gradient(again, &factor)).transpose()?;
            let weighted = to_weight.map(|to_weight| to_weight.mul(&of.centred)?.mul(&of.scale));
            let found = second::joined(second::joined(straight, weighted.transpose()?)?, to_bias)?;
            grads[0] = found.map(|found| found.expand(whole)?.reshape_as(x)).transpose()?;
        }
        Ok(grads)
    }

    fn arguments(
        &self,
        [grad, x, mean, scale, weight, bias]: Self::Inputs<'_>,
        visit: &mut dyn FnMut(Argument<'_>),
    ) {
        let x = given(x);
        [grad, Some(x)].each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Ints(&sizes(&x.shape()[x.dim() - self.norm.dims..])));
        [mean, scale, weight, bias].each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Bools(&gradient::mask(&self.wanted)));
    }
}

impl Forward for NativeLayerNormBackward {
    fn forward(&self, [grad, x, mean, scale, weight, bias]: Self::Inputs<'_>) -> Result<Gradients> {
        let from = Normalized::new(given(grad), [x, weight, mean, scale]);
        let frame = self.norm.frame(from.x.shape());
        if from.grad.device().is_cpu() {
            let room = match observe::is_watched() {
                true => shown_room(&self.wanted, from, bias, frame.count())?,
                false => gradient::room(&self.wanted, from.x.device())?,
            };
            return Ok(host_gradients(frame.count(), from, room));
        }
        match self.norm.device_gradients(from, &self.wanted)? {
            Some(gradients) => Ok(gradients),
            None => frame::gradients(&frame, true, from, &self.wanted),
        }
    }
}

/// Memory for the gradients, with the calls that torch makes before and beside. Rows have `size` elements.
fn shown_room(
    wanted: &Wanted,
    from: Normalized<'_>,
    bias: Option<&Tensor>,
    size: usize,
) -> Result<Gradients> {
    let _x = from.x.contiguous()?;
    let (mut room, rows) = ([None, None, None], given(from.mean).numel());
    for ((room, spec), parameter) in room.iter_mut().zip(wanted).zip([None, from.weight, bias]) {
        let Some(spec) = spec else { continue };
        *room = Some(match parameter.filter(|_| rows == 0) {
            Some(parameter) => {
                let zeros = parameter.empty_in(MemoryFormat::Contiguous)?;
                zeros.zero_()?;
                zeros
            }
            None => shown::empty_in(&spec.shape, spec.dtype, shown::CONTIGUOUS)?,
        });
    }
    if rows > 0 {
        let _grad = from.grad.contiguous()?;
        let sums = shown::empty_output(from.x.dtype())?;
        if wanted[1].is_some() || wanted[2].is_some() {
            shown::grown(&sums, &[2, shown::THREADS, size], Argument::None)?.zero_()?;
        }
    }
    Ok(room)
}

/// Fills `gradients` for input, weight and bias on the host. Rows have `size` elements.
pub(super) fn host_gradients(size: usize, from: Normalized<'_>, gradients: Gradients) -> Gradients {
    let grad = from.grad;
    let saved = [Some(from.x), from.weight, from.mean, from.scale];
    let (reading, readings) = (grad.read(), saved.map(|tensor| tensor.map(Tensor::read)));
    let [elements, weight, mean, scale] = std::array::from_fn(|i| {
        saved[i].zip(readings[i].as_ref()).map(|(tensor, reading)| tensor.elements(reading))
    });
    let given = "a node keeps its input and the scale";
    let of = normalization::Normalized {
        x: elements.expect(given),
        size,
        weight,
        mean,
        scale: scale.expect(given),
    };
    let mut writings: Vec<_> = gradients.iter().map(|tensor| tensor.as_ref().map(Tensor::write)).collect();
    let mut outputs = gradients.iter().zip(&mut writings).map(|(tensor, writing)| {
        tensor.as_ref().zip(writing.as_mut()).map(|(tensor, writing)| tensor.elements_mut(writing))
    });
    let outputs = std::array::from_fn(|_| outputs.next().flatten());
    normalization::norm_backward(grad.elements(&reading), of, outputs);
    drop(writings);
    gradients
}

/// Refuses a shape to normalize over that is not how the tensor's ends.
pub(super) fn check_normalized(op: &'static str, x: &Tensor, normalized: &[usize]) -> Result<()> {
    if !normalized.is_empty() && x.shape().ends_with(normalized) {
        return Ok(());
    }
    let text = format_args!(
        "expects at least one dimension to normalize, as the input's shape {:?} ends, not {normalized:?}",
        x.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

impl Tensor {
    /// Elements without the mean and spread over the last dimensions, which are of shape
    /// `normalized`, times a weight and plus a bias of that shape.
    pub fn layer_norm(
        &self,
        normalized: &[usize],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::layer_norm";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Ints(&sizes(normalized)));
            [weight, bias].each(|tensor| visit(tensor.into_argument()));
            visit(Argument::Float(epsilon));
            visit(Argument::Bool(true));
        });
        check_normalized(NAME, self, normalized).map_err(|error| {
            let sizes = sizes(normalized);
            let [weight, bias] =
                [weight, bias].map(|one| one.map_or(Argument::None, |one| Argument::Tensor(one.argument())));
            let more = [Argument::Ints(&sizes), weight, bias, Argument::Float(epsilon)];
            shown::failed(NativeLayerNorm::NAME, [self], &more, error)
        })?;
        let op = NativeLayerNorm { dims: normalized.len(), epsilon };
        let [out, _, _] = op.call([Some(self), weight, bias])?;
        Ok(out)
    }
}
