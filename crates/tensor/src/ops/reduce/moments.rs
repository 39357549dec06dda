//! Variances and standard deviations, alone or with the mean.

use super::{check_reduced, fill, group_size, kept, kept_layout, reduced, sizes, spread};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, ViewMut, reduce};

fn infer(op: &'static str, x: &Tensor, dims: &[usize], keep: bool) -> Result<Spec> {
    check_reduced(op, dims, x)?;
    super::super::check_float(op, x)?;
    Ok(Spec { shape: reduced(x.shape(), dims, keep), dtype: x.dtype() })
}

fn arguments(x: &Tensor, dims: &[usize], keep: bool, correction: f64, visit: &mut dyn FnMut(Argument<'_>)) {
    visit(Argument::Tensor(x.argument()));
    visit(Argument::Ints(&sizes(dims)));
    visit(Argument::Float(correction));
    visit(Argument::Bool(keep));
}

/// The gradient of a variance: twice the distance from the mean, over the corrected count.
fn variance_gradient(grad: &Tensor, x: &Tensor, dims: &[usize], correction: f64) -> Result<Tensor> {
    let shape = kept(x.shape(), dims);
    let named: Vec<isize> = dims.iter().map(|&dim| dim as isize).collect();
    let mean = if dims.is_empty() { x.clone() } else { x.mean_dims(&named, true)? };
    let (grad, count) = (grad.reshape(&shape)?, group_size(x.shape(), dims) as f64);
    let freedom = count - correction;
    if freedom <= 0.0 && dims.len() == x.dim() {
        // Nothing is left to divide by: infinite, or undefined at the mean itself.
        let at_mean = x.eq(&mean)?;
        let slope = x.zeros_like()?.add(f64::NAN)?.where_(&at_mean, &x.zeros_like()?.add(f64::INFINITY)?)?;
        return slope.mul(&grad);
    }
    x.sub(&mean)?.mul(&grad.mul(2.0 / freedom)?)
}

/// The gradient of the variance, given that of its root; none where the root is 0.
fn root_gradient(grad: &Tensor, root: &Tensor) -> Result<Tensor> {
    let grad = grad.div(&root.mul(2)?)?;
    grad.zeros_like()?.where_(&root.eq(0)?, &grad)
}

/// One line per operator that gives the variance or its root.
macro_rules! alone {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $over:ident: $name:literal, $backward:literal, root $root:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: Dims,
            /// Whether they stay, with size 1.
            pub keep: bool,
            /// What is taken off the count before the squares are divided by it.
            pub correction: f64,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let grad = if $root { root_gradient(ctx.grad(), ctx.saved(1))? } else { ctx.grad().clone() };
                grads!(ctx; variance_gradient(&grad, ctx.saved(0), &self.dims, self.correction)?)
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

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let how = reduce::Moments { correction: self.correction, root: $root };
                fill(x, &self.dims, out, |x, out| reduce::moments(how, x, &self.dims, out, None))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                self.$over(&[], 1.0, false)
            }

            $(#[$doc])*
            /// Over `dims`, or all if none are named; `correction` is taken off the count, and with
            /// `keep` they stay, with size 1.
            pub fn $over(&self, dims: &[isize], correction: f64, keep: bool) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep, correction }.call([self])
            }
        }
    )*};
}

alone! {
    /// The variance of the elements.
    Var, var, var_dims: "aten::var", "VarBackward0", root false;
    /// The standard deviation of the elements.
    Std, std, std_dims: "aten::std", "StdBackward0", root true;
}

/// One line per operator that gives the mean too.
macro_rules! with_mean {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, root $root:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: Dims,
            /// Whether they stay, with size 1.
            pub keep: bool,
            /// What is taken off the count before the squares are divided by it.
            pub correction: f64,
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
                let of_mean = spread(ctx.grad_of(1), ctx.shape(0), &self.dims)?.div(count)?;
                grads!(ctx; variance_gradient(&grad, ctx.saved(0), &self.dims, self.correction)?.add(&of_mean)?)
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
                let how = reduce::Moments { correction: self.correction, root: $root };
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
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep, correction }.call([self])
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
