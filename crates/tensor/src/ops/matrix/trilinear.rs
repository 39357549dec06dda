//! Products of three tensors, summed over some of their dimensions: what a bilinear layer is made of.

use super::einsum::sum_product;
use crate::autograd::Saves;
use crate::ops::sizes;
use crate::{Backward, Cause, Error, Forward, Grads, Op, Result, Tensor, grads};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::Dims;

/// Three tensors multiplied and summed over dimensions, after dimensions of size 1 were added to each.
#[derive(Clone, Debug)]
pub struct Trilinear {
    /// The dimensions that are added to each.
    pub expand: [Dims; 3],
    /// The dimensions that are summed over, and go.
    pub sum: Dims,
    /// The dimension that torch goes along step by step.
    pub unroll: usize,
}

impl Op for Trilinear {
    const NAME: &'static str = "aten::_trilinear";
    const BACKWARD: &'static str = "TrilinearBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    /// The same with the gradient in the place of the operand that it is for.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let inputs = [0, 1, 2].map(|i| ctx.saved(i));
        let gradient = |of: usize| {
            let (mut expand, mut inputs) = (self.expand.clone(), inputs);
            let sum = std::mem::replace(&mut expand[of], self.sum.clone());
            inputs[of] = ctx.grad();
            Trilinear { expand, sum, unroll: self.unroll }.call(inputs)
        };
        grads!(ctx; gradient(0)?, gradient(1)?, gradient(2)?)
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        self.expand.iter().for_each(|dims| visit(Argument::Ints(&sizes(dims))));
        visit(Argument::Ints(&sizes(&self.sum)));
        visit(Argument::Int(self.unroll as i64));
    }
}

impl Forward for Trilinear {
    fn forward(&self, inputs: [&Tensor; 3]) -> Result<Tensor> {
        let rank = inputs[0].dim() + self.expand[0].len();
        if inputs.iter().zip(&self.expand).any(|(x, dims)| x.dim() + dims.len() != rank) {
            let shapes = inputs.map(Tensor::shape);
            let text = format_args!("shapes {shapes:?} with {:?} added are not of one rank", self.expand);
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let [a, b, c] = self.expanded(inputs, rank)?;
        let size = |dim: usize| {
            [&a, &b, &c]
                .iter()
                .map(|x| x.shape()[dim])
                .fold(1, |one, size| if size == 1 { one } else { size })
        };
        let shape: Dims = (0..rank).map(|dim| if self.sum.contains(&dim) { 1 } else { size(dim) }).collect();
        let out = Tensor::zeros(&shape, (a.dtype(), a.device()))?;
        if [&a, &b, &c].iter().all(|x| x.numel() > 0) {
            match observe::is_watched() && a.device().is_cpu() {
                true => self.step_by_step([&a, &b, &c], size(self.unroll), &out)?,
                false => self.at_once([&a, &b, &c], &out)?,
            }
        }
        let mut out = out;
        for &dim in self.sum.iter().rev() {
            out = out.squeeze_own(dim as isize)?;
        }
        Ok(out)
    }
}

impl Trilinear {
    fn expanded(&self, inputs: [&Tensor; 3], rank: usize) -> Result<[Tensor; 3]> {
        let mut expanded = inputs.map(Tensor::clone);
        for dim in 0..rank {
            for (x, added) in expanded.iter_mut().zip(&self.expand) {
                if added.contains(&dim) {
                    *x = x.unsqueeze(dim as isize)?;
                }
            }
        }
        Ok(expanded)
    }

    /// Dimensions that the first two operands are summed over before the third comes in, and the others.
    fn sums(&self) -> [Dims; 2] {
        let sums = |with_third: bool| -> Dims {
            let of = |&&dim: &&usize| dim != self.unroll && self.expand[2].contains(&dim) != with_third;
            self.sum.iter().filter(of).copied().collect()
        };
        [sums(false), sums(true)]
    }

    /// As torch does it, one index of a dimension after the other.
    fn step_by_step(&self, [a, b, c]: [&Tensor; 3], steps: usize, out: &Tensor) -> Result<()> {
        let [first, second] = self.sums();
        let at = |x: &Tensor, step: usize, of: usize| {
            let step = if self.expand[of].contains(&self.unroll) { 0 } else { step };
            x.narrow(self.unroll as isize, step as isize, 1)
        };
        let mut kept = Vec::new();
        for step in 0..steps {
            let right = at(b, step, 1)?;
            let product = sum_product(&at(a, step, 0)?, &right, &first)?;
            let product = [sum_product(&product, &at(c, step, 2)?, &second)?, product];
            match self.sum.contains(&self.unroll) {
                true => out.add_(&product[0])?,
                false => out.narrow(self.unroll as isize, step as isize, 1)?.add_(&product[0])?,
            }
            kept.push(product);
        }
        Ok(())
    }

    /// The same numbers by two products; only sums along that dimension are left to steps.
    fn at_once(&self, [a, b, c]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        let [first, second] = self.sums();
        let product = sum_product(&sum_product(a, b, &first)?, c, &second)?;
        if !self.sum.contains(&self.unroll) {
            return out.add_(&product);
        }
        for step in 0..product.shape()[self.unroll] as isize {
            out.add_(&product.narrow(self.unroll as isize, step, 1)?)?;
        }
        Ok(())
    }
}
