//! Whether any or all elements are other than zero, and how many are.

use super::{check_reduced, fill, reduced};
use crate::op::kernel_table;
use crate::{DType, Device, Kernel, NamedDim, NamedDims, Op, Result, Scalar, Spec, Tensor, composite, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, reduce};

/// The dimensions of a question, for each of which torch has an operator.
#[derive(Clone, Debug)]
pub enum Over {
    /// All that there are.
    All,
    /// One.
    One(NamedDim),
    /// Some.
    Several(NamedDims),
}

impl Over {
    /// Where they are in `x`.
    fn on(&self, x: &Tensor) -> Dims {
        match self {
            Over::All => (0..x.dim()).collect(),
            // A tensor without dimensions has none to reduce, whatever it is called.
            Over::One(_) if x.dim() == 0 => Dims::new(),
            Over::One(dim) => Dims::from_slice(&[**dim]),
            Over::Several(dims) => Dims::from_slice(dims),
        }
    }

    fn arguments(&self, keep: bool, visit: &mut dyn FnMut(Argument<'_>)) {
        match self {
            Over::All => return,
            Over::One(dim) => visit(dim.argument()),
            Over::Several(dims) => visit(Argument::Ints(&dims.told())),
        }
        visit(Argument::Bool(keep));
    }
}

/// One line per operator and its methods.
macro_rules! truths {
    ($($(#[$doc:meta])* $op:ident: $name:literal, $kernel:ident, $all:ident, $some:ident, $one:ident, of nothing $empty:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Over which dimensions.
            pub dims: Over,
            /// Whether they stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                self.dims.arguments(self.keep, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            /// Bytes stay bytes: in torch they once were its truth values.
            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                let dims = self.dims.on(x);
                check_reduced(Self::NAME, &dims, x)?;
                let dtype = if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
                Ok(Spec { shape: reduced(x.shape(), &dims, self.keep), dtype })
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let (out, dims) = (self.room([x])?, self.dims.on(x));
                let empty = Scalar::Float($empty);
                let _converted = match x.numel() {
                    0 => out.fill_(empty).map(|()| None)?,
                    1 => {
                        let truth = x.view_as(&out)?.to(out.dtype())?;
                        out.copy_(&truth)?;
                        Some(truth)
                    }
                    _ => {
                        shown::reduced(&out, x.shape(), &dims, self.keep)?;
                        let converted = shown::converted(x, out.dtype())?;
                        shown::start_filled(&out, x.shape(), &dims, empty);
                        converted
                    }
                };
                self.fill([x], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let dims = self.dims.on(x);
                fill(x, &dims, out, |x, out| reduce::$kernel(x, &dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $all(&self) -> Result<Tensor> {
                $op { dims: Over::All, keep: false }.call([self])
            }

            $(#[$doc])*
            /// Over `dims`; with `keep` they stay, with size 1.
            pub fn $some(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
                let dims = NamedDims::new(self.dim_indices($op::NAME, dims)?, dims);
                $op { dims: Over::Several(dims), keep }.call([self])
            }

            $(#[$doc])*
            /// Along `dim`; with `keep` it stays, with size 1.
            pub fn $one(&self, dim: isize, keep: bool) -> Result<Tensor> {
                $op { dims: Over::One(self.named_dim($op::NAME, dim)?), keep }.call([self])
            }
        }
    )*};
}

truths! {
    /// Whether any element is other than zero.
    Any: "aten::any", any, any, any_dims, any_dim, of nothing 0.0;
    /// Whether all elements are other than zero.
    All: "aten::all", all, all, all_dims, all_dim, of nothing 1.0;
}

impl Tensor {
    /// How many elements over `dims`, or over all if none are named, are other than zero.
    pub fn count_nonzero(&self, dims: &[isize]) -> Result<Tensor> {
        let _span = composite("aten::count_nonzero", [self], |_| {});
        self.eq(0)?.eq(false)?.sum_dims(dims, false)
    }
}
