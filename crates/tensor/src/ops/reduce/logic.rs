//! Whether any or all elements are other than zero, and how many are.

use super::{check_reduced, fill, reduce_arguments, reduced};
use crate::op::kernel_table;
use crate::{DType, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, reduce};

/// One line per operator and its three methods.
macro_rules! truths {
    ($($(#[$doc:meta])* $op:ident: $name:literal, $kernel:ident, $all:ident, $some:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: Dims,
            /// Whether they stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                reduce_arguments(x, &self.dims, self.keep, None, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            /// Bytes stay bytes: in torch they once were its truth values.
            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_reduced(Self::NAME, &self.dims, x)?;
                let dtype = if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
                Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype })
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                fill(x, &self.dims, out, |x, out| reduce::$kernel(x, &self.dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $all(&self) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, &[])?, keep: false }.call([self])
            }

            $(#[$doc])*
            /// Over `dims`; with `keep` they stay, with size 1.
            pub fn $some(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
                $op { dims: self.dim_indices($op::NAME, dims)?, keep }.call([self])
            }
        }
    )*};
}

truths! {
    /// Whether any element is other than zero.
    Any: "aten::any", any, any, any_dims;
    /// Whether all elements are other than zero.
    All: "aten::all", all, all, all_dims;
}

impl Tensor {
    /// How many elements over `dims`, or over all if none are named, are other than zero.
    pub fn count_nonzero(&self, dims: &[isize]) -> Result<Tensor> {
        let _span = composite("aten::count_nonzero", [self], |_| {});
        self.eq(0)?.eq(false)?.sum_dims(dims, false)
    }
}
