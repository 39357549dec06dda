//! Largest and smallest elements, and where they are. NaN beats everything.

use super::{as_vector, check_dims, check_reduced, fill, is_nan, kept, kept_layout, placed, reduced, sizes};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, ViewMut, reduce};

pub(super) fn check_some(op: &'static str, x: &Tensor, dims: &[usize]) -> Result<()> {
    check_dims(op, dims, x)?;
    let Some(dim) = dims.iter().find(|&&dim| x.shape().get(dim) == Some(&0)) else { return Ok(()) };
    let text = format_args!("dimension {dim} of shape {:?} has no elements to choose from", x.shape());
    Err(Error::new(Cause::Index, op, text))
}

/// Where `x` is the extreme `found`, NaN included.
pub(super) fn mask(x: &Tensor, found: &Tensor) -> Result<Tensor> {
    x.eq(found)?.where_(&found.eq(found)?, &is_nan(x)?)
}

/// The gradient of one element chosen among all, shared by those that are equal to it.
pub(super) fn shared(grad: &Tensor, x: &Tensor, found: &Tensor) -> Result<Tensor> {
    let mask = mask(x, found)?.to_dtype(grad.dtype())?;
    mask.mul(&grad.div(&mask.sum()?)?)
}

/// The extreme of all elements: one line per operator.
macro_rules! of_all {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, $kernel:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            /// Elements that are all extreme share the gradient.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; shared(ctx.grad(), ctx.saved(0), ctx.saved(1))?)
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                if x.numel() == 0 {
                    let text = format_args!("a tensor of shape {:?} has no elements to choose from", x.shape());
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
                Ok(Spec::new([], x.dtype()))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let dims: Dims = (0..x.dim()).collect();
                fill(x, &dims, out, |x, out| reduce::$kernel(x, &dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                $op.call([self])
            }
        }
    )*};
}

of_all! {
    /// The largest element of all.
    Max, max: "aten::max", "MaxBackward1", amax;
    /// The smallest element of all.
    Min, min: "aten::min", "MinBackward1", amin;
}

/// The extremes over several dimensions: one line per operator.
macro_rules! over_dims {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimensions.
            pub dims: Dims,
            /// Whether they stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            /// Elements that are all extreme share the gradient.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let shape = kept(ctx.shape(0), &self.dims);
                let (grad, found) = (ctx.grad().reshape(&shape)?, ctx.saved(1).reshape(&shape)?);
                let mask = ctx.saved(0).eq(&found)?.to_dtype(grad.dtype())?;
                grads!(ctx; mask.mul(&grad)?.div(&mask.sum_to(&shape)?)?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Ints(&sizes(&self.dims)));
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_reduced(Self::NAME, &self.dims, x)?;
                check_some(Self::NAME, x, &self.dims)?;
                Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype: x.dtype() })
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                fill(x, &self.dims, out, |x, out| reduce::$method(x, &self.dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// Over all if none are named; with `keep` they stay, with size 1.
            pub fn $method(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep }.call([self])
            }
        }
    )*};
}

over_dims! {
    /// The largest elements over some dimensions.
    Amax, amax: "aten::amax", "AmaxBackward0";
    /// The smallest elements over some dimensions.
    Amin, amin: "aten::amin", "AminBackward0";
}

/// The extremes along a dimension and their indices: one line per operator.
macro_rules! along_dim {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, $kernel:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimension.
            pub dim: usize,
            /// Whether it stays, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Outputs;
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let shape = kept(ctx.shape(0), &[self.dim]);
                let (grad, indices) = (ctx.grad().reshape(&shape)?, ctx.saved(1).reshape(&shape)?);
                grads!(ctx; placed(&grad, self.dim, &indices, ctx.shape(0))?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Int(self.dim as i64));
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                check_some(Self::NAME, x, &[self.dim])?;
                let shape = reduced(x.shape(), &[self.dim], self.keep);
                Ok([Spec { shape: shape.clone(), dtype: x.dtype() }, Spec { shape, dtype: DType::I64 }])
            }

            fn cpu(&self, [x]: [&Tensor; 1], [values, indices]: &[Tensor; 2]) -> Result<()> {
                let x = as_vector(x)?;
                let layout = kept_layout(x.shape(), &[self.dim]);
                let (reading, mut writing, mut indexing) = (x.read(), values.write(), indices.write());
                reduce::$kernel(
                    x.elements(&reading),
                    self.dim,
                    ViewMut::new(writing.bytes(), values.dtype(), &layout),
                    ViewMut::new(indexing.bytes(), DType::I64, &layout),
                );
                Ok(())
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// With `keep` the dimension stays, with size 1.
            pub fn $method(&self, dim: isize, keep: bool) -> Result<[Tensor; 2]> {
                $op { dim: self.dim_index($op::NAME, dim)?, keep }.call([self])
            }
        }
    )*};
}

along_dim! {
    /// The largest elements along a dimension, and their indices.
    MaxDim, max_dim: "aten::max", "MaxBackward0", max;
    /// The smallest elements along a dimension, and their indices.
    MinDim, min_dim: "aten::min", "MinBackward0", min;
}

/// Where the extremes are: one line per operator.
macro_rules! places {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $all:ident: $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Along which dimension; among all elements, in row-major order, if none is named.
            pub dim: Option<usize>,
            /// Whether reduced dimensions stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(self.dim.map_or(Argument::None, |dim| Argument::Int(dim as i64)));
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                if x.dtype() == DType::Bool {
                    return Err(Error::new(Cause::DType, Self::NAME, "expects numbers, not bool"));
                }
                let dims = self.dims(x);
                check_some(Self::NAME, x, &dims)?;
                Ok(Spec { shape: reduced(x.shape(), &dims, self.keep), dtype: DType::I64 })
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let (x, dim) = match self.dim {
                    Some(dim) => (as_vector(x)?, dim),
                    None => (x.reshape([x.numel()])?, 0),
                };
                let flat = if self.dim.is_none() { out.view([1])? } else { out.alias() };
                fill(&x, &[dim], &flat, |x, out| reduce::$method(x, dim, out))
            }
        }

        impl $op {
            fn dims(&self, x: &Tensor) -> Dims {
                self.dim.map_or_else(|| (0..x.dim()).collect(), |dim| Dims::from_slice(&[dim]))
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// Along `dim`; with `keep` it stays, with size 1.
            pub fn $method(&self, dim: isize, keep: bool) -> Result<Tensor> {
                $op { dim: Some(self.dim_index($op::NAME, dim)?), keep }.call([self])
            }

            $(#[$doc])*
            /// Among all elements, in row-major order.
            pub fn $all(&self) -> Result<Tensor> {
                $op { dim: None, keep: false }.call([self])
            }
        }
    )*};
}

places! {
    /// The index of the largest element.
    Argmax, argmax, argmax_all: "aten::argmax";
    /// The index of the smallest element.
    Argmin, argmin, argmin_all: "aten::argmin";
}

impl Tensor {
    /// The smallest and the largest elements along `dim`, or of all if none is named; with `keep` what was
    /// reduced stays, with size 1.
    pub fn aminmax(&self, dim: Option<isize>, keep: bool) -> Result<[Tensor; 2]> {
        let _span = composite("aten::aminmax", [self], |_| {});
        Ok([self.amin(dim.as_slice(), keep)?, self.amax(dim.as_slice(), keep)?])
    }
}
