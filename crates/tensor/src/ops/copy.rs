//! Filling, copying, converting, and moving between devices.

use super::scalar_argument;
use crate::op::{InPlace, Shown, kernel_table};
use crate::{
    Backward, Cause, DType, Device, Error, Forward, Grads, Kernel, MemoryFormat, Op, Result, Scalar, Spec,
    Tensor, To, composite, cpu, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::elementwise;

/// One value everywhere.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The value.
    pub value: Scalar,
}

impl Op for Fill {
    const NAME: &'static str = "aten::fill";
    const BACKWARD: &'static str = "FillBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().zeros_like()?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(scalar_argument(self.value));
    }
}

impl Kernel for Fill {
    kernel_table!(Fill);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, _: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::change(out, [], |out, []| elementwise::fill(self.value, out))
    }
}

impl InPlace for Fill {
    const IN_PLACE: &'static str = "aten::fill_";
    kernel_table!(in place Fill);

    fn backward_name_in_place(&self, _inputs: [&Tensor; 1]) -> &'static str {
        "FillBackward2"
    }

    fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
        cpu::change(x, [], |x, []| elementwise::fill(self.value, x))
    }
}

/// Zero everywhere.
#[derive(Clone, Debug)]
pub struct Zero;

impl Op for Zero {
    const NAME: &'static str = "aten::zero";
    const BACKWARD: &'static str = "ZeroBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().zeros_like()?)
    }
}

impl Kernel for Zero {
    kernel_table!(Zero);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, _: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::change(out, [], |out, []| elementwise::fill(Scalar::Int(0), out))
    }
}

impl InPlace for Zero {
    const IN_PLACE: &'static str = "aten::zero_";
    kernel_table!(in place Zero);

    fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
        cpu::change(x, [], |x, []| elementwise::fill(Scalar::Int(0), x))
    }

    /// Torch clears memory that has no gaps, and fills all other.
    fn shown_in_place(&self, [x]: [&Tensor; 1]) -> Result<Shown> {
        let filled = x.numel() == 0 || !x.layout().is_dense();
        Ok(filled.then(|| shown::call("aten::fill_", [x], &[Argument::Int(0)])).flatten().into())
    }
}

/// The second tensor, with the shape and element type of the first.
#[derive(Clone, Debug)]
pub struct Copy;

impl Op for Copy {
    const NAME: &'static str = "aten::copy";
    const BACKWARD: &'static str = "torch::autograd::CopyBackwards";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx;
            ctx.grad().zeros_like_with(MemoryFormat::Contiguous)?,
            ctx.grad().to_options((ctx.dtype(1), ctx.device(1)).into())?
        )
    }

    fn arguments(&self, [to, from]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(to.argument()));
        visit(Argument::Tensor(from.argument()));
        visit(Argument::Bool(false));
    }
}

impl Kernel for Copy {
    kernel_table!(Copy);

    fn infer(&self, [to, from]: [&Tensor; 2]) -> Result<Spec> {
        if super::broadcast(Self::NAME, to.shape(), from.shape())?[..] != *to.shape() {
            let text = format_args!("shape {:?} does not fit into {:?}", from.shape(), to.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(to))
    }

    fn cpu(&self, [_, from]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        cpu::map(from, from.dtype(), out, elementwise::copy)
    }
}

impl InPlace for Copy {
    const IN_PLACE: &'static str = "aten::copy_";
    kernel_table!(in place Copy);

    fn cpu_in_place(&self, [to, from]: [&Tensor; 2]) -> Result<()> {
        cpu::overwrite(to, from, |to, from| elementwise::copy(from, to))
    }
}

/// The same elements in memory of their own.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// The order in which they lie there.
    pub memory_format: MemoryFormat,
    /// Whether observers are told the order even if it is the one they have.
    pub named: bool,
}

impl Op for Duplicate {
    const NAME: &'static str = "aten::clone";
    const BACKWARD: &'static str = "CloneBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone())
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        let order = Argument::Int(self.memory_format as i64);
        visit(if self.named { order } else { self.memory_format.argument() });
    }
}

impl Forward for Duplicate {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let out = match self.memory_format {
            MemoryFormat::Preserve => x.empty_strided_like(x.dtype(), Argument::None)?,
            order => x.empty_in(order)?,
        };
        out.copy_(x)?;
        Ok(out)
    }
}

/// The same elements outside the graph.
#[derive(Clone, Debug)]
pub struct Detach;

impl Op for Detach {
    const NAME: &'static str = "aten::detach";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Forward for Detach {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let _span = composite("detach", [x], |_| {});
        Ok(x.alias())
    }
}

/// A copy with another element type or on another device.
#[derive(Clone, Debug)]
pub struct ToCopy {
    /// The element type of the copy.
    pub dtype: DType,
    /// Where the copy is.
    pub device: Device,
    /// The order in which the elements of the copy lie.
    pub memory_format: MemoryFormat,
    /// Whether observers are told that it is a plain tensor, as where everything is named.
    pub names_layout: bool,
    /// Whether a copy to the host need not be waited for.
    pub non_blocking: bool,
}

impl Op for ToCopy {
    const NAME: &'static str = "aten::_to_copy";
    const BACKWARD: &'static str = "ToCopyBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().to_options((ctx.dtype(0), ctx.device(0)).into())?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        self.visit(x, visit);
    }
}

impl Forward for ToCopy {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if self.device == x.device() {
            let out = match self.memory_format {
                MemoryFormat::Preserve => x.empty_strided_like(self.dtype, Argument::Bool(false))?,
                memory_format => {
                    x.empty_like_with(To { dtype: Some(self.dtype), memory_format, ..To::default() })?
                }
            };
            out.copy_(x)?;
            return Ok(out);
        }
        let moved = self.moved(x)?;
        if self.memory_format == MemoryFormat::Preserve {
            Ok(moved)
        } else {
            moved.contiguous_in(self.memory_format)
        }
    }
}

impl ToCopy {
    fn visit(&self, x: &Tensor, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(if self.dtype == x.dtype() { Argument::None } else { shown::dtype_code(self.dtype) });
        visit(if self.names_layout { shown::STRIDED } else { Argument::None });
        [Argument::None, Argument::None].into_iter().for_each(&mut *visit);
        visit(Argument::Bool(self.non_blocking));
        visit(self.memory_format.argument());
    }

    fn moved(&self, x: &Tensor) -> Result<Tensor> {
        // Elements are converted where they are, then cross as plain bytes.
        let x = x.to_dtype(self.dtype)?.contiguous()?;
        if x.is_meta() || self.device == Device::META {
            return match self.device {
                Device::META => Tensor::empty(x.shape(), (self.dtype, self.device)),
                device => {
                    let text = format_args!("a meta tensor has no elements to move to {device}");
                    Err(Error::new(Cause::Device, Self::NAME, text))
                }
            };
        }
        x.moved(self.device, self.non_blocking)
    }
}

impl Tensor {
    /// `value` everywhere, like this tensor.
    pub fn fill(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        Fill { value: value.into() }.call([self])
    }

    /// Makes every element `value`, in place.
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<()> {
        Fill { value: value.into() }.call_in_place([self])
    }

    /// Makes every element 0, in place.
    pub fn zero_(&self) -> Result<()> {
        Zero.call_in_place([self])
    }

    /// Overwrites the elements with those of `from`, which may be on another device.
    pub fn copy_(&self, from: &Tensor) -> Result<()> {
        if from.device() == self.device() {
            return Copy.call_in_place([self, from]);
        }
        Copy.call_in_place([self, &from.to(self.device())?])
    }

    /// As [`copy_`](Tensor::copy_), from another device; if this tensor is [pinned](Tensor::pin_memory), the
    /// elements may still be under way when this returns, and whoever looks at them waits.
    ///
    /// # Errors
    /// As [`copy_`](Tensor::copy_).
    pub fn copy_non_blocking_(&self, from: &Tensor) -> Result<()> {
        let plain = self.is_contiguous() && self.shape() == from.shape() && self.dtype() == from.dtype();
        let recorded =
            self.keys().contains(crate::Key::AUTOGRAD) || from.keys().contains(crate::Key::AUTOGRAD);
        if self.device() == from.device() || !plain || recorded || self.is_meta() || from.is_meta() {
            return self.copy_(from);
        }
        self.fill_from(&from.contiguous()?, true)?;
        self.storage().changed(Copy::IN_PLACE);
        Ok(())
    }

    /// The same elements in memory of their own, in the order of `like` if that has no gaps.
    pub(crate) fn copy_as(&self, like: &Tensor) -> Result<Tensor> {
        if !self.device().is_cpu() || !like.layout().is_dense() {
            return self.copy();
        }
        let out = {
            let (sizes, strides) = (shown::ints(like.shape()), shown::ints(like.strides()));
            let _span = composite("aten::new_empty_strided", [self], |visit| {
                visit(Argument::Ints(&sizes));
                visit(Argument::Ints(&strides));
                let rest = [shown::dtype_code(self.dtype()), shown::STRIDED, shown::HOST, Argument::None];
                rest.into_iter().for_each(visit);
            });
            let layout = MemoryFormat::Preserve.layout(Duplicate::NAME, like.layout())?;
            shown::empty_strided(&layout, self.dtype(), Argument::None)?
        };
        out.copy_(self)?;
        Ok(out)
    }

    /// New memory that lies as this tensor does, without gaps.
    fn empty_strided_like(&self, dtype: DType, pinned: Argument<'_>) -> Result<Tensor> {
        let layout = MemoryFormat::Preserve.layout(ToCopy::NAME, self.layout())?;
        if self.device().is_cpu() {
            return shown::empty_strided(&layout, dtype, pinned);
        }
        self.empty_like_with(dtype)
    }

    /// The same elements in memory of their own, row-major.
    pub fn copy(&self) -> Result<Tensor> {
        self.copy_in(MemoryFormat::Contiguous)
    }

    /// The same elements in memory of their own, in a given order.
    pub fn copy_in(&self, memory_format: MemoryFormat) -> Result<Tensor> {
        Duplicate { memory_format, named: false }.call([self])
    }

    /// As [`copy_in`](Tensor::copy_in), by a call that names the order, as `x.clone(memory_format=…)` does.
    #[doc(hidden)]
    pub fn copy_named(&self, memory_format: MemoryFormat) -> Result<Tensor> {
        Duplicate { memory_format, named: true }.call([self])
    }

    /// The same elements one after the other in row-major order; itself if they are already.
    pub fn contiguous(&self) -> Result<Tensor> {
        self.contiguous_in(MemoryFormat::Contiguous)
    }

    /// The same elements without gaps in a given order; itself if they lie so already.
    pub fn contiguous_in(&self, memory_format: MemoryFormat) -> Result<Tensor> {
        const NAME: &str = "aten::contiguous";
        if memory_format == MemoryFormat::Preserve {
            let text = "Preserve is no order of its own; Contiguous, ChannelsLast and ChannelsLast3d are";
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        if self.is_contiguous_in(memory_format) {
            return Ok(self.clone());
        }
        let _span = composite(NAME, [self], |visit| visit(Argument::Int(memory_format as i64)));
        self.copy_in(memory_format)
    }

    /// Whether elements lie one after the other in a given order.
    pub fn is_contiguous_in(&self, memory_format: MemoryFormat) -> bool {
        if memory_format == MemoryFormat::Contiguous {
            return self.is_contiguous();
        }
        let wanted = memory_format.layout("", self.layout());
        let same = |wanted: &crate::Layout| {
            let mut dims = 0..self.dim();
            dims.all(|dim| self.shape()[dim] <= 1 || self.strides()[dim] == wanted.strides()[dim])
        };
        wanted.is_ok_and(|wanted| self.numel() == 0 || same(&wanted))
    }
}
