//! Products of elements.

use super::{check_dims, dtype_argument, fill, reduced, sum_type};
use crate::autograd::{self, Saves};
use crate::op::kernel_table;
use crate::{Backward, DType, Device, Grads, Kernel, NamedDim, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, reduce};

/// The product along a dimension, or of all elements.
#[derive(Clone, Debug)]
pub struct Prod {
    /// Which dimension; all if none is named.
    pub dim: Option<NamedDim>,
    /// Whether it stays, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are multiplied as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

impl Prod {
    fn dims(&self, rank: usize) -> Dims {
        match self.dim {
            // A number by itself has no dimension to multiply along.
            Some(dim) if rank > 0 => Dims::from_slice(&[*dim]),
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
        let (x, product, grad) = (ctx.saved(0).to_dtype(ctx.grad().dtype())?, ctx.saved(1), ctx.grad());
        grads!(ctx; match self.dim {
            _ if x.dim() == 0 => grad.clone(),
            Some(dim) => gradient_along(self, &x, grad, product, dim)?,
            None => gradient_of_all(&x, grad, product)?,
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        if let Some(dim) = self.dim {
            visit(dim.argument());
            visit(Argument::Bool(self.keep));
        }
        visit(dtype_argument(self.dtype));
    }

    fn backward_name(&self, _: [&Tensor; 1]) -> &'static str {
        if self.dim.is_some() { "ProdBackward1" } else { Self::BACKWARD }
    }
}

/// The gradient of a product of all elements. Where just one is 0, it alone has one; where more are, none.
fn gradient_of_all(x: &Tensor, grad: &Tensor, product: &Tensor) -> Result<Tensor> {
    match x.eq(0)?.nonzero()?.shape()[0] {
        0 => grad.mul(&product.div(x)?),
        2.. if !autograd::is_grad_enabled() => x.zeros_like(),
        _ => of_others(&x.contiguous()?.view([-1])?, grad, NamedDim::from(0))?.view_as(x),
    }
}

fn gradient_along(op: &Prod, x: &Tensor, grad: &Tensor, product: &Tensor, dim: NamedDim) -> Result<Tensor> {
    let whole = |y: &Tensor| if op.keep || x.dim() == 1 { Ok(y.clone()) } else { y.unsqueeze(dim.named()) };
    let (grad, product) = (whole(grad)?, whole(product)?);
    let zeros = x.eq(0)?.sum_dims(&[dim.named()], true)?.sum()?.item()?;
    if zeros.as_i64() == 0 {
        return grad.mul(&product.div(x)?);
    }
    of_others(x, &grad, dim)
}

/// The gradient times the product of all others along `dim`: of those before each element and those
/// behind it, so that zeros need no division.
fn of_others(x: &Tensor, grad: &Tensor, dim: NamedDim) -> Result<Tensor> {
    let (index, dim) = (*dim, dim.named());
    let size = x.shape()[index];
    if size == 1 {
        return Ok(grad.clone());
    }
    let mut shape = Dims::from_slice(x.shape());
    shape[index] = 1;
    let ones = Tensor::ones(&shape, (grad.dtype(), grad.device()))?;
    let before = Tensor::cat(&[&ones, &x.narrow(dim, 0, size - 1)?], dim)?.cumprod(dim, None)?;
    let turned = x.narrow(dim, 1, size - 1)?.flip(&[dim])?;
    let behind = Tensor::cat(&[&ones, &turned], dim)?.cumprod(dim, None)?.flip(&[dim])?;
    grad.mul(&before.mul(&behind)?)
}

impl Kernel for Prod {
    kernel_table!(Prod);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        let dims = self.dims(x.dim());
        check_dims(Self::NAME, &dims, x)?;
        let dtype = self.dtype.unwrap_or(sum_type(x.dtype()));
        Ok(Spec { shape: reduced(x.shape(), &dims, self.keep), dtype })
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let dims = self.dims(x.dim());
        let spec = self.infer([x])?;
        // The output of a product of all elements is made by an operator of its own.
        let out = if self.dim.is_some() { self.room([x])? } else { shown::empty(&spec.shape, spec.dtype)? };
        let seen = shown::reduced(&out, x.shape(), &dims, self.keep)?;
        let _converted = shown::converted(x, spec.dtype)?;
        seen.fill_(1.0)?;
        self.fill([x], &out, Device::CPU)?;
        Ok(Some(out))
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
        Prod { dim: Some(self.named_dim(Prod::NAME, dim)?), keep, dtype: dtype.into() }.call([self])
    }
}
