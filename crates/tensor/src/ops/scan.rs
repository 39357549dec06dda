//! Running sums and products along a dimension.

use super::reduce::{check_sum_type, sum_type};
use super::{check_dims, check_float};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, DType, Grads, Kernel, Op, Result, Spec, Tensor, composite, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::scan;

/// One line per operator: its names, its kernel and its derivative.
macro_rules! running {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $change:ident: $name:literal, $in_place:literal,
        $backward:literal, saves $saves:ident, |$ctx:ident, $dim:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Along which dimension.
            pub dim: usize,
            /// What is computed in and given; integers become `i64` if nothing is said.
            pub dtype: Option<DType>,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::$saves;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, $ctx: &Backward<'_>) -> Result<Grads> {
                let $dim = self.dim;
                grads!($ctx; $derivative?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Int(self.dim as i64));
                visit(Argument::None);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_dims(Self::NAME, &[self.dim], x)?;
                let dtype = self.dtype.unwrap_or(sum_type(x.dtype()));
                check_sum_type(Self::NAME, dtype)?;
                Ok(Spec::new(x.shape(), dtype))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                cpu::map(x, out.dtype(), out, |x, out| scan::$method(x, self.dim, out))
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            kernel_table!(in place $op);
        }

        impl Tensor {
            $(#[$doc])*
            /// Computed in and given as `dtype`; integers become `i64` if none is named.
            pub fn $method(&self, dim: isize, dtype: impl Into<Option<DType>>) -> Result<Tensor> {
                $op { dim: self.dim_index($op::NAME, dim)?, dtype: dtype.into() }.call([self])
            }

            $(#[$doc])*
            /// Written over this tensor, in its own type.
            pub fn $change(&self, dim: isize) -> Result<()> {
                let dtype = Some(self.dtype());
                $op { dim: self.dim_index($op::IN_PLACE, dim)?, dtype }.call_in_place([self])
            }
        }
    )*};
}

running! {
    /// The sum of each element and all before it along `dim`.
    Cumsum, cumsum, cumsum_: "aten::cumsum", "aten::cumsum_", "CumsumBackward0", saves Nothing,
        |ctx, dim| backwards(ctx.grad(), dim, |grad, dim| grad.cumsum(dim, None));
    /// The product of each element and all before it along `dim`.
    Cumprod, cumprod, cumprod_: "aten::cumprod", "aten::cumprod_", "CumprodBackward0", saves Both,
        |ctx, dim| cumprod_backward(ctx.grad(), ctx.saved(0), ctx.saved(1), dim);
}

/// What `run` gives along `dim` when it starts from the end.
fn backwards(x: &Tensor, dim: usize, run: impl FnOnce(&Tensor, isize) -> Result<Tensor>) -> Result<Tensor> {
    let dim = dim as isize;
    run(&x.flip(&[dim])?, dim)?.flip(&[dim])
}

/// Each factor's gradient: all products it is in, without it. As in torch it is divided out again,
/// unless there are zeros.
fn cumprod_backward(grad: &Tensor, x: &Tensor, products: &Tensor, dim: usize) -> Result<Tensor> {
    let _span = composite("aten::cumprod_backward", [grad, x, products], |_| {});
    if x.numel() <= 1 {
        return Ok(grad.clone());
    }
    let x = x.to_dtype(grad.dtype())?;
    if x.eq(0)?.any()?.item()?.as_i64() != 0 {
        return without_each(grad, &x, products, dim);
    }
    backwards(&products.mul(grad)?, dim, |terms, dim| terms.cumsum(dim, None))?.div(&x)
}

/// As [`cumprod_backward`] without a division: the factors before each are multiplied already, and
/// those behind it come by a recurrence.
fn without_each(grad: &Tensor, x: &Tensor, products: &Tensor, dim: usize) -> Result<Tensor> {
    let behind = Recurrence { dim }.call([grad, &next(x, dim)?])?;
    let (dim, size) = (dim as isize, x.shape()[dim]);
    let ones = x.narrow(dim, 0, 1)?.detach()?.ones_like()?;
    let before = Tensor::cat(&[&ones, &products.narrow(dim, 0, size - 1)?], dim)?;
    before.mul(&behind)
}

/// For each element the one after it along `dim`, and 0 for the last.
fn next(x: &Tensor, dim: usize) -> Result<Tensor> {
    let (dim, size) = (dim as isize, x.shape()[dim]);
    let end = x.narrow(dim, 0, 1)?.detach()?.zeros_like()?;
    Tensor::cat(&[&x.narrow(dim, 1, size - 1)?, &end], dim)
}

/// `y[k] = terms[k] + factors[k] * y[k + 1]` along a dimension, from its end: what derivatives of
/// running products follow, and of itself.
#[derive(Clone, Debug)]
struct Recurrence {
    dim: usize,
}

impl Op for Recurrence {
    const NAME: &'static str = "cresset::recurrence";
    const BACKWARD: &'static str = "RecurrenceBackward";
    const SAVES: Saves = Saves::Both;
    /// The terms and the factors, of one shape.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (factors, dim) = (ctx.saved(1), self.dim);
        // What comes to a term goes on to those that it is in, which stand before it.
        let reached = backwards(ctx.grad(), dim, |grad, along| {
            Recurrence { dim }.call([grad, &next(&factors.flip(&[along])?, dim)?])
        })?;
        grads!(ctx; reached.clone(), reached.mul(&next(ctx.saved(2), dim)?)?)
    }
}

impl Kernel for Recurrence {
    kernel_table!(Recurrence);

    fn infer(&self, [terms, _]: [&Tensor; 2]) -> Result<Spec> {
        check_float(Self::NAME, terms)?;
        Ok(Spec::like(terms))
    }

    fn cpu(&self, [terms, factors]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        cpu::map2(terms.into(), factors.into(), out.dtype(), out, |terms, factors, out| {
            scan::recurrence(terms, factors, self.dim, out);
        })
    }
}
