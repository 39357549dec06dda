//! Matrix products.

use super::{broadcast, scaled};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, composite, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, elementwise, matrix};

/// The product of two matrices.
#[derive(Clone, Debug)]
pub struct Mm;

/// `beta * bias + alpha * a @ b`, the bias broadcast.
#[derive(Clone, Debug)]
pub struct Addmm {
    /// Multiplies the bias.
    pub beta: Scalar,
    /// Multiplies the product.
    pub alpha: Scalar,
}

/// The products of two stacks of matrices.
#[derive(Clone, Debug)]
pub struct Bmm;

fn infer_product(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Spec> {
    let (&[m, k], &[k2, n]) = (a.shape(), b.shape()) else {
        let text = format_args!("expects two matrices, not shapes {:?} and {:?}", a.shape(), b.shape());
        return Err(Error::new(Cause::Shape, op, text));
    };
    if k != k2 {
        return Err(inner_differ(op, a, b));
    }
    same_dtype(op, a, b)?;
    Ok(Spec::new([m, n], a.dtype()))
}

fn inner_differ(op: &'static str, a: &Tensor, b: &Tensor) -> Error {
    Error::new(Cause::Shape, op, format_args!("inner dimensions differ: {:?} x {:?}", a.shape(), b.shape()))
}

fn same_dtype(op: &'static str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() && a.dtype() != crate::DType::Bool {
        return Ok(());
    }
    let text = format_args!("expects two tensors of one number type, not {} and {}", a.dtype(), b.dtype());
    Err(Error::new(Cause::DType, op, text))
}

fn product_flops(a: &Tensor, b: &Tensor) -> u64 {
    2 * a.numel() as u64 * b.shape().last().copied().unwrap_or(1) as u64
}

/// The gradient of `a` in `a @ b`, laid out as `a` is, so that it need not be copied later.
fn left_gradient(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if is_column_major(a) { b.mm(&grad.t()?)?.t() } else { grad.mm(&b.t()?) }
}

/// The gradient of `b` in `a @ b`, laid out as `b` is.
fn right_gradient(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if is_column_major(b) { grad.t()?.mm(a)?.t() } else { a.t()?.mm(grad) }
}

fn is_column_major(x: &Tensor) -> bool {
    x.strides()[0] == 1 && x.strides()[1] == x.shape()[0].max(1)
}

impl Op for Mm {
    const NAME: &'static str = "aten::mm";
    const BACKWARD: &'static str = "MmBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; left_gradient(ctx.grad(), a, b)?, right_gradient(ctx.grad(), a, b)?)
    }

    fn flops(&self, [a, b]: [&Tensor; 2]) -> u64 {
        product_flops(a, b)
    }
}

impl Kernel for Mm {
    kernel_table!(Mm);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        infer_product(Self::NAME, a, b)
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading_a, reading_b, mut writing) = (a.read(), b.read(), out.write());
        matrix::gemm(
            1.0,
            a.elements(&reading_a),
            b.elements(&reading_b),
            0.0,
            out.elements_mut(&mut writing),
        );
        Ok(())
    }
}

impl Op for Addmm {
    const NAME: &'static str = "aten::addmm";
    const BACKWARD: &'static str = "AddmmBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(1), ctx.saved(2));
        grads!(ctx;
            scaled(ctx.grad().clone(), self.beta)?,
            scaled(left_gradient(ctx.grad(), a, b)?, self.alpha)?,
            scaled(right_gradient(ctx.grad(), a, b)?, self.alpha)?,
        )
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(super::scalar_argument(self.beta));
        visit(super::scalar_argument(self.alpha));
    }

    fn flops(&self, [_, a, b]: [&Tensor; 3]) -> u64 {
        product_flops(a, b)
    }
}

impl Kernel for Addmm {
    kernel_table!(Addmm);

    fn infer(&self, [bias, a, b]: [&Tensor; 3]) -> Result<Spec> {
        let spec = infer_product(Self::NAME, a, b)?;
        same_dtype(Self::NAME, bias, a)?;
        if bias.layout().broadcast_to(&spec.shape).is_none() {
            let text =
                format_args!("bias of shape {:?} does not broadcast to {:?}", bias.shape(), &spec.shape[..]);
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(spec)
    }

    fn cpu(&self, [bias, a, b]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        cpu::map(bias, out.dtype(), out, elementwise::copy)?;
        let (alpha, beta) = (self.alpha.as_f64(), self.beta.as_f64());
        let (reading_a, reading_b, mut writing) = (a.read(), b.read(), out.write());
        matrix::gemm(
            alpha,
            a.elements(&reading_a),
            b.elements(&reading_b),
            beta,
            out.elements_mut(&mut writing),
        );
        Ok(())
    }
}

impl Op for Bmm {
    const NAME: &'static str = "aten::bmm";
    const BACKWARD: &'static str = "BmmBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; Bmm.call([ctx.grad(), &b.transpose(1, 2)?])?, Bmm.call([&a.transpose(1, 2)?, ctx.grad()])?)
    }

    fn flops(&self, [a, b]: [&Tensor; 2]) -> u64 {
        product_flops(a, b)
    }
}

impl Kernel for Bmm {
    kernel_table!(Bmm);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        let (&[n, m, k], &[n2, k2, p]) = (a.shape(), b.shape()) else {
            let text = format_args!(
                "expects two stacks of matrices, not shapes {:?} and {:?}",
                a.shape(),
                b.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if n != n2 || k != k2 {
            return Err(inner_differ(Self::NAME, a, b));
        }
        same_dtype(Self::NAME, a, b)?;
        Ok(Spec::new([n, m, p], a.dtype()))
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading_a, reading_b, mut writing) = (a.read(), b.read(), out.write());
        matrix::batched_gemm(
            1.0,
            a.elements(&reading_a),
            b.elements(&reading_b),
            0.0,
            out.elements_mut(&mut writing),
        );
        Ok(())
    }
}

impl Tensor {
    /// The product of two matrices.
    pub fn mm(&self, other: &Tensor) -> Result<Tensor> {
        Mm.call([self, other])
    }

    /// `self + a @ b`, this broadcast to the product's shape.
    pub fn addmm(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        Addmm { beta: Scalar::Int(1), alpha: Scalar::Int(1) }.call([self, a, b])
    }

    /// The matrix product over the last two dimensions, the others broadcast. A vector
    /// counts as a row on the left and as a column on the right.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::matmul";
        let _span = composite(NAME, [self, other], |_| {});
        if self.dim() == 0 || other.dim() == 0 {
            let text = format_args!(
                "expects at least one dimension each, not {:?} x {:?}",
                self.shape(),
                other.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let inner = other.shape()[other.dim().saturating_sub(2)];
        if self.shape().last() != Some(&inner) {
            return Err(inner_differ(NAME, self, other));
        }
        match (self.dim(), other.dim()) {
            (2, 2) => self.mm(other),
            (1, 1) => self.mul(other)?.sum(),
            (1, _) => drop_dim(&self.unsqueeze(0)?.matmul(other)?, 2),
            (_, 1) => drop_dim(&self.matmul(&other.unsqueeze(1)?)?, 1),
            _ => self.batched(other),
        }
    }

    /// The product of two stacks of matrices, stacked alike by broadcasting.
    fn batched(&self, other: &Tensor) -> Result<Tensor> {
        let (stack_a, a) = self.shape().split_at(self.dim() - 2);
        let (stack_b, b) = other.shape().split_at(other.dim() - 2);
        let stack = broadcast("aten::matmul", stack_a, stack_b)?;
        let count: usize = stack.iter().product();
        let stacked = |x: &Tensor, last: &[usize]| {
            let full: Dims = stack.iter().chain(last).copied().collect();
            x.expand(full)?.reshape([count, last[0], last[1]])
        };
        let product = Bmm.call([&stacked(self, a)?, &stacked(other, b)?])?;
        let shape: Dims = stack.iter().chain(&[a[0], b[1]]).copied().collect();
        product.view(shape)
    }

    /// `self @ weight.t() + bias`, over the last dimension.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        const NAME: &str = "aten::linear";
        let _span = composite(NAME, ([self, weight], bias), |_| {});
        let (Some(&features), &[outputs, inputs]) = (self.shape().last(), weight.shape()) else {
            let text = format_args!(
                "expects a weight of two dimensions, not {:?} x {:?}",
                self.shape(),
                weight.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        if features != inputs {
            let text = format_args!(
                "input of shape {:?} has {features} features, the weight {:?} takes {inputs}",
                self.shape(),
                weight.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let rows = self.shape()[..self.dim() - 1].iter().product();
        let flat = if self.dim() == 2 { self.clone() } else { self.reshape([rows, features])? };
        let out = match bias {
            Some(bias) => bias.addmm(&flat, &weight.t()?)?,
            None => flat.matmul(&weight.t()?)?,
        };
        if self.dim() == 2 {
            return Ok(out);
        }
        let mut shape = Dims::from_slice(&self.shape()[..self.dim() - 1]);
        shape.push(outputs);
        out.view(shape)
    }
}

/// The tensor without its `from_end`th dimension from the end, which has size 1.
fn drop_dim(x: &Tensor, from_end: usize) -> Result<Tensor> {
    let mut shape = Dims::from_slice(x.shape());
    shape.remove(x.dim() - from_end);
    x.view(shape)
}
