//! Other shapes for the same elements in the same order.

use super::sizes;
use crate::sizes::{Sizes, Written, resolve};
use crate::{Backward, Cause, Error, Forward, Grads, Op, Result, Tensor, composite, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

macro_rules! reshaping {
    ($($(#[$doc:meta])* $op:ident: $name:literal, $backward:literal, is_view: $is_view:literal, says_strides: $says_strides:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// The new shape.
            pub shape: Dims,
            /// The shape as it was written, where -1 is what is left.
            pub written: Written,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const VIEW: bool = $is_view;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; ctx.grad().reshape(ctx.shape(0))?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Ints(&self.written));
                if $says_strides
                    && let Some(layout) = x.layout().view(&self.shape)
                {
                    visit(Argument::Ints(&sizes(layout.strides())));
                }
            }
        }

        impl Forward for $op {
            fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
                reshaped(Self::NAME, x, &self.shape, $is_view)
            }
        }
    )*};
}

reshaping! {
    /// Another shape for the same elements in the same order.
    View: "aten::view", "ViewBackward0", is_view: true, says_strides: false;
    /// A [`View`] of elements that do not lie one after the other.
    ReshapeAlias: "aten::_reshape_alias", "ReshapeAliasBackward0", is_view: true, says_strides: true;
    /// A [`View`] of memory that nobody else holds, and therefore none to the outside.
    UnsafeView: "aten::_unsafe_view", "UnsafeViewBackward0", is_view: false, says_strides: false;
}

fn reshaped(op: &'static str, x: &Tensor, shape: &[usize], is_view: bool) -> Result<Tensor> {
    let layout = x.layout().view(shape).ok_or_else(|| {
        let text = match shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size)) {
            Some(count) if count == x.numel() => "cannot be seen as",
            _ => "has another number of elements than",
        };
        let hint = if x.is_contiguous() { "" } else { "; use reshape(), which copies where it must" };
        let text = format_args!("a tensor of shape {:?} {text} {shape:?}{hint}", x.shape());
        Error::new(Cause::Shape, op, text)
    })?;
    if is_view {
        return Ok(x.with_layout(layout));
    }
    Ok(Tensor::from_parts(x.storage().clone(), layout, x.dtype()))
}

impl Tensor {
    /// The same elements under another shape, without copying. A size of -1 is what is left.
    ///
    /// # Errors
    /// If the number of elements differs, or strides cannot express it.
    pub fn view(&self, shape: impl Sizes) -> Result<Tensor> {
        let written = shape.written();
        match resolve(View::NAME, &written, self.shape()) {
            Ok(shape) => View { shape, written }.call([self]),
            Err(error) => Err(shown::failed(View::NAME, [self], &[Argument::Ints(&written)], error)),
        }
    }

    /// The same elements under the shape of `other`, without copying.
    pub fn view_as(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::view_as", [self, other], |_| {});
        self.view(other.shape())
    }

    /// The same elements under another shape; copied only where a view cannot express it.
    /// A size of -1 is what is left.
    pub fn reshape(&self, shape: impl Sizes) -> Result<Tensor> {
        let written = shape.written();
        let _span = composite("aten::reshape", [self], |visit| visit(Argument::Ints(&written)));
        match resolve("aten::reshape", &written, self.shape()) {
            Ok(shape) => self.reshape_quietly(shape, written),
            // Torch finds out inside.
            Err(error) => Err(shown::failed(View::NAME, [self], &[Argument::Ints(&written)], error)),
        }
    }

    /// The same elements under the shape of `other`; copied only where a view cannot express it.
    pub fn reshape_as(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::reshape_as", [self, other], |_| {});
        self.reshape(other.shape())
    }

    /// Another shape for a result that nobody else holds.
    pub(super) fn unsafe_view(&self, shape: &[usize]) -> Result<Tensor> {
        UnsafeView { shape: Dims::from_slice(shape), written: sizes(shape) }.call([self])
    }

    /// Reshapes without a span of its own.
    fn reshape_quietly(&self, shape: Dims, written: Written) -> Result<Tensor> {
        if self.is_contiguous() {
            View { shape, written }.call([self])
        } else if self.layout().view(&shape).is_some() {
            ReshapeAlias { shape, written }.call([self])
        } else {
            let written = sizes(&shape);
            UnsafeView { shape, written }.call([&self.copy()?])
        }
    }

    /// Dimensions `start` to `end`, both included, as one; negative ones count from the back.
    pub fn flatten(&self, start: isize, end: isize) -> Result<Tensor> {
        const NAME: &str = "aten::flatten";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(start as i64));
            visit(Argument::Int(end as i64));
        });
        let (start, end) = (self.dim_index(NAME, start)?, self.dim_index(NAME, end)?);
        if start > end {
            let text = format_args!("dimension {start} comes after {end}; name the first one first");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        if self.dim() == 0 {
            return self.reshape(1);
        }
        if start == end {
            return Ok(self.clone());
        }
        let (before, rest) = self.shape().split_at(start);
        let (flat, after) = rest.split_at(end - start + 1);
        let count = flat.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let Some(count) = count else {
            let text = format_args!("sizes {flat:?} multiply to more than can be counted");
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        let shape: Dims = before.iter().copied().chain([count]).chain(after.iter().copied()).collect();
        let written = sizes(&shape);
        self.reshape_quietly(shape, written)
    }

    /// All elements in one dimension; copied only where a view cannot express it.
    pub fn ravel(&self) -> Result<Tensor> {
        let _span = composite("aten::ravel", [self], |_| {});
        self.contiguous()?.view(-1)
    }

    /// Dimension `dim` as several; a size of -1 is what is left.
    pub fn unflatten(&self, dim: isize, sizes: impl Sizes) -> Result<Tensor> {
        const NAME: &str = "aten::unflatten";
        let written = sizes.written();
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(dim as i64));
            visit(Argument::Ints(&written));
        });
        let dim = self.dim_index(NAME, dim)?;
        if self.dim() == 0 || written.is_empty() {
            let text = format_args!("shape {:?} cannot be unflattened to {written:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let inner = resolve(NAME, &written, &self.shape()[dim..=dim])?;
        let (before, after) = (&self.shape()[..dim], &self.shape()[dim + 1..]);
        self.view(before.iter().chain(&inner).chain(after).copied().collect::<Dims>())
    }
}
