//! Elements copied to other places, whatever their type: permuted, repeated, cut, joined, padded.

use super::numbers::integers;
use super::shape::{broadcast_to, dim, expect};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{Layout, Scalar, elementwise};
use std::ffi::CStr;

/// A kernel that copies parts of `x` to parts of `out`, each of one shape.
fn parts(kernel: &'static CStr, x: Tensor, out: Tensor, pairs: Vec<(Layout, Layout)>) -> Planned {
    expect_same(&x, &out)?;
    Plan::moving(kernel, vec![x], vec![out], move |reads, mut writes| {
        for (from, to) in &pairs {
            elementwise::copy(reads[0].with_layout(from), writes[0].with_layout(to));
        }
        Ok(())
    })
}

/// A kernel that copies one layout of `x` to all of `out`.
fn rearranged(kernel: &'static CStr, x: Tensor, layout: Layout, out: Tensor) -> Planned {
    expect("out", &out, layout.shape())?;
    let whole = out.layout().clone();
    parts(kernel, x, out, vec![(layout, whole)])
}

/// Fails unless both have the same element type.
pub(super) fn expect_same(x: &Tensor, out: &Tensor) -> Result {
    if x.told().dtype != out.told().dtype {
        fail!(code::NN_PARAM_INVALID, "element types {} and {} differ", x.told().dtype, out.told().dtype);
    }
    Ok(())
}

pub(crate) fn permute(x: Tensor, order: Vec<i64>, out: Tensor) -> Planned {
    let rank = x.shape().len();
    let order = order.iter().map(|&given| dim(given, rank)).collect::<Result<Vec<usize>>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        fail!(code::NN_PARAM_INVALID, "{order:?} is no order of {rank} dimensions");
    }
    let layout = x.layout().permute(&order);
    rearranged(c"Transpose", x, layout, out)
}

pub(crate) fn flatten(x: Tensor, axis: i64, out: Tensor) -> Planned {
    let rank = x.shape().len() as i64;
    if !(-rank..=rank).contains(&axis) {
        fail!(code::NN_PARAM_INVALID, "axis {axis} of {rank} dimensions");
    }
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let (rows, columns) = x.shape().split_at(axis);
    expect("out", &out, &[rows.iter().product(), columns.iter().product()])?;
    expect_same(&x, &out)?;
    Plan::moving(c"Flatten", vec![x], vec![out], |reads, mut writes| {
        let (x, out) = (reads[0], writes.remove(0));
        super::cast::Temporary::of(x, x.dtype()).read(|x| {
            let layout = Layout::contiguous(out.shape()).expect("as many elements");
            elementwise::copy(x.with_layout(&layout), out);
        });
        Ok(())
    })
}

pub(crate) fn expand(x: Tensor, size: Vec<i64>, out: Tensor) -> Planned {
    let given = size.len().checked_sub(x.shape().len());
    let Some(more) = given else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} does not expand to {size:?}", x.shape());
    };
    let kept = |at: usize| at.checked_sub(more).map_or(1, |at| x.shape()[at]);
    let shape: Vec<usize> = size
        .iter()
        .enumerate()
        .map(|(at, &size)| usize::try_from(size).unwrap_or_else(|_| kept(at)))
        .collect();
    let layout = broadcast_to("x", &x, &shape)?.layout().clone();
    rearranged(c"BroadcastTo", x, layout, out)
}

pub(crate) fn repeat(x: Tensor, repeats: Vec<i64>, out: Tensor) -> Planned {
    let Some(more) = repeats.len().checked_sub(x.shape().len()) else {
        fail!(code::NN_PARAM_INVALID, "{} repeats for x of shape {:?}", repeats.len(), x.shape());
    };
    let repeats: Vec<usize> = repeats.iter().map(|&count| count.max(0) as usize).collect();
    let sizes = [vec![1; more], x.shape().to_vec()].concat();
    let shape: Vec<usize> = sizes.iter().zip(&repeats).map(|(size, count)| size * count).collect();
    expect("out", &out, &shape)?;
    // Each dimension of the result is two of `x`: how often, and which element.
    let (mut from, mut from_strides, mut to_strides) = (Vec::new(), Vec::new(), Vec::new());
    for dim in 0..sizes.len() {
        let stride = dim.checked_sub(more).map_or(0, |dim| x.layout().strides()[dim]);
        from.extend([repeats[dim], sizes[dim]]);
        from_strides.extend([0, stride]);
        let step = out.layout().strides()[dim];
        to_strides.extend([step * sizes[dim], step]);
    }
    let layout = |strides: &[usize]| Layout::strided(&from, strides, 0).expect("not further than before");
    let pair = (layout(&from_strides), layout(&to_strides));
    parts(c"Tile", x, out, vec![pair])
}

pub(crate) fn repeat_interleave_int_with_dim(
    x: Tensor,
    repeats: i64,
    given: i64,
    size: i64,
    out: Tensor,
) -> Planned {
    let (dim, repeats) = (dim(given, x.shape().len())?, repeats.max(0) as usize);
    let mut shape = x.shape().to_vec();
    shape[dim] *= repeats;
    if size >= 0 && size as usize != shape[dim] {
        fail!(code::NN_PARAM_INVALID, "{} elements repeated, expected {size}", shape[dim]);
    }
    expect("out", &out, &shape)?;
    let mut split = x.shape().to_vec();
    split.insert(dim + 1, repeats);
    let (mut from, mut to) = (x.layout().strides().to_vec(), out.layout().strides().to_vec());
    from.insert(dim + 1, 0);
    to.insert(dim + 1, to[dim]);
    to[dim] *= repeats;
    let layout = |strides: &[usize]| Layout::strided(&split, strides, 0).expect("not further than before");
    let pair = (layout(&from), layout(&to));
    parts(c"RepeatInterleave", x, out, vec![pair])
}

/// Every element several times, one after the other, as a line.
pub(crate) fn repeat_interleave_int(x: Tensor, repeats: i64, size: i64, out: Tensor) -> Planned {
    let count = x.layout().len() * repeats.max(0) as usize;
    if size >= 0 && size as usize != count {
        fail!(code::NN_PARAM_INVALID, "{count} elements repeated, expected {size}");
    }
    expect("out", &out, &[count])?;
    expect_same(&x, &out)?;
    let shape = [x.layout().len(), repeats.max(0) as usize];
    Plan::moving(c"RepeatInterleave", vec![x], vec![out], move |reads, mut writes| {
        super::cast::Temporary::of(reads[0], reads[0].dtype()).read(|x| {
            let step = writes[0].layout().strides()[0];
            let from = Layout::strided(&shape, &[1, 0], 0).expect("as many elements");
            let to = Layout::strided(&shape, &[step * shape[1], step], 0).expect("as many elements");
            elementwise::copy(x.with_layout(&from), writes[0].with_layout(&to));
        });
        Ok(())
    })
}

/// Slices along a dimension, each as often as another tensor says; how many that makes the client knows.
pub(crate) fn repeat_interleave_with_dim(
    x: Tensor,
    repeats: Tensor,
    given: i64,
    size: i64,
    out: Tensor,
) -> Planned {
    let dim = dim(given, x.shape().len())?;
    super::cast::expect_dtype("repeats", &repeats, super::cast::INDICES)?;
    let (slices, mut shape) = (x.shape()[dim], x.shape().to_vec());
    if ![1, slices].contains(&repeats.layout().len()) {
        fail!(code::NN_PARAM_INVALID, "repeats of shape {:?} for {slices} slices", repeats.shape());
    }
    shape[dim] = size.max(0) as usize;
    expect("out", &out, &shape)?;
    expect_same(&x, &out)?;
    let plan = Plan::moving(c"RepeatInterleave", vec![x, repeats], vec![out], move |reads, mut writes| {
        let (counts, mut to) = (integers(reads[1]), 0);
        for from in 0..slices {
            let count = counts[if counts.len() == 1 { 0 } else { from }];
            for _ in 0..count {
                if to == shape[dim] {
                    fail!(code::RT_AICORE_EXCEPTION, "more slices than the {to} that were expected");
                }
                let (source, target) =
                    (reads[0].layout().select(dim, from), writes[0].layout().select(dim, to));
                elementwise::copy(reads[0].with_layout(&source), writes[0].with_layout(&target));
                to += 1;
            }
        }
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Channels by turns from each group.
pub(crate) fn channel_shuffle(x: Tensor, groups: i64, out: Tensor) -> Planned {
    let groups = groups.max(0) as usize;
    let (shape, strides) = (x.shape().to_vec(), x.layout().strides().to_vec());
    if shape.len() < 3 || groups == 0 || !shape[1].is_multiple_of(groups) {
        fail!(code::NN_PARAM_INVALID, "channels of shape {shape:?} in {groups} groups");
    }
    expect("out", &out, &shape)?;
    let each = shape[1] / groups;
    let split = |first: [usize; 2], strides: &[usize], steps: [usize; 2]| {
        let sizes = [&shape[..1], &first[..], &shape[2..]].concat();
        let strides = [&strides[..1], &steps[..], &strides[2..]].concat();
        Layout::strided(&sizes, &strides, 0).expect("as many elements")
    };
    let to = out.layout().strides();
    let from = split([each, groups], &strides, [strides[1], strides[1] * each]);
    let to = split([each, groups], to, [to[1] * groups, to[1]]);
    parts(c"ShuffleChannel", x, out, vec![(from, to)])
}

/// A copy with slices along a dimension filled.
pub(crate) fn index_fill_tensor(
    x: Tensor,
    given: i64,
    index: Vec<i64>,
    value: Scalar,
    out: Tensor,
) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect("out", &out, x.shape())?;
    expect_same(&x, &out)?;
    let size = x.shape().get(dim).copied().unwrap_or(1) as i64;
    if let Some(index) = index.iter().find(|index| !(-size..size).contains(*index)) {
        fail!(code::NN_PARAM_INVALID, "index {index} is out of range 0..{size}");
    }
    Plan::new(c"IndexFill", [x], [out], move |[x], [mut out]| {
        elementwise::copy(x, out.reborrow());
        for at in index {
            let place = match out.shape().is_empty() {
                true => out.layout().clone(),
                false => out.layout().select(dim, at.rem_euclid(size) as usize),
            };
            elementwise::fill(value, out.with_layout(&place));
        }
        Ok(())
    })
}

pub(crate) fn roll(x: Tensor, shifts: Vec<i64>, dims: Vec<i64>, out: Tensor) -> Planned {
    expect("out", &out, x.shape())?;
    if dims.is_empty() && shifts.len() == 1 {
        return roll_flat(x, shifts[0], out);
    }
    if shifts.len() != dims.len() {
        fail!(code::NN_PARAM_INVALID, "{} shifts for {} dimensions", shifts.len(), dims.len());
    }
    // Every dimension is cut in two, and all combinations of pieces are copied.
    let mut pairs = vec![(x.layout().clone(), out.layout().clone())];
    for (shift, given) in shifts.into_iter().zip(dims) {
        let dim = dim(given, x.shape().len())?;
        let size = x.shape().get(dim).copied().unwrap_or(1);
        if size == 0 || x.shape().is_empty() {
            continue;
        }
        let by = shift.rem_euclid(size as i64) as usize;
        pairs = pairs
            .iter()
            .flat_map(|(from, to)| {
                let front = (from.narrow(dim, 0, size - by), to.narrow(dim, by, size - by));
                let back = (from.narrow(dim, size - by, by), to.narrow(dim, 0, by));
                [front, back]
            })
            .filter(|(from, _)| !from.is_empty())
            .collect();
    }
    parts(c"Roll", x, out, pairs)
}

fn roll_flat(x: Tensor, shift: i64, out: Tensor) -> Planned {
    expect_same(&x, &out)?;
    Plan::moving(c"Roll", vec![x], vec![out], move |reads, mut writes| {
        let (x, out) = (reads[0], writes.remove(0));
        let count = x.layout().len();
        let by = shift.rem_euclid(count.max(1) as i64) as usize;
        let rolled = super::cast::Temporary::new(x.dtype(), &[count]);
        let (line, shape) = (Layout::contiguous(&[count]), Layout::contiguous(x.shape()));
        let (line, shape) = (line.expect("as many elements"), shape.expect("as many elements"));
        super::cast::Temporary::of(x, x.dtype()).read(|x| {
            let x = x.with_layout(&line);
            rolled.write(|mut rolled| {
                for (from, to, size) in [(0, by, count - by), (count - by, 0, by)] {
                    let (from, to) = (line.narrow(0, from, size), line.narrow(0, to, size));
                    elementwise::copy(x.with_layout(&from), rolled.with_layout(&to));
                }
            });
        });
        rolled.read(|rolled| elementwise::copy(rolled.with_layout(&shape), out));
        Ok(())
    })
}

/// Where a slice starts and how many elements it has.
fn range(size: usize, start: i64, end: i64, step: i64) -> Result<(usize, usize)> {
    if step < 1 {
        fail!(code::NN_PARAM_INVALID, "a step of {step} is not positive");
    }
    let place = |at: i64| (if at < 0 { at + size as i64 } else { at }).clamp(0, size as i64) as usize;
    let (start, end) = (place(start), place(end));
    Ok((start, end.saturating_sub(start).div_ceil(step as usize)))
}

fn sliced(layout: &Layout, dim: usize, start: i64, end: i64, step: i64) -> Result<Layout> {
    let (start, count) = range(layout.shape()[dim], start, end, step)?;
    let rest = layout.narrow(dim, start, layout.shape()[dim] - start);
    let stepped = rest.step(dim, step as usize);
    Ok(stepped.expect("a step is positive").narrow(dim, 0, count))
}

pub(crate) fn slice(x: Tensor, given: i64, start: i64, end: i64, step: i64, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    let layout = sliced(x.layout(), dim, start, end, step)?;
    rearranged(c"StridedSlice", x, layout, out)
}

pub(crate) fn slice_v2(
    x: Tensor,
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<i64>,
    steps: Vec<i64>,
    out: Tensor,
) -> Planned {
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        fail!(code::NN_PARAM_INVALID, "starts {starts:?}, ends {ends:?}, axes {axes:?}, steps {steps:?}");
    }
    let mut layout = x.layout().clone();
    for at in 0..starts.len() {
        let dim = dim(axes[at], x.shape().len())?;
        layout = sliced(&layout, dim, starts[at], ends[at], steps[at])?;
    }
    rearranged(c"StridedSlice", x, layout, out)
}

pub(crate) fn constant_pad_nd(x: Tensor, padding: Vec<i64>, value: Scalar, out: Tensor) -> Planned {
    let rank = x.shape().len();
    if !padding.len().is_multiple_of(2) || padding.len() > 2 * rank {
        fail!(code::NN_PARAM_INVALID, "padding {padding:?} for x of shape {:?}", x.shape());
    }
    // Negative padding cuts: then less of `x` goes to `out`.
    let (mut from, mut to, mut shape) = (x.layout().clone(), out.layout().clone(), x.shape().to_vec());
    for (at, pair) in padding.chunks_exact(2).enumerate() {
        let dim = rank - 1 - at;
        let padded = shape[dim] as i64 + pair[0] + pair[1];
        if padded < 0 {
            fail!(code::NN_PARAM_INVALID, "padding {pair:?} for a size of {}", shape[dim]);
        }
        shape[dim] = padded as usize;
    }
    expect("out", &out, &shape)?;
    for (at, pair) in padding.chunks_exact(2).enumerate() {
        let dim = rank - 1 - at;
        let size = x.shape()[dim] as i64;
        let (cut, shift) = ((-pair[0]).max(0), pair[0].max(0));
        let kept = (size - cut - (-pair[1]).max(0)).max(0) as usize;
        from = from.narrow(dim, cut.min(size) as usize, kept);
        to = to.narrow(dim, if kept == 0 { 0 } else { shift as usize }, kept);
    }
    expect_same(&x, &out)?;
    Plan::moving(c"PadV3", vec![x], vec![out], move |reads, mut writes| {
        elementwise::fill(value, writes[0].reborrow());
        if !from.is_empty() {
            elementwise::copy(reads[0].with_layout(&from), writes[0].with_layout(&to));
        }
        Ok(())
    })
}

pub(crate) fn stack(tensors: Vec<Tensor>, given: i64, out: Tensor) -> Planned {
    let dim = dim(given, out.shape().len())?;
    let Some(first) = tensors.first() else {
        fail!(code::NN_PARAM_INVALID, "there is no tensor to stack");
    };
    let mut shape = first.shape().to_vec();
    shape.insert(dim, tensors.len());
    expect("out", &out, &shape)?;
    for tensor in &tensors {
        expect("a tensor", tensor, first.shape())?;
    }
    Plan::moving(c"Pack", tensors, vec![out], move |tensors, mut writes| {
        for (at, tensor) in tensors.iter().enumerate() {
            let place = writes[0].layout().select(dim, at);
            elementwise::copy(*tensor, writes[0].with_layout(&place));
        }
        Ok(())
    })
}

pub(crate) fn split_tensor(x: Tensor, section: u64, given: i64, out: Vec<Tensor>) -> Planned {
    let dim = dim(given, x.shape().len())?;
    let (size, section) = (x.shape()[dim], section as usize);
    if section == 0 && size > 0 {
        fail!(code::NN_PARAM_INVALID, "sections of no elements");
    }
    let sizes = (0..out.len()).map(|at| size.saturating_sub(at * section).min(section)).collect();
    split(x, dim, sizes, out)
}

pub(crate) fn split_with_size(x: Tensor, sizes: Vec<i64>, given: i64, out: Vec<Tensor>) -> Planned {
    let dim = dim(given, x.shape().len())?;
    split(x, dim, sizes.into_iter().map(|size| size.max(0) as usize).collect(), out)
}

fn split(x: Tensor, dim: usize, sizes: Vec<usize>, out: Vec<Tensor>) -> Planned {
    if sizes.len() != out.len() || sizes.iter().sum::<usize>() != x.shape()[dim] {
        fail!(code::NN_PARAM_INVALID, "{sizes:?} of x of shape {:?} for {} results", x.shape(), out.len());
    }
    for (&size, out) in sizes.iter().zip(&out) {
        let mut shape = x.shape().to_vec();
        shape[dim] = size;
        expect("a result", out, &shape)?;
        expect_same(&x, out)?;
    }
    Plan::moving(c"SplitV", vec![x], out, move |reads, writes| {
        let mut start = 0;
        for (&size, out) in sizes.iter().zip(writes) {
            let part = reads[0].layout().narrow(dim, start, size);
            elementwise::copy(reads[0].with_layout(&part), out);
            start += size;
        }
        Ok(())
    })
}

pub(crate) fn gather_v2(x: Tensor, given: i64, index: Tensor, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    super::cast::expect_dtype("index", &index, super::cast::INDICES)?;
    let (before, after) = (&x.shape()[..dim], &x.shape()[dim + 1..]);
    expect("out", &out, &[before, index.shape(), after].concat())?;
    expect_same(&x, &out)?;
    let (size, rank) = (x.shape()[dim], index.shape().len());
    Plan::moving(c"GatherV2", vec![x, index], vec![out], move |reads, mut writes| {
        let shape = reads[1].shape();
        for (at, index) in integers(reads[1]).into_iter().enumerate() {
            let place = if index < 0 { index + size as i64 } else { index };
            if !(0..size as i64).contains(&place) {
                fail!(code::RT_AICORE_EXCEPTION, "index {index} is out of range 0..{size}");
            }
            let (mut to, mut rest) = (writes[0].layout().clone(), at);
            for step in (0..rank).rev() {
                to = to.select(dim + step, rest % shape[step]);
                rest /= shape[step];
            }
            let from = reads[0].layout().select(dim, place as usize);
            elementwise::copy(reads[0].with_layout(&from), writes[0].with_layout(&to));
        }
        Ok(())
    })
}

pub(crate) fn inplace_index_fill_tensor(x: Tensor, given: i64, index: Vec<i64>, value: Scalar) -> Planned {
    let dim = dim(given, x.shape().len())?;
    let size = x.shape().get(dim).copied().unwrap_or(1) as i64;
    if let Some(index) = index.iter().find(|index| !(-size..size).contains(*index)) {
        fail!(code::NN_PARAM_INVALID, "index {index} is out of range 0..{size}");
    }
    Plan::new(c"InplaceIndexFill", [], [x], move |[], [mut x]| {
        for at in index {
            let place = x.layout().select(dim, at.rem_euclid(size) as usize);
            elementwise::fill(value, x.with_layout(&place));
        }
        Ok(())
    })
}
