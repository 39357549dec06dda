//! Windows that slide along a dimension.

use super::sizes;
use crate::{Backward, Cause, Error, Forward, Grads, Op, Result, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Windows along a dimension; what a window holds becomes the last dimension.
#[derive(Clone, Debug)]
pub struct Unfold {
    /// The dimension that windows slide along.
    pub dim: usize,
    /// How much a window holds.
    pub size: usize,
    /// From one window to the next.
    pub step: usize,
}

impl Unfold {
    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Int(self.size as i64));
        visit(Argument::Int(self.step as i64));
    }
}

impl Op for Unfold {
    const NAME: &'static str = "aten::unfold";
    const BACKWARD: &'static str = "UnfoldBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; UnfoldBackward { windows: self.clone(), shape: ctx.shape(0).into() }.call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        self.attributes(visit);
    }
}

impl Forward for Unfold {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let line = x.layout().view(&[1]).filter(|_| x.dim() == 0);
        let layout = line.as_ref().unwrap_or(x.layout());
        let fits = layout.shape().get(self.dim).is_some_and(|size| self.size <= *size);
        let windows = (fits && self.step > 0).then(|| layout.windows(self.dim, self.size, self.step));
        let Some(windows) = windows.flatten() else {
            let text = format_args!(
                "windows of {} every {} along dimension {} of shape {:?}; expected a size of at most the dimension's, and a step",
                self.size,
                self.step,
                self.dim,
                x.shape()
            );
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        };
        if x.dim() == 0 {
            // What has no dimensions becomes the one window that it fills.
            return x.as_layout(windows.select(0, 0));
        }
        x.as_layout(windows)
    }
}

/// The sum of windows where they came from.
#[derive(Clone, Debug)]
pub struct UnfoldBackward {
    /// How the windows lie.
    pub windows: Unfold,
    /// The shape of the whole.
    pub shape: Dims,
}

impl Op for UnfoldBackward {
    const NAME: &'static str = "aten::unfold_backward";
    const BACKWARD: &'static str = "UnfoldBackwardBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.windows.clone().call([ctx.grad()])?)
    }

    fn arguments(&self, [grad]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(grad.argument()));
        visit(Argument::Ints(&sizes(&self.shape)));
        self.windows.attributes(visit);
    }
}

impl Forward for UnfoldBackward {
    fn forward(&self, [grad]: [&Tensor; 1]) -> Result<Tensor> {
        let zeros = Tensor::zeros(&self.shape, (grad.dtype(), grad.device()))?;
        if self.shape.is_empty() {
            // Its only window held the element, or nothing.
            return if grad.numel() == 0 { Ok(zeros) } else { grad.reshape(())?.copy() };
        }
        let Unfold { dim, size, step } = self.windows;
        let count = grad.shape()[dim];
        let places: Vec<i64> =
            (0..count).flat_map(|window| (0..size).map(move |at| (window * step + at) as i64)).collect();
        let places = Tensor::from_slice(&places, [places.len()])?.to(grad.device())?;
        // The elements of a window next to its number, then both as one dimension.
        let rows = grad.movedim(&[-1], &[dim as isize + 1])?.flatten(dim as isize, dim as isize + 1)?;
        zeros.index_add(dim as isize, &places, &rows)
    }
}

impl Tensor {
    /// Windows of `size` along dimension `dim`, one every `step`, without copying. What a window
    /// holds becomes the last dimension.
    pub fn unfold(&self, dim: isize, size: usize, step: usize) -> Result<Tensor> {
        Unfold { dim: self.dim_index(Unfold::NAME, dim)?, size, step }.call([self])
    }
}
