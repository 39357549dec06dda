//! Products of matrices and vectors.

mod added;
mod contract;
mod einsum;
mod linear;
mod product;
mod svd;
mod trilinear;
mod vector;

pub use added::*;
pub use contract::*;
pub use einsum::*;
pub use product::*;
pub use svd::*;
pub use trilinear::*;
pub use vector::*;

use crate::{Cause, DType, Error, Result, Scalar, Spec, Tensor};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{View, ViewMut, matrix};

/// What two matrices, or two stacks of them, multiply to.
fn infer_product<const RANK: usize>(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Spec> {
    if (a.dim(), b.dim()) != (RANK, RANK) {
        let what = if RANK == 2 { "matrices" } else { "stacks of matrices" };
        let text = format_args!("expects two {what}, not shapes {:?} and {:?}", a.shape(), b.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    let ((stack_a, of_a), (stack_b, of_b)) = (a.shape().split_at(RANK - 2), b.shape().split_at(RANK - 2));
    if stack_a != stack_b || of_a[1] != of_b[0] {
        return Err(inner_differ(op, a, b));
    }
    same_dtype(op, a, b)?;
    let mut spec = Spec::new(stack_a, a.dtype());
    spec.shape.extend([of_a[0], of_b[1]]);
    Ok(spec)
}

fn inner_differ(op: &'static str, a: &Tensor, b: &Tensor) -> Error {
    Error::new(Cause::Shape, op, format_args!("inner dimensions differ: {:?} x {:?}", a.shape(), b.shape()))
}

fn same_dtype(op: &'static str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() && a.dtype() != DType::Bool {
        return Ok(());
    }
    let text = format_args!("expects two tensors of one number type, not {} and {}", a.dtype(), b.dtype());
    Err(Error::new(Cause::DType, op, text))
}

/// As torch counts, also where operands do not fit together: rows of the first times elements of the second.
fn product_flops(a: &Tensor, b: &Tensor) -> u64 {
    let depth = a.shape().last().copied().unwrap_or(1).max(1);
    let stack = if a.dim() == 3 { a.shape()[0].max(1) } else { 1 };
    2 * (a.numel() / depth / stack * b.numel()) as u64
}

/// Multiplies on the host: `out = alpha * a @ b + beta * out`, for matrices or stacks of them.
fn multiply(alpha: Scalar, a: &Tensor, b: &Tensor, beta: Scalar, out: &Tensor) {
    let (reading_a, reading_b, mut writing) = (a.read(), b.read(), out.write());
    let run: fn(Scalar, View<'_>, View<'_>, Scalar, ViewMut<'_>) =
        if out.dim() == 2 { matrix::gemm } else { matrix::batched_gemm };
    run(alpha, a.elements(&reading_a), b.elements(&reading_b), beta, out.elements_mut(&mut writing));
}

/// As [`multiply`], with `x`, broadcast, instead of what `out` held; nothing at all if it is not given.
fn multiply_added(alpha: Scalar, a: &Tensor, b: &Tensor, beta: Scalar, x: Option<&Tensor>, out: &Tensor) {
    let Some(x) = x else { return multiply(alpha, a, b, Scalar::Int(0), out) };
    let (reading_a, reading_b, reading_x, mut writing) = (a.read(), b.read(), x.read(), out.write());
    let (a, b, x) = (a.elements(&reading_a), b.elements(&reading_b), x.elements(&reading_x));
    matrix::added_gemm(alpha, a, b, beta, x, out.elements_mut(&mut writing));
}

fn scaled_arguments<const N: usize>(
    inputs: [&Tensor; N],
    factors: [Scalar; 2],
    visit: &mut dyn FnMut(Argument<'_>),
) {
    inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
    factors.iter().for_each(|&factor| visit(super::scalar_argument(factor)));
}
