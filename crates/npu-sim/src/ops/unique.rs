//! Elements without their repetitions.
//!
//! How many are left is only known when a kernel has run: it writes them to the start of `out`, and tells the
//! client by the shape of `out`.

use super::cast::{INDICES, Temporary, expect_dtype};
use super::numbers::store;
use super::shape::dim;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::order::{self, Unique};
use cresset_kernels::{Layout, View, ViewMut, elementwise};
use std::ffi::CStr;

/// What a client passes for no dimension, as other dimensions are small.
const ALL: i64 = 1000;

pub(crate) fn unique(x: Tensor, sorted: bool, inverse: bool, out: Tensor, places: Tensor) -> Planned {
    let counts = out.clone();
    unique2(x, sorted, inverse, false, out, places, counts)
}

/// Always sorted: that is one order as good as any.
pub(crate) fn unique2(
    x: Tensor,
    _sorted: bool,
    inverse: bool,
    counts: bool,
    out: Tensor,
    places: Tensor,
    numbers: Tensor,
) -> Planned {
    left(c"UniqueWithCountsAndSorting", order::unique, x, None, out, [(inverse, places), (counts, numbers)])
}

pub(crate) fn unique_consecutive(
    x: Tensor,
    inverse: bool,
    counts: bool,
    given: i64,
    out: Tensor,
    places: Tensor,
    numbers: Tensor,
) -> Planned {
    let dim = if given == ALL { None } else { Some(dim(given, x.shape().len())?) };
    let find = order::unique_neighbours;
    left(c"UniqueConsecutive", find, x, dim, out, [(inverse, places), (counts, numbers)])
}

type Find = fn(View<'_>, Option<usize>) -> Unique;

/// What is left of `x`, and where it was and how often, as far as that is wanted.
fn left(
    kernel: &'static CStr,
    find: Find,
    x: Tensor,
    dim: Option<usize>,
    out: Tensor,
    [(inverse, places), (counted, counts)]: [(bool, Tensor); 2],
) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_room("out", &out, x.layout().len())?;
    let size = dim.map_or(x.layout().len(), |dim| x.shape().get(dim).copied().unwrap_or(1));
    let mut writes = vec![out.clone()];
    for (name, wanted, tensor) in [("inverse", inverse, places), ("counts", counted, counts.clone())] {
        if wanted {
            expect_dtype(name, &tensor, INDICES)?;
            expect_room(name, &tensor, size)?;
            writes.push(tensor);
        }
    }
    let plan = Plan::lists(kernel, vec![x], writes, move |reads, writes| {
        let mut writes = writes.into_iter();
        let mut next = || writes.next().expect("one per output");
        let found = find(reads[0], dim);
        let shape = pick(reads[0], dim, &found.kept, next());
        out.resize(&shape);
        if inverse {
            first(&found.inverse, next());
        }
        if counted {
            first(&found.counts, next());
            counts.resize(&[found.counts.len()]);
        }
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

fn expect_room(name: &str, x: &Tensor, elements: usize) -> Result {
    if !x.layout().is_contiguous() || x.layout().len() < elements {
        fail!(code::NN_PARAM_INVALID, "{name} of shape {:?} has no room for {elements}", x.shape());
    }
    Ok(())
}

/// Copies the elements or slices that are kept to the start of `out`; gives their shape.
fn pick(x: View<'_>, dim: Option<usize>, kept: &[i64], mut out: ViewMut<'_>) -> Vec<usize> {
    let flat = Temporary::of(x, x.dtype());
    let lock = flat.lock();
    let line = Layout::contiguous(&[x.layout().len()]).expect("as many elements");
    let whole = flat.view(&lock);
    let (x, dim) = match dim {
        Some(dim) if !x.shape().is_empty() => (whole, dim),
        _ => (whole.with_layout(&line), 0),
    };
    let mut shape = x.shape().to_vec();
    shape[dim] = kept.len();
    let room = Layout::contiguous(&shape).expect("not more than there were");
    for (to, &from) in kept.iter().enumerate() {
        let (from, to) = (x.layout().select(dim, from as usize), room.select(dim, to));
        elementwise::copy(x.with_layout(&from), out.with_layout(&to));
    }
    shape
}

/// Writes numbers to the start of `out`.
fn first(numbers: &[i64], mut out: ViewMut<'_>) {
    let room = Layout::contiguous(&[numbers.len()]).expect("not more than there is room for");
    store(numbers, out.with_layout(&room));
}
