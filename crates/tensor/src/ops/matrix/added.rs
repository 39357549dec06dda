//! Products added to something else: `beta * x + alpha * a @ b`.
//!
//! With a `beta` of 0 the first operand counts for its shape only: not even NaN gets through.

use super::product::{left_gradient, right_gradient};
use super::vector::{column, column_of, infer_mv, row};
use super::{infer_product, multiply_added, product_flops, same_dtype, scaled_arguments};
use crate::autograd::{Needless, Saves};
use crate::op::{InPlace, kernel_table};
use crate::ops::scaled;
use crate::{Backward, Cause, Device, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;

/// What torch's kernels do before they multiply: the sum starts as what it is added to.
fn show_added([x, a, b]: [&Tensor; 3], beta: Scalar, out: &Tensor) -> Result<()> {
    if !is_zero(beta, out) {
        let _quiet = crate::no_grad();
        out.copy_(&if x.shape() == out.shape() { x.clone() } else { x.expand(out.shape())? })?;
    }
    match (a.dim(), b.dim()) {
        (2, 2) => shown::show_product(out, a, b),
        (3, 3) => shown::show_products(a, b),
        _ => Ok(()),
    }
}

/// One line per operator: what the product is, how it is made on the host over `out`, and the
/// gradients of its two factors.
macro_rules! added {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $scaled:ident, $in_place:ident: $name:literal, $change:literal,
        $backward:literal, |$a:ident, $b:ident| $product:expr, |$alpha:ident, $beta:ident, $x:ident, $out:ident| $multiply:expr,
        |$grad:ident| $left:expr, $right:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Multiplies the first operand.
            pub beta: Scalar,
            /// Multiplies the product.
            pub alpha: Scalar,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::InputsFrom(1);
            const NEEDLESS: Needless = Needless::Layouts(Needless::factor::<1>);
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let ($grad, $a, $b) = (ctx.grad(), ctx.saved(1), ctx.saved(2));
                grads!(ctx;
                    1 => scaled($left?, self.alpha)?,
                    2 => scaled($right?, self.alpha)?,
                    0 => scaled($grad.clone(), self.beta)?,
                )
            }

            fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                scaled_arguments(inputs, [self.beta, self.alpha], visit);
            }

            fn flops(&self, [_, a, b]: [&Tensor; 3]) -> u64 {
                product_flops(a, b)
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x, $a, $b]: [&Tensor; 3]) -> Result<Spec> {
                let spec: Spec = $product?;
                check_sum(Self::NAME, x, $a, &spec)?;
                Ok(spec)
            }

            fn shown(&self, inputs: [&Tensor; 3]) -> Result<Option<Tensor>> {
                let out = self.room(inputs)?;
                show_added(inputs, self.beta, &out)?;
                self.fill(inputs, &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x, $a, $b]: [&Tensor; 3], $out: &Tensor) -> Result<()> {
                let ($alpha, $beta) = (self.alpha, self.beta);
                let $x = Some(x).filter(|_| !is_zero($beta, $out));
                $multiply;
                Ok(())
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $change;
            const NEEDS_OVERWRITTEN: bool = false;
            kernel_table!(in place $op);
        }

        impl Tensor {
            $(#[$doc])*
            /// With both factors 1.
            pub fn $method(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                self.$scaled(a, b, 1, 1)
            }

            $(#[$doc])*
            pub fn $scaled(
                &self,
                a: &Tensor,
                b: &Tensor,
                beta: impl Into<Scalar>,
                alpha: impl Into<Scalar>,
            ) -> Result<Tensor> {
                $op { beta: beta.into(), alpha: alpha.into() }.call([self, a, b])
            }

            $(#[$doc])*
            /// Written over this tensor.
            pub fn $in_place(
                &self,
                a: &Tensor,
                b: &Tensor,
                beta: impl Into<Scalar>,
                alpha: impl Into<Scalar>,
            ) -> Result<()> {
                $op { beta: beta.into(), alpha: alpha.into() }.call_in_place([self, a, b])
            }
        }
    )*};
}

added! {
    /// `beta * x + alpha * a @ b` of matrices, `x` broadcast.
    Addmm, addmm, addmm_scaled, addmm_: "aten::addmm", "aten::addmm_", "AddmmBackward0",
        |a, b| infer_product::<2>(Self::NAME, a, b),
        |alpha, beta, x, out| multiply_added(alpha, a, b, beta, x, out),
        |grad| left_gradient(grad, a, b), right_gradient(grad, a, b);
    /// `beta * x + alpha * a @ b` of stacks of matrices, `x` broadcast.
    Baddbmm, baddbmm, baddbmm_scaled, baddbmm_: "aten::baddbmm", "aten::baddbmm_", "BaddbmmBackward0",
        |a, b| infer_product::<3>(Self::NAME, a, b),
        |alpha, beta, x, out| multiply_added(alpha, a, b, beta, x, out),
        |grad| grad.bmm(&b.transpose(1, 2)?), a.transpose(1, 2)?.bmm(grad);
    /// `beta * x + alpha * a @ b`, the products of two stacks of matrices summed, `x` broadcast.
    Addbmm, addbmm, addbmm_scaled, addbmm_within_: "aten::addbmm", "aten::addbmm_", "AddbmmBackward0",
        |a, b| infer_product::<3>(Self::NAME, a, b).map(|spec| Spec::new(&spec.shape[1..], spec.dtype)),
        |alpha, beta, x, out| multiply_added(alpha, &side_by_side(a)?, &stacked(b)?, beta, x, out),
        |grad| spread(grad, a)?.bmm(&b.transpose(1, 2)?), a.transpose(1, 2)?.bmm(&spread(grad, a)?);
    /// `beta * x + alpha * a @ b` of a matrix and a vector, `x` broadcast.
    Addmv, addmv, addmv_scaled, addmv_: "aten::addmv", "aten::addmv_", "AddmvBackward0",
        |a, b| infer_mv(Self::NAME, a, b),
        |alpha, beta, x, out| {
            let x = x.map(|x| column_of(x, out.numel()));
            multiply_added(alpha, a, &column(b), beta, x.as_ref(), &column(out))
        },
        |grad| grad.outer(b), a.t()?.mv(grad);
    /// `beta * x + alpha * a b'`, the outer product of two vectors, `x` broadcast.
    Addr, addr, addr_scaled, addr_: "aten::addr", "aten::addr_", "AddrBackward0",
        |a, b| infer_outer(Self::NAME, a, b),
        |alpha, beta, x, out| multiply_added(alpha, &column(a), &row(b), beta, x, out),
        |grad| grad.mv(b), grad.t()?.mv(a);
}

fn infer_outer(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Spec> {
    let (&[rows], &[columns]) = (a.shape(), b.shape()) else {
        let text = format_args!("expects two vectors, not shapes {:?} and {:?}", a.shape(), b.shape());
        return Err(Error::new(Cause::Shape, op, text));
    };
    same_dtype(op, a, b)?;
    Ok(Spec::new([rows, columns], a.dtype()))
}

/// Whether `x` can be added to a product.
fn check_sum(op: &'static str, x: &Tensor, a: &Tensor, product: &Spec) -> Result<()> {
    same_dtype(op, x, a)?;
    if x.layout().broadcast_to(&product.shape).is_none() {
        let text = format_args!("shape {:?} does not broadcast to {:?}", x.shape(), &product.shape[..]);
        return Err(Error::new(Cause::Shape, op, text));
    }
    Ok(())
}

/// Whether a factor is 0 among elements of `out`: integers cut fractions off.
fn is_zero(factor: Scalar, out: &Tensor) -> bool {
    if out.dtype().is_float() { factor.as_f64() == 0.0 } else { factor.as_i64() == 0 }
}

/// The matrices of a stack beside each other: `[stack, m, k]` as `[m, stack k]`.
fn side_by_side(a: &Tensor) -> Result<Tensor> {
    let &[stack, rows, columns] = a.shape() else { unreachable!("`infer` saw a stack") };
    a.transpose(0, 1)?.reshape([rows, stack * columns])
}

/// The matrices of a stack below each other: `[stack, k, n]` as `[stack k, n]`.
fn stacked(b: &Tensor) -> Result<Tensor> {
    let &[stack, rows, columns] = b.shape() else { unreachable!("`infer` saw a stack") };
    b.reshape([stack * rows, columns])
}

/// A gradient of one matrix for each of a stack.
fn spread(grad: &Tensor, stack: &Tensor) -> Result<Tensor> {
    grad.unsqueeze(0)?.expand([stack.shape()[0], grad.shape()[0], grad.shape()[1]])
}

impl Tensor {
    /// As [`addbmm_within_`](Tensor::addbmm_within_). A smaller tensor grows first, and as in torch this
    /// handle alone: it gets memory of its own.
    pub fn addbmm_(
        &mut self,
        a: &Tensor,
        b: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Result<()> {
        let op = Addbmm { beta: beta.into(), alpha: alpha.into() };
        let spec = op.infer([self, a, b])?;
        if self.shape() != &spec.shape[..] {
            *self = self.expand(&spec.shape)?.copy()?;
        }
        op.call_in_place([self, a, b])
    }
}
