//! The host backend: from tensors to views, and the few forms that most kernels have.
//!
//! Buffers are locked while a kernel looks at them. Fresh outputs are seen by nobody else;
//! where an existing tensor is changed, locks are taken in the order of addresses, so that
//! two threads that change each other's inputs wait in turn instead of for each other.

mod pieces;

use crate::op::Operand;
use crate::{Cause, DType, Error, Key, Layout, Result, Scalar, Storage, Tensor};
use cresset_kernels::elementwise;
use cresset_kernels::{Buffer, Reading, View, ViewMut, Writing};
use std::borrow::Cow;

impl Tensor {
    /// The right to read the elements.
    ///
    /// # Errors
    /// If they are not on the host.
    #[inline]
    pub fn reading(&self) -> Result<Reading<'_>> {
        Ok(self.host_buffer()?.read())
    }

    /// The right to write the elements.
    ///
    /// # Errors
    /// If they are not on the host.
    #[inline]
    pub fn writing(&self) -> Result<Writing<'_>> {
        Ok(self.host_buffer()?.write())
    }

    #[inline]
    fn host_buffer(&self) -> Result<&Buffer> {
        self.storage().host().ok_or_else(|| Error::new(Cause::Device, "", self.elsewhere()))
    }

    #[cold]
    fn elsewhere(&self) -> String {
        let device = self.device();
        format!("the elements are on {device}, where the host cannot look: copy them with to(Device::CPU)")
    }

    fn buffer(&self) -> &Buffer {
        self.storage().host().unwrap_or_else(|| panic!("{}", self.elsewhere()))
    }

    /// As [`reading`](Tensor::reading), inside of kernels that the dispatcher gives host tensors only.
    ///
    /// # Panics
    /// If the tensor is not on the host.
    #[doc(hidden)]
    #[inline]
    pub fn read(&self) -> Reading<'_> {
        self.buffer().read()
    }

    /// As [`writing`](Tensor::writing), inside of kernels that the dispatcher gives host tensors only.
    ///
    /// # Panics
    /// If the tensor is not on the host.
    #[doc(hidden)]
    #[inline]
    pub fn write(&self) -> Writing<'_> {
        self.buffer().write()
    }

    /// The elements, under the right to read them.
    #[inline]
    pub fn elements<'a>(&'a self, reading: &'a Reading<'_>) -> View<'a> {
        View::new(reading.bytes(), self.dtype(), self.layout())
    }

    /// The elements, under the right to write them.
    #[inline]
    pub fn elements_mut<'a>(&'a self, writing: &'a mut Writing<'_>) -> ViewMut<'a> {
        ViewMut::new(writing.bytes(), self.dtype(), self.layout())
    }

    /// Its own of the `bytes` of its storage, for elements one after the other or one repeated.
    #[inline]
    fn picked<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let (layout, size) = (self.layout(), self.dtype().size());
        &bytes[layout.offset() * size..layout.end() * size]
    }

    /// This tensor with elements of `dtype`, converted if need be, without a trace.
    pub(crate) fn converted(&self, dtype: DType) -> Result<Cow<'_, Tensor>> {
        if self.dtype() == dtype { Ok(Cow::Borrowed(self)) } else { self.apart(dtype).map(Cow::Owned) }
    }

    /// The elements as `dtype` in memory of their own, without a trace.
    pub(crate) fn apart(&self, dtype: DType) -> Result<Tensor> {
        let reading = self.reading()?;
        let out = Tensor::uninit(self.shape(), dtype, self.device())?;
        let mut writing = out.write();
        elementwise::copy(self.elements(&reading), out.elements_mut(&mut writing));
        drop(writing);
        cresset_kernels::count_copy(out.numel() * dtype.size());
        Ok(out)
    }
}

/// An operand in the element type that the kernel computes in.
enum Source<'a> {
    Tensor(Cow<'a, Tensor>),
    Number(Number),
}

/// A number as a tensor without dimensions, on the stack.
struct Number {
    bytes: Aligned,
    dtype: DType,
    layout: Layout,
}

#[repr(align(8))]
struct Aligned([u8; 8]);

impl Number {
    fn new(scalar: Scalar, dtype: DType) -> Number {
        let layout = Layout::contiguous(&[]).expect("one element can be counted");
        let mut number = Number { bytes: Aligned([0; 8]), dtype, layout };
        elementwise::fill(scalar, ViewMut::new(&mut number.bytes.0, dtype, &number.layout));
        number
    }
}

impl<'a> Source<'a> {
    #[inline]
    fn new(operand: Operand<'a>, dtype: DType) -> Result<Source<'a>> {
        Ok(match operand {
            Operand::Tensor(tensor) => {
                tensor.host_buffer()?;
                Source::Tensor(tensor.converted(dtype)?)
            }
            Operand::Scalar(scalar) => Source::Number(Number::new(scalar, dtype)),
        })
    }

    /// Like `new`. A number beside half precision is not rounded to it if the kernel widens that anyway.
    #[inline]
    fn of(operand: Operand<'a>, dtype: DType, unrounded: bool) -> Result<Source<'a>> {
        match (operand, dtype) {
            (Operand::Scalar(_), DType::F16 | DType::BF16) if unrounded => Source::new(operand, DType::F32),
            _ => Source::new(operand, dtype),
        }
    }

    #[inline]
    fn buffer(&self) -> Option<&Buffer> {
        match self {
            Source::Tensor(tensor) => Some(tensor.buffer()),
            Source::Number(_) => None,
        }
    }

    #[inline]
    fn layout(&self) -> &Layout {
        match self {
            Source::Tensor(tensor) => tensor.layout(),
            Source::Number(number) => &number.layout,
        }
    }

    #[inline]
    fn view<'v>(&'v self, reading: &'v Option<Reading<'_>>, layout: &'v Layout) -> View<'v> {
        match (self, reading) {
            (Source::Tensor(tensor), Some(reading)) => View::new(reading.bytes(), tensor.dtype(), layout),
            (Source::Number(number), _) => View::new(&number.bytes.0, number.dtype, layout),
            (Source::Tensor(_), None) => unreachable!("tensors are locked before they are viewed"),
        }
    }
}

/// `layout` repeated to fill `shape`.
#[inline]
pub(crate) fn spread<'a>(layout: &'a Layout, shape: &[usize]) -> Cow<'a, Layout> {
    if layout.has_shape(shape) {
        return Cow::Borrowed(layout);
    }
    Cow::Owned(layout.broadcast_to(shape).expect("`infer` found that the shapes broadcast"))
}

// What operators pass in is a loop or many, inlined where it is called: it is called in one place, and
// what leads there is compiled once.

/// Makes `$run`, which is called once, a `dyn FnMut` of these arguments.
macro_rules! once {
    ($run:ident: $($x:ident),*) => {{
        let mut run = Some($run);
        move |$($x),*| {
            if let Some(run) = run.take() {
                run($($x),*);
            }
        }
    }};
}

/// Fills `out` from `x`, read as elements of `dtype`.
#[inline]
pub fn map(x: &Tensor, dtype: DType, out: &Tensor, run: impl FnOnce(View<'_>, ViewMut<'_>)) -> Result<()> {
    map_by(x, dtype, out, &mut once!(run: x, out))
}

fn map_by(x: &Tensor, dtype: DType, out: &Tensor, run: &mut dyn FnMut(View<'_>, ViewMut<'_>)) -> Result<()> {
    let x = x.converted(dtype)?;
    let (reading, mut writing) = (x.reading()?, out.writing()?);
    let layout = spread(x.layout(), out.shape());
    run(View::new(reading.bytes(), dtype, &layout), out.elements_mut(&mut writing));
    Ok(())
}

/// Fills `out` from `a` and `b`, read as elements of `dtype` and broadcast.
#[inline]
pub fn map2(
    a: Operand<'_>,
    b: Operand<'_>,
    dtype: DType,
    out: &Tensor,
    run: impl FnOnce(View<'_>, View<'_>, ViewMut<'_>),
) -> Result<()> {
    map2_by(a, b, dtype, out, &mut once!(run: a, b, out), false)
}

/// As [`map2`], for kernels that widen half precision: a number beside it comes in single precision.
#[inline]
pub(crate) fn map2_unrounded(
    a: Operand<'_>,
    b: Operand<'_>,
    dtype: DType,
    out: &Tensor,
    run: impl FnOnce(View<'_>, View<'_>, ViewMut<'_>),
) -> Result<()> {
    map2_by(a, b, dtype, out, &mut once!(run: a, b, out), true)
}

fn map2_by(
    a: Operand<'_>,
    b: Operand<'_>,
    dtype: DType,
    out: &Tensor,
    run: &mut dyn FnMut(View<'_>, View<'_>, ViewMut<'_>),
    unrounded: bool,
) -> Result<()> {
    if let (Operand::Tensor(a), Operand::Tensor(b)) = (a, b)
        && (a.dtype(), b.dtype()) == (dtype, dtype)
        && a.layout().has_shape(out.shape())
        && b.layout().has_shape(out.shape())
    {
        // Nothing to convert or to repeat: the common case, and where small tensors notice.
        let (reading_a, reading_b, mut writing) = (a.reading()?, b.reading()?, out.writing()?);
        run(a.elements(&reading_a), b.elements(&reading_b), out.elements_mut(&mut writing));
        return Ok(());
    }
    let (a, b) = (Source::of(a, dtype, unrounded)?, Source::of(b, dtype, unrounded)?);
    let (reading_a, reading_b) = (a.buffer().map(Buffer::read), b.buffer().map(Buffer::read));
    let (layout_a, layout_b) = (spread(a.layout(), out.shape()), spread(b.layout(), out.shape()));
    let mut writing = out.writing()?;
    run(a.view(&reading_a, &layout_a), b.view(&reading_b, &layout_b), out.elements_mut(&mut writing));
    Ok(())
}

/// A new tensor made of a host tensor and another or a number, floats of one type and shape that lie one
/// after the other or are one repeated; `None` for others. Nothing is to be found out or converted,
/// and nobody else sees the output yet: the whole cost of a call on little is here.
#[inline]
pub(crate) fn alike2(
    a: &Tensor,
    b: Operand<'_>,
    run: impl FnOnce(DType, [&[u8]; 2], &mut [u8]),
) -> Result<Option<Tensor>> {
    let dtype = a.dtype();
    let b_is_plain = match b {
        Operand::Tensor(b) => is_plain(b) && b.dtype() == dtype && b.layout().has_shape(a.shape()),
        // Not every operator takes truths.
        Operand::Scalar(b) => !matches!(b, Scalar::Bool(_)),
    };
    if !b_is_plain || !is_plain(a) {
        return Ok(None);
    }
    let Some(layout) = Layout::contiguous(a.shape()) else { return Ok(None) };
    let reading_a = a.read();
    let fill = |b: &[u8]| {
        Storage::filled(layout.len() * dtype.size(), dtype, |out| {
            run(dtype, [a.picked(reading_a.bytes()), b], out)
        })
    };
    let storage = match b {
        Operand::Scalar(b) => fill(&Number::new(b, dtype).bytes.0[..dtype.size()]),
        Operand::Tensor(b) if a.storage().same_as(b.storage()) => fill(b.picked(reading_a.bytes())),
        Operand::Tensor(b) => fill(b.picked(b.read().bytes())),
    }?;
    Ok(Some(Tensor::from_parts(storage, layout, dtype)))
}

/// Changes a tensor whose memory nobody else sees, given another, where both are as in [`alike2`]; `false`,
/// and nothing is changed, for others.
#[inline]
pub(crate) fn change_alike(target: &Tensor, other: &Tensor, run: impl FnOnce(ViewMut<'_>, View<'_>)) -> bool {
    let alike = is_plain(target)
        && target.is_contiguous()
        && is_plain(other)
        && other.dtype() == target.dtype()
        && other.layout().has_shape(target.shape())
        && !other.storage().same_as(target.storage());
    if alike {
        let (reading, mut writing) = (other.read(), target.write());
        run(target.elements_mut(&mut writing), other.elements(&reading));
    }
    alike
}

/// A number made of all floats of a host tensor that lie one after the other; `None` for others, and for so
/// many that the steps which are left out do not count.
#[inline]
pub(crate) fn folded(x: &Tensor, run: impl FnOnce(DType, &[u8], &mut [u8])) -> Result<Option<Tensor>> {
    const MANY: usize = 1024;
    let dtype = x.dtype();
    if !is_plain(x) || !x.is_contiguous() || x.numel() > MANY {
        return Ok(None);
    }
    let reading = x.read();
    let storage = Storage::filled(dtype.size(), dtype, |out| run(dtype, x.picked(reading.bytes()), out))?;
    Ok(Layout::contiguous(&[]).map(|layout| Tensor::from_parts(storage, layout, dtype)))
}

/// A new tensor of one element, in as many dimensions as `layout` has.
pub(crate) fn single(value: Scalar, layout: Layout, dtype: DType) -> Result<Tensor> {
    let number = Number::new(value, dtype);
    let size = dtype.size();
    let storage = Storage::filled(size, dtype, |out| out.copy_from_slice(&number.bytes.0[..size]))?;
    Ok(Tensor::from_parts(storage, layout, dtype))
}

/// Whether these are floats on the host, one after the other or one repeated.
#[inline]
fn is_plain(tensor: &Tensor) -> bool {
    let layout = tensor.layout();
    tensor.device().key == Key::CPU
        && matches!(tensor.dtype(), DType::F32 | DType::F64)
        && !layout.is_empty()
        && (layout.is_contiguous() || layout.is_one_repeated())
}

/// Fills `out` from `operands`, read as elements of `dtype` and broadcast.
pub fn map_all<const N: usize>(
    operands: [Operand<'_>; N],
    dtype: DType,
    out: &Tensor,
    run: impl FnOnce([View<'_>; N], ViewMut<'_>),
) -> Result<()> {
    map_all_by(operands, dtype, out, &mut once!(run: views, out))
}

fn map_all_by<const N: usize>(
    operands: [Operand<'_>; N],
    dtype: DType,
    out: &Tensor,
    run: &mut dyn FnMut([View<'_>; N], ViewMut<'_>),
) -> Result<()> {
    let mut sources = [const { None }; N];
    for (source, operand) in sources.iter_mut().zip(operands) {
        *source = Some(Source::new(operand, dtype)?);
    }
    let sources = sources.map(|source| source.expect("each was made above"));
    let readings = std::array::from_fn::<_, N, _>(|i| sources[i].buffer().map(Buffer::read));
    let layouts = std::array::from_fn::<_, N, _>(|i| spread(sources[i].layout(), out.shape()));
    let views = std::array::from_fn(|i| sources[i].view(&readings[i], &layouts[i]));
    let mut writing = out.writing()?;
    run(views, out.elements_mut(&mut writing));
    Ok(())
}

/// Changes `target`, given `others` as elements of its own type, broadcast to its shape. Where one of them lies
/// in the same memory, `run` is called for one piece after the other.
pub fn change<const N: usize>(
    target: &Tensor,
    others: [Operand<'_>; N],
    mut run: impl FnMut(ViewMut<'_>, [View<'_>; N]),
) -> Result<()> {
    change_by(target, others.map(|other| (other, target.dtype())), &mut run)
}

/// As [`change`], for kernels that widen half precision: numbers beside it come in single precision.
pub(crate) fn change_unrounded<const N: usize>(
    target: &Tensor,
    others: [Operand<'_>; N],
    mut run: impl FnMut(ViewMut<'_>, [View<'_>; N]),
) -> Result<()> {
    let dtype = |other: Operand<'_>| match (other, target.dtype()) {
        (Operand::Scalar(_), DType::F16 | DType::BF16) => DType::F32,
        (_, dtype) => dtype,
    };
    change_by(target, others.map(|other| (other, dtype(other))), &mut run)
}

/// Changes `target`, given another tensor as it is, broadcast to its shape.
pub(crate) fn overwrite(
    target: &Tensor,
    from: &Tensor,
    mut run: impl FnMut(ViewMut<'_>, View<'_>),
) -> Result<()> {
    change_by(target, [(Operand::Tensor(from), from.dtype())], &mut |target, [from]| run(target, from))
}

fn change_by<const N: usize>(
    target: &Tensor,
    others: [(Operand<'_>, DType); N],
    run: &mut dyn FnMut(ViewMut<'_>, [View<'_>; N]),
) -> Result<()> {
    let buffer = target.host_buffer()?;
    if others.iter().any(|(other, _)| shares_memory(target, *other)) {
        return pieces::change(target, others, run);
    }
    let mut sources = [const { None }; N];
    for (source, (other, dtype)) in sources.iter_mut().zip(others) {
        *source = Some(Source::new(other, dtype)?);
    }
    let sources = sources.map(|source| source.expect("each was made above"));
    let (mut writing, readings) = lock(buffer, sources.each_ref().map(Source::buffer));
    let layouts = std::array::from_fn::<_, N, _>(|i| spread(sources[i].layout(), target.shape()));
    let views = std::array::from_fn(|i| sources[i].view(&readings[i], &layouts[i]));
    run(target.elements_mut(&mut writing), views);
    Ok(())
}

/// Whether an operand lies in the memory of `target`.
pub(crate) fn shares_memory(target: &Tensor, operand: Operand<'_>) -> bool {
    operand.tensor().is_some_and(|tensor| tensor.storage().same_as(target.storage()))
}

/// The right to write `target` and to read `sources`, taken in the order of addresses.
fn lock<'a, const N: usize>(
    target: &'a Buffer,
    sources: [Option<&'a Buffer>; N],
) -> (Writing<'a>, [Option<Reading<'a>>; N]) {
    let mut order = std::array::from_fn::<_, N, _>(|i| (sources[i].map(Buffer::address), i));
    order.sort_unstable();
    let (mut readings, mut writing) = ([const { None }; N], None);
    for (address, i) in order {
        if address > Some(target.address()) {
            writing.get_or_insert_with(|| target.write());
        }
        readings[i] = sources[i].map(Buffer::read);
    }
    (writing.unwrap_or_else(|| target.write()), readings)
}

/// The right to write `targets` and to read `source`, all different memory, taken in the order
/// of addresses.
pub(crate) fn lock_all<'a, const N: usize>(
    targets: [&'a Tensor; N],
    source: &'a Tensor,
) -> ([Writing<'a>; N], Reading<'a>) {
    let mut order: Vec<(usize, usize)> =
        targets.iter().chain([&source]).map(|tensor| tensor.buffer().address()).zip(0..).collect();
    order.sort_unstable();
    let (mut writing, mut reading) = ([const { None }; N], None);
    for (_, i) in order {
        match targets.get(i) {
            Some(target) => writing[i] = Some(target.write()),
            None => reading = Some(source.read()),
        }
    }
    let all = "every buffer is in the order once";
    (writing.map(|writing| writing.expect(all)), reading.expect(all))
}
