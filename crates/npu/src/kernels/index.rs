//! Elements picked and changed by index. An index out of range shows at the next wait.

use super::{apart, beside, lined, operand};
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::*;
use cresset_tensor::{Cause, DType, Error, Kernel, Key, Op, Operand, Result, Scalar, Tensor};

/// The library's padding row for none: -1, unsigned.
const NO_PADDING: u64 = u64::MAX;

pub(super) fn register(npu: Key) {
    rows(npu);
    elements(npu);
    numbers(npu);
}

fn rows(npu: Key) {
    IndexSelect::table().register(npu, |op, [x, index], out| {
        aclnn::index_select(&lined(x)?, *op.dim as i64, &lined(index)?, &lined(out)?)
    });
    IndexAdd::table().register(npu, |op, [x, source, index], out| {
        let (x, source, out) = (lined(x)?, lined(source)?, lined(out)?);
        aclnn::index_add(&x, *op.dim as i64, &lined(index)?, &source, op.alpha, &out)
    });
    IndexCopy::table().register(npu, |op, [x, source, index], out| {
        aclnn::index_copy(&lined(x)?, *op.dim as i64, &lined(index)?, &lined(source)?, &lined(out)?)
    });
    IndexFill::table().register(npu, |op, [x, value, index], out| {
        let (x, index) = (lined(tensor(x))?, lined(tensor(index))?);
        let mut shape = x.shape().to_vec();
        shape[*op.dim] = index.numel();
        let slices = operand(value, x.dtype(), out)?.expand(&shape)?;
        aclnn::index_copy(&x, *op.dim as i64, &index, &slices, &lined(out)?)
    });
    Embedding::table().register(npu, |_, [weight, indices], out| aclnn::embedding(weight, indices, out));
    EmbeddingDenseBackward::table().register(npu, |op, [grad, indices], out| {
        let padding = op.padding.map_or(NO_PADDING, |row| row as u64);
        aclnn::embedding_dense_backward(grad, indices, op.rows as u64, padding, op.scale_by_frequency, out)
    });
    EmbeddingRenorm::table().register(npu, |op, [table, indices], out| {
        aclnn::inplace_copy(out, table)?;
        aclnn::embedding_renorm(out, indices, op.max_norm, op.norm)
    });
}

fn elements(npu: Key) {
    Gather::table().register(npu, |op, [x, index], out| match index.numel() {
        0 => Ok(()),
        _ => aclnn::gather(&lined(x)?, *op.dim as i64, &lined(index)?, &lined(out)?),
    });
    Scatter::table().register(npu, |op, inputs, out| {
        let reduce = reduction(Scatter::NAME, op.how)?;
        let [x, index] = [tensor(inputs[0]), tensor(inputs[2])];
        if index.numel() == 0 {
            return aclnn::inplace_copy(out, x);
        }
        let (x, dim, index, out) = (lined(x)?, *op.dim as i64, lined(index)?, lined(out)?);
        match inputs[1] {
            Operand::Tensor(source) => aclnn::scatter(&x, dim, &index, &lined(source)?, reduce, &out),
            Operand::Scalar(value) => aclnn::scatter_value(&x, dim, &index, value, reduce, &out),
        }
    });
    ScatterAdd::table().register(npu, |op, [x, source, index], out| match index.numel() {
        0 => aclnn::inplace_copy(out, x),
        _ => {
            let (x, source, out) = (lined(x)?, lined(source)?, lined(out)?);
            aclnn::scatter_add(&x, *op.dim as i64, &lined(index)?, &source, &out)
        }
    });
    ScatterReduce::table().register(npu, |op, [x, source, index], out| {
        meet(ScatterReduce::NAME, op.how, op.include, [x, source, index], op.dim, out)
    });
    // Slices by number are elements that all have the number of their slice.
    IndexReduce::table().register(npu, |op, [x, source, index], out| {
        let (x, source, out) = (lined(x)?, lined(source)?, lined(out)?);
        let mut shape = vec![1; source.dim()];
        shape[op.dim] = index.numel();
        let index = index.reshape(shape)?.expand(source.shape())?;
        meet(IndexReduce::NAME, op.how, op.include, [&x, &source, &index], op.dim, &out)
    });
    Take::table().register(npu, |_, [x, index], out| match index.numel() {
        0 => Ok(()),
        _ => aclnn::take(x, index, out),
    });
    Put::table().register(npu, |op, [x, source, index], out| {
        aclnn::inplace_copy(out, x)?;
        match index.numel() {
            0 => Ok(()),
            _ => aclnn::inplace_put(out, index, source, op.accumulate),
        }
    });
    MaskedScatter::table().register(npu, |_, [x, source, mask], out| {
        aclnn::inplace_copy(out, x)?;
        aclnn::inplace_masked_scatter(out, &mask.expand(out.shape())?, source)
    });
}

fn numbers(npu: Key) {
    SearchSorted::table().register(npu, |op, ([sorted, values], sorter), out| {
        aclnn::search_sorted(sorted, values, op.int32, op.right, sorter, out)
    });
    IsIn::table().register(npu, |op, [x, known], out| {
        let known = known.reshape([known.numel()])?;
        let found = x.unsqueeze(-1)?.eq(&known)?;
        match op.invert {
            true => aclnn::logical_not(&found.any_dim(-1, false)?, out),
            false => aclnn::any(&found, &[x.dim()], false, out),
        }
    });
    NonzeroRows::table().register(npu, |_, [x], out| aclnn::nonzero(x, out));
    IndexNumbers::table().register(npu, |_, ([x], indices), out| {
        if out.numel() == 0 {
            return Ok(());
        }
        let (list, none) = (given(indices), none(x)?);
        aclnn::index(x, &or(&list, &none), out)
    });
    IndexPut::table().register(npu, |op, ([x, values], indices), out| {
        aclnn::inplace_copy(out, x)?;
        put(out, values, indices, op.accumulate, false)
    });
    IndexPut::in_place_table()
        .register(npu, |op, ([x, values], indices)| put(x, values, indices, op.accumulate, false));
    IndexPutImpl::in_place_table()
        .register(npu, |op, ([x, values], indices)| put(x, values, indices, op.accumulate, op.trusted));
}

fn put(
    x: &Tensor,
    values: &Tensor,
    indices: &[Option<&Tensor>],
    accumulate: bool,
    trusted: bool,
) -> Result<()> {
    let expanded = numbered(indices)?;
    let listed: Vec<Option<&Tensor>> = expanded.iter().map(Option::as_ref).collect();
    if listed.iter().flatten().any(|index| index.numel() == 0) || x.numel() == 0 {
        return Ok(());
    }
    let (list, none) = (given(&listed), none(x)?);
    aclnn::index_put_impl(x, &or(&list, &none), &apart(values, x)?, accumulate, trusted)
}

/// Indices with the numbers of what masks pick in their place.
fn numbered(indices: &[Option<&Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let mut numbered = Vec::with_capacity(indices.len());
    for index in indices {
        match index {
            Some(mask) if matches!(mask.dtype(), DType::Bool | DType::U8) => {
                let columns = mask.nonzero()?;
                for dim in 0..mask.dim() {
                    numbered.push(Some(columns.select(1, dim as isize)?));
                }
            }
            index => numbered.push(index.cloned()),
        }
    }
    Ok(numbered)
}

/// Indices up to the last one that is there.
fn given<'a>(indices: &[Option<&'a Tensor>]) -> Vec<Option<&'a Tensor>> {
    let last = indices.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    indices[..last].to_vec()
}

/// A tensor without elements stands for a dimension that is not indexed.
fn none(x: &Tensor) -> Result<Tensor> {
    beside(x, &[0], DType::I64)
}

fn or<'a>(indices: &[Option<&'a Tensor>], none: &'a Tensor) -> Vec<&'a Tensor> {
    indices.iter().map(|index| index.unwrap_or(none)).collect()
}

fn tensor<'a>(operand: Operand<'a>) -> &'a Tensor {
    operand.tensor().expect("`infer` refuses a number in the place of a tensor")
}

/// Sums and products of elements that meet. Where what was there takes no part, it first becomes what
/// changes nothing.
fn meet(
    op: &'static str,
    how: Combine,
    include: bool,
    [x, source, index]: [&Tensor; 3],
    dim: usize,
    out: &Tensor,
) -> Result<()> {
    if index.numel() == 0 {
        return aclnn::inplace_copy(out, x);
    }
    match how {
        Combine::Mean => return mean(include, [&lined(x)?, &lined(source)?, &lined(index)?], dim, out),
        Combine::Largest | Combine::Smallest => {
            let tensors = [&lined(x)?, &lined(source)?, &lined(index)?];
            return extremes(how == Combine::Largest, include, tensors, dim, &lined(out)?);
        }
        Combine::Replace | Combine::Add | Combine::Multiply => {}
    }
    let reduce = reduction(op, how)?;
    let (mut x, dim, index) = (lined(x)?, dim as i64, lined(index)?);
    if !include {
        let cleared = beside(&x, x.shape(), x.dtype())?;
        let nothing = Scalar::Int((how == Combine::Multiply).into());
        aclnn::scatter_value(&x, dim, &index, nothing, 0, &cleared)?;
        x = cleared;
    }
    aclnn::scatter(&x, dim, &index, &lined(source)?, reduce, &lined(out)?)
}

/// Sums of elements that meet, divided by how many they are.
fn mean(include: bool, [x, source, index]: [&Tensor; 3], dim: usize, out: &Tensor) -> Result<()> {
    let dim = dim as isize;
    let source = leading(source, index.shape())?;
    let (ones, mut start, mut count) = (source.ones_like()?, x.clone(), x.ones_like()?);
    if !include {
        start = x.scatter(dim, index, 0)?;
        count = count.scatter(dim, index, 0)?;
    }
    let sum = start.scatter_add(dim, index, &source)?;
    let count = count.scatter_add(dim, index, &ones)?;
    let count = count.masked_fill(&count.eq(0)?, 1)?;
    let mean = if x.dtype().is_float() { sum.div(&count)? } else { sum.floor_divide(&count)? };
    aclnn::inplace_copy(&lined(out)?, &mean)
}

/// The largest or smallest of elements that meet. The library has no order for those that it puts to one
/// place, so that elements come a slice at a time: in a slice no two meet.
fn extremes(
    largest: bool,
    include: bool,
    [x, source, index]: [&Tensor; 3],
    dim: usize,
    out: &Tensor,
) -> Result<()> {
    let along = dim as isize;
    let source = leading(source, index.shape())?;
    let mut result = x.clone();
    if !include {
        result = result.scatter(along, index, worst(x.dtype(), largest))?;
    }
    for at in 0..index.shape()[dim] as isize {
        let (index, one) = (index.narrow(along, at, 1)?, source.narrow(along, at, 1)?);
        let there = result.gather(along, &index)?;
        let better = if largest { there.maximum(&one)? } else { there.minimum(&one)? };
        result = result.scatter(along, &index, &better)?;
    }
    aclnn::inplace_copy(out, &result)
}

/// What every other element is better than.
fn worst(dtype: DType, largest: bool) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(!largest),
        dtype if dtype.is_float() => Scalar::Float(if largest { f64::NEG_INFINITY } else { f64::INFINITY }),
        DType::U8 => Scalar::Int(if largest { 0 } else { i64::from(u8::MAX) }),
        dtype => {
            let bits = 8 * dtype.size() as u32;
            let most = i64::MAX >> (64 - bits);
            Scalar::Int(if largest { -most - 1 } else { most })
        }
    }
}

/// The first elements of `x`, as many as `shape` has along each dimension.
fn leading(x: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let mut part = x.clone();
    for (dim, &size) in shape.iter().enumerate() {
        part = part.narrow(dim as isize, 0, size)?;
    }
    Ok(part)
}

/// The library's number of what becomes of elements that meet.
fn reduction(op: &'static str, how: Combine) -> Result<i64> {
    match how {
        Combine::Replace => Ok(0),
        Combine::Add => Ok(1),
        Combine::Multiply => Ok(2),
        Combine::Mean | Combine::Largest | Combine::Smallest => {
            let text = format_args!("the npu's library puts, adds and multiplies, and has no {how:?}");
            Err(Error::new(Cause::NoKernel, op, text))
        }
    }
}
