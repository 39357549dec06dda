//! Elements picked and changed by several indices at once.
//!
//! An index stands for a dimension, a mask of bool for as many as it has. Indices broadcast against each
//! other; what they pick takes the place of the dimensions they stand for if those are side by side, and
//! the front otherwise.

use super::places::{Source, check_room, check_same_dtype, out_of_range, pick, start};
use super::{broadcast, nonzero::not_meta};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Cause, DType, Error, Forward, Grads, Kernel, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::index::{Combine, Places, block};
use cresset_kernels::{Dims, View};

/// A tensor per leading dimension, or none where all of it is meant.
type Indices<'a> = &'a [Option<&'a Tensor>];

/// Refuses indices that do not belong to `x`, by what can be seen without looking at elements.
fn check(op: &'static str, x: &Tensor, indices: Indices<'_>) -> Result<()> {
    let mut dim = 0;
    for index in indices {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        match index.dtype() {
            DType::I64 | DType::I32 => dim += 1,
            DType::Bool | DType::U8 => {
                let end = dim + index.dim();
                if x.shape().get(dim..end).is_some_and(|sizes| sizes != index.shape()) {
                    let text = format_args!(
                        "a mask of shape {:?} at dimension {dim} does not fit shape {:?}",
                        index.shape(),
                        x.shape()
                    );
                    return Err(Error::new(Cause::Shape, op, text));
                }
                dim = end;
            }
            other => {
                let text = format_args!("expects indices of i64, i32, or masks of bool, not {other}");
                return Err(Error::new(Cause::DType, op, text));
            }
        }
    }
    if dim > x.dim() {
        let text = format_args!("{dim} dimensions are indexed, shape {:?} has {}", x.shape(), x.dim());
        return Err(Error::new(Cause::Index, op, text));
    }
    if indices.iter().all(Option::is_none) {
        return Err(Error::new(Cause::Argument, op, "expects at least one index"));
    }
    Ok(())
}

/// Masks as the coordinates of what is true in them, an index for each of their dimensions.
fn expanded(op: &'static str, indices: Indices<'_>) -> Result<Vec<Option<Tensor>>> {
    let mut expanded = Vec::with_capacity(indices.len());
    for index in indices {
        match index {
            Some(mask) if matches!(mask.dtype(), DType::Bool | DType::U8) => {
                not_meta(op, mask)?;
                let columns = mask.nonzero()?;
                for dim in 0..mask.dim() {
                    expanded.push(Some(columns.select(1, dim as isize)?));
                }
            }
            index => expanded.push(index.cloned()),
        }
    }
    Ok(expanded)
}

/// The shape that indices broadcast to, and that of what they pick.
fn shapes(op: &'static str, x: &Tensor, indices: &[Option<Tensor>]) -> Result<(Dims, Dims)> {
    let mut listed = Dims::new();
    for index in indices.iter().flatten() {
        listed = broadcast(op, &listed, index.shape())?;
    }
    check_room(op, &listed)?;
    let is_all = |(dim, _): &(usize, &usize)| indices.get(*dim).is_none_or(Option::is_none);
    let mut picked: Dims = x.shape().iter().enumerate().filter(is_all).map(|(_, size)| *size).collect();
    picked.insert_many(block(indices), listed.iter().copied());
    Ok((listed, picked))
}

/// The places of what indices pick.
fn places(op: &'static str, x: &Tensor, indices: &[Option<Tensor>], shape: &[usize]) -> Result<Places> {
    let fits = "`shapes` found that the indices broadcast";
    let spread = |index: &Tensor| index.layout().broadcast_to(shape).expect(fits);
    let readings: Vec<_> = indices.iter().map(|index| index.as_ref().map(Tensor::read)).collect();
    let layouts: Vec<_> = indices.iter().map(|index| index.as_ref().map(spread)).collect();
    let views: Vec<Option<View<'_>>> = indices
        .iter()
        .zip(readings.iter().zip(&layouts))
        .map(|(index, (reading, layout))| {
            Some(View::new(reading.as_ref()?.bytes(), index.as_ref()?.dtype(), layout.as_ref()?))
        })
        .collect();
    Places::of_indices(x.layout(), &views).map_err(out_of_range(op))
}

/// The indices that a derivative kept, from input `from` on.
fn kept<'a>(ctx: &'a Backward<'_>, from: usize) -> Vec<Option<&'a Tensor>> {
    (from..ctx.inputs()).map(|i| ctx.optional(i)).collect()
}

/// What indices pick from a tensor.
#[derive(Clone, Debug)]
pub struct Index;

impl Op for Index {
    const NAME: &'static str = "aten::index";
    const BACKWARD: &'static str = "IndexBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    type Inputs<'a> = ([&'a Tensor; 1], Indices<'a>);
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let zeros = shown::new_zeros(ctx.grad(), ctx.shape(0), true)?;
            IndexPutImpl { accumulate: true, trusted: true }.call_in_place(([&zeros, ctx.grad()], &kept(ctx, 1)))?;
            zeros
        })
    }

    /// Lists in which tensors may be missing are not told.
    fn arguments(&self, ([x], _): Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::None);
    }
}

impl Forward for Index {
    fn forward(&self, ([x], indices): Self::Inputs<'_>) -> Result<Tensor> {
        check(Self::NAME, x, indices)?;
        let indices = expanded(Self::NAME, indices)?;
        let given: Vec<_> = indices.iter().map(Option::as_ref).collect();
        IndexNumbers.launch(([x], &given))
    }
}

/// [`Index`] without masks, so that shapes tell the shape of the result.
#[derive(Clone, Debug)]
pub struct IndexNumbers;

impl Op for IndexNumbers {
    const NAME: &'static str = Index::NAME;
    type Inputs<'a> = ([&'a Tensor; 1], Indices<'a>);
    type Output = Tensor;
}

impl Kernel for IndexNumbers {
    kernel_table!(IndexNumbers);

    fn infer(&self, ([x], indices): Self::Inputs<'_>) -> Result<Spec> {
        check(Self::NAME, x, indices)?;
        let (_, shape) = shapes(Self::NAME, x, &owned(indices))?;
        Ok(Spec { shape, dtype: x.dtype() })
    }

    fn shown(&self, ([x], indices): Self::Inputs<'_>) -> Result<Option<Tensor>> {
        self.infer(([x], indices))?;
        let _kept = show_places(x, &owned(indices))?;
        self.computed(([x], indices)).map(Some)
    }

    fn cpu(&self, ([x], indices): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        let indices = owned(indices);
        let (listed, _) = shapes(Self::NAME, x, &indices)?;
        pick(x, &places(Self::NAME, x, &indices, &listed)?, out);
        Ok(())
    }
}

/// How torch gets to the places: indices are spread to one shape, those that are apart brought to the front
/// with what they index, and both are looked at so that they broadcast. Gives what was made on the way.
fn show_places(x: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
    let (listed, _) = shapes(Index::NAME, x, indices)?;
    let spread =
        |index: &Tensor| if index.shape() == &listed[..] { Ok(index.clone()) } else { index.expand(&listed) };
    let mut given =
        indices.iter().map(|index| index.as_ref().map(spread).transpose()).collect::<Result<Vec<_>>>()?;
    given.resize(x.dim(), None);
    let front: Vec<usize> = (0..x.dim()).filter(|&dim| given[dim].is_some()).collect();
    let apart = front.windows(2).any(|pair| pair[0] + 1 != pair[1]);
    let x = if apart { in_front(x, &mut given, &front)? } else { x.clone() };
    let mut kept = Vec::new();
    for index in given.iter_mut().flatten() {
        if let Some(converted) = shown::converted(index, DType::I64)? {
            *index = converted;
        }
        kept.push(index.clone());
    }
    let before = given.iter().position(Option::is_some).unwrap_or(0);
    let after = x.dim() - before - front.len();
    let sides = |sizes: &[usize], middle: &[usize]| -> Dims {
        sizes[..before].iter().chain(middle).chain(&sizes[before + front.len()..]).copied().collect()
    };
    let still = Dims::from_elem(0, listed.len());
    kept.push(x.as_strided(&sides(x.shape(), &listed), &sides(x.strides(), &still), x.layout().offset())?);
    for index in given.iter().flatten() {
        let ones = |count: usize| std::iter::repeat_n(1, count);
        let shape: Dims = ones(before).chain(listed.iter().copied()).chain(ones(after)).collect();
        kept.push(index.reshape(shape)?);
    }
    Ok(kept)
}

/// The tensor with the dimensions that are indexed in front, and the indices in this order.
fn in_front(x: &Tensor, given: &mut Vec<Option<Tensor>>, front: &[usize]) -> Result<Tensor> {
    let rest = (0..x.dim()).filter(|dim| !front.contains(dim));
    let order: Vec<usize> = front.iter().copied().chain(rest).collect();
    *given = order.iter().map(|&dim| given[dim].clone()).collect();
    x.permute(&order.iter().map(|&dim| dim as isize).collect::<Vec<_>>())
}

fn owned(indices: Indices<'_>) -> Vec<Option<Tensor>> {
    indices.iter().map(|index| index.cloned()).collect()
}

/// A tensor with values in the places that indices pick.
#[derive(Clone, Debug)]
pub struct IndexPut {
    /// Whether values are added to what is there.
    pub accumulate: bool,
    /// The shape of the values.
    pub values: Dims,
}

impl Op for IndexPut {
    const NAME: &'static str = "aten::index_put";
    const BACKWARD: &'static str = "IndexPutBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor and the values, and the indices.
    type Inputs<'a> = ([&'a Tensor; 2], Indices<'a>);
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let indices = kept(ctx, 2);
        grads!(ctx;
            match self.accumulate {
                true => ctx.grad().clone(),
                false => {
                    let shape = if observe::is_watched() { &self.values[..] } else { &[] };
                    let zeros = Tensor::zeros(shape, (ctx.grad().dtype(), ctx.grad().device()))?;
                    ctx.grad().index_put(&indices, &zeros, false)?
                }
            },
            ctx.grad().index(&indices)?
        )
    }

    fn arguments(&self, ([x, values], _): Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::None);
        visit(Argument::Tensor(values.argument()));
        visit(Argument::Bool(self.accumulate));
    }
}

impl Kernel for IndexPut {
    kernel_table!(IndexPut);

    fn infer(&self, ([x, values], indices): Self::Inputs<'_>) -> Result<Spec> {
        check(Self::NAME, x, indices)?;
        check_same_dtype(Self::NAME, x, values)?;
        Ok(Spec::like(x))
    }

    /// Torch changes a copy.
    fn shown(&self, ([x, values], indices): Self::Inputs<'_>) -> Result<Option<Tensor>> {
        self.infer(([x, values], indices))?;
        let out = shown::cloned(x, shown::PRESERVE)?;
        self.clone().call_in_place(([&out, values], indices))?;
        Ok(Some(out))
    }

    fn cpu(&self, ([x, values], indices): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        start(x, out)?;
        put(self.accumulate, ([out, values], indices))
    }
}

impl InPlace for IndexPut {
    const IN_PLACE: &'static str = "aten::index_put_";
    kernel_table!(in place IndexPut);

    fn cpu_in_place(&self, ([x, values], indices): Self::Inputs<'_>) -> Result<()> {
        // A call within the change that is counted, and no change of its own.
        let accumulate = Argument::Bool(self.accumulate);
        let more = [Argument::None, Argument::Tensor(values.argument()), accumulate, Argument::Bool(false)];
        let written = || put(self.accumulate, ([x, values], indices)).map(|()| x.clone());
        shown::within(IndexPutImpl::IN_PLACE, [x], &more, written).map(drop)
    }
}

/// The mask by which values are put, if it is the only index and there is one value.
fn only_mask<'a>(accumulate: bool, values: &Tensor, indices: Indices<'a>) -> Option<&'a Tensor> {
    match indices {
        [Some(mask)] if !accumulate && values.numel() == 1 && mask.dtype() == DType::Bool => Some(mask),
        _ => None,
    }
}

/// Puts values to the places that indices pick.
fn put(accumulate: bool, ([x, values], indices): ([&Tensor; 2], Indices<'_>)) -> Result<()> {
    const NAME: &str = IndexPut::NAME;
    let watched = observe::is_watched();
    if watched && let Some(mask) = only_mask(accumulate, values, indices) {
        let value = values.item()?;
        let mask = (mask.dim()..x.dim()).try_fold(mask.clone(), |mask, _| mask.unsqueeze(-1))?;
        return super::mask::write_filled(x, &mask, value);
    }
    let indices = expanded(NAME, indices)?;
    let _kept = if watched { show_places(x, &indices)? } else { Vec::new() };
    let (listed, picked) = shapes(NAME, x, &indices)?;
    let places = places(NAME, x, &indices, &listed)?;
    let how = if accumulate { Combine::Add } else { Combine::Replace };
    Source::filling(NAME, &picked, values.into(), x)?.put(x, &places, how, true);
    Ok(())
}

/// [`IndexPut`] as torch does it in the end; `trusted` are indices that picked these places before.
#[derive(Clone, Debug)]
pub struct IndexPutImpl {
    /// Whether values are added to what is there.
    pub accumulate: bool,
    /// Whether the indices are known to be in range.
    pub trusted: bool,
}

impl Op for IndexPutImpl {
    const NAME: &'static str = "aten::_index_put_impl";
    const BACKWARD: &'static str = "IndexPutImplBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    /// The tensor and the values, and the indices.
    type Inputs<'a> = ([&'a Tensor; 2], Indices<'a>);
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let indices = kept(ctx, 2);
        grads!(ctx;
            match self.accumulate {
                true => ctx.grad().clone(),
                false => ctx.grad().index_put(&indices, &ctx.saved(1).zeros_like()?, false)?,
            },
            ctx.grad().index(&indices)?
        )
    }

    fn arguments(&self, ([x, values], _): Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::None);
        visit(Argument::Tensor(values.argument()));
        visit(Argument::Bool(self.accumulate));
        visit(Argument::Bool(self.trusted));
    }
}

impl Kernel for IndexPutImpl {
    kernel_table!(IndexPutImpl);

    fn infer(&self, ([x, values], indices): Self::Inputs<'_>) -> Result<Spec> {
        check(IndexPut::NAME, x, indices)?;
        check_same_dtype(IndexPut::NAME, x, values)?;
        Ok(Spec::like(x))
    }

    fn cpu(&self, ([x, values], indices): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        start(x, out)?;
        put(self.accumulate, ([out, values], indices))
    }
}

impl InPlace for IndexPutImpl {
    const IN_PLACE: &'static str = "aten::_index_put_impl_";
    kernel_table!(in place IndexPutImpl);

    fn cpu_in_place(&self, inputs: Self::Inputs<'_>) -> Result<()> {
        put(self.accumulate, inputs)
    }
}

impl Tensor {
    /// What indices pick: one per leading dimension, or none where all of it is meant; masks of bool stand
    /// for as many dimensions as they have. See [`get`](Tensor::get) for a way that is nicer to write.
    pub fn index(&self, indices: &[Option<&Tensor>]) -> Result<Tensor> {
        Index.call(([self], indices))
    }

    /// This tensor with `values`, broadcast, in the places that indices pick, or added to what is there.
    pub fn index_put(
        &self,
        indices: &[Option<&Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        IndexPut { accumulate, values: values.shape().into() }.call(([self, values], indices))
    }

    /// Puts `values`, broadcast, to the places that indices pick, or adds them to what is there.
    pub fn index_put_(&self, indices: &[Option<&Tensor>], values: &Tensor, accumulate: bool) -> Result<()> {
        IndexPut { accumulate, values: values.shape().into() }.call_in_place(([self, values], indices))
    }
}
