//! Gradients of convolutions: a kernel on the host, convolutions in other roles elsewhere.

use super::{Convolution, shown, spread};
use crate::autograd::Saves;
use crate::op::{Table, device_of};
use crate::ops::{check_gradient, sizes};
use crate::{Backward, Forward, Grads, Key, Op, Output as _, Result, Spec, Tensor};
use cresset_dispatch::observe::{self, Argument};
use cresset_dispatch::site;
use cresset_kernels::convolution::{self, Channels};
use cresset_kernels::{Dims, View, ViewMut};

/// The gradients of a [`Convolution`] for input, weight and bias, given that of its output: those that are
/// wanted, in this order.
#[derive(Clone, Debug)]
pub struct ConvolutionBackward {
    /// What was convolved how.
    pub convolution: Convolution,
    /// Which gradients are wanted: of input, weight and bias.
    pub wanted: [bool; 3],
    /// The size of the bias; 0 if there was none.
    pub bias: usize,
}

/// Fills the gradients of input, weight and bias that are wanted, on a device.
pub type ConvolutionBackwardFn =
    for<'a> fn(&ConvolutionBackward, [&'a Tensor; 3], &[Option<Tensor>; 3]) -> Result<()>;

impl ConvolutionBackward {
    /// Kernels plugged in by devices. One that has none convolves in other roles.
    pub fn table() -> &'static Table<ConvolutionBackwardFn> {
        static TABLE: Table<ConvolutionBackwardFn> = Table::new();
        &TABLE
    }
}

impl Op for ConvolutionBackward {
    const NAME: &'static str = "aten::convolution_backward";
    const BACKWARD: &'static str = "ConvolutionBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The gradient, the input, and the weight.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Vec<Tensor>;

    /// A convolution is linear in input and weight, so that each gradient is again a convolution in one of
    /// its roles.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, weight) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
        let mut outputs = 0..;
        let [to_x, to_weight, to_bias] =
            self.wanted.map(|wanted| wanted.then(|| ctx.grad_of(outputs.next().unwrap_or(0))));
        let one = |wanted, inputs: [&Tensor; 3]| -> Result<Option<Tensor>> {
            let op = ConvolutionBackward { convolution: self.convolution.clone(), wanted, bias: self.bias };
            Ok(op.call(inputs)?.pop())
        };
        let mut grads = Grads::new();
        grads.push(if ctx.needs(0) {
            self.to_gradient([to_x, to_weight, to_bias], [grad, x, weight])?
        } else {
            None
        });
        grads.push(match to_weight {
            Some(to_weight) if ctx.needs(1) => one([true, false, false], [grad, x, to_weight])?,
            _ => None,
        });
        grads.push(match to_x {
            Some(to_x) if ctx.needs(2) => one([false, true, false], [grad, to_x, weight])?,
            _ => None,
        });
        Ok(grads)
    }

    fn arguments(&self, [grad, x, weight]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        let how = &self.convolution;
        [grad, x, weight].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Ints(&[self.bias as i64]));
        visit(Argument::Ints(&sizes(&how.stride)));
        visit(Argument::Ints(&sizes(&how.padding)));
        visit(Argument::Ints(&sizes(&how.dilation)));
        visit(Argument::Bool(how.transposed));
        visit(Argument::Ints(&sizes(&how.output_padding)));
        visit(Argument::Int(how.groups as i64));
        visit(Argument::Bools(&self.wanted));
    }
}

impl ConvolutionBackward {
    /// What the gradient gets of the gradients of what was made from it.
    fn to_gradient(
        &self,
        [to_x, to_weight, to_bias]: [Option<&Tensor>; 3],
        [grad, x, weight]: [&Tensor; 3],
    ) -> Result<Option<Tensor>> {
        let convolve = |x, weight, bias| self.convolution.clone().call(([x, weight], bias));
        let through_x = match (to_x, to_bias) {
            (Some(to_x), bias) => Some(convolve(to_x, weight, bias)?),
            (None, Some(bias)) => {
                let mut shape = Dims::from_elem(1, grad.dim());
                shape[1] = bias.numel();
                Some(bias.reshape(shape)?.expand(grad.shape())?)
            }
            (None, None) => None,
        };
        match (through_x, to_weight) {
            (Some(through), Some(to_weight)) => Ok(Some(through.add(&convolve(x, to_weight, None)?)?)),
            (None, Some(to_weight)) => Ok(Some(convolve(x, to_weight, None)?)),
            (through, None) => Ok(through),
        }
    }

    fn check(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<()> {
        let expected = self.convolution.infer(Self::NAME, ([x, weight], None))?;
        check_gradient(Self::NAME, grad, &expected)
    }

    /// The gradients, made by kernels of the host.
    fn on_host(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<Vec<Tensor>> {
        let watched = observe::is_watched() && x.numel() > 0 && weight.numel() > 0;
        let room =
            if watched { shown::backward(self, [grad, x, weight])? } else { self.room([grad, x, weight])? };
        if !watched {
            self.fill_on_host([grad, x, weight], &room)?;
        }
        Ok(room.into_iter().flatten().collect())
    }

    /// Memory for the gradients that are wanted.
    fn room(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<[Option<Tensor>; 3]> {
        let specs = [Spec::like(x), Spec::like(weight), Spec::new([grad.shape()[1]], grad.dtype())];
        let mut room = [None, None, None];
        for (at, spec) in specs.into_iter().enumerate().filter(|(at, _)| self.wanted[*at]) {
            room[at] = Some(Tensor::allocate(spec, grad.device()).map_err(|error| error.in_op(Self::NAME))?);
        }
        Ok(room)
    }

    /// Fills the gradients that there is room for, of input, weight and bias.
    pub(super) fn fill_on_host(
        &self,
        [grad, x, weight]: [&Tensor; 3],
        [to_x, to_weight, to_bias]: &[Option<Tensor>; 3],
    ) -> Result<()> {
        let how = &self.convolution;
        let (x_shape, grad_shape) = (x.shape(), grad.shape());
        let Channels { groups, inputs, outputs } = how.channels(Self::NAME, x, weight)?;
        // What a transposed convolution spreads, its gradients gather, and the other way round.
        let (large, small) = if how.transposed { (grad_shape, x_shape) } else { (x_shape, grad_shape) };
        let window = how.window(large, weight.shape(), small);
        let back = Channels { groups, inputs: outputs, outputs: inputs };
        let (grad_lock, x_lock, weight_lock) = (grad.read(), x.read(), weight.read());
        let (grad_view, x_view, weight_view) =
            (grad.elements(&grad_lock), x.elements(&x_lock), weight.elements(&weight_lock));
        if let Some(out) = to_x {
            let fill: fn(View<'_>, View<'_>, Option<View<'_>>, Channels, &_, ViewMut<'_>) =
                if how.transposed { convolution::convolve } else { convolution::convolve_transposed };
            fill(grad_view, weight_view, None, back, &window, out.elements_mut(&mut out.write()));
        }
        if let Some(out) = to_weight {
            let mut writing = out.write();
            let out = out.elements_mut(&mut writing);
            let channels = if how.transposed { back } else { Channels { groups, inputs, outputs } };
            let (rows, columns) = if how.transposed { (x_view, grad_view) } else { (grad_view, x_view) };
            convolution::convolve_weights(rows, columns, channels, &window, out);
        }
        if let Some(out) = to_bias {
            convolution::sum_channels(grad_view, out.elements_mut(&mut out.write()));
        }
        Ok(())
    }
}

impl Forward for ConvolutionBackward {
    fn forward(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<Vec<Tensor>> {
        self.check([grad, x, weight])?;
        if [grad, x, weight].iter().all(|tensor| tensor.device().key == Key::CPU) {
            return self.on_host([grad, x, weight]);
        }
        if let Some(kernel) = Self::table().get(grad.device().key)
            && grad.dtype().is_float()
            && [grad, x, weight].iter().all(|tensor| tensor.numel() > 0)
        {
            device_of(Self::NAME, [grad, x, weight])?;
            let room = self.room([grad, x, weight])?;
            let _site = site::enter(Self::NAME);
            kernel(self, [grad, x, weight], &room).map_err(|error| error.in_op(Self::NAME))?;
            return Ok(room.into_iter().flatten().collect());
        }
        let mut grads = Vec::new();
        if self.wanted[0] {
            grads.push(input_gradient(&self.convolution, grad, x.shape(), weight)?);
        }
        if self.wanted[1] {
            grads.push(weight_gradient(&self.convolution, grad, x, weight.shape())?);
        }
        if self.wanted[2] {
            let others: Vec<isize> = (0..grad.dim() as isize).filter(|&dim| dim != 1).collect();
            grads.push(grad.sum_dims(&others, false)?);
        }
        Ok(grads)
    }
}

/// The gradient for the input: the same windows the other way round.
fn input_gradient(how: &Convolution, grad: &Tensor, x: &[usize], weight: &Tensor) -> Result<Tensor> {
    let mut back = Convolution { transposed: !how.transposed, ..how.clone() };
    if back.transposed {
        for dim in 0..how.rank() {
            let numbers = [weight.shape()[dim + 2], how.stride[dim], how.padding[dim], how.dilation[dim]];
            let size = spread(grad.shape()[dim + 2], numbers, 0).unwrap_or(0);
            back.output_padding[dim] = x[dim + 2].saturating_sub(size);
        }
    } else {
        back.output_padding.fill(0);
    }
    cut(back.call(([grad, weight], None))?, &x[2..])
}

/// The gradient for the weight: input and gradient in the roles of input and weight, samples
/// in the role of channels, and stride and dilation exchanged.
fn weight_gradient(how: &Convolution, grad: &Tensor, x: &Tensor, weight: &[usize]) -> Result<Tensor> {
    let (large, small) = if how.transposed { (grad, x) } else { (x, grad) };
    let (samples, groups) = (large.shape()[0], how.groups);
    let split: Dims =
        [samples, groups, large.shape()[1] / groups].iter().chain(&large.shape()[2..]).copied().collect();
    let merged: Dims =
        [large.shape()[1] / groups, groups * samples].iter().chain(&large.shape()[2..]).copied().collect();
    let large = large.reshape(split)?.transpose(0, 2)?.reshape(merged)?;
    let exchanged = Convolution {
        stride: how.dilation.clone(),
        dilation: how.stride.clone(),
        transposed: false,
        output_padding: Dims::from_elem(0, how.rank()),
        ..how.clone()
    };
    let out = exchanged.call(([&large, &small.transpose(0, 1)?], None))?;
    cut(out.transpose(0, 1)?, &weight[2..])
}

/// `x` without what its last sizes have more than wanted.
fn cut(x: Tensor, wanted: &[usize]) -> Result<Tensor> {
    let first = x.dim() - wanted.len();
    let mut x = x;
    for (dim, &size) in (first..).zip(wanted) {
        if x.shape()[dim] > size {
            x = x.narrow(dim as isize, 0, size)?;
        }
    }
    Ok(x)
}
