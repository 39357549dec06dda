//! New tensors that take after others.

use crate::composite::composite;
use crate::ops::scalar_argument;
use crate::{Argument, Cause, Error, Result, Scalar, Tensor, To};

macro_rules! likes {
    ($($(#[$doc:meta])* $like:ident, $like_with:ident, $new:ident: $like_name:literal, $new_name:literal, $fill:expr;)*) => {$(
        impl Tensor {
            $(#[$doc])*
            ///
            /// Of the shape, element type and device of this tensor.
            pub fn $like(&self) -> Result<Tensor> {
                self.$like_with(())
            }

            #[doc = concat!("As [`", stringify!($like), "`](Tensor::", stringify!($like), "), but for what `to` says.")]
            pub fn $like_with(&self, to: impl Into<To>) -> Result<Tensor> {
                let _span = composite($like_name, [self], |_| {});
                let out = self.like_memory($like_name, to.into())?;
                $fill(&out)?;
                Ok(out)
            }

            $(#[$doc])*
            ///
            /// Of another shape than this tensor, but of its element type and device, unless `to`
            /// says otherwise.
            pub fn $new(&self, shape: impl AsRef<[usize]>, to: impl Into<To>) -> Result<Tensor> {
                let _span = composite($new_name, [self], |_| {});
                let out = self.new_memory($new_name, shape.as_ref(), to.into())?;
                $fill(&out)?;
                Ok(out)
            }
        }
    )*};
}

likes! {
    /// New memory, contents undefined.
    empty_like, empty_like_with, new_empty: "aten::empty_like", "aten::new_empty", |_| Ok::<(), Error>(());
    /// All zeros.
    zeros_like, zeros_like_with, new_zeros: "aten::zeros_like", "aten::new_zeros", Tensor::zero_;
    /// All ones.
    ones_like, ones_like_with, new_ones: "aten::ones_like", "aten::new_ones", |out: &Tensor| out.fill_(1);
}

impl Tensor {
    /// `value` everywhere, with the shape, element type and device of this tensor.
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.full_like_with(value, ())
    }

    /// As [`full_like`](Tensor::full_like), but for what `to` says.
    pub fn full_like_with(&self, value: impl Into<Scalar>, to: impl Into<To>) -> Result<Tensor> {
        self.filled("aten::full_like", self.shape(), value.into(), to.into())
    }

    /// `value` everywhere, of another shape than this tensor, but of its element type and device,
    /// unless `to` says otherwise.
    pub fn new_full(
        &self,
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        to: impl Into<To>,
    ) -> Result<Tensor> {
        self.filled("aten::new_full", shape.as_ref(), value.into(), to.into())
    }

    /// New memory of this shape, which is an operator of its own inside of others.
    fn like_memory(&self, op: &'static str, to: To) -> Result<Tensor> {
        const EMPTY: &str = "aten::empty_like";
        let _span = (op != EMPTY).then(|| composite(EMPTY, [self], |_| {}));
        self.new_memory(op, self.shape(), to)
    }

    fn filled(&self, op: &'static str, shape: &[usize], value: Scalar, to: To) -> Result<Tensor> {
        let visit_value = |visit: &mut dyn FnMut(Argument<'_>)| visit(scalar_argument(value));
        let _span = composite(op, [self], visit_value);
        let out = self.new_memory(op, shape, to)?;
        out.fill_(value)?;
        Ok(out)
    }

    /// New memory of `shape`, row-major unless `to` says otherwise.
    fn new_memory(&self, op: &'static str, shape: &[usize], to: To) -> Result<Tensor> {
        let options = to.options(self);
        let layout = crate::Layout::contiguous(shape).ok_or_else(|| {
            Error::new(
                Cause::Memory,
                op,
                format_args!("shape {shape:?} has more elements than can be counted"),
            )
        })?;
        let layout = to.memory_format.layout(op, &layout)?;
        Tensor::uninit_as(layout, options.dtype, options.device).map_err(|error| error.in_op(op))
    }
}
