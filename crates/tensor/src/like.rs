//! New tensors that take after others.

use crate::composite::composite;
use crate::op::below;
use crate::ops::scalar_argument;
use crate::{Argument, Cause, Error, Layout, MemoryFormat, Options, Result, Scalar, Tensor, To, cpu, shown};
use cresset_dispatch::observe::{self, Span};

/// What a tensor that takes after another is to be, as observers see it: element type, layout, device,
/// pinning; then, of the same shape, the order of its elements.
fn told(to: To, pinned: Argument<'static>) -> [Argument<'static>; 4] {
    let dtype = to.dtype.map_or(Argument::None, shown::dtype_code);
    [dtype, Argument::None, Argument::None, pinned]
}

macro_rules! likes {
    ($($(#[$doc:meta])* $like:ident, $like_with:ident, $new:ident: $like_name:literal, $new_name:literal,
        names type $names_type:literal, $fill:expr;)*) => {$(
        impl Tensor {
            $(#[$doc])*
            ///
            /// Of the shape, element type and device of this tensor.
            pub fn $like(&self) -> Result<Tensor> {
                self.$like_with(())
            }

            #[doc = concat!("As [`", stringify!($like), "`](Tensor::", stringify!($like), "), but for what `to` says.")]
            pub fn $like_with(&self, to: impl Into<To>) -> Result<Tensor> {
                let (to, pinned) = (to.into(), shown::pinned());
                let _made = shown::factory();
                let _span = self.like_span($like_name, &[], to, pinned);
                let _inside = shown::inside();
                let out = self.like_memory($like_name, to, $names_type, pinned)?;
                $fill(&out)?;
                Ok(out)
            }

            $(#[$doc])*
            ///
            /// Of another shape than this tensor, but of its element type and device, unless `to`
            /// says otherwise.
            pub fn $new(&self, shape: impl AsRef<[usize]>, to: impl Into<To>) -> Result<Tensor> {
                let (shape, to, pinned) = (shape.as_ref(), to.into(), shown::pinned());
                let _made = shown::factory();
                let _span = self.new_span($new_name, shape, None, to, pinned);
                let out = self.new_memory($new_name, shape, to, pinned)?;
                $fill(&out)?;
                Ok(out)
            }
        }
    )*};
}

likes! {
    /// New memory, contents undefined.
    empty_like, empty_like_with, new_empty: "aten::empty_like", "aten::new_empty", names type false,
        |_| Ok::<(), Error>(());
    /// All zeros.
    zeros_like, zeros_like_with, new_zeros: "aten::zeros_like", "aten::new_zeros", names type true, Tensor::zero_;
    /// All ones.
    ones_like, ones_like_with, new_ones: "aten::ones_like", "aten::new_ones", names type false,
        |out: &Tensor| out.fill_(1.0);
}

const EMPTY_LIKE: &str = "aten::empty_like";
const NEW_EMPTY: &str = "aten::new_empty";

impl Tensor {
    /// `value` everywhere, with the shape, element type and device of this tensor.
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.full_like_with(value, ())
    }

    /// As [`full_like`](Tensor::full_like), but for what `to` says.
    pub fn full_like_with(&self, value: impl Into<Scalar>, to: impl Into<To>) -> Result<Tensor> {
        let (value, to, pinned) = (value.into(), to.into(), shown::pinned());
        let _made = shown::factory();
        let _span = self.like_span("aten::full_like", &[scalar_argument(value)], to, pinned);
        let out = self.like_memory("aten::full_like", to, false, pinned)?;
        out.fill_(value)?;
        Ok(out)
    }

    /// `value` everywhere, of another shape than this tensor, but of its element type and device,
    /// unless `to` says otherwise.
    pub fn new_full(
        &self,
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        to: impl Into<To>,
    ) -> Result<Tensor> {
        let (shape, value, to, pinned) = (shape.as_ref(), value.into(), to.into(), shown::pinned());
        let _made = shown::factory();
        let _span = self.new_span("aten::new_full", shape, Some(scalar_argument(value)), to, pinned);
        let out = self.new_memory("aten::new_full", shape, to, pinned)?;
        out.fill_(value)?;
        Ok(out)
    }

    /// New memory for these elements in a given order.
    pub(crate) fn empty_in(&self, order: MemoryFormat) -> Result<Tensor> {
        let _span = composite(EMPTY_LIKE, [self], |visit| {
            let device = Argument::Device(self.device());
            let told = [shown::dtype_code(self.dtype()), shown::STRIDED, device, Argument::None];
            told.into_iter().for_each(&mut *visit);
            visit(order.argument());
        });
        self.laid_out(EMPTY_LIKE, self.shape(), order.into(), Argument::None)
    }

    /// `value` everywhere, of this shape, to be changed in place: what torch makes of a number that a tensor
    /// is subtracted from, or divides.
    pub(crate) fn filled_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let out = self.empty_preserved()?;
        out.fill_(value)?;
        Ok(out)
    }

    /// New memory like this tensor's, for a call that says so.
    pub(crate) fn empty_preserved(&self) -> Result<Tensor> {
        let _span = composite(EMPTY_LIKE, [self], |visit| {
            told(().into(), Argument::None).into_iter().for_each(&mut *visit);
            visit(Argument::Int(MemoryFormat::Preserve as i64));
        });
        self.laid_out(EMPTY_LIKE, self.shape(), ().into(), Argument::None)
    }

    /// Ones to begin a backward pass with; torch's program names the order of elements that all have.
    pub(crate) fn first_ones(&self) -> Result<Tensor> {
        const NAME: &str = "aten::ones_like";
        if !observe::is_watched() && self.device().is_cpu() && self.numel() == 1 {
            let dense = Layout::contiguous(self.shape()).expect("one element can be counted");
            return cpu::single(Scalar::Int(1), dense, self.dtype());
        }
        let told = |visit: &mut dyn FnMut(Argument<'_>)| {
            told(().into(), Argument::Bool(false)).into_iter().for_each(&mut *visit);
            visit(Argument::Int(MemoryFormat::Preserve as i64));
        };
        let _made = below();
        let _span = composite(NAME, [self], told);
        let out = {
            let _span = composite(EMPTY_LIKE, [self], told);
            self.laid_out(NAME, self.shape(), ().into(), Argument::Bool(false))?
        };
        out.fill_(1.0)?;
        Ok(out)
    }

    fn like_span(
        &self,
        op: &'static str,
        before: &[Argument<'_>],
        to: To,
        pinned: Argument<'static>,
    ) -> Option<Span> {
        composite(op, [self], |visit| {
            before.iter().for_each(|argument| visit(*argument));
            told(to, pinned).into_iter().for_each(&mut *visit);
            visit(to.format_argument());
        })
    }

    fn new_span(
        &self,
        op: &'static str,
        shape: &[usize],
        value: Option<Argument<'_>>,
        to: To,
        pinned: Argument<'static>,
    ) -> Option<Span> {
        composite(op, [self], |visit| {
            visit(Argument::Ints(&shown::ints(shape)));
            value.into_iter().for_each(&mut *visit);
            told(to, pinned).into_iter().for_each(&mut *visit);
        })
    }

    /// New memory of this shape, which is an operator of its own inside of others. Some of these name
    /// the type and layout that others leave open.
    fn like_memory(
        &self,
        op: &'static str,
        to: To,
        names_type: bool,
        pinned: Argument<'static>,
    ) -> Result<Tensor> {
        let dtype = to.options(self).dtype;
        let _span = (op != EMPTY_LIKE).then(|| {
            composite(EMPTY_LIKE, [self], |visit| {
                let mut told = told(to, pinned);
                if names_type {
                    (told[0], told[1], told[2]) =
                        (shown::dtype_code(dtype), shown::STRIDED, Argument::Device(self.device()));
                }
                told.into_iter().for_each(&mut *visit);
                visit(to.format_argument());
            })
        });
        self.laid_out(op, self.shape(), to, pinned)
    }

    /// New memory of another shape.
    fn new_memory(
        &self,
        op: &'static str,
        shape: &[usize],
        to: To,
        pinned: Argument<'static>,
    ) -> Result<Tensor> {
        let _span = (op != NEW_EMPTY).then(|| self.new_span(NEW_EMPTY, shape, None, to, pinned));
        self.laid_out(op, shape, to, pinned)
    }

    /// New memory of `shape`, row-major unless `to` says otherwise.
    fn laid_out(
        &self,
        op: &'static str,
        shape: &[usize],
        to: To,
        pinned: Argument<'static>,
    ) -> Result<Tensor> {
        let Options { dtype, device, .. } = to.options(self);
        let same = std::ptr::eq(shape, self.shape());
        let layout = Layout::contiguous(shape).ok_or_else(|| {
            Error::new(
                Cause::Memory,
                op,
                format_args!("shape {shape:?} has more elements than can be counted"),
            )
        })?;
        let preserves = same && to.memory_format == MemoryFormat::Preserve;
        let from = if preserves { self.layout() } else { &layout };
        let layout = to.memory_format.layout(op, from)?;
        if device.is_cpu() && preserves {
            return shown::empty_strided(&layout, dtype, pinned).map_err(|error| error.in_op(op));
        }
        let make = || Tensor::uninit_as(layout, dtype, device).map_err(|error| error.in_op(op));
        if !device.is_cpu() || !observe::is_watched() {
            return make();
        }
        let sizes = shown::ints(shape);
        let order = to.format_argument();
        let more =
            [Argument::Ints(&sizes), shown::dtype_code(dtype), shown::STRIDED, shown::HOST, pinned, order];
        shown::within("aten::empty", shown::NOTHING, &more, make)
    }
}
