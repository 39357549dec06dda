//! One element of many by its rank or frequency: medians, the k-th smallest, the most frequent.

use super::extremes::{check_some, shared};
use super::sort::rank;
use super::{as_vector, check_dims, kept, placed, reduced};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{View, ViewMut, order};

fn check_number(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dtype() != DType::Bool {
        return Ok(());
    }
    Err(Error::new(Cause::DType, op, "expects numbers, not bool"))
}

fn infer(op: &'static str, x: &Tensor, dim: usize, keep: bool) -> Result<[Spec; 2]> {
    check_some(op, x, &[dim])?;
    let shape = reduced(x.shape(), &[dim], keep);
    Ok([Spec { shape: shape.clone(), dtype: x.dtype() }, Spec { shape, dtype: DType::I64 }])
}

fn gradient(ctx: &Backward<'_>, dim: usize) -> Result<Grads> {
    grads!(ctx; {
        let shape = kept(ctx.shape(0), &[dim]);
        let (grad, indices) = (ctx.grad().reshape(&shape)?, ctx.saved(1).reshape(&shape)?);
        placed(&grad, dim, &indices, ctx.shape(0))?
    })
}

/// Fills both outputs by a kernel that finds one index along `dim`.
fn choose(
    x: &Tensor,
    dim: usize,
    [values, indices]: &[Tensor; 2],
    run: impl FnOnce(View<'_>, ViewMut<'_>),
) -> Result<()> {
    let x = as_vector(x)?;
    let shape = kept(x.shape(), &[dim]);
    rank(&x, dim, &[values.view(&shape)?, indices.view(&shape)?], run)
}

/// The k-th smallest elements along a dimension, and where they are.
#[derive(Clone, Debug)]
pub struct Kthvalue {
    /// Which, from 1.
    pub k: usize,
    /// Along which dimension.
    pub dim: usize,
    /// Whether it stays, with size 1.
    pub keep: bool,
}

impl Op for Kthvalue {
    const NAME: &'static str = "aten::kthvalue";
    const BACKWARD: &'static str = "KthvalueBackward0";
    const SAVES: Saves = Saves::Outputs;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        gradient(ctx, self.dim)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.k as i64));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Bool(self.keep));
    }
}

impl Kernel for Kthvalue {
    kernel_table!(Kthvalue);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
        check_number(Self::NAME, x)?;
        check_dims(Self::NAME, &[self.dim], x)?;
        let size = x.shape().get(self.dim).copied().unwrap_or(1);
        if !(1..=size).contains(&self.k) {
            let text = format_args!(
                "there is no {}. smallest of {size} elements, along dimension {} of shape {:?}",
                self.k,
                self.dim,
                x.shape()
            );
            return Err(Error::new(Cause::Index, Self::NAME, text));
        }
        infer(Self::NAME, x, self.dim, self.keep)
    }

    fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
        choose(x, self.dim, outputs, |x, out| order::kth(x, self.dim, self.k - 1, out))
    }
}

/// One line per operator that chooses along a dimension.
macro_rules! along_dim {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, $kernel:ident, bool $truths:literal;)*) => {$(
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
                gradient(ctx, self.dim)
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
                if !$truths {
                    check_number(Self::NAME, x)?;
                }
                infer(Self::NAME, x, self.dim, self.keep)
            }

            fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
                choose(x, self.dim, outputs, |x, out| order::$kernel(x, self.dim, out))
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
    /// The middle elements along a dimension, the lower of two, and where they are. NaN if there is one.
    MedianDim, median_dim: "aten::median", "MedianBackward1", median, bool false;
    /// The middle elements along a dimension among those that are not NaN, the lower of two, and where
    /// they are.
    NanmedianDim, nanmedian_dim: "aten::nanmedian", "NanmedianBackward1", nan_median, bool false;
    /// The most frequent elements along a dimension, the smallest of several, and where the last are.
    Mode, mode: "aten::mode", "ModeBackward0", mode, bool true;
}

/// One line per operator that chooses among all elements.
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

            /// Elements equal to the one chosen share the gradient.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; shared(ctx.grad(), ctx.saved(0), ctx.saved(1))?)
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_number(Self::NAME, x)?;
                Ok(Spec::new([], x.dtype()))
            }

            /// Nothing has NaN in its middle.
            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                if x.numel() == 0 {
                    cresset_kernels::elementwise::fill(Scalar::Float(f64::NAN), out.elements_mut(&mut out.write()));
                    return Ok(());
                }
                let index = Tensor::uninit(&[1], DType::I64, x.device())?;
                let outputs = [out.view([1])?, index];
                rank(&x.reshape([x.numel()])?, 0, &outputs, |x, out| order::$kernel(x, 0, out))
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
    /// The middle element of all, the lower of two. NaN if there is one.
    Median, median: "aten::median", "MedianBackward0", median;
    /// The middle element of all that are not NaN, the lower of two.
    Nanmedian, nanmedian: "aten::nanmedian", "NanmedianBackward0", nan_median;
}

impl Tensor {
    /// The `k`-th smallest elements along `dim`, from 1, and their indices; with `keep` the dimension
    /// stays, with size 1.
    pub fn kthvalue(&self, k: usize, dim: isize, keep: bool) -> Result<[Tensor; 2]> {
        Kthvalue { k, dim: self.dim_index(Kthvalue::NAME, dim)?, keep }.call([self])
    }
}
