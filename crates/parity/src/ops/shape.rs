//! Views.

use super::Entry;
use crate::arguments::{Arguments, Term};
use cresset_tensor::ops::Cuts;
use cresset_tensor::{Argument, Result, Tensor, composite};

fn x(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

/// Sections or indices, as `hsplit` and its like take them.
fn cuts(a: &Arguments<'_>) -> Result<Cuts> {
    if a.is_list(1, "indices_or_sections") {
        return Ok(Cuts::Indices(a.get(1, "indices_or_sections")?));
    }
    Ok(Cuts::Sections(a.size(1, "indices_or_sections")?))
}

fn diagonal(a: &Arguments<'_>, from: usize) -> Result<[isize; 3]> {
    Ok([a.or(from, "offset", 0)?, a.or(from + 1, "dim1", 0)?, a.or(from + 2, "dim2", 1)?])
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("T", |a| x(a)?.numpy_t()),
    Entry::one("as_strided", |a| {
        let (shape, strides): (Vec<usize>, Vec<usize>) = (a.get(1, "size")?, a.get(2, "stride")?);
        x(a)?.as_strided(&shape, &strides, a.or(3, "storage_offset", x(a)?.layout().offset())?)
    })
    .in_place(|x, a| {
        let (shape, strides): (Vec<usize>, Vec<usize>) = (a.get(1, "size")?, a.get(2, "stride")?);
        x.as_strided_(&shape, &strides, a.or(3, "storage_offset", x.layout().offset())?)
    }),
    Entry::many("atleast_1d", |a| a.rest::<Tensor>(0, "tensors")?.iter().map(Tensor::atleast_1d).collect()),
    Entry::many("atleast_2d", |a| a.rest::<Tensor>(0, "tensors")?.iter().map(Tensor::atleast_2d).collect()),
    Entry::many("atleast_3d", |a| a.rest::<Tensor>(0, "tensors")?.iter().map(Tensor::atleast_3d).collect()),
    Entry::one("broadcast_to", |a| x(a)?.broadcast_to(a.rest::<isize>(1, "size")?)),
    Entry::many("chunk", |a| x(a)?.chunk(a.size(1, "chunks")?, a.or(2, "dim", 0)?)),
    Entry::one("diagonal", |a| {
        let [offset, dim1, dim2] = diagonal(a, 1)?;
        x(a)?.diagonal(offset, dim1, dim2)
    }),
    Entry::one("diagonal_scatter", |a| {
        let [offset, dim1, dim2] = diagonal(a, 2)?;
        x(a)?.diagonal_scatter(&a.get(1, "src")?, offset, dim1, dim2)
    }),
    Entry::one("expand", |a| x(a)?.expand(a.rest::<isize>(1, "size")?)),
    Entry::one("expand_as", |a| x(a)?.expand_as(&a.get(1, "other")?)),
    Entry::one("flatten", |a| x(a)?.flatten(a.or(1, "start_dim", 0)?, a.or(2, "end_dim", -1)?)),
    Entry::many("hsplit", |a| x(a)?.hsplit(cuts(a)?)),
    Entry::one("mT", |a| x(a)?.mt()),
    Entry::one("movedim", |a| {
        // Torch has an operator of one dimension around that of several.
        let of_one = !a.is_list(1, "source");
        let dims: [isize; 2] = if of_one { [a.get(1, "source")?, a.get(2, "destination")?] } else { [0; 2] };
        let one = |visit: &mut dyn FnMut(Argument<'_>)| {
            dims.iter().for_each(|&dim| visit(Argument::Int(dim as i64)))
        };
        let x = x(a)?;
        let _span = if of_one { composite("aten::movedim", [&x], one) } else { None };
        x.movedim(&a.get::<Vec<isize>>(1, "source")?, &a.get::<Vec<isize>>(2, "destination")?)
    }),
    Entry::one("moveaxis", |a| {
        x(a)?.moveaxis(&a.get::<Vec<isize>>(1, "source")?, &a.get::<Vec<isize>>(2, "destination")?)
    }),
    Entry::one("narrow", |a| {
        let (dim, length) = (a.get(1, "dim")?, a.size(3, "length")?);
        if let Term::Tensor(start) = a.get(2, "start")? {
            return x(a)?.narrow_from(dim, &start, length);
        }
        x(a)?.narrow(dim, a.get(2, "start")?, length)
    }),
    Entry::one("permute", |a| x(a)?.permute(&a.rest::<isize>(1, "dims")?)),
    Entry::one("ravel", |a| x(a)?.ravel()),
    Entry::one("reshape", |a| x(a)?.reshape(a.rest::<isize>(1, "shape")?)),
    Entry::one("reshape_as", |a| x(a)?.reshape_as(&a.get(1, "other")?)),
    Entry::one("select", |a| x(a)?.select(a.get(1, "dim")?, a.get(2, "index")?)),
    Entry::one("select_scatter", |a| {
        x(a)?.select_scatter(&a.get(1, "src")?, a.get(2, "dim")?, a.get(3, "index")?)
    }),
    Entry::one("slice", |a| {
        let (start, end) = (a.or(2, "start", 0)?, a.or(3, "end", isize::MAX)?);
        x(a)?.slice(a.or(1, "dim", 0)?, start..end, a.or(4, "step", 1)?)
    }),
    Entry::one("slice_scatter", |a| {
        let (start, end) = (a.or(3, "start", 0)?, a.or(4, "end", isize::MAX)?);
        x(a)?.slice_scatter(&a.get(1, "src")?, a.or(2, "dim", 0)?, start..end, a.or(5, "step", 1)?)
    }),
    Entry::many("split", |a| x(a)?.split(a.size(1, "split_size")?, a.or(2, "dim", 0)?)),
    Entry::many("split.list_args", |a| {
        x(a)?.split_with_sizes(a.get::<Vec<isize>>(1, "split_size")?, a.or(2, "dim", 0)?)
    }),
    Entry::many("split_with_sizes", |a| {
        x(a)?.split_with_sizes(a.get::<Vec<isize>>(1, "split_sizes")?, a.or(2, "dim", 0)?)
    }),
    Entry::one("squeeze", |a| match a.get::<Option<isize>>(1, "dim")? {
        Some(dim) => x(a)?.squeeze_dim(dim),
        None => x(a)?.squeeze(),
    })
    .in_place(|x, a| match a.get::<Option<isize>>(1, "dim")? {
        Some(dim) => x.squeeze_dim_(dim),
        None => x.squeeze_(),
    }),
    Entry::one("squeeze.multiple", |a| x(a)?.squeeze_dims(&a.get::<Vec<isize>>(1, "dim")?))
        .in_place(|x, a| x.squeeze_dims_(&a.get::<Vec<isize>>(1, "dim")?)),
    Entry::one("t", |a| x(a)?.t()).in_place(|x, _| x.t_()),
    Entry::many("tensor_split", |a| {
        let dim = a.or(2, "dim", 0)?;
        if a.is_list(1, "indices_or_sections") {
            return x(a)?.tensor_split(a.get::<Vec<isize>>(1, "indices_or_sections")?.as_slice(), dim);
        }
        match a.get(1, "indices_or_sections")? {
            Term::Tensor(cuts) => x(a)?.tensor_split_at(&cuts, dim),
            Term::Scalar(_) => x(a)?.tensor_split(a.size(1, "indices_or_sections")?, dim),
        }
    }),
    Entry::one("swapaxes", |a| x(a)?.swapaxes(a.get(1, "axis0")?, a.get(2, "axis1")?)),
    Entry::one("transpose", |a| x(a)?.transpose(a.get(1, "dim0")?, a.get(2, "dim1")?))
        .in_place(|x, a| x.transpose_(a.get(1, "dim0")?, a.get(2, "dim1")?)),
    Entry::many("unbind", |a| x(a)?.unbind(a.or(1, "dim", 0)?)),
    Entry::one("unflatten", |a| x(a)?.unflatten(a.get(1, "dim")?, a.get::<Vec<isize>>(2, "sizes")?)),
    Entry::one("unfold", |a| x(a)?.unfold(a.get(1, "dimension")?, a.size(2, "size")?, a.size(3, "step")?)),
    Entry::one("unsqueeze", |a| x(a)?.unsqueeze(a.get(1, "dim")?))
        .in_place(|x, a| x.unsqueeze_(a.get(1, "dim")?)),
    Entry::one("view", |a| x(a)?.view(a.rest::<isize>(1, "shape")?)),
    Entry::one("view_as", |a| x(a)?.view_as(&a.get(1, "other")?)),
    Entry::many("vsplit", |a| x(a)?.vsplit(cuts(a)?)),
];
