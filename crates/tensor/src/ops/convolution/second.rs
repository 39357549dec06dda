//! Derivatives of a convolution's gradients. It is linear in input and weight, so each is again a convolution.

use super::backward::cut;
use super::{Convolution, spread};
use crate::{Op, Result, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// What gradients of a convolution were made of, and the gradients that came to them.
pub(super) struct Again<'a> {
    pub(super) how: &'a Convolution,
    pub(super) grad: &'a Tensor,
    pub(super) x: &'a Tensor,
    pub(super) weight: &'a Tensor,
    /// The gradients of those of input, weight and bias.
    pub(super) to: [Option<&'a Tensor>; 3],
}

impl Again<'_> {
    /// The gradients of gradient, input and weight that are wanted.
    pub(super) fn gradients(&self, wanted: [bool; 3]) -> Result<[Option<Tensor>; 3]> {
        let [to_x, to_weight, to_bias] = self.to;
        let tensors = [to_x, to_weight, to_bias, Some(self.grad), Some(self.weight), Some(self.x)];
        let _span = composite("aten::_convolution_double_backward", tensors, |visit| {
            self.how.visit_numbers(visit);
            visit(Argument::Bools(&wanted));
        });
        let of_gradient = if wanted[0] { self.of_gradient()? } else { None };
        let of_weight = to_x.filter(|_| wanted[2]).map(|to_x| self.of_weight(to_x)).transpose()?;
        let of_x = to_weight.filter(|_| wanted[1]).map(|to_weight| self.of_input(to_weight)).transpose()?;
        Ok([of_gradient, of_x, of_weight])
    }

    /// The convolution with all numbers told.
    fn in_full(&self) -> Convolution {
        Convolution { short: false, ..self.how.clone() }
    }

    fn of_gradient(&self) -> Result<Option<Tensor>> {
        let [to_x, to_weight, to_bias] = self.to;
        let convolve = |x: &Tensor, weight: &Tensor| self.in_full().call(([x, weight], None));
        let through_x = to_x.map(|to_x| convolve(to_x, self.weight)).transpose()?;
        let through_weight = to_weight.map(|to_weight| convolve(self.x, to_weight)).transpose()?;
        let found = joined(through_x, through_weight)?;
        let per_channel = |bias: &Tensor| {
            let mut shape = Dims::from_elem(1, self.grad.dim());
            shape[1] = bias.numel();
            bias.view(shape)?.expand(self.grad.shape())
        };
        joined(found, to_bias.map(per_channel).transpose()?)
    }

    /// Samples in the role of channels, and stride and dilation exchanged.
    fn of_weight(&self, to_x: &Tensor) -> Result<Tensor> {
        let groups = self.how.groups;
        let exchanged = Convolution {
            stride: self.how.dilation.clone(),
            dilation: self.how.stride.clone(),
            transposed: false,
            groups: 1,
            ..self.in_full()
        };
        let convolve = |to_x: &Tensor, grad: &Tensor| {
            let pair = if self.how.transposed { [grad, to_x] } else { [to_x, grad] };
            exchanged.clone().call((pair, None))
        };
        let grad = self.grad.transpose(0, 1)?;
        let to_x = to_x.transpose(0, 1)?;
        let found = if groups == 1 {
            convolve(&to_x, &grad)?
        } else {
            let part = |x: &Tensor, group: usize| {
                let size = x.shape()[0] / groups;
                x.narrow(0, (group * size) as isize, size)
            };
            let of_group = |group| {
                let to_x = part(&to_x, group)?;
                convolve(&to_x, &part(&grad, group)?)
            };
            let parts = (0..groups).map(of_group).collect::<Result<Vec<_>>>()?;
            Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1)?
        };
        cut(found.transpose(0, 1)?, &self.weight.shape()[2..])
    }

    /// The same windows the other way round.
    fn of_input(&self, to_weight: &Tensor) -> Result<Tensor> {
        let mut back = Convolution { transposed: !self.how.transposed, ..self.in_full() };
        if back.transposed {
            for dim in 0..back.rank() {
                let numbers =
                    [to_weight.shape()[dim + 2], back.stride[dim], back.padding[dim], back.dilation[dim]];
                let size = spread(self.grad.shape()[dim + 2], numbers, 0).unwrap_or(0);
                back.output_padding[dim] = self.x.shape()[dim + 2].saturating_sub(size);
            }
        }
        cut(back.call(([self.grad, to_weight], None))?, &self.x.shape()[2..])
    }
}

/// The sum of what there is of two tensors.
fn joined(first: Option<Tensor>, second: Option<Tensor>) -> Result<Option<Tensor>> {
    match (first, second) {
        (Some(first), Some(second)) => first.add(&second).map(Some),
        (first, second) => Ok(first.or(second)),
    }
}
