//! Products of elements.

use super::{check_dims, dtype_argument, fill, kept, reduced, sum_type};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, DType, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, reduce};

/// The product along a dimension, or of all elements.
#[derive(Clone, Debug)]
pub struct Prod {
    /// Which dimension; all if none is named.
    pub dim: Option<usize>,
    /// Whether it stays, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are multiplied as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

impl Prod {
    fn dims(&self, rank: usize) -> Dims {
        match self.dim {
            // A number by itself has no dimension to multiply along.
            Some(dim) if rank > 0 => Dims::from_slice(&[dim]),
            _ => (0..rank).collect(),
        }
    }
}

impl Op for Prod {
    const NAME: &'static str = "aten::prod";
    const BACKWARD: &'static str = "ProdBackward0";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let x = ctx.saved(0).to_dtype(ctx.grad().dtype())?;
            let shape = kept(x.shape(), &self.dims(x.dim()));
            let (grad, product) = (ctx.grad().reshape(&shape)?, ctx.saved(1).reshape(&shape)?);
            if x.dim() == 0 {
                grad.clone()
            } else if x.eq(0)?.any()?.item()?.as_i64() == 0 {
                grad.mul(&product.div(&x)?)?
            } else if let Some(dim) = self.dim {
                grad.mul(&of_others(&x, dim as isize)?)?
            } else {
                grad.mul(&of_others(&x.reshape([x.numel()])?, 0)?.reshape(x.shape())?)?
            }
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        if let Some(dim) = self.dim {
            visit(Argument::Int(dim as i64));
            visit(Argument::Bool(self.keep));
        }
        visit(dtype_argument(self.dtype));
    }

    fn backward_name(&self, _: [&Tensor; 1]) -> &'static str {
        if self.dim.is_some() { "ProdBackward1" } else { Self::BACKWARD }
    }
}

/// For each element the product of all others along `dim`: of those before it and those behind it,
/// so that zeros need no division.
fn of_others(x: &Tensor, dim: isize) -> Result<Tensor> {
    let size = x.shape()[dim as usize];
    let ones = x.narrow(dim, 0, 1)?.detach()?.ones_like()?;
    let before = |x: &Tensor| Tensor::cat(&[&ones, &x.narrow(dim, 0, size - 1)?], dim)?.cumprod(dim, None);
    let behind = before(&x.flip(&[dim])?)?.flip(&[dim])?;
    before(x)?.mul(&behind)
}

impl Kernel for Prod {
    kernel_table!(Prod);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        let dims = self.dims(x.dim());
        check_dims(Self::NAME, &dims, x)?;
        let dtype = self.dtype.unwrap_or(sum_type(x.dtype()));
        Ok(Spec { shape: reduced(x.shape(), &dims, self.keep), dtype })
    }

    /// The product of truth values is whether all are true.
    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let dims = self.dims(x.dim());
        let run = if out.dtype() == DType::Bool { reduce::all } else { reduce::prod };
        fill(x, &dims, out, |x, out| run(x, &dims, out))
    }
}

impl Tensor {
    /// The product of all elements, computed in and given as `dtype`. Integers are multiplied as
    /// `i64` if none is named.
    pub fn prod(&self, dtype: impl Into<Option<DType>>) -> Result<Tensor> {
        Prod { dim: None, keep: false, dtype: dtype.into() }.call([self])
    }

    /// As [`prod`](Tensor::prod), along `dim`; with `keep` it stays, with size 1.
    pub fn prod_dim(&self, dim: isize, keep: bool, dtype: impl Into<Option<DType>>) -> Result<Tensor> {
        Prod { dim: Some(self.dim_index(Prod::NAME, dim)?), keep, dtype: dtype.into() }.call([self])
    }
}
