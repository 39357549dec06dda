//! Gradients of convolutions: a kernel on the host, convolutions in other roles elsewhere.

use super::second::Again;
use super::{Convolution, shown, spread};
use crate::autograd::Saves;
use crate::op::{Table, device_of};
use crate::ops::check_gradient;
use crate::{Backward, Forward, Grads, Key, Op, Output as _, Result, Spec, Tensor};
use cresset_dispatch::observe::{self, Argument};
use cresset_dispatch::site;
use cresset_kernels::convolution::{self, Channels};
use cresset_kernels::{Dims, View, ViewMut};

/// The gradients of a [`Convolution`] for input, weight and bias, given that of its output: those that are
/// wanted.
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
    const TAKES_MISSING: bool = true;
    /// The gradient, the input, and the weight.
    type Inputs<'a> = [&'a Tensor; 3];
    /// The gradients of input, weight and bias that are wanted.
    type Output = [Option<Tensor>; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let again = Again {
            how: &self.convolution,
            grad: ctx.saved(0),
            x: ctx.saved(1),
            weight: ctx.saved(2),
            to: [0, 1, 2].map(|i| ctx.grad_if_any(i)),
        };
        Ok(again.gradients([0, 1, 2].map(|i| ctx.needs(i)))?.into_iter().collect())
    }

    fn arguments(&self, [grad, x, weight]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        let how = &self.convolution;
        [grad, x, weight].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Ints(&[self.bias as i64]));
        how.visit_numbers(visit);
        visit(Argument::Bools(&self.wanted));
    }
}

impl ConvolutionBackward {
    fn check(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<()> {
        let expected = self.convolution.infer(Self::NAME, ([x, weight], None))?;
        check_gradient(Self::NAME, grad, &expected)
    }

    /// The gradients, made by kernels of the host.
    fn on_host(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<[Option<Tensor>; 3]> {
        let watched = observe::is_watched() && x.numel() > 0 && weight.numel() > 0;
        let room =
            if watched { shown::backward(self, [grad, x, weight])? } else { self.room([grad, x, weight])? };
        if !watched {
            self.fill_on_host([grad, x, weight], &room)?;
        }
        Ok(room)
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
    fn forward(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<[Option<Tensor>; 3]> {
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
            return Ok(room);
        }
        let [to_x, to_weight, to_bias] = self.wanted;
        let others: Vec<isize> = (0..grad.dim() as isize).filter(|&dim| dim != 1).collect();
        Ok([
            to_x.then(|| input_gradient(&self.convolution, grad, x.shape(), weight)).transpose()?,
            to_weight.then(|| weight_gradient(&self.convolution, grad, x, weight.shape())).transpose()?,
            to_bias.then(|| grad.sum_dims(&others, false)).transpose()?,
        ])
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
pub(super) fn cut(x: Tensor, wanted: &[usize]) -> Result<Tensor> {
    let first = x.dim() - wanted.len();
    let mut x = x;
    for (dim, &size) in (first..).zip(wanted) {
        if x.shape()[dim] > size {
            x = x.narrow(dim as isize, 0, size)?;
        }
    }
    Ok(x)
}
