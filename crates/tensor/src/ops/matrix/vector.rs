//! Products with vectors.

use super::{inner_differ, multiply, same_dtype};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, Device, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;

/// The sum of the products of two vectors.
#[derive(Clone, Debug)]
pub struct Dot;

/// The product of a matrix and a vector.
#[derive(Clone, Debug)]
pub struct Mv;

impl Op for Dot {
    const NAME: &'static str = "aten::dot";
    const BACKWARD: &'static str = "DotBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(ctx.saved(1))?, ctx.grad().mul(ctx.saved(0))?)
    }

    fn flops(&self, [a, _]: [&Tensor; 2]) -> u64 {
        2 * a.numel() as u64
    }
}

impl Kernel for Dot {
    kernel_table!(Dot);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        if (a.dim(), b.dim()) != (1, 1) {
            let text = format_args!("expects two vectors, not shapes {:?} and {:?}", a.shape(), b.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        same_dtype(Self::NAME, a, b)?;
        if a.shape() != b.shape() {
            let text = format_args!("vectors have different lengths: {:?} and {:?}", a.shape(), b.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new([], a.dtype()))
    }

    fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let Spec { shape, dtype } = self.infer(inputs)?;
        let out = shown::empty(&shape, dtype)?;
        self.fill(inputs, &out, Device::CPU)?;
        out.fill_(shown::only(&out)?)?;
        Ok(Some(out))
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        multiply(Scalar::Int(1), &row(a), &column(b), Scalar::Int(0), &row(out));
        Ok(())
    }
}

impl Op for Mv {
    const NAME: &'static str = "aten::mv";
    const BACKWARD: &'static str = "MvBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().ger(ctx.saved(1))?, ctx.saved(0).t()?.mv(ctx.grad())?)
    }

    fn flops(&self, [a, _]: [&Tensor; 2]) -> u64 {
        2 * a.numel() as u64
    }
}

impl Kernel for Mv {
    kernel_table!(Mv);

    fn infer(&self, [a, v]: [&Tensor; 2]) -> Result<Spec> {
        infer_mv(Self::NAME, a, v)
    }

    fn shown(&self, [a, v]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let Spec { shape, dtype } = self.infer([a, v])?;
        let out = shown::empty(&shape, dtype)?;
        shown::within("aten::addmv_", [&out, a, v], &[Argument::Int(0), Argument::Int(1)], || {
            self.fill([a, v], &out, Device::CPU)?;
            Ok(out.clone())
        })
        .map(Some)
    }

    fn cpu(&self, [a, v]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        multiply(Scalar::Int(1), a, &column(v), Scalar::Int(0), &column(out));
        Ok(())
    }
}

pub(super) fn infer_mv(op: &'static str, a: &Tensor, v: &Tensor) -> Result<Spec> {
    let (&[rows, columns], &[size]) = (a.shape(), v.shape()) else {
        let text =
            format_args!("expects a matrix and a vector, not shapes {:?} and {:?}", a.shape(), v.shape());
        return Err(Error::new(Cause::Shape, op, text));
    };
    if columns != size {
        return Err(inner_differ(op, a, v));
    }
    same_dtype(op, a, v)?;
    Ok(Spec::new([rows], a.dtype()))
}

/// A vector as a matrix of one column, for host kernels.
pub(super) fn column(v: &Tensor) -> Tensor {
    as_matrix(v, [v.numel(), 1])
}

/// A vector, or a number repeated, as a matrix of one column, for host kernels.
pub(super) fn column_of(x: &Tensor, rows: usize) -> Tensor {
    let layout = x.layout().broadcast_to(&[rows]).expect("`infer` found that the shapes broadcast");
    Tensor::from_parts(x.storage().clone(), layout.unsqueeze(1), x.dtype())
}

/// A vector as a matrix of one row, for host kernels.
pub(super) fn row(v: &Tensor) -> Tensor {
    as_matrix(v, [1, v.numel()])
}

fn as_matrix(v: &Tensor, shape: [usize; 2]) -> Tensor {
    let layout = v.layout().view(&shape).expect("a dimension of size 1 changes no place");
    Tensor::from_parts(v.storage().clone(), layout, v.dtype())
}

impl Tensor {
    /// The sum of the products of two vectors.
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        Dot.call([self, other])
    }

    /// As [`dot`](Tensor::dot): real numbers are their own conjugates.
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::vdot", [self, other], |_| {});
        self.dot(other)
    }

    /// The product of this matrix and a vector.
    pub fn mv(&self, vector: &Tensor) -> Result<Tensor> {
        Mv.call([self, vector])
    }

    /// [`outer`](Tensor::outer) under its older name.
    pub fn ger(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::ger", [self, other], |_| {});
        self.outer(other)
    }

    /// The matrix of products of each element of this vector and each of another.
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::outer";
        let _span = composite(NAME, [self, other], |_| {});
        if (self.dim(), other.dim()) != (1, 1) {
            let text =
                format_args!("expects two vectors, not shapes {:?} and {:?}", self.shape(), other.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        self.reshape([self.numel(), 1])?.mul(other)
    }
}
