//! Running sums, products and extremes along a dimension, and differences of neighbours.

use super::reduce::{check_sum_type, placed, rank, show_filled, sum_type};
use super::{check_dims, check_float, dtype_argument};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::{InPlace, kernel_table};
use crate::promote::float_type;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, NamedDim, Op, Result, Spec, Tensor, composite, cpu,
    grads,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{order, scan};

/// One line per operator: its names, its kernel and its derivative.
macro_rules! running {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $change:ident: $name:literal, $in_place:literal,
        $backward:literal, saves $saves:ident, |$ctx:ident, $dim:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Along which dimension.
            pub dim: NamedDim,
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
                visit(self.dim.argument());
                visit(dtype_argument(self.dtype));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_dims(Self::NAME, &[*self.dim], x)?;
                let dtype = self.dtype.unwrap_or(sum_type(x.dtype()));
                check_sum_type(Self::NAME, dtype)?;
                Ok(Spec::new(x.shape(), dtype))
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                let converted = match (x.dim(), x.numel()) {
                    (0, _) => show_filled(&out, x).map(|()| None)?,
                    (_, 0) => out.zero_().map(|()| None)?,
                    _ => Some(x.to(out.dtype())?),
                };
                self.fill([converted.as_ref().unwrap_or(x)], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                cpu::map(x, out.dtype(), out, |x, out| scan::$method(x, *self.dim, out))
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
                $op { dim: self.named_dim($op::NAME, dim)?, dtype: dtype.into() }.call([self])
            }

            $(#[$doc])*
            /// Written over this tensor, in its own type.
            pub fn $change(&self, dim: isize) -> Result<()> {
                let dtype = Some(self.dtype()).filter(|&dtype| dtype != sum_type(dtype));
                $op { dim: self.named_dim($op::IN_PLACE, dim)?, dtype }.call_in_place([self])
            }
        }
    )*};
}

running! {
    /// The sum of each element and all before it along `dim`.
    Cumsum, cumsum, cumsum_: "aten::cumsum", "aten::cumsum_", "CumsumBackward0", saves Nothing,
        |ctx, dim| cumsum_backward(&ctx.grad().to_dtype(ctx.dtype(0))?, dim);
    /// The product of each element and all before it along `dim`.
    Cumprod, cumprod, cumprod_: "aten::cumprod", "aten::cumprod_", "CumprodBackward0", saves Both,
        |ctx, dim| cumprod_backward(&ctx.grad().to_dtype(ctx.dtype(0))?, ctx.saved(0), ctx.saved(1), dim);
}

/// The logarithm of the sum of exponentials of each element and all before it along a dimension.
#[derive(Clone, Debug)]
pub struct Logcumsumexp {
    /// Which dimension.
    pub dim: usize,
}

impl Op for Logcumsumexp {
    const NAME: &'static str = "aten::logcumsumexp";
    const BACKWARD: &'static str = "LogcumsumexpBackward0";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// An element's share of each sum it is in, `e^(x - y)`, times the gradient there. From one sum to
    /// the next all shares shrink alike: a recurrence whose factors are at most 1.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let (grad, x, sums) = (ctx.grad(), ctx.saved(0).to_dtype(ctx.grad().dtype())?, ctx.saved(1));
            if x.dim() == 0 || x.numel() == 0 {
                grad.clone()
            } else {
                let (dim, size) = (self.dim as isize, x.shape()[self.dim]);
                let later = Tensor::cat(&[&sums.narrow(dim, 1, size - 1)?, &sums.narrow(dim, -1, 1)?], dim)?;
                let shrink = sums.sub(&later)?.exp()?;
                Recurrence { dim: self.dim }.call([grad, &shrink])?.mul(&x.sub(sums)?.exp()?)?
            }
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
    }
}

impl Kernel for Logcumsumexp {
    kernel_table!(Logcumsumexp);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_dims(Self::NAME, &[self.dim], x)?;
        Ok(Spec::new(x.shape(), float_type(x.dtype())))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| scan::logcumsumexp(x, self.dim, out))
    }
}

/// One line per operator.
macro_rules! running_extremes {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Along which dimension.
            pub dim: usize,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Outputs;
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; placed(ctx.grad(), self.dim, ctx.saved(1), ctx.shape(0))?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Int(self.dim as i64));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                check_dims(Self::NAME, &[self.dim], x)?;
                Ok([Spec::like(x), Spec::new(x.shape(), DType::I64)])
            }

            fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
                rank(x, self.dim, outputs, |x, out| order::$method(x, self.dim, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, dim: isize) -> Result<[Tensor; 2]> {
                $op { dim: self.dim_index($op::NAME, dim)? }.call([self])
            }
        }
    )*};
}

running_extremes! {
    /// The largest element so far along `dim`, the last of equals, and where it is.
    Cummax, cummax: "aten::cummax", "CummaxBackward0";
    /// The smallest element so far along `dim`, the last of equals, and where it is.
    Cummin, cummin: "aten::cummin", "CumminBackward0";
}

impl Tensor {
    /// The logarithm of the sum of exponentials of each element and all before it along `dim`.
    pub fn logcumsumexp(&self, dim: isize) -> Result<Tensor> {
        Logcumsumexp { dim: self.dim_index(Logcumsumexp::NAME, dim)? }.call([self])
    }

    /// The differences of neighbours along `dim`, of these again, and so on, so many `times`; truth values
    /// differ or not. `before` and `after` are joined to the ends first.
    pub fn diff(
        &self,
        times: usize,
        dim: isize,
        before: Option<&Tensor>,
        after: Option<&Tensor>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::diff";
        let _span = composite(NAME, ([self], &[before, after][..]), |_| {});
        let along = self.dim_index(NAME, dim)?;
        let fits = |other: &Tensor| {
            other.dim() == self.dim()
                && (0..self.dim()).all(|dim| dim == along || other.shape()[dim] == self.shape()[dim])
        };
        if self.dim() == 0 || ![before, after].into_iter().flatten().all(fits) {
            let text = format_args!(
                "expects tensors of one shape but for dimension {along}, not {:?}, {:?} and {:?}",
                self.shape(),
                before.map(Tensor::shape),
                after.map(Tensor::shape)
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        if times == 0 {
            return self.copy();
        }
        let parts: Vec<&Tensor> = before.into_iter().chain([self]).chain(after).collect();
        let mut x = if parts.len() == 1 { self.clone() } else { Tensor::cat(&parts, dim)? };
        let size = x.shape()[along];
        if x.numel() == 0 || times >= size {
            return x.narrow(dim, 0, size.saturating_sub(times))?.copy();
        }
        for _ in 0..times {
            let count = x.shape()[along] - 1;
            let (low, high) = (x.narrow(dim, 0, count)?, x.narrow(dim, 1, count)?);
            x = if x.dtype() == DType::Bool { high.eq(&low)?.eq(false)? } else { high.sub(&low)? };
        }
        Ok(x)
    }
}

/// What `run` gives along `dim` when it starts from the end.
fn backwards(x: &Tensor, dim: usize, run: impl FnOnce(&Tensor, isize) -> Result<Tensor>) -> Result<Tensor> {
    let dim = dim as isize;
    run(&x.flip(&[dim])?, dim)?.flip(&[dim])
}

/// The sum of all gradients that an element is in, from the end.
fn cumsum_backward(grad: &Tensor, dim: NamedDim) -> Result<Tensor> {
    if grad.numel() <= 1 || grad.shape()[*dim] == 1 {
        return Ok(grad.clone());
    }
    let dim = dim.named();
    grad.flip(&[dim])?.cumsum(dim, None)?.flip(&[dim])
}

/// Each factor's gradient: all products it is in, without it. As in torch it is divided out again,
/// unless there are zeros.
fn cumprod_backward(grad: &Tensor, x: &Tensor, products: &Tensor, dim: NamedDim) -> Result<Tensor> {
    let _span = composite("aten::cumprod_backward", [grad, x], |visit| {
        visit(dim.argument());
        visit(Argument::Tensor(products.argument()));
    });
    let dim = *dim;
    if x.numel() <= 1 || x.shape()[dim] == 1 {
        return Ok(grad.clone());
    }
    let x = if x.dtype() == grad.dtype() { x.clone() } else { x.to_dtype(grad.dtype())? };
    let terms = products.mul(grad)?;
    let is_zero = x.eq(0)?;
    if is_zero.any()?.item()?.as_i64() == 0 {
        return backwards(&terms, dim, |terms, dim| terms.cumsum(dim, None))?.div(&x);
    }
    match is_grad_enabled() {
        true => without_each(grad, &x, products, dim),
        false => up_to_first_zero(grad, &x, products, (&terms, &is_zero), dim),
    }
}

/// The products of all before each element.
fn products_before(products: &Tensor, dim: usize) -> Result<Tensor> {
    let (dim, size) = (dim as isize, products.shape()[dim]);
    let ones = products.narrow(dim, 0, 1)?.detach()?.ones_like()?;
    Tensor::cat(&[&ones, &products.narrow(dim, 0, size - 1)?], dim)
}

/// As [`cumprod_backward`] without a division: the factors before each are multiplied already, and
/// those behind it come by a recurrence. Has a derivative, too.
fn without_each(grad: &Tensor, x: &Tensor, products: &Tensor, dim: usize) -> Result<Tensor> {
    let behind = Recurrence { dim }.call([grad, &next(x, dim)?])?;
    products_before(products, dim)?.mul(&behind)
}

/// As [`without_each`], by the steps that torch takes when no derivative is wanted, so that half
/// precision is rounded alike. Behind a first zero all gradients are zero.
fn up_to_first_zero(
    grad: &Tensor,
    x: &Tensor,
    products: &Tensor,
    (terms, is_zero): (&Tensor, &Tensor),
    dim: usize,
) -> Result<Tensor> {
    let along = dim as isize;
    let none_yet = Tensor::zeros(x.shape(), (grad.dtype(), grad.device()))?;
    let zeros = is_zero.cumsum(along, None)?;
    // Before the first zero products can be divided.
    let before = zeros.eq(0)?;
    let divided = {
        let terms = terms.masked_fill(&before.bitwise_not()?, 0.0)?;
        let sums = backwards(&terms, dim, |terms, dim| terms.cumsum(dim, None))?;
        sums.div_(x)?;
        sums
    };
    let found = divided.where_(&before, &none_yet)?;
    // At the first zero it is left out of all products up to the next one.
    let up_to_next = zeros.eq(1)?;
    let [_, place] = up_to_next.max_dim(along, true)?;
    let first = up_to_next.logical_and(is_zero)?;
    up_to_next.bitwise_and_(&first.bitwise_not()?)?;
    let behind = x.masked_fill(&up_to_next.bitwise_not()?, 1.0)?.cumprod(along, None)?;
    let masked = grad.masked_fill(&zeros.ne(1)?, 0.0)?;
    let in_front = {
        let before = place.sub(1)?;
        before.relu_()?;
        let product = products.gather(along, &before)?;
        product.masked_fill_(&place.eq(0)?, 1.0)?;
        product
    };
    behind.mul_(&masked)?;
    let at_zero = behind.sum_dims(&[along], true)?;
    at_zero.mul_(&in_front)?;
    at_zero.where_(&first, &found)
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
pub struct Recurrence {
    /// Along which dimension.
    pub dim: usize,
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
