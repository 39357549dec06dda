//! Memory as torch's kernels ask for it, each request a call of its own.

use super::{HOST, NOTHING, STRIDED, call, dtype_code, empty_strided, ints, within};
use crate::op::{InPlace as _, below};
use crate::ops::Copy;
use crate::{Argument, DType, Device, Layout, MemoryFormat, Result, Tensor};

/// What torch writes for an order that is to be kept.
pub(crate) const PRESERVE: Argument<'static> = Argument::Int(MemoryFormat::Preserve as i64);

/// What torch writes for the row-major order.
pub(crate) const CONTIGUOUS: Argument<'static> = Argument::Int(MemoryFormat::Contiguous as i64);

/// An output without elements, which torch's kernels resize.
pub(crate) fn empty_output(dtype: DType) -> Result<Tensor> {
    empty(&[0], dtype)
}

/// New memory in row-major order, as torch's `empty` makes it for an operator.
pub(crate) fn empty(shape: &[usize], dtype: DType) -> Result<Tensor> {
    empty_in(shape, dtype, Argument::None)
}

/// Room for `shape`, row-major, by a call that names an order.
pub(crate) fn empty_in(shape: &[usize], dtype: DType, order: Argument<'_>) -> Result<Tensor> {
    let sizes = ints(shape);
    let more = [Argument::Ints(&sizes), dtype_code(dtype), STRIDED, HOST, Argument::None, order];
    let _below = below();
    within("aten::empty", NOTHING, &more, || Tensor::uninit(shape, dtype, Device::CPU))
}

/// Room for `shape` by a call that leaves its layout open.
pub(crate) fn empty_open(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let (sizes, none) = (ints(shape), Argument::None);
    let more = [Argument::Ints(&sizes), dtype_code(dtype), none, HOST, none, none];
    let _below = below();
    within("aten::empty", NOTHING, &more, || Tensor::uninit(shape, dtype, Device::CPU))
}

/// Ones of `shape` by a call that leaves their layout open.
pub(crate) fn ones_open(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let (sizes, none) = (ints(shape), Argument::None);
    let more = [Argument::Ints(&sizes), dtype_code(dtype), none, HOST, none];
    within("aten::ones", NOTHING, &more, || {
        let ones = empty_open(shape, dtype)?;
        ones.fill_(1.0).map(|()| ones)
    })
}

/// Memory that torch gets by giving a tensor without elements a size. `order` is what the call says of the
/// order of elements.
pub(crate) fn grown(from: &Tensor, shape: &[usize], order: Argument<'_>) -> Result<Tensor> {
    let sizes = ints(shape);
    within("aten::resize_", [from], &[Argument::Ints(&sizes), order], || {
        Tensor::uninit(shape, from.dtype(), Device::CPU)
    })
}

/// The layout of a copy that keeps the order of `x`: its own, if it has no gaps.
fn kept_layout(op: &'static str, x: &Tensor) -> Result<Layout> {
    let own = Layout::strided(x.shape(), x.strides(), 0).filter(|_| x.numel() == 0);
    own.map_or_else(|| MemoryFormat::Preserve.layout(op, x.layout()), Ok)
}

/// Memory that lies as `x` does, by torch's `empty_like` that names its order.
pub(crate) fn empty_like(x: &Tensor, order: Argument<'_>) -> Result<Tensor> {
    const NAME: &str = "aten::empty_like";
    let more = [Argument::None, Argument::None, Argument::None, Argument::None, order];
    within(NAME, [x], &more, || empty_strided(&kept_layout(NAME, x)?, x.dtype(), Argument::None))
}

/// The elements of `x` in memory of their own, by a call that could have a derivative and is not recorded.
pub(crate) fn cloned_first(x: &Tensor) -> Result<Tensor> {
    let _span = call("aten::clone", [x], &[Argument::None]);
    let (_unrecorded, _below) = (crate::no_grad(), below());
    copied("aten::clone", x)
}

/// The elements of `x` in memory of their own that lies as `x` does; `order` is what the call says.
pub(crate) fn cloned(x: &Tensor, order: Argument<'_>) -> Result<Tensor> {
    const NAME: &str = "aten::clone";
    within(NAME, [x], &[order], || copied(NAME, x))
}

fn copied(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let out = match x.numel() == 0 || x.layout().is_dense() {
        true => empty_strided(&kept_layout(op, x)?, x.dtype(), Argument::None)?,
        false => empty_like(x, Argument::None)?,
    };
    Copy.call_in_place([&out, x])?;
    Ok(out)
}

/// The numbers from 0 on, as torch's kernels make them: with a start if `from_start`, and then of a type,
/// layout and device that they name.
pub(crate) fn arange(count: usize, from_start: bool) -> Result<Tensor> {
    const NAME: &str = "aten::arange";
    let (end, long) = (Argument::Int(count as i64), dtype_code(DType::I64));
    let none = Argument::None;
    let make = |layout: Argument<'_>, device: Argument<'_>| {
        let sizes = [Argument::Ints(&[0]), long, layout, device, none, none];
        let nothing =
            within("aten::empty", NOTHING, &sizes, || Tensor::uninit(&[0], DType::I64, Device::CPU))?;
        let range = [Argument::Int(0), end, Argument::Int(1), Argument::Tensor(nothing.argument())];
        within(NAME, NOTHING, &range, || {
            let out = match count {
                0 => nothing.clone(),
                _ => grown(&nothing, &[count], none)?,
            };
            fill_counting(&out);
            Ok(out)
        })
    };
    match from_start {
        true => {
            within(NAME, NOTHING, &[Argument::Int(0), end, long, STRIDED, HOST, none], || make(STRIDED, HOST))
        }
        false => within(NAME, NOTHING, &[end, long, none, none, none], || make(none, none)),
    }
}

fn fill_counting(out: &Tensor) {
    let mut writing = out.write();
    let mut elements = out.elements_mut(&mut writing);
    if let Some(elements) = elements.slice::<i64>() {
        elements.iter_mut().zip(0..).for_each(|(element, number)| *element = number);
    }
}

/// Zeros of another shape, but of the type of `x`; torch's call says so where it is `named`.
pub(crate) fn new_zeros(x: &Tensor, shape: &[usize], named: bool) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return Tensor::zeros(shape, (x.dtype(), x.device()));
    }
    let sizes = ints(shape);
    let none = Argument::None;
    let [dtype, layout, device] = if named { [dtype_code(x.dtype()), STRIDED, HOST] } else { [none; 3] };
    let more = [Argument::Ints(&sizes), dtype, layout, device, none];
    within("aten::new_zeros", [x], &more, || {
        let _below = below();
        let out = within("aten::new_empty", [x], &more, || empty(shape, x.dtype()))?;
        out.zero_()?;
        Ok(out)
    })
}

/// Room of another shape, but of the type of `x`, by a call that names the type.
pub(crate) fn new_empty(x: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return Tensor::empty(shape, (x.dtype(), x.device()));
    }
    let sizes = ints(shape);
    let more = [Argument::Ints(&sizes), dtype_code(x.dtype()), STRIDED, HOST, Argument::None];
    within("aten::new_empty", [x], &more, || empty(shape, x.dtype()))
}

/// Zeros that lie as `x` does, by a call that names this order.
pub(crate) fn zeros_like(x: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return x.zeros_like();
    }
    let none = Argument::None;
    within("aten::zeros_like", [x], &[none, none, none, none, PRESERVE], || {
        let _below = below();
        let more = [dtype_code(x.dtype()), STRIDED, HOST, none, PRESERVE];
        let out = within("aten::empty_like", [x], &more, || {
            empty_strided(&kept_layout("aten::empty_like", x)?, x.dtype(), none)
        })?;
        out.zero_()?;
        Ok(out)
    })
}

/// Zeros that lie as `x` does, by a call that names their type.
pub(crate) fn zeros_typed(x: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return x.zeros_like();
    }
    let none = Argument::None;
    let more = [dtype_code(x.dtype()), STRIDED, none, none, none];
    within("aten::zeros_like", [x], &more, || {
        let _below = below();
        let more = [dtype_code(x.dtype()), STRIDED, HOST, none, none];
        let out = within("aten::empty_like", [x], &more, || {
            empty_strided(&kept_layout("aten::empty_like", x)?, x.dtype(), none)
        })?;
        out.zero_()?;
        Ok(out)
    })
}

/// Memory for as many elements as `x` has, row-major, by torch's `empty_like` that names this order.
pub(crate) fn empty_like_plain(x: &Tensor) -> Result<Tensor> {
    let none = Argument::None;
    within("aten::empty_like", [x], &[none, none, none, none, CONTIGUOUS], || {
        empty_in(x.shape(), x.dtype(), CONTIGUOUS)
    })
}

/// What torch makes of `from` when it resizes it: its memory if that is enough, else new memory.
pub(crate) fn resize(from: Tensor, shape: &[usize]) -> Result<Tensor> {
    let sizes = ints(shape);
    let _span = call("aten::resize_", [&from], &[Argument::Ints(&sizes), Argument::None]);
    let bytes = shape.iter().product::<usize>() * from.dtype().size();
    match Layout::contiguous(shape).filter(|_| bytes <= from.storage().len()) {
        Some(layout) => Ok(from.with_layout(layout)),
        None => {
            let grown = Tensor::uninit(shape, from.dtype(), Device::CPU);
            drop(from);
            grown
        }
    }
}

/// Room of the shape of `x`, row-major, for elements of another type.
pub(crate) fn empty_like_as(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let more = [dtype_code(dtype), STRIDED, HOST, Argument::None, CONTIGUOUS];
    within("aten::empty_like", [x], &more, || empty_in(x.shape(), dtype, CONTIGUOUS))
}

/// Room that lies as a layout does, of the type of `x`, by a call that leaves the type open.
pub(crate) fn new_empty_strided(x: &Tensor, layout: &Layout) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return Tensor::empty(layout.shape(), (x.dtype(), x.device()));
    }
    let (sizes, strides, none) = (ints(layout.shape()), ints(layout.strides()), Argument::None);
    let more = [Argument::Ints(&sizes), Argument::Ints(&strides), none, none, none, none];
    within("aten::new_empty_strided", [x], &more, || empty_strided(layout, x.dtype(), none))
}
