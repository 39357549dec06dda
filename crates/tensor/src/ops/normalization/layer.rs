//! Layer normalization: a group is what the last dimensions hold.

use super::frame::{self, Statistics, given};
use super::{Affine, Frame};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::ops::sizes;
use crate::{Backward, Cause, Error, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
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
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Affine<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        const NAME: &str = "aten::native_layer_norm_backward";
        let frame = self.frame(ctx.saved(0).shape());
        let saved = [0, 1, 4, 5].map(|i| ctx.optional(i));
        if !is_grad_enabled() && ctx.grad().device().is_cpu() {
            let [x, weight, mean, scale] = saved;
            let _span = composite(NAME, [Some(ctx.grad()), x, mean, scale, weight], |_| {});
            return host_gradients(frame.count(), ctx, 3, saved);
        }
        let statistics = Statistics::Own { epsilon: self.epsilon };
        frame::gradients(NAME, &frame, statistics, ctx, saved)
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
        frame::infer(Self::NAME, &self.frame(x.shape()), inputs, &x.shape()[x.dim() - self.dims..])
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

/// The gradients for the first `inputs` of input, weight and bias, as host tensors without derivatives.
/// Rows have `size` elements; `saved` is input, weight, and the mean and scale of rows.
pub(super) fn host_gradients(
    size: usize,
    ctx: &Backward<'_>,
    inputs: usize,
    saved: [Option<&Tensor>; 4],
) -> Result<Grads> {
    let (x, grad) = (given(saved[0]), ctx.grad());
    let mut gradients = Grads::new();
    for at in 0..inputs {
        let wanted = ctx.needs(at).then(|| Tensor::uninit(ctx.shape(at), ctx.dtype(at), x.device()));
        gradients.push(wanted.transpose()?);
    }
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
    Ok(gradients)
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
        let _span = composite(NAME, [Some(self), weight, bias], |visit| visit(Argument::Float(epsilon)));
        check_normalized(NAME, self, normalized)?;
        let op = NativeLayerNorm { dims: normalized.len(), epsilon };
        let [out, _, _] = op.call([Some(self), weight, bias])?;
        Ok(out)
    }
}
