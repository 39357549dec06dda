//! Single elements picked and changed by number, by mask and by several indices at once.

use super::cast::{INDICES, Temporary, converted, expect_dtype, promote, stored};
use super::index::out_of_range;
use super::shape::{broadcast_to, common, dim, expect};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::index::{self as kernels, Combine, Places, block};
use cresset_kernels::{DType, Layout, Scalar, View, elementwise};

pub(crate) fn gather(x: Tensor, given: i64, index: Tensor, out: Tensor) -> Planned {
    let dim = check_elements(&x, given, &index)?;
    expect("out", &out, index.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    Plan::new(c"GatherElements", [x, index], [out], move |[x, index], [out]| {
        let places = Places::of_elements(x.layout(), dim, index).map_err(out_of_range)?;
        kernels::pick(x, &places, out);
        Ok(())
    })
}

pub(crate) fn scatter(
    x: Tensor,
    given: i64,
    index: Tensor,
    source: Tensor,
    reduce: i64,
    out: Tensor,
) -> Planned {
    let dim = check_elements(&x, given, &index)?;
    expect_dtype("source", &source, &[x.dtype()])?;
    if source.shape().len() != index.shape().len()
        || source.shape().iter().zip(index.shape()).any(|(size, wanted)| size < wanted)
    {
        fail!(code::NN_PARAM_INVALID, "source {:?} for an index {:?}", source.shape(), index.shape());
    }
    // Of a source that is larger the first elements are used.
    let layout = Layout::strided(index.shape(), source.layout().strides(), 0).expect("not more elements");
    let source = source.with_layout(layout);
    let how = combine(reduce)?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    Plan::new(c"ScatterElements", [x, index, source], [out], move |[x, index, source], [mut out]| {
        elementwise::copy(x, out.reborrow());
        let places = Places::of_elements(out.layout(), dim, index).map_err(out_of_range)?;
        kernels::put(out, &places, source, how, true);
        Ok(())
    })
}

pub(crate) fn scatter_value(
    x: Tensor,
    given: i64,
    index: Tensor,
    value: Scalar,
    reduce: i64,
    out: Tensor,
) -> Planned {
    let dim = check_elements(&x, given, &index)?;
    let (how, dtype) = (combine(reduce)?, x.dtype());
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[dtype])?;
    Plan::new(c"ScatterElements", [x, index], [out], move |[x, index], [mut out]| {
        elementwise::copy(x, out.reborrow());
        let places = Places::of_elements(out.layout(), dim, index).map_err(out_of_range)?;
        Temporary::filled(value, dtype, index.shape())
            .read(|source| kernels::put(out, &places, source, how, true));
        Ok(())
    })
}

pub(crate) fn scatter_add(x: Tensor, given: i64, index: Tensor, source: Tensor, out: Tensor) -> Planned {
    scatter(x, given, index, source, 1, out)
}

fn combine(reduce: i64) -> Result<Combine> {
    match reduce {
        0 => Ok(Combine::Replace),
        1 => Ok(Combine::Add),
        2 => Ok(Combine::Multiply),
        _ => fail!(code::NN_PARAM_INVALID, "there is no reduction {reduce} of elements that meet"),
    }
}

fn check_elements(x: &Tensor, given: i64, index: &Tensor) -> Result<usize> {
    let dim = dim(given, x.shape().len())?;
    expect_dtype("index", index, INDICES)?;
    let fits = |(at, (&size, &wanted)): (usize, (&usize, &usize))| at == dim || wanted <= size;
    if x.shape().len() != index.shape().len() || !x.shape().iter().zip(index.shape()).enumerate().all(fits) {
        fail!(code::NN_PARAM_INVALID, "an index {:?} for x of {:?}", index.shape(), x.shape());
    }
    Ok(dim)
}

pub(crate) fn take(x: Tensor, index: Tensor, out: Tensor) -> Planned {
    expect_dtype("index", &index, INDICES)?;
    expect("out", &out, index.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    Plan::new(c"GatherV2", [x, index], [out], |[x, index], [out]| {
        let places = Places::of_flat(x.layout(), index).map_err(out_of_range)?;
        kernels::pick(x, &places, out);
        Ok(())
    })
}

pub(crate) fn inplace_put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Planned {
    expect_dtype("index", &index, INDICES)?;
    expect_dtype("source", &source, &[x.dtype()])?;
    if source.layout().len() != index.layout().len() {
        fail!(
            code::NN_PARAM_INVALID,
            "{} elements for {} places",
            source.layout().len(),
            index.layout().len()
        );
    }
    let how = if accumulate { Combine::Add } else { Combine::Replace };
    Plan::new(c"ScatterNdUpdate", [index, source], [x], move |[index, source], [x]| {
        let places = Places::of_flat(x.layout(), index).map_err(out_of_range)?;
        kernels::put(x, &places, source, how, true);
        Ok(())
    })
}

pub(crate) fn inplace_masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Planned {
    expect_dtype("mask", &mask, &[DType::Bool])?;
    expect_dtype("source", &source, &[x.dtype()])?;
    let mask = broadcast_to("mask", &mask, x.shape())?;
    Plan::new(c"MaskedScatter", [mask, source], [x], |[mask, source], [x]| {
        let places = Places::of_mask(x.layout(), mask);
        let (count, given) = (places.count(), source.layout().len());
        if count > given {
            fail!(code::RT_AICORE_EXCEPTION, "{given} elements for {count} places of a mask");
        }
        let line = Layout::contiguous(&[count]).expect("some of the elements");
        Temporary::of(source, source.dtype())
            .read(|source| kernels::put(x, &places, source.with_layout(&line), Combine::Replace, true));
        Ok(())
    })
}

/// How many results there are is only known when a kernel has run: it writes as many as it finds, and tells
/// the client by the shape of `out`.
pub(crate) fn nonzero(x: Tensor, out: Tensor) -> Planned {
    let rank = x.shape().len();
    expect("out", &out, &[x.layout().len(), rank])?;
    expect_dtype("out", &out, &[DType::I64])?;
    let told = out.clone();
    let plan = Plan::new(c"NonZero", [x], [out], move |[x], [mut out]| {
        let found = kernels::nonzero(x);
        let rows = found.len().checked_div(rank).unwrap_or(!x.layout().is_empty() as usize);
        let (lines, room) = (Layout::contiguous(&[rows, rank]), out.layout().narrow(0, 0, rows));
        elementwise::copy(View::of(&found, &lines.expect("not more rows")), out.with_layout(&room));
        told.resize(&[rows, rank]);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn nonzero_v2(x: Tensor, out: Tensor) -> Planned {
    let rank = x.shape().len();
    expect("out", &out, &[rank, x.layout().len()])?;
    expect_dtype("out", &out, &[DType::I64])?;
    let told = out.clone();
    let plan = Plan::new(c"NonZero", [x], [out], move |[x], [mut out]| {
        let found = kernels::nonzero(x);
        let count = found.len() / rank.max(1);
        let lines = Layout::contiguous(&[count, rank]).expect("not more rows");
        let room = match out.layout().is_contiguous() {
            // The rows follow each other without gaps, as in the shape that is told.
            true => Layout::contiguous(&[rank, count]).expect("not more elements"),
            false => out.layout().narrow(1, 0, count),
        };
        elementwise::copy(
            View::of(&found, &lines).with_layout(&lines.transpose(0, 1)),
            out.with_layout(&room),
        );
        told.resize(&[rank, count]);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn masked_select(x: Tensor, mask: Tensor, out: Tensor) -> Planned {
    let shape = common(x.shape(), mask.shape())?;
    let (x, mask) = (broadcast_to("x", &x, &shape)?, broadcast_to("mask", &mask, &shape)?);
    expect_dtype("mask", &mask, &[DType::Bool, DType::U8])?;
    super::moves::expect_same(&x, &out)?;
    expect("out", &out, &[x.layout().len()])?;
    let told = out.clone();
    let plan = Plan::moving(c"MaskedSelect", vec![x, mask], vec![out], move |reads, mut writes| {
        let (x, out) = (reads[0], &mut writes[0]);
        converted(reads[1], DType::Bool, |mask| {
            let places = Places::of_mask(x.layout(), mask);
            let room = out.layout().narrow(0, 0, places.count());
            kernels::pick(x, &places, out.with_layout(&room));
            told.resize(&[places.count()]);
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn search_sorted(
    sorted: Tensor,
    values: Tensor,
    int32: bool,
    right: bool,
    sorter: Option<Tensor>,
    out: Tensor,
) -> Planned {
    let dtype = promote(sorted.dtype(), values.dtype());
    expect_dtype("out", &out, &[if int32 { DType::I32 } else { DType::I64 }])?;
    expect("out", &out, values.shape())?;
    let rows = |x: &Tensor| x.shape().split_last().map(|(_, rows)| rows.to_vec());
    if sorted.shape().len() != 1 && rows(&sorted) != rows(&values) {
        fail!(code::NN_PARAM_INVALID, "rows of {:?} for values {:?}", sorted.shape(), values.shape());
    }
    let by_order = sorter.is_some();
    let sorter = sorter.unwrap_or_else(|| sorted.clone());
    expect("sorter", &sorter, sorted.shape())?;
    Plan::new(c"SearchSorted", [sorted, values, sorter], [out], move |[sorted, values, sorter], [out]| {
        converted(sorted, dtype, |sorted| {
            converted(values, dtype, |values| {
                stored(out, DType::I64, |out| {
                    kernels::search(sorted, values, right, by_order.then_some(sorter), out);
                });
            });
        });
        Ok(())
    })
}

pub(crate) fn index(x: Tensor, indices: Vec<Tensor>, out: Tensor) -> Planned {
    let listed = Listed::new(&x, indices)?;
    expect("out", &out, &listed.picked)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let given = listed.given.clone();
    let reads = [vec![x], listed.indices].concat();
    Plan::listed(c"Index", reads, [out], move |views, [out]| {
        let (x, indices) = (views[0], spread(&given, &views[1..]));
        let places = Places::of_indices(x.layout(), &indices).map_err(out_of_range)?;
        kernels::pick(x, &places, out);
        Ok(())
    })
}

pub(crate) fn index_put_impl(
    x: Tensor,
    indices: Vec<Tensor>,
    values: Tensor,
    accumulate: bool,
    _trusted: bool,
) -> Planned {
    let listed = Listed::new(&x, indices)?;
    expect_dtype("values", &values, &[x.dtype()])?;
    let values = broadcast_to("values", &values, &listed.picked)?;
    let how = if accumulate { Combine::Add } else { Combine::Replace };
    let given = listed.given.clone();
    let reads = [vec![values], listed.indices].concat();
    let plan = Plan::listed(c"IndexPutV2", reads, [x], move |views, [x]| {
        let (values, indices) = (views[0], spread(&given, &views[1..]));
        let places = Places::of_indices(x.layout(), &indices).map_err(out_of_range)?;
        kernels::put(x, &places, values, how, true);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Indices of one shape, which of the leading dimensions have one, and the shape of what they pick.
struct Listed {
    indices: Vec<Tensor>,
    given: Vec<bool>,
    picked: Vec<usize>,
}

impl Listed {
    /// An index without elements stands for a dimension that is not indexed.
    fn new(x: &Tensor, indices: Vec<Tensor>) -> Result<Listed> {
        if indices.len() > x.shape().len() {
            fail!(code::NN_PARAM_INVALID, "{} indices for x of shape {:?}", indices.len(), x.shape());
        }
        let given: Vec<bool> = indices.iter().map(|index| index.shape() != [0]).collect();
        let indices: Vec<Tensor> = indices.into_iter().filter(|index| index.shape() != [0]).collect();
        if indices.is_empty() {
            fail!(code::NN_PARAM_INVALID, "there is no index");
        }
        let mut shape = Vec::new();
        for index in &indices {
            expect_dtype("an index", index, INDICES)?;
            shape = common(&shape, index.shape())?;
        }
        let indices = indices
            .iter()
            .map(|index| broadcast_to("an index", index, &shape))
            .collect::<Result<Vec<Tensor>>>()?;
        let is_all = |dim: &usize| !given.get(*dim).copied().unwrap_or(false);
        let mut picked: Vec<usize> = (0..x.shape().len()).filter(is_all).map(|dim| x.shape()[dim]).collect();
        let places: Vec<Option<()>> = given.iter().map(|given| given.then_some(())).collect();
        let at = block(&places);
        picked.splice(at..at, shape);
        Ok(Listed { indices, given, picked })
    }
}

/// Views where an index is given, and nothing where none is.
fn spread<'a>(given: &[bool], views: &[View<'a>]) -> Vec<Option<View<'a>>> {
    let mut views = views.iter().copied();
    given.iter().map(|given| if *given { views.next() } else { None }).collect()
}
