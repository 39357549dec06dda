//! The memory and the views that torch's attention in blocks asks for on its way.

use crate::{DType, Device, Layout, MemoryFormat, Result, Scalar, Tensor, cpu, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, elementwise};

/// How many keys are taken at once.
const KEYS: usize = 512;

/// How many of so many queries are taken at once.
fn queries(count: usize) -> usize {
    let at_once = match count {
        768.. => 256,
        192.. => 64,
        _ => 32,
    };
    at_once.min(count)
}

/// What sums are kept as.
pub(super) fn sums_dtype(query: &Tensor) -> DType {
    if query.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Heads and rows the other way round, as the kernel goes through them.
fn turn(tensors: &[&Tensor]) -> Result<()> {
    tensors.iter().try_for_each(|x| x.transpose(1, 2).map(drop))
}

/// Says that results are turned back, whose heads and rows the kernel had the other way round.
pub(super) fn turn_back<const N: usize>(results: [&Tensor; N]) -> Result<()> {
    for result in results {
        let turned = result.layout().transpose(1, 2);
        Tensor::from_parts(result.storage().clone(), turned, result.dtype()).transpose(1, 2)?;
    }
    Ok(())
}

/// A mask as the kernel repeats it: for all samples and heads, or for each.
fn spread(mask: Option<&Tensor>, query: &Tensor, key: &Tensor) -> Result<()> {
    let Some(mask) = mask else { return Ok(()) };
    let missing = std::iter::repeat_n(1, 4 - mask.dim());
    let mask = mask.view(missing.chain(mask.shape().iter().copied()).collect::<Dims>())?;
    let [samples, heads] = [mask.shape()[0], mask.shape()[1]];
    mask.expand([samples, heads, query.shape()[2], key.shape()[2]]).map(drop)
}

/// A number as a tensor of the host, by a call that leaves its layout open.
pub(super) fn number(value: f64, dtype: DType) -> Result<Tensor> {
    let none = Argument::None;
    let more = [Argument::Float(value), shown::dtype_code(dtype), none, shown::HOST, none];
    shown::within("aten::scalar_tensor", shown::NOTHING, &more, || {
        let out = Tensor::uninit(&[], dtype, Device::CPU)?;
        cpu::change(&out, [], |out, []| elementwise::fill(Scalar::Float(value), out))?;
        Ok(out)
    })
}

/// Memory of `[batch, rows, heads, ..]`, seen as `[batch, heads, rows, ..]`.
fn seen_turned(x: Tensor) -> Tensor {
    let turned: Layout = x.layout().transpose(1, 2);
    Tensor::from_parts(x.storage().clone(), turned, x.dtype())
}

/// Memory for the result and the logarithms of sums.
pub(super) fn room([query, key, value]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
    let &[batch, heads, rows, width] = query.shape() else {
        unreachable!("heads of batches have four dimensions")
    };
    let sums_dtype = sums_dtype(query);
    let out = query.empty_in(MemoryFormat::Preserve)?;
    turn(&[&out])?;
    let sums = seen_turned(shown::empty(&[batch, rows, heads], sums_dtype)?);
    turn(&[query, key, value])?;
    spread(mask, query, key)?;
    let (rows, keys) = (queries(rows), key.shape()[2].min(KEYS));
    let scores = shown::empty(&[shown::THREADS, rows * (keys + 2 + width)], sums_dtype)?;
    let narrow = if query.dtype() == sums_dtype { 0 } else { keys };
    let _scratch = [scores, shown::empty(&[shown::THREADS, rows, narrow], query.dtype())?];
    Ok((out, sums))
}

/// Memory for the gradients of query, key and value.
pub(super) fn gradient_room(tensors: [&Tensor; 6], mask: Option<&Tensor>) -> Result<[Tensor; 3]> {
    let [grad, query, key, value, ..] = tensors;
    turn(&tensors)?;
    let zeros = |x: &Tensor| -> Result<Tensor> {
        let shape = x.layout().transpose(1, 2);
        Ok(seen_turned(Tensor::zeros(shape.shape(), x.dtype())?))
    };
    let room = [zeros(query)?, zeros(key)?, zeros(value)?];
    let turned = Tensor::from_parts(grad.storage().clone(), grad.layout().transpose(1, 2), grad.dtype());
    let _grad = turned.contiguous()?;
    spread(mask, query, key)?;
    let (rows, keys) = (queries(query.shape()[2]), key.shape()[2].min(KEYS));
    let sums_dtype = sums_dtype(query);
    let scores = shown::empty(&[shown::THREADS, 2 * rows * keys], sums_dtype)?;
    let narrow = if query.dtype() == sums_dtype { 0 } else { 2 * rows * keys };
    let _scratch =
        [scores, shown::empty(&[shown::THREADS, narrow], query.dtype())?, shown::empty(&[rows], sums_dtype)?];
    Ok(room)
}
