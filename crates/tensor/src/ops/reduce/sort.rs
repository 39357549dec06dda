//! Sorting, and elements by their rank, with their indices.

use super::{as_vector, check_dims, selected};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, NamedDim, Op, Result, Spec, Tensor, composite,
    grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, View, ViewMut, order};

/// A tensor sorted along a dimension, and where its elements were.
#[derive(Clone, Debug)]
pub struct Sort {
    /// Which dimension.
    pub dim: NamedDim,
    /// Whether the largest come first. NaN counts as largest.
    pub descending: bool,
    /// Whether equal elements stay in order; they need not, if nothing is said.
    pub stable: Option<bool>,
}

/// The largest or smallest elements along a dimension, and where they were.
#[derive(Clone, Debug)]
pub struct Topk {
    /// How many.
    pub count: usize,
    /// Along which dimension.
    pub dim: NamedDim,
    /// Whether the largest are wanted, or the smallest.
    pub largest: bool,
    /// Whether the best come first.
    pub sorted: bool,
}

fn values_and_indices(x: &Tensor, shape: Dims) -> [Spec; 2] {
    [Spec { shape: shape.clone(), dtype: x.dtype() }, Spec { shape, dtype: DType::I64 }]
}

/// Fills `indices` by a kernel that ranks elements along `dim`, and `values` by what they name.
pub(in crate::ops) fn rank(
    x: &Tensor,
    dim: usize,
    [values, indices]: &[Tensor; 2],
    run: impl FnOnce(View<'_>, ViewMut<'_>),
) -> Result<()> {
    let (x, values, indices) = (as_vector(x)?, as_vector(values)?, as_vector(indices)?);
    let reading = x.read();
    run(x.elements(&reading), indices.elements_mut(&mut indices.write()));
    let picking = indices.read();
    let mut writing = values.write();
    order::pick(x.elements(&reading), dim, indices.elements(&picking), values.elements_mut(&mut writing));
    Ok(())
}

impl Op for Sort {
    const NAME: &'static str = "aten::sort";
    const BACKWARD: &'static str = "SortBackward0";
    const SAVES: Saves = Saves::Outputs;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; selected(ctx.grad(), self.dim, ctx.saved(1), ctx.shape(0), true)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        if let Some(stable) = self.stable {
            visit(Argument::Bool(stable));
        }
        visit(self.dim.argument());
        visit(Argument::Bool(self.descending));
    }

    fn backward_name(&self, _: [&Tensor; 1]) -> &'static str {
        if self.stable.is_some() { "SortBackward1" } else { Self::BACKWARD }
    }
}

impl Kernel for Sort {
    kernel_table!(Sort);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
        check_dims(Self::NAME, &[*self.dim], x)?;
        Ok(values_and_indices(x, x.shape().into()))
    }

    /// Torch sorts a copy, and with it the numbers of the elements.
    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 2]>> {
        let sorted = || {
            let [values, indices] = self.room([x])?;
            values.copy_(x)?;
            if x.dim() == 0 {
                indices.zero_()?;
            } else if x.numel() > 0 {
                show_numbered(&indices, *self.dim)?;
            }
            let outputs = [values, indices];
            self.fill([x], &outputs, Device::CPU)?;
            Ok(outputs)
        };
        if self.stable.is_some() {
            return sorted().map(Some);
        }
        let more = [Argument::Bool(false), self.dim.argument(), Argument::Bool(self.descending)];
        shown::within(Self::NAME, [x], &more, sorted).map(Some)
    }

    fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
        let how = order::Sort { descending: self.descending, stable: self.stable == Some(true) };
        rank(x, *self.dim, outputs, |x, out| order::argsort(how, x, *self.dim, out))
    }
}

/// The numbers of elements along `dim`, which torch spreads over its indices.
fn show_numbered(indices: &Tensor, dim: usize) -> Result<()> {
    let count = indices.shape()[dim];
    let numbers = shown::arange(count, true)?;
    let along = |at: usize, here: usize, other: usize| if at == dim { here } else { other };
    let shape: Dims = (0..indices.dim()).map(|at| along(at, count, 1)).collect();
    let strides: Dims = (0..indices.dim()).map(|at| along(at, 1, 0)).collect();
    indices.copy_(&numbers.as_strided(&shape, &strides, 0)?)
}

impl Op for Topk {
    const NAME: &'static str = "aten::topk";
    const BACKWARD: &'static str = "TopkBackward0";
    const SAVES: Saves = Saves::Outputs;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; selected(ctx.grad(), self.dim, ctx.saved(1), ctx.shape(0), true)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.count as i64));
        visit(self.dim.argument());
        visit(Argument::Bool(self.largest));
        visit(Argument::Bool(self.sorted));
    }
}

impl Kernel for Topk {
    kernel_table!(Topk);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
        check_dims(Self::NAME, &[*self.dim], x)?;
        let size = x.shape().get(*self.dim).copied().unwrap_or(1);
        if self.count > size {
            let text = format_args!(
                "cannot pick {} elements of {size}, along dimension {} of shape {:?}",
                self.count,
                *self.dim,
                x.shape()
            );
            return Err(Error::new(Cause::Index, Self::NAME, text));
        }
        if x.dtype() == DType::Bool {
            return Err(Error::new(Cause::DType, Self::NAME, "expects numbers, not bool"));
        }
        let mut shape = Dims::from_slice(x.shape());
        if let Some(size) = shape.get_mut(*self.dim) {
            *size = self.count;
        }
        Ok(values_and_indices(x, shape))
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 2]>> {
        let outputs = self.room([x])?;
        if x.dim() == 0 {
            outputs[0].copy_(x)?;
            outputs[1].zero_()?;
            return Ok(Some(outputs));
        }
        self.fill([x], &outputs, Device::CPU)?;
        Ok(Some(outputs))
    }

    fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
        let how = order::Topk { largest: self.largest, sorted: self.sorted };
        rank(x, *self.dim, outputs, |x, out| order::topk(how, x, *self.dim, out))
    }
}

impl Tensor {
    /// The elements sorted along `dim`, and the indices they had; if `stable`, equal ones stay in
    /// order. NaN counts as largest.
    pub fn sort(&self, dim: isize, descending: bool, stable: impl Into<Option<bool>>) -> Result<[Tensor; 2]> {
        Sort { dim: self.named_dim(Sort::NAME, dim)?, descending, stable: stable.into() }.call([self])
    }

    /// The indices that [`sort`](Tensor::sort) elements along `dim`.
    pub fn argsort(&self, dim: isize, descending: bool, stable: impl Into<Option<bool>>) -> Result<Tensor> {
        let stable = stable.into();
        let _span = composite("aten::argsort", [self], |visit| {
            if let Some(stable) = stable {
                visit(Argument::Bool(stable));
            }
            visit(Argument::Int(dim as i64));
            visit(Argument::Bool(descending));
        });
        let [_, indices] = self.sort(dim, descending, stable)?;
        Ok(indices)
    }

    /// The elements sorted along the first dimension.
    pub fn msort(&self) -> Result<Tensor> {
        let _span = composite("aten::msort", [self], |_| {});
        let [values, _] = self.sort(0, false, None)?;
        Ok(values)
    }

    /// The `count` largest elements along `dim`, or smallest if not `largest`, and their indices;
    /// if `sorted`, best first.
    pub fn topk(&self, count: usize, dim: isize, largest: bool, sorted: bool) -> Result<[Tensor; 2]> {
        Topk { count, dim: self.named_dim(Topk::NAME, dim)?, largest, sorted }.call([self])
    }
}
