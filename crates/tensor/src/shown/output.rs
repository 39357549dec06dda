//! Outputs as torch's kernels make them: empty at first and grown later, or as an iterator over elements does.

use super::{HOST, NOTHING, dtype_code, grown, ints, within};
use crate::op::{Inputs, below};
use crate::{DType, Device, Kernel, Layout, MemoryFormat, Op, Result, Spec, Tensor};
use cresset_dispatch::observe::Argument;

/// A tensor without elements that nobody sees being made.
pub(crate) fn quiet_nothing() -> Result<Tensor> {
    Tensor::uninit(&[0], DType::F32, Device::CPU)
}

/// Memory for an output, as torch's iterator over elements takes it by itself: row-major if all `operands` are,
/// and they are `alike`.
pub(crate) fn iterated(spec: &Spec, operands: &[&Tensor], alike: bool) -> Result<Tensor> {
    let make = || Tensor::uninit(&spec.shape, spec.dtype, Device::CPU);
    let (shape, dtype) = (ints(&spec.shape), dtype_code(spec.dtype));
    let plain =
        alike && operands.iter().all(|operand| operand.shape() == &spec.shape[..] && operand.is_contiguous());
    let order = if plain { Argument::Int(MemoryFormat::Contiguous as i64) } else { Argument::None };
    let more = [Argument::Ints(&shape), dtype, Argument::None, HOST, Argument::None, order];
    let _below = below();
    within("aten::empty", NOTHING, &more, make)
}

/// What an operator computes into memory that torch's iterator over elements takes.
pub(crate) fn into_iterated<K, const N: usize>(op: &K, inputs: [&Tensor; N]) -> Result<Tensor>
where
    K: Kernel + for<'a> Op<Inputs<'a> = [&'a Tensor; N], Output = Tensor>,
{
    let out = iterated(&op.infer(inputs)?, &inputs, true)?;
    op.fill(inputs, &out, Device::CPU)?;
    Ok(out)
}

/// As [`grown`], to the size of `like`.
pub(crate) fn grown_as(from: &Tensor, like: &Tensor, order: Argument<'_>) -> Result<Tensor> {
    within("aten::resize_as_", [from, like], &[order], || grown(from, like.shape(), Argument::None))
}

/// Says that a tensor gets the size it already has, or one that its memory has room for.
pub(crate) fn resized(tensor: &Tensor, shape: &[usize], order: Argument<'_>) -> Result<()> {
    let sizes = ints(shape);
    within("aten::resize_", [tensor], &[Argument::Ints(&sizes), order], || Ok(tensor.clone())).map(drop)
}

/// Into how many parts torch's kernels cut memory for sums that threads share: one for each.
pub(crate) const THREADS: usize = 1;

/// What `compute` gives, inside a call that is told where to put it.
pub(crate) fn into_out<I: Inputs>(
    name: &'static str,
    inputs: I,
    more: &[Argument<'_>],
    out: &Tensor,
    compute: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut all: smallvec::SmallVec<[Argument<'_>; 6]> = more.iter().copied().collect();
    all.push(Argument::Tensor(out.argument()));
    within(name, inputs, &all, || compute().map(|()| out.clone())).map(drop)
}

/// The memory of `whole`, which torch has given the size of a number.
pub(crate) fn as_number(whole: &Tensor) -> Tensor {
    let layout = Layout::contiguous(&[]).expect("one element can be counted");
    Tensor::from_parts(whole.storage().clone(), layout, whole.dtype())
}
