//! Layer normalization: a group is what the last dimensions hold.

use super::frame::{self, Statistics, given};
use super::{Affine, Frame, Normalization};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::ops::sizes;
use crate::{
    Backward, Cause, Error, Grads, Inputs as _, Kernel, MemoryFormat, Op, Result, Spec, Tensor, composite,
    shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::normalization::{self, Normalized};

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
        const NAME: &str = "aten::native_layer_norm_backward";
        let frame = self.frame(ctx.saved(0).shape());
        let saved = [0, 1, 4, 5].map(|i| ctx.optional(i));
        let [x, weight, mean, scale] = saved;
        let _span = composite(NAME, [ctx.grad(), given(x)], |visit| {
            visit(Argument::Ints(&sizes(&given(x).shape()[given(x).dim() - self.dims..])));
            [mean, scale, weight, ctx.optional(2)].each(|tensor| visit(tensor.into_argument()));
            visit(Argument::Bools(&frame::wanted(ctx)));
        });
        if !is_grad_enabled() && ctx.grad().device().is_cpu() {
            let room =
                if observe::is_watched() { shown_room(ctx, frame.count())? } else { frame::room(ctx)? };
            return Ok(host_gradients(frame.count(), ctx, saved, room.into_iter().collect()));
        }
        if let Some(gradients) = self.device_gradients(ctx, saved)? {
            return Ok(gradients);
        }
        frame::gradients(&frame, Statistics::Own { epsilon: self.epsilon }, ctx, saved)
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

/// Memory for the gradients, with the calls that torch makes before and beside. Rows have `size` elements.
fn shown_room(ctx: &Backward<'_>, size: usize) -> Result<[Option<Tensor>; 3]> {
    let _x = ctx.saved(0).contiguous()?;
    let (mut room, rows) = ([None, None, None], ctx.saved(4).numel());
    for (at, room) in room.iter_mut().enumerate().filter(|(at, _)| ctx.needs(*at)) {
        *room = Some(match (rows, ctx.optional(at)) {
            (0, Some(parameter)) if at > 0 => parameter.empty_in(MemoryFormat::Contiguous)?,
            _ => shown::empty_in(ctx.shape(at), ctx.dtype(at), shown::CONTIGUOUS)?,
        });
        if let (0, Some(room), true) = (rows, &room, at > 0) {
            room.zero_()?;
        }
    }
    if rows > 0 {
        let _grad = ctx.grad().contiguous()?;
        let sums = shown::empty_output(ctx.saved(0).dtype())?;
        if ctx.needs(1) || ctx.needs(2) {
            shown::grown(&sums, &[2, shown::THREADS, size], Argument::None)?.zero_()?;
        }
    }
    Ok(room)
}

/// Fills `gradients` for input, weight and bias, as host tensors without derivatives. Rows have `size`
/// elements; `saved` is input, weight, and the mean and scale of rows.
pub(super) fn host_gradients(
    size: usize,
    ctx: &Backward<'_>,
    saved: [Option<&Tensor>; 4],
    gradients: Grads,
) -> Grads {
    let grad = ctx.grad();
    let (reading, readings) = (grad.read(), saved.map(|tensor| tensor.map(Tensor::read)));
    let [elements, weight, mean, scale] = std::array::from_fn(|i| {
        saved[i].zip(readings[i].as_ref()).map(|(tensor, reading)| tensor.elements(reading))
    });
    let given = "a node keeps its input and the scale";
    let of = Normalized { x: elements.expect(given), size, weight, mean, scale: scale.expect(given) };
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
