//! Indexing: `x.get((1, .., -3..))` and `x.set((.., 0), 1.0)`.
//!
//! | index | meaning |
//! |---|---|
//! | `3`, `-1` | one place of a dimension, which disappears; negative from the back |
//! | `..`, `1..`, `..5`, `1..=5`, `-3..-1` | a range of a dimension; negative bounds count from the back |
//! | [`slice(1, 5, 2)`](slice()) | every second place of a range |
//! | [`NewAxis`] | a new dimension of size 1 |
//! | [`Ellipsis`] | as many whole dimensions as are left over |
//! | `true`, `false` | a new dimension with everything, or with nothing |
//! | `&tensor` of integers, `[0, 3]` | the places of a dimension that it names |
//! | `&tensor` of bool | the places where it is true; stands for as many dimensions as it has |
//!
//! Several stand in a tuple, one after the other, or in a slice of [`Indexer`]s. Dimensions beyond the last
//! index are taken whole. Everything up to the `bool`s gives a view; the others copy what they pick, which
//! takes the place of the dimensions they stand for if those are side by side, and the front otherwise.
//! A range as `1..-1` is fine here, but clippy takes it for an empty one: `slice(1, -1, 1)` says the same.

use crate::op::Operand;
use crate::ops::{self, Alias};
use crate::{Argument, Cause, DType, Device, Error, Op, Result, Tensor, no_grad, shown};
use cresset_dispatch::observe;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// What is picked of one dimension, or what happens between two.
#[derive(Clone)]
pub enum Indexer<'a> {
    /// One place; the dimension disappears.
    At(i64),
    /// A range.
    Slice(Slice),
    /// A new dimension of size 1.
    NewAxis,
    /// As many whole dimensions as are left over.
    Ellipsis,
    /// A new dimension, of size 1 or 0.
    Truth(bool),
    /// The places that numbers name, or where a mask is true.
    Tensor(Cow<'a, Tensor>),
    /// The places that numbers name.
    List(Vec<i64>),
}

/// Every `step`th place of a range. Bounds count from the back if negative, and are cut to the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first place; the front if there is none.
    pub start: Option<i64>,
    /// The place to stop before; the end if there is none.
    pub stop: Option<i64>,
    /// How far it is from one place to the next; above 0.
    pub step: i64,
}

impl Slice {
    fn is_whole(self) -> bool {
        (self.start.unwrap_or(0), self.stop, self.step) == (0, None, 1)
    }
}

/// Every `step`th place from `start` on, before `stop`; `None` for the front and for the end.
pub fn slice(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: i64) -> Slice {
    Slice { start: start.into(), stop: stop.into(), step }
}

/// A new dimension of size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// As many whole dimensions as are left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ellipsis;

/// What can stand at one position of an index.
pub trait IndexPart<'a> {
    /// What it picks.
    fn indexer(self) -> Indexer<'a>;
}

/// A whole index: a part, a tuple of parts, or a slice of [`Indexer`]s.
pub trait Indices<'a> {
    /// The parts, in order.
    fn indexers(self) -> SmallVec<[Indexer<'a>; 4]>;
}

macro_rules! parts {
    ($($ty:ty: |$value:ident| $indexer:expr;)*) => {$(
        impl<'a> IndexPart<'a> for $ty {
            fn indexer(self) -> Indexer<'a> {
                let $value = self;
                $indexer
            }
        }
    )*};
}

parts! {
    Indexer<'a>: |indexer| indexer;
    Slice: |slice| Indexer::Slice(slice);
    NewAxis: |_axis| Indexer::NewAxis;
    Ellipsis: |_ellipsis| Indexer::Ellipsis;
    RangeFull: |_all| Indexer::Slice(slice(None, None, 1));
    bool: |truth| Indexer::Truth(truth);
    &'a Tensor: |tensor| Indexer::Tensor(Cow::Borrowed(tensor));
    Tensor: |tensor| Indexer::Tensor(Cow::Owned(tensor));
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        parts! {
            $ty: |number| Indexer::At(saturated(number));
            Range<$ty>: |range| ranged(range);
            RangeFrom<$ty>: |range| ranged(range);
            RangeTo<$ty>: |range| ranged(range);
            RangeInclusive<$ty>: |range| ranged(range);
            RangeToInclusive<$ty>: |range| ranged(range);
            Vec<$ty>: |list| Indexer::List(list.into_iter().map(saturated).collect());
            &[$ty]: |list| Indexer::List(list.iter().copied().map(saturated).collect());
        }

        impl<'a, const N: usize> IndexPart<'a> for [$ty; N] {
            fn indexer(self) -> Indexer<'a> {
                self.as_slice().indexer()
            }
        }
    )*};
}

numbers!(i32 i64 isize usize);

/// A number beyond `i64` is beyond every dimension too.
fn saturated(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn ranged<T: TryInto<i64> + Copy>(range: impl RangeBounds<T>) -> Indexer<'static> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(saturated(start)),
        Bound::Excluded(&start) => Some(saturated(start).saturating_add(1)),
        Bound::Unbounded => None,
    };
    let stop = match range.end_bound() {
        Bound::Excluded(&stop) => Some(saturated(stop)),
        // The place after the last one has no number that counts from the back.
        Bound::Included(&last) if saturated(last) == -1 => None,
        Bound::Included(&last) => Some(saturated(last).saturating_add(1)),
        Bound::Unbounded => None,
    };
    Indexer::Slice(Slice { start, stop, step: 1 })
}

impl<'a, P: IndexPart<'a>> Indices<'a> for P {
    fn indexers(self) -> SmallVec<[Indexer<'a>; 4]> {
        SmallVec::from_iter([self.indexer()])
    }
}

impl<'a> Indices<'a> for &[Indexer<'a>] {
    fn indexers(self) -> SmallVec<[Indexer<'a>; 4]> {
        self.iter().cloned().collect()
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => {$(
        impl<'a, $($part: IndexPart<'a>),*> Indices<'a> for ($($part,)*) {
            #[expect(non_snake_case, reason = "a part is named as its type")]
            fn indexers(self) -> SmallVec<[Indexer<'a>; 4]> {
                let ($($part,)*) = self;
                SmallVec::from_iter([$($part.indexer()),*])
            }
        }
    )*};
}

tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H));

const GET: &str = "get";

/// A tensor with all but tensor indices applied, and those.
struct Indexed<'a> {
    view: Tensor,
    /// One per leading dimension of the view, or none where all of it is meant; masks stand for several.
    indices: Vec<Option<Cow<'a, Tensor>>>,
}

impl<'a> Indexed<'a> {
    fn new(x: &Tensor, indexers: SmallVec<[Indexer<'a>; 4]>) -> Result<Indexed<'a>> {
        let left_over = left_over(x, &indexers)?;
        let mut indexed = Indexed { view: x.clone(), indices: Vec::new() };
        // The dimension that comes next, and how many the indices stand for so far.
        let (mut dim, mut taken) = (0, 0);
        for indexer in indexers {
            match indexer {
                Indexer::At(number) => indexed.view = indexed.view.select(dim as isize, number as isize)?,
                Indexer::Slice(slice) => {
                    indexed.view = sliced(&indexed.view, dim, slice)?;
                    dim += 1;
                }
                Indexer::Ellipsis => dim += left_over,
                Indexer::NewAxis => {
                    indexed.view = indexed.view.unsqueeze(dim as isize)?;
                    dim += 1;
                }
                Indexer::Truth(truth) => {
                    indexed.view = indexed.view.unsqueeze(dim as isize)?;
                    indexed.add(Cow::Owned(truth_index(truth, x.device())?), &mut dim, &mut taken);
                }
                Indexer::List(list) => {
                    indexed.add(Cow::Owned(list_index(&list, x.device())?), &mut dim, &mut taken);
                }
                Indexer::Tensor(index) if index.dim() > 0 || index.dtype().is_float() => {
                    indexed.add(beside(index, x.device())?, &mut dim, &mut taken);
                }
                // A number or a truth, on whatever device.
                Indexer::Tensor(index) if matches!(index.dtype(), DType::Bool | DType::U8) => {
                    indexed.view = indexed.view.unsqueeze(dim as isize)?;
                    let places = truth_index(index.item()?.as_i64() != 0, x.device())?;
                    indexed.add(Cow::Owned(places), &mut dim, &mut taken);
                }
                Indexer::Tensor(index) => {
                    let number = index.item()?.as_i64();
                    indexed.view = indexed.view.select(dim as isize, number as isize)?;
                }
            }
        }
        Ok(indexed)
    }

    /// Adds an index for dimension `dim` and, if it is a mask, those after it.
    fn add(&mut self, index: Cow<'a, Tensor>, dim: &mut usize, taken: &mut usize) {
        self.indices.extend((*taken..*dim).map(|_| None));
        *dim += stands_for(&index);
        *taken = *dim;
        self.indices.push(Some(index));
    }

    fn given(&self) -> Vec<Option<&Tensor>> {
        self.indices.iter().map(|index| index.as_deref()).collect()
    }
}

/// An index where the elements are: as in torch, one on the host picks elements of every device.
fn beside(index: Cow<'_, Tensor>, device: Device) -> Result<Cow<'_, Tensor>> {
    if device.is_cpu() || !index.device().is_cpu() {
        return Ok(index);
    }
    index.to(device).map(Cow::Owned)
}

/// The index that picks all of a dimension of size 1, or nothing.
fn truth_index(truth: bool, device: Device) -> Result<Tensor> {
    let _unrecorded = no_grad();
    let count = [usize::from(truth)];
    if !device.is_cpu() {
        return Tensor::zeros(count, (DType::I64, device));
    }
    let places = empty_index(&count, Argument::None, || Tensor::uninit(&count, DType::I64, device))?;
    if truth {
        places.fill_(0.0)?;
    }
    Ok(places)
}

/// Memory for an index, which `make` makes, by the call that says so.
fn empty_index(
    shape: &[usize],
    pinned: Argument<'_>,
    make: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let (sizes, long, none) = (shown::ints(shape), shown::dtype_code(DType::I64), Argument::None);
    let more = [Argument::Ints(&sizes), long, shown::STRIDED, shown::HOST, pinned, none];
    shown::within("aten::empty", shown::NOTHING, &more, make)
}

/// A list as an index, by the calls with which torch's programs make a tensor of one.
fn list_index(list: &[i64], device: Device) -> Result<Tensor> {
    let _unrecorded = no_grad();
    let make = || Tensor::from_slice(list, [list.len()]);
    if !device.is_cpu() || !observe::is_watched() {
        return make()?.to(device);
    }
    let (long, none) = (shown::dtype_code(DType::I64), Argument::None);
    let index = empty_index(&[list.len()], Argument::Bool(false), make)?;
    let options = [shown::HOST, long, Argument::Bool(false), Argument::Bool(false), none];
    drop(shown::call("aten::to", [&index], &options));
    drop(shown::call("aten::lift_fresh", [&index], &[]));
    Ok(index)
}

/// How many dimensions a tensor stands for as an index.
fn stands_for(index: &Tensor) -> usize {
    if matches!(index.dtype(), DType::Bool | DType::U8) { index.dim() } else { 1 }
}

/// How many dimensions no index stands for.
fn left_over(x: &Tensor, indexers: &[Indexer<'_>]) -> Result<usize> {
    let dims = indexers.iter().map(|indexer| match indexer {
        Indexer::At(_) | Indexer::Slice(_) | Indexer::List(_) => 1,
        Indexer::NewAxis | Indexer::Ellipsis | Indexer::Truth(_) => 0,
        Indexer::Tensor(index) => stands_for(index),
    });
    let count: usize = dims.sum();
    let ellipses = indexers.iter().filter(|indexer| matches!(indexer, Indexer::Ellipsis)).count();
    if ellipses > 1 {
        return Err(Error::new(
            Cause::Index,
            GET,
            format_args!("expects at most one Ellipsis, not {ellipses}"),
        ));
    }
    x.dim().checked_sub(count).ok_or_else(|| {
        let text = format_args!("{count} dimensions are indexed, shape {:?} has {}", x.shape(), x.dim());
        Error::new(Cause::Index, GET, text)
    })
}

/// A range of a dimension; the tensor itself if the range is all of it.
fn sliced(x: &Tensor, dim: usize, Slice { start, stop, step }: Slice) -> Result<Tensor> {
    let (start, stop) = (start.unwrap_or(0), stop.unwrap_or(i64::MAX));
    let size = i64::try_from(x.shape()[dim]).unwrap_or(i64::MAX);
    if start == 0 && stop >= size && step == 1 {
        return Ok(x.clone());
    }
    let Some(step) = usize::try_from(step).ok().filter(|&step| step > 0) else {
        return Err(Error::new(Cause::Argument, GET, format_args!("expects a step above 0, not {step}")));
    };
    ops::Slice { dim: dim.into(), start: start as isize, end: stop as isize, step }.call([x])
}

impl Tensor {
    /// What an index picks: a view, unless tensors or lists are part of the index. See
    /// [`indexing`](crate::indexing) for all that can be part of one.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor, indexing::{NewAxis, slice}};
    /// let x = Tensor::new([[0i64, 1, 2], [3, 4, 5]])?;
    /// assert_eq!(x.get((1, -1))?.item()?, 5.into());
    /// assert_eq!(x.get((.., 1..))?.to_vec::<i64>()?, [1, 2, 4, 5]);
    /// assert_eq!(x.get((NewAxis, 0, slice(None, None, 2)))?.to_vec::<i64>()?, [0, 2]);
    /// assert_eq!(x.get(([1, 0], [0, 2]))?.to_vec::<i64>()?, [3, 2]);
    /// assert_eq!(x.get(&x.gt(2)?)?.to_vec::<i64>()?, [3, 4, 5]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it names places that do not exist, or more dimensions than there are.
    pub fn get<'a>(&self, index: impl Indices<'a>) -> Result<Tensor> {
        let indexers = index.indexers();
        if let [Indexer::Slice(slice)] = indexers[..]
            && slice.is_whole()
            && self.dim() > 0
        {
            // Torch looks at a whole dimension where nothing else is asked for, and not beside others.
            return self.slice(0, .., 1);
        }
        let indexed = Indexed::new(self, indexers)?;
        if !indexed.indices.is_empty() {
            return indexed.view.index(&indexed.given());
        }
        if indexed.view.same_as(self) {
            return Alias.call([self]);
        }
        Ok(indexed.view)
    }

    /// Writes `value`, a number or a tensor that broadcasts, to what an index picks.
    ///
    /// ```
    /// # use cresset_tensor::{DType, Result, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32)?;
    /// x.set((.., 1), 5.0)?;
    /// x.set(([0, 1], [0, 2]), &Tensor::new([7.0f32, 8.0])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [7.0, 5.0, 0.0, 0.0, 5.0, 8.0]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Tensor::get), and if `value` does not fit.
    pub fn set<'a, 'v>(&self, index: impl Indices<'a>, value: impl Into<Operand<'v>>) -> Result<()> {
        let indexed = Indexed::new(self, index.indexers())?;
        let view = &indexed.view;
        match (value.into(), indexed.indices.is_empty()) {
            (Operand::Scalar(value), true) => view.fill_(value),
            (Operand::Tensor(value), true) => view.copy_(&without_leading_ones(value, view.dim())?),
            (Operand::Scalar(value), false) => {
                let value = {
                    let _unrecorded = no_grad();
                    Tensor::full([], value, (self.dtype(), self.device()))?
                };
                view.index_put_(&indexed.given(), &value, false)
            }
            (Operand::Tensor(value), false) => {
                let value = value.to(self.device())?.to_dtype(self.dtype())?;
                view.index_put_(&indexed.given(), &value, false)
            }
        }
    }
}

/// Values may have leading dimensions of size 1 that what they go to has not.
fn without_leading_ones(value: &Tensor, dims: usize) -> Result<Tensor> {
    let more = value.dim().saturating_sub(dims);
    if more > 0 && value.shape()[..more].iter().all(|&size| size == 1) {
        return value.reshape(&value.shape()[more..]);
    }
    Ok(value.clone())
}
