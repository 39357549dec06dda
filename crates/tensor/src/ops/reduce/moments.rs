//! Variances and standard deviations, alone or with the mean.

use super::{check_reduced, fill, group_size, kept_layout, reduced, spread, told, with_reduced};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::sizes::Sizes as _;
use crate::{
    Backward, DType, Device, Grads, Kernel, NamedDims, Op, Result, Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{ViewMut, reduce};

fn infer(op: &'static str, x: &Tensor, dims: &[usize], keep: bool) -> Result<Spec> {
    check_reduced(op, dims, x)?;
    super::super::check_float(op, x)?;
    Ok(Spec { shape: reduced(x.shape(), dims, keep), dtype: x.dtype() })
}

fn arguments(
    x: &Tensor,
    dims: &NamedDims,
    keep: bool,
    correction: Option<f64>,
    visit: &mut dyn FnMut(Argument<'_>),
) {
    visit(Argument::Tensor(x.argument()));
    visit(told(dims, &dims.told()));
    visit(correction.map_or(Argument::None, shown::whole));
    visit(Argument::Bool(keep));
}

/// The gradient of a variance: twice the distance from the mean, over the corrected count.
fn variance_gradient(
    grad: &Tensor,
    x: &Tensor,
    dims: &NamedDims,
    keep: bool,
    correction: f64,
) -> Result<Tensor> {
    let freedom = group_size(x.shape(), dims) as f64 - correction;
    if dims.named().is_empty() || x.dim() == 0 {
        if freedom <= 0.0 {
            // Nothing is left to divide by: infinite, or undefined at the mean itself.
            let at_mean = x.eq(&x.mean()?)?;
            return grad.mul(&at_mean.choose(f64::NAN, f64::INFINITY)?.to_dtype(grad.dtype())?);
        }
        let distance = x.sub(&x.mean()?)?;
        return grad.mul(2.0 / freedom)?.mul(&distance);
    }
    let grad = if keep || x.dim() <= 1 { grad.clone() } else { with_reduced(grad, x.dim(), dims)? };
    let distance = x.sub(&x.mean_dims(dims.named(), true)?)?;
    grad.mul(2.0 / freedom)?.mul(&distance)
}

/// The gradient of the variance, given that of its root; none where the root is 0.
fn root_gradient(grad: &Tensor, root: &Tensor) -> Result<Tensor> {
    let grad = grad.div(&root.mul(2)?)?;
    grad.masked_fill_(&root.eq(0)?, 0)?;
    Ok(grad)
}

/// What torch's kernel calls: a single result is computed apart and filled in.
fn show(out: &Tensor, x: &Tensor, dims: &[usize], keep: bool) -> Result<bool> {
    shown::empty_output(out.dtype())?;
    shown::reduced(out, x.shape(), dims, keep)?;
    if out.numel() == 1 && matches!(out.dtype(), DType::F32 | DType::F64) && x.numel() > 0 {
        x.mean()?.item()?;
        return Ok(true);
    }
    Ok(false)
}

/// One line per operator that gives the variance or its root.
macro_rules! alone {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $over:ident, $unbiased:ident: $name:literal, $backward:literal, root $root:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: NamedDims,
            /// Whether they stay, with size 1.
            pub keep: bool,
            /// What is taken off the count before the squares are divided by it; 1 if nothing is said.
            pub correction: Option<f64>,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let grad = if $root { root_gradient(ctx.grad(), ctx.saved(1))? } else { ctx.grad().clone() };
                grads!(ctx; variance_gradient(&grad, ctx.saved(0), &self.dims, self.keep, self.correction.unwrap_or(1.0))?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                arguments(x, &self.dims, self.keep, self.correction, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                infer(Self::NAME, x, &self.dims, self.keep)
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                let apart = show(&out, x, &self.dims, self.keep)?;
                self.fill([x], &out, Device::CPU)?;
                if apart {
                    out.fill_(shown::only(&out)?)?;
                }
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let how = reduce::Moments { correction: self.correction.unwrap_or(1.0), root: $root };
                fill(x, &self.dims, out, |x, out| reduce::moments(how, x, &self.dims, out, None))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, &[])?, keep: false, correction: None }.call([self])
            }

            $(#[$doc])*
            /// As the method with a `correction`, which is 1 for unbiased estimates and 0 for others.
            pub fn $unbiased(&self, dims: &[isize], unbiased: bool, keep: bool) -> Result<Tensor> {
                let _span = composite($op::NAME, [self], |visit| {
                    if !dims.is_empty() {
                        visit(Argument::Ints(&dims.written()));
                    }
                    visit(Argument::Bool(unbiased));
                    if !dims.is_empty() {
                        visit(Argument::Bool(keep));
                    }
                });
                self.$over(dims, f64::from(u8::from(unbiased)), keep)
            }

            $(#[$doc])*
            /// Over `dims`, or all if none are named; `correction` is taken off the count, and with
            /// `keep` they stay, with size 1.
            pub fn $over(&self, dims: &[isize], correction: f64, keep: bool) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep, correction: Some(correction) }.call([self])
            }
        }
    )*};
}

alone! {
    /// The variance of the elements.
    Var, var, var_dims, var_unbiased: "aten::var", "VarBackward0", root false;
    /// The standard deviation of the elements.
    Std, std, std_dims, std_unbiased: "aten::std", "StdBackward0", root true;
}

/// One line per operator that gives the mean too.
macro_rules! with_mean {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, root $root:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: NamedDims,
            /// Whether they stay, with size 1.
            pub keep: bool,
            /// What is taken off the count before the squares are divided by it; 1 if nothing is said.
            pub correction: Option<f64>,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let grad =
                    if $root { root_gradient(ctx.grad_of(0), ctx.saved(1))? } else { ctx.grad_of(0).clone() };
                let count = group_size(ctx.shape(0), &self.dims) as f64;
                let of_mean = spread(ctx.grad_of(1), ctx.shape(0), &self.dims, self.keep)?.div(count)?;
                grads!(ctx; variance_gradient(&grad, ctx.saved(0), &self.dims, self.keep, self.correction.unwrap_or(1.0))?.add(&of_mean)?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                arguments(x, &self.dims, self.keep, self.correction, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                let spec = infer(Self::NAME, x, &self.dims, self.keep)?;
                Ok([spec.clone(), spec])
            }

            fn cpu(&self, [x]: [&Tensor; 1], [variance, mean]: &[Tensor; 2]) -> Result<()> {
                let how = reduce::Moments { correction: self.correction.unwrap_or(1.0), root: $root };
                let layout = kept_layout(x.shape(), &self.dims);
                let mut writing = mean.write();
                let mean = ViewMut::new(writing.bytes(), x.dtype(), &layout);
                fill(x, &self.dims, variance, |x, out| reduce::moments(how, x, &self.dims, out, Some(mean)))
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// Over `dims`, or all if none are named; `correction` is taken off the count, and with
            /// `keep` they stay, with size 1.
            pub fn $method(&self, dims: &[isize], correction: f64, keep: bool) -> Result<[Tensor; 2]> {
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep, correction: Some(correction) }.call([self])
            }
        }
    )*};
}

with_mean! {
    /// The variance of the elements, and their mean.
    VarMean, var_mean: "aten::var_mean", "VarMeanBackward0", root false;
    /// The standard deviation of the elements, and their mean.
    StdMean, std_mean: "aten::std_mean", "StdMeanBackward0", root true;
}
