//! Norms of vectors, and of whatever counts as one.

use super::{check_reduced, dtype_argument, fill, reduced, told, with_reduced};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::promote::promote;
use crate::{
    Backward, Cause, DType, Device, Error, Forward, Grads, Kernel, NamedDims, Op, Result, Spec, Tensor,
    composite, grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::reduce;

/// `(sum |x|^order)^(1 / order)` over some dimensions. The largest or smallest magnitude for an
/// infinite order; the count of elements other than zero for order 0.
#[derive(Clone, Debug)]
pub struct VectorNorm {
    /// The power.
    pub order: f64,
    /// Which dimensions.
    pub dims: NamedDims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; the type of the input if nothing is said.
    pub dtype: Option<DType>,
}

impl Op for VectorNorm {
    const NAME: &'static str = "aten::linalg_vector_norm";
    const BACKWARD: &'static str = "LinalgVectorNormBackward0";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        if self.order == 0.0 {
            // A count has no slope.
            return Ok(Grads::from_elem(None, 1));
        }
        grads!(ctx; {
            let x = ctx.saved(0);
            let x = if x.dtype() == ctx.grad().dtype() { x.clone() } else { x.to_dtype(ctx.grad().dtype())? };
            let whole = |y: &Tensor| if self.keep { Ok(y.clone()) } else { with_reduced(y, x.dim(), &self.dims) };
            gradient(self, &whole(ctx.grad())?, &x, &whole(ctx.saved(1))?)?
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(shown::whole(self.order));
        visit(told(&self.dims, &self.dims.told()));
        visit(Argument::Bool(self.keep));
        visit(dtype_argument(self.dtype));
    }
}

/// The gradient of a norm, by torch's cases; `grad` and `norm` have the reduced dimensions, of size
/// 1. Where the norm has a kink, at zeros, it is 0.
fn gradient(op: &VectorNorm, grad: &Tensor, x: &Tensor, norm: &Tensor) -> Result<Tensor> {
    let order = op.order;
    // Zero where the tensor is, for which powers and quotients have no number.
    let cleared = |y: Tensor, at: &Tensor| -> Result<Tensor> {
        y.masked_fill_(&at.eq(0)?, 0)?;
        Ok(y)
    };
    let powers = |exponent: f64| -> Result<Tensor> {
        let sizes = x.abs()?;
        sizes.pow_(exponent)?;
        Ok(sizes)
    };
    if order == 1.0 {
        return x.sgn()?.mul(grad);
    }
    if order == 2.0 {
        return grad.mul(&cleared(x.div(norm)?, norm)?);
    }
    if order.is_infinite() {
        return extreme_gradient(op, grad, x, norm);
    }
    if order < 1.0 {
        let sizes = cleared(powers(order - 1.0)?, x)?;
        let scaled = x.sgn()?.mul(&sizes)?;
        let rest = norm.pow(1.0 - order)?;
        return scaled.mul(grad)?.mul(&rest);
    }
    let scaled = match order < 2.0 {
        true => {
            let sizes = powers(order - 1.0)?;
            x.sgn()?.mul(&sizes)?
        }
        false => x.mul(&powers(order - 2.0)?)?,
    };
    let scale = grad.div(&norm.pow(order - 1.0)?)?;
    scaled.mul(&cleared(scale, norm)?)
}

/// Elements that all have the extreme magnitude share the gradient; NaN always has it.
fn extreme_gradient(op: &VectorNorm, grad: &Tensor, x: &Tensor, norm: &Tensor) -> Result<Tensor> {
    let sizes = x.abs()?;
    let is_extreme = sizes.eq(norm)?.logical_or(&sizes.isnan()?)?;
    let count = is_extreme.sum_dims(op.dims.named(), true)?;
    let share = grad.div(&count)?;
    let scaled = share.mul(&is_extreme)?;
    x.sgn()?.mul(&scaled)
}

impl Kernel for VectorNorm {
    kernel_table!(VectorNorm);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        super::super::check_float(Self::NAME, x)?;
        check_reduced(Self::NAME, &self.dims, x)?;
        let dtype = self.dtype.unwrap_or(x.dtype());
        if !dtype.is_float() || promote(x.dtype(), dtype) != dtype {
            let text = format_args!("gives floats at least as wide as {}, not {dtype}", x.dtype());
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        let empty = self.dims.iter().any(|&dim| x.shape().get(dim) == Some(&0));
        if empty && (self.order < 0.0 || self.order == f64::INFINITY) {
            let text = format_args!(
                "no elements over dimensions {:?} of shape {:?} have a norm of order {}",
                &self.dims[..],
                x.shape(),
                self.order
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype })
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let out = self.room([x])?;
        shown::reduced(&out, x.shape(), &self.dims, self.keep)?;
        self.fill([x], &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        fill(x, &self.dims, out, |x, out| reduce::norm(self.order, x, &self.dims, out))
    }
}

/// A [`VectorNorm`] that operators ask for by the name that it had first.
#[derive(Clone, Debug)]
pub struct NormAlong(VectorNorm);

impl Op for NormAlong {
    const NAME: &'static str = "aten::norm";
    const BACKWARD: &'static str = "NormBackward1";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.0.backward(ctx)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Float(self.0.order));
        visit(Argument::Ints(&self.0.dims.told()));
        visit(Argument::Bool(self.0.keep));
    }
}

impl Forward for NormAlong {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let norm = &self.0;
        if !observe::is_watched() || !x.device().is_cpu() {
            return norm.launch([x]);
        }
        let out = norm.room([x])?;
        let dims = norm.dims.told();
        let more =
            [Argument::Float(norm.order), Argument::Ints(&dims), Argument::Bool(norm.keep), Argument::None];
        shown::into_out(VectorNorm::NAME, [x], &more, &out, || {
            shown::reduced(&out, x.shape(), &norm.dims, norm.keep)?;
            norm.fill([x], &out, Device::CPU)
        })?;
        Ok(out)
    }
}

/// Which norm is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// `(sum |x|^order)^(1 / order)`, see [`VectorNorm`].
    Order(f64),
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of the singular values of a matrix.
    Nuclear,
}

impl From<f64> for Norm {
    fn from(order: f64) -> Norm {
        Norm::Order(order)
    }
}

impl Tensor {
    /// The norm over `dims`, or all if none are named; with `keep` they stay, with size 1.
    pub fn norm(
        &self,
        norm: impl Into<Norm>,
        dims: &[isize],
        keep: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        match norm.into() {
            Norm::Order(order) => self.vector_norm(order, dims, keep, dtype),
            Norm::Frobenius => self.vector_norm(2.0, dims, keep, dtype),
            Norm::Nuclear => self.nuclear_norm(dims, keep, dtype),
        }
    }

    /// The sum of the singular values of the matrices that two dimensions make, or all if none are named.
    fn nuclear_norm(&self, dims: &[isize], keep: bool, dtype: Option<DType>) -> Result<Tensor> {
        const NAME: &str = "aten::linalg_matrix_norm";
        let written: Vec<i64> = match dims {
            [] => vec![0, 1],
            dims => dims.iter().map(|&dim| dim as i64).collect(),
        };
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::None);
            visit(Argument::Ints(&written));
            visit(Argument::Bool(keep));
            visit(dtype_argument(dtype));
        });
        let &[row, column] = &self.dims_or_all(NAME, dims)?[..] else {
            let text = format_args!("expects two dimensions that make matrices, of shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        let x = dtype.map_or_else(|| Ok(self.clone()), |dtype| self.to_dtype(dtype))?;
        let others = (0..self.dim()).filter(|&dim| dim != row && dim != column);
        let order: Vec<isize> = others.chain([row, column]).map(|dim| dim as isize).collect();
        let norms = x.permute(&order)?.svdvals()?.sum_dims(&[-1], keep)?;
        if !keep {
            return Ok(norms);
        }
        let mut back = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&dim, at)| back[dim as usize] = at);
        norms.unsqueeze(-1)?.permute(&back)
    }

    /// As [`vector_norm`](Tensor::vector_norm), over one dimension and by its older name.
    pub(in crate::ops) fn norm_along(&self, order: f64, dim: isize, keep: bool) -> Result<Tensor> {
        let dims = self.dims_or_all(NormAlong::NAME, &[dim])?;
        NormAlong(VectorNorm { order, dims, keep, dtype: None }).call([self])
    }

    /// `(sum |x|^order)^(1 / order)` over `dims`, or all if none are named; with `keep` they stay,
    /// with size 1. The largest or smallest magnitude for an infinite order; the count of elements
    /// other than zero for order 0.
    pub fn vector_norm(
        &self,
        order: f64,
        dims: &[isize],
        keep: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let dims = self.dims_or_all(VectorNorm::NAME, dims)?;
        VectorNorm { order, dims, keep, dtype }.call([self])
    }
}
