//! Products of two matrices, of stacks of them, and of whatever broadcasts to stacks.

use super::super::broadcast;
use super::{infer_product, inner_differ, multiply, product_flops};
use crate::autocast;
use crate::autograd::{self, Needless, Saves};
use crate::composite::composite_counting;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, Device, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe;
use cresset_kernels::Dims;

/// The product of two matrices.
#[derive(Clone, Debug)]
pub struct Mm;

/// The products of two stacks of matrices.
#[derive(Clone, Debug)]
pub struct Bmm;

/// The gradient of `a` in `a @ b`, laid out as `a` is, so that it need not be copied later.
pub(super) fn left_gradient(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if is_column_major(a) { b.mm(&grad.t()?)?.t() } else { grad.mm(&b.t()?) }
}

/// The gradient of `b` in `a @ b`, laid out as `b` is.
pub(super) fn right_gradient(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if is_column_major(b) { grad.t()?.mm(a)?.t() } else { a.t()?.mm(grad) }
}

fn is_column_major(x: &Tensor) -> bool {
    x.strides()[0] == 1 && x.strides()[1] == x.shape()[0].max(1)
}

impl Op for Mm {
    const NAME: &'static str = "aten::mm";
    const BACKWARD: &'static str = "MmBackward0";
    const SAVES: Saves = Saves::Inputs;
    const NEEDLESS: Needless = Needless::Layouts(Needless::factor::<0>);
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; 1 => right_gradient(ctx.grad(), a, b)?, 0 => left_gradient(ctx.grad(), a, b)?)
    }

    fn flops(&self, [a, b]: [&Tensor; 2]) -> u64 {
        product_flops(a, b)
    }
}

impl Kernel for Mm {
    kernel_table!(Mm);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        infer_product::<2>(Self::NAME, a, b)
    }

    fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let out = self.room(inputs)?;
        if inputs[0].numel() == 0 && out.numel() > 0 {
            out.zero_()?;
        }
        shown::show_product(&out, inputs[0], inputs[1])?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        multiply(Scalar::Int(1), a, b, Scalar::Int(0), out);
        Ok(())
    }
}

impl Op for Bmm {
    const NAME: &'static str = "aten::bmm";
    const BACKWARD: &'static str = "BmmBackward0";
    const SAVES: Saves = Saves::Inputs;
    const NEEDLESS: Needless = Needless::Layouts(Needless::factor::<0>);
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; 1 => a.transpose(1, 2)?.bmm(ctx.grad())?, 0 => ctx.grad().bmm(&b.transpose(1, 2)?)?)
    }

    fn flops(&self, [a, b]: [&Tensor; 2]) -> u64 {
        product_flops(a, b)
    }
}

impl Kernel for Bmm {
    kernel_table!(Bmm);

    fn infer(&self, [a, b]: [&Tensor; 2]) -> Result<Spec> {
        infer_product::<3>(Self::NAME, a, b)
    }

    fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let out = self.room(inputs)?;
        shown::show_products(inputs[0], inputs[1])?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        multiply(Scalar::Int(1), a, b, Scalar::Int(0), out);
        Ok(())
    }
}

impl Tensor {
    /// The product of two matrices.
    pub fn mm(&self, other: &Tensor) -> Result<Tensor> {
        Mm.call([self, other])
    }

    /// The products of two stacks of matrices.
    pub fn bmm(&self, other: &Tensor) -> Result<Tensor> {
        Bmm.call([self, other])
    }

    /// The matrix product over the last two dimensions, the others broadcast. A vector
    /// counts as a row on the left and as a column on the right.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::matmul";
        let _span = composite(NAME, [self, other], |_| {});
        if let Some(cast) = autocast::casting(NAME, [self, other], |[a, b]| a.matmul(b)) {
            return cast;
        }
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
            // Torch finds out inside.
            let inside = (self.dim(), other.dim()) == (2, 2);
            let count = || product_flops(self, other);
            let _inner = inside.then(|| composite_counting(Mm::NAME, [self, other], |_| {}, count));
            if [self, other].iter().any(|operand| operand.requires_grad()) {
                autograd::skip_number();
            }
            return Err(inner_differ(NAME, self, other));
        }
        if other.is_spread_over(self) {
            return self.multiplied(&other.squeeze_dim(0)?);
        }
        if observe::is_watched() && self.is_spread_over(other) {
            return self.squeeze_dim(0)?.multiplied(other);
        }
        self.multiplied(other)
    }

    /// Whether this is a single matrix for a stack of several, and its gradient would be summed over them.
    fn is_spread_over(&self, stack: &Tensor) -> bool {
        let stacks = (self.dim(), stack.dim()) == (3, 3);
        stacks && self.shape()[0] == 1 && stack.shape()[0] != 1 && self.requires_grad()
    }

    fn multiplied(&self, other: &Tensor) -> Result<Tensor> {
        match (self.dim(), other.dim()) {
            (1, 1) => self.dot(other),
            (2, 1) => self.mv(other),
            (1, 2) => self.unsqueeze(0)?.mm(other)?.squeeze_own(0),
            (2, 2) => self.mm(other),
            (_, 1) if folds(self, other) => {
                let (rows, outer) = self.folded()?;
                rows.mv(other)?.unsafe_view(&outer)
            }
            (_, 2) if folds(self, other) => {
                let (rows, mut shape) = self.folded()?;
                shape.push(other.shape()[1]);
                rows.mm(other)?.unsafe_view(&shape)
            }
            (1 | 2, 3..) if observe::is_watched() && self.folds_turned(other)? => self.turned_product(other),
            (1, _) => drop_dim(&self.unsqueeze(0)?.batched(other)?, 2),
            (_, 1) => drop_dim(&self.batched(&other.unsqueeze(1)?)?, 1),
            _ => self.batched(other),
        }
    }

    /// Whether torch folds a stack on the right, seen the other way round, as it looks for.
    fn folds_turned(&self, stack: &Tensor) -> Result<bool> {
        let turned = stack.mt()?;
        let lie_together =
            |dim: usize| turned.strides()[dim] == turned.strides()[dim + 1] * turned.shape()[dim + 1];
        let is_flat = || turned.numel() == 0 || (0..turned.dim() - 2).all(lie_together);
        Ok(self.requires_grad() || (self.dim() == 1 && is_flat()))
    }

    /// The product of a matrix or vector and a stack, found as torch finds it where the gradient is
    /// summed over the stack: the other way round.
    fn turned_product(&self, stack: &Tensor) -> Result<Tensor> {
        let turned = stack.mt()?;
        let other = if self.dim() == 2 { self.t()? } else { self.clone() };
        let (rows, mut shape) = turned.folded()?;
        if self.dim() == 1 {
            return rows.mv(&other)?.unsafe_view(&shape);
        }
        shape.push(other.shape()[1]);
        rows.mm(&other)?.unsafe_view(&shape)?.mt()?.contiguous()
    }

    /// All but the last dimension as one, and what they were.
    pub(super) fn folded(&self) -> Result<(Tensor, Dims)> {
        let (outer, last) = self.shape().split_at(self.dim() - 1);
        let rows = count("aten::matmul", outer)?;
        Ok((self.reshape([rows, last[0]])?, Dims::from_slice(outer)))
    }

    /// The product of two stacks of matrices, stacked alike by broadcasting.
    fn batched(&self, other: &Tensor) -> Result<Tensor> {
        let (stack_a, a) = self.shape().split_at(self.dim() - 2);
        let (stack_b, b) = other.shape().split_at(other.dim() - 2);
        let stack = broadcast("aten::matmul", stack_a, stack_b)?;
        let count = count("aten::matmul", &stack)?;
        let stacked = |x: &Tensor, last: &[usize]| {
            let full: Dims = stack.iter().chain(last).copied().collect();
            x.expand(full)?.reshape([count, last[0], last[1]])
        };
        let product = stacked(self, a)?.bmm(&stacked(other, b)?)?;
        let shape: Dims = stack.iter().chain(&[a[0], b[1]]).copied().collect();
        product.unsafe_view(&shape)
    }
}

/// How many there are of these sizes: a tensor without elements may have dimensions beyond counting.
fn count(op: &'static str, sizes: &[usize]) -> Result<usize> {
    let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    count.ok_or_else(|| Error::new(Cause::Memory, op, format_args!("{sizes:?} are more than can be counted")))
}

/// Whether one product of matrices does for a stack on the left: the stack need not be copied, or
/// the other's gradient would be summed over it anyway.
fn folds(stack: &Tensor, other: &Tensor) -> bool {
    let Ok(rows) = count("aten::matmul", &stack.shape()[..stack.dim() - 1]) else { return false };
    let flat = [rows, stack.shape()[stack.dim() - 1]];
    other.requires_grad() || stack.layout().view(&flat).is_some()
}

/// The tensor without its `from_end`th dimension from the end, which has size 1.
fn drop_dim(x: &Tensor, from_end: usize) -> Result<Tensor> {
    let mut shape = Dims::from_slice(x.shape());
    shape.remove(x.dim() - from_end);
    x.reshape(shape)
}
