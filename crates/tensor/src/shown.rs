//! Calls that torch's kernels make on their way and ours do without. While someone watches they are
//! made all the same, so that a trace has them: each is a call like any other, its memory real.
//!
//! [`Kernel::shown`](crate::op::Kernel::shown) is where an operator asks for them.

mod memory;
mod output;
mod sums;

pub(crate) use memory::*;
pub(crate) use output::*;
pub(crate) use sums::*;

use crate::op::{Inputs, Operand, Output, below, sequence_here, tell_results};
pub(crate) use crate::ops::sizes as ints;
use crate::ops::{ResolveConj, scalar_argument};
use crate::{
    DType, Device, Element as _, Error, Key, Layout, Op as _, Result, Scalar, Spec, Tensor, autograd,
    composite, promote,
};
use cresset_dispatch::key::ThreadKeys;
use cresset_dispatch::observe::{self, Argument, Span};
use cresset_kernels::{Dims, with_dtype};

/// Whether a call that is about to be made is made by an operator, and not by the program.
pub(crate) fn from_operator() -> bool {
    observe::depth() > 0
}

/// Until the guard drops, a new tensor is made that no derivative leads to: where the program asks for it,
/// torch does not even say that it could.
pub(crate) fn factory() -> Option<ThreadKeys> {
    (observe::is_watched() && !from_operator()).then(below)
}

/// Until the guard drops, calls are those of an operator, if someone watches.
pub(crate) fn inside() -> Option<ThreadKeys> {
    observe::is_watched().then(below)
}

/// What a program's call says of pinned memory, and an operator's does not.
pub(crate) fn pinned() -> Argument<'static> {
    if from_operator() { Argument::None } else { Argument::Bool(false) }
}

/// An element type as a number, as torch counts them.
pub(crate) fn dtype_code(dtype: DType) -> Argument<'static> {
    Argument::Int(match dtype {
        DType::U8 => 0,
        DType::I8 => 1,
        DType::I16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::F16 => 5,
        DType::F32 => 6,
        DType::F64 => 7,
        DType::Bool => 11,
        DType::BF16 => 15,
    })
}

/// The host as observers see it.
pub(crate) const HOST: Argument<'static> = Argument::Device(Device::CPU);

/// No tensors among the arguments.
pub(crate) const NOTHING: [&Tensor; 0] = [];

/// The layout of plain tensors as a number.
pub(crate) const STRIDED: Argument<'static> = Argument::Int(0);

/// A span around calls of an operator whose arguments are `inputs` and `more`.
pub(crate) fn call<I: Inputs>(name: &'static str, inputs: I, more: &[Argument<'_>]) -> Option<Span> {
    composite(name, inputs, |visit| more.iter().for_each(|argument| visit(*argument)))
}

/// What `compute` gives, inside a call of an operator whose arguments are `inputs` and `more`.
pub(crate) fn within<I: Inputs, O: Output>(
    name: &'static str,
    inputs: I,
    more: &[Argument<'_>],
    compute: impl FnOnce() -> Result<O>,
) -> Result<O> {
    let span = call(name, inputs, more);
    let outcome = compute();
    if let Some(span) = &span
        && span.wants_results()
    {
        tell_results(span, &outcome);
    }
    Span::end(span, &outcome);
    outcome
}

/// Shows a call that torch finds out in that it cannot be made, as the error says.
pub(crate) fn failed<I: Inputs>(name: &'static str, inputs: I, more: &[Argument<'_>], error: Error) -> Error {
    let error = failed_around(name, inputs, more, error);
    if sequence_here().is_some() && inputs.keys().contains(Key::AUTOGRAD) {
        autograd::skip_number();
    }
    error
}

/// As [`failed`], of a call that has no derivative itself and takes no number.
pub(crate) fn failed_around<I: Inputs>(
    name: &'static str,
    inputs: I,
    more: &[Argument<'_>],
    error: Error,
) -> Error {
    Span::end(call(name, inputs, more), &Err::<(), ()>(()));
    error
}

/// A number as a tensor of its own, which torch makes of each that meets a tensor.
pub(crate) fn number(value: Scalar) -> Result<Tensor> {
    let dtype = match value {
        Scalar::Float(_) => DType::F64,
        Scalar::Int(_) => DType::I64,
        Scalar::Bool(_) => DType::Bool,
    };
    let number = Tensor::allocate(Spec::new([], dtype), Device::CPU)?;
    crate::cpu::change(&number, [], |number, []| cresset_kernels::elementwise::fill(value, number))?;
    Ok(number)
}

/// A number as torch's programs hand it to operators that take tensors: as one, which they hold until the
/// call is done. `None` where an operator brings it, or nobody watches.
pub(crate) fn written(beside: &Tensor, operand: Operand<'_>) -> Result<Option<Tensor>> {
    match operand {
        Operand::Scalar(value) if observe::is_watched() && !from_operator() && beside.device().is_cpu() => {
            Ok(Some(number(value)?.into_number()))
        }
        _ => Ok(None),
    }
}

/// `number - x`, as torch makes it where a number comes first: of memory that is full of it.
pub(crate) fn less(number: impl Into<Scalar>, x: &Tensor) -> Result<Tensor> {
    let number = number.into();
    if !observe::is_watched() || !x.device().is_cpu() {
        return x.rsub(number);
    }
    let difference = x.filled_like(number)?;
    difference.sub_(x)?;
    Ok(difference)
}

/// `number / x`, made as [`less`] is.
pub(crate) fn over(number: impl Into<Scalar>, x: &Tensor) -> Result<Tensor> {
    let number = number.into();
    if !observe::is_watched() || !x.device().is_cpu() {
        return x.rdiv(number);
    }
    let quotient = x.filled_like(number)?;
    quotient.div_(x)?;
    Ok(quotient)
}

/// A call of a number and a tensor whose result is written over the tensor.
pub(crate) fn over_second(name: &'static str, number: Tensor, tensor: &Tensor) -> Result<Shown> {
    let inner = call(name, [&number, tensor], &[Argument::Tensor(tensor.argument())]);
    let common = promote::result_type(tensor, Operand::Tensor(&number));
    let converted = [None, converted(&number, common)?];
    Ok(Shown { converted, _inner: inner, _number: Some(number) })
}

/// What torch calls to change `x`, where that is another operator than the one that is asked.
pub(crate) fn changed_by(name: &'static str, x: &Tensor) -> Shown {
    match name {
        "aten::abs_" => call("aten::abs", [x, x], &[]).into(),
        _ => Shown::default(),
    }
}

/// What a kernel was shown to make on its way, kept until it is done. Dropped in this order.
#[derive(Default)]
pub struct Shown {
    /// Operands of another element type than the kernel computes in, converted.
    pub(crate) converted: [Option<Tensor>; 2],
    _inner: Option<Span>,
    _number: Option<Tensor>,
}

impl Shown {
    /// Keeps operands that were converted until the kernel is done.
    pub(crate) fn converting(converted: [Option<Tensor>; 2]) -> Shown {
        Shown { converted, ..Shown::default() }
    }

    /// Keeps a tensor until the kernel is done.
    pub(crate) fn keeping(tensor: Option<Tensor>) -> Shown {
        Shown { _number: tensor, ..Shown::default() }
    }
}

impl Shown {
    /// The operands as the kernel is given them. Numbers stay numbers, which half precision does not
    /// round.
    pub(crate) fn pair<'a>(&'a self, (a, b): (&'a Tensor, Operand<'a>)) -> (&'a Tensor, Operand<'a>) {
        let [new_a, new_b] = self.converted.each_ref().map(Option::as_ref);
        let b = match b {
            Operand::Tensor(tensor) if !tensor.is_number() => new_b.map_or(b, Operand::Tensor),
            number => number.plain(),
        };
        (new_a.unwrap_or(a), b)
    }
}

impl From<Option<Span>> for Shown {
    fn from(inner: Option<Span>) -> Shown {
        Shown { _inner: inner, ..Shown::default() }
    }
}

/// Shows how two operands become tensors of the element type that they meet at. `None` if they are.
///
/// With `twice`, a number is shown as torch's second call, of tensors only.
pub(crate) fn meet(
    name: &'static str,
    (a, b): (&Tensor, Operand<'_>),
    common: DType,
    twice: Option<&[Argument<'_>]>,
) -> Result<Option<Shown>> {
    let number = match b {
        Operand::Tensor(b) if (a.dtype(), b.dtype()) == (common, common) => return Ok(None),
        Operand::Tensor(_) => None,
        Operand::Scalar(value) => Some(number(value)?),
    };
    let b = number.as_ref().or(b.tensor()).expect("an operand is a tensor or was made one");
    let inner = twice.filter(|_| number.is_some()).and_then(|more| call(name, [a, b], more));
    let converted = [converted(a, common)?, converted(b, common)?];
    Ok(Some(Shown { converted, _inner: inner, _number: number }))
}

/// The tensor as `dtype`, if it is not.
pub(crate) fn converted(tensor: &Tensor, dtype: DType) -> Result<Option<Tensor>> {
    (tensor.dtype() != dtype).then(|| tensor.to(dtype)).transpose()
}

/// What `compute` gives, inside the second call of an operator that torch hands an empty output.
pub(crate) fn into_empty<I: Inputs>(
    name: &'static str,
    inputs: I,
    dtype: DType,
    compute: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let out = empty_output(dtype)?;
    within(name, inputs, &[Argument::Tensor(out.argument())], compute)
}

/// Shows how torch finds the element type of an operand and a number, and converts the operand.
pub(crate) fn result_type(x: &Tensor, number: Scalar, dtype: DType) -> Result<Tensor> {
    drop(call("aten::result_type", [x], &[plain(number)]));
    x.to(dtype)
}

/// The first of two tensors in the element type that they meet at, which torch asks for.
pub(crate) fn common(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    drop(call("aten::result_type", [a, b], &[]));
    a.to(promote::result_type(a, Operand::Tensor(b)))
}

/// Memory of a given layout, as torch's `empty_strided` makes it.
pub(crate) fn empty_strided(layout: &Layout, dtype: DType, pinned: Argument<'_>) -> Result<Tensor> {
    let make = || Tensor::uninit_as(layout.clone(), dtype, Device::CPU);
    if !observe::is_watched() {
        return make();
    }
    let (shape, strides) = (ints(layout.shape()), ints(layout.strides()));
    let more = [Argument::Ints(&shape), Argument::Ints(&strides), dtype_code(dtype), STRIDED, HOST, pinned];
    within("aten::empty_strided", NOTHING, &more, make)
}

/// An output as a reduction sees it, its dimensions of size 1.
pub(crate) fn reduced(out: &Tensor, from: &[usize], dims: &[usize], keep: bool) -> Result<Tensor> {
    if keep { Ok(out.alias()) } else { seen_whole(out, from, dims) }
}

/// Shows how a reduction fills its output, seen with the dimensions that it reduces.
pub(crate) fn start_filled(out: &Tensor, from: &[usize], dims: &[usize], start: Scalar) {
    let shape = from.iter().enumerate().map(|(dim, &size)| if dims.contains(&dim) { 1 } else { size });
    let seen = out.layout().view(&shape.collect::<Dims>()).map(|layout| out.with_layout(layout));
    drop(seen.map(|seen| call("aten::fill_", [&seen], &[plain(start)])));
}

fn seen_whole(out: &Tensor, from: &[usize], dims: &[usize]) -> Result<Tensor> {
    let mut kept = out.strides().iter();
    let is_reduced = |dim: &usize| dims.contains(dim);
    let strides: Dims = (0..from.len())
        .map(|dim| if is_reduced(&dim) { 0 } else { kept.next().copied().unwrap_or(0) })
        .collect();
    let shape: Dims = (0..from.len()).map(|dim| if is_reduced(&dim) { 1 } else { from[dim] }).collect();
    out.as_strided(&shape, &strides, out.layout().offset())
}

/// A float as observers see it where the program may have written an integer, as it mostly does.
pub(crate) fn whole(value: f64) -> Argument<'static> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        Argument::Int(value as i64)
    } else {
        Argument::Float(value)
    }
}

/// The only element of a tensor, read without a call.
pub(crate) fn only(tensor: &Tensor) -> Result<Scalar> {
    let reading = tensor.read();
    let view = tensor.elements(&reading);
    Ok(with_dtype!(tensor.dtype(), T => view.only::<T>().scalar()))
}

/// A number as observers see it where it is no tensor.
pub(crate) fn plain(value: Scalar) -> Argument<'static> {
    scalar_argument(value)
}

/// The calls of torch's product of two matrices over `out`: it asks whether operands are conjugated
/// where it reads them as they lie, and copies those that its library cannot read.
pub(crate) fn show_product(out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    if out.numel() == 0 || a.numel() == 0 {
        return Ok(());
    }
    let reads = |x: &Tensor, along: usize, across: usize, rows: usize| {
        x.strides()[along] == 1 && x.strides()[across] >= rows.max(1)
    };
    let [rows, columns] = [out.shape()[0], out.shape()[1]];
    let upright = out.strides()[0] == 1 && (columns == 1 || out.strides()[1] >= rows.max(1));
    let (along, across) = if upright { (0, 1) } else { (1, 0) };
    let (first, second) = if upright { (a, b) } else { (b, a) };
    let (rows, columns) = if upright { (rows, columns) } else { (columns, rows) };
    let depth = a.shape()[1];
    ResolveConj.call([out])?;
    for (operand, as_is, turned) in [(first, rows, depth), (second, depth, columns)] {
        if reads(operand, along, across, as_is) {
            ResolveConj.call([operand])?;
        } else if !reads(operand, across, along, turned) {
            operand.copy()?;
        }
    }
    Ok(())
}

/// The calls of torch's product of two stacks of matrices: as [`show_product`] asks, on either operand.
pub(crate) fn show_products(a: &Tensor, b: &Tensor) -> Result<()> {
    for operand in [b, a] {
        ResolveConj.call([operand])?;
    }
    Ok(())
}
