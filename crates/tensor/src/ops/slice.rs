//! Ranges and single indices of a dimension.

use super::part::{Embed, Part, Replace, view_of_part};
use crate::op::Forward;
use crate::{Backward, Cause, Error, Grads, Layout, NamedDim, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use std::ops::{Bound, RangeBounds};

/// Every `step`th index of a dimension, from `start` to `end`.
///
/// Both count from the back if negative, and mean the nearest end where they lie outside.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The dimension.
    pub dim: NamedDim,
    /// The first index.
    pub start: isize,
    /// Where to stop, excluded.
    pub end: isize,
    /// From one index to the next.
    pub step: usize,
}

view_of_part!(Slice: "aten::slice", "SliceBackward0");

impl Part for Slice {
    const EMBED: [&'static str; 2] = ["aten::slice_backward", "SliceBackwardBackward0"];
    const SCATTER: [&'static str; 2] = ["aten::slice_scatter", "SliceScatterBackward0"];

    fn pick(&self, whole: &Layout) -> Result<Layout> {
        let size = size_of_dim(Self::NAME, whole, *self.dim)?;
        let place = |at: isize| match at {
            0.. => at.unsigned_abs().min(size),
            _ => size.saturating_sub(at.unsigned_abs()),
        };
        let (start, end) = (place(self.start), place(self.end));
        let range = whole.narrow(*self.dim, start, end.saturating_sub(start));
        match self.step {
            0 => Err(Error::new(Cause::Argument, Self::NAME, "the step is 0, expected 1 or more")),
            1 => Ok(range),
            step => range.step(*self.dim, step.min(size.max(1))).ok_or_else(|| {
                let text = format_args!("every {step}th element of {whole:?} lies beyond counting");
                Error::new(Cause::Argument, Self::NAME, text)
            }),
        }
    }

    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(self.dim.argument());
        visit(Argument::Int(self.start as i64));
        visit(Argument::Int(self.end as i64));
        visit(Argument::Int(self.step as i64));
    }
}

/// One index of a dimension, without that dimension.
#[derive(Clone, Debug)]
pub struct Select {
    /// The dimension.
    pub dim: NamedDim,
    /// The index; negative ones count from the back.
    pub index: isize,
}

view_of_part!(Select: "aten::select", "SelectBackward0");

impl Part for Select {
    const EMBED: [&'static str; 2] = ["aten::select_backward", "SelectBackwardBackward0"];
    const SCATTER: [&'static str; 2] = ["aten::select_scatter", "SelectScatterBackward0"];

    fn pick(&self, whole: &Layout) -> Result<Layout> {
        let size = size_of_dim(Self::NAME, whole, *self.dim)?;
        let index = if self.index < 0 { self.index.checked_add_unsigned(size) } else { Some(self.index) };
        match index.and_then(|index| usize::try_from(index).ok()).filter(|index| *index < size) {
            Some(index) => Ok(whole.select(*self.dim, index)),
            None => {
                let text = format_args!(
                    "index {} is out of range for dimension {} of size {size}",
                    self.index, *self.dim
                );
                Err(Error::new(Cause::Index, Self::NAME, text))
            }
        }
    }

    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(self.dim.argument());
        visit(Argument::Int(self.index as i64));
    }
}

fn size_of_dim(op: &'static str, whole: &Layout, dim: usize) -> Result<usize> {
    whole.shape().get(dim).copied().ok_or_else(|| {
        let text = format_args!("shape {:?} has no dimension {dim}", whole.shape());
        Error::new(Cause::Index, op, text)
    })
}

/// The first index of a range, and the one to stop before.
fn ends(range: impl RangeBounds<isize>) -> (isize, isize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&-1) | Bound::Unbounded => isize::MAX,
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
    };
    (start, end)
}

impl Tensor {
    /// Every `step`th index of dimension `dim` in `range`, whose ends count from the back if negative.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// let x = Tensor::new([0i64, 1, 2, 3, 4, 5])?;
    /// assert_eq!(x.slice(0, 1..-1, 2)?.to_vec::<i64>()?, [1, 3]);
    /// assert_eq!(x.slice(0, -2.., 1)?.to_vec::<i64>()?, [4, 5]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn slice(&self, dim: isize, range: impl RangeBounds<isize>, step: usize) -> Result<Tensor> {
        let (dim, (start, end)) = (self.named_dim(Slice::NAME, dim)?, ends(range));
        Slice { dim, start, end, step }.call([self])
    }

    /// `length` indices of dimension `dim` from `start` on; a negative start counts from the back.
    pub fn narrow(&self, dim: isize, start: isize, length: usize) -> Result<Tensor> {
        const NAME: &str = "aten::narrow";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(dim as i64));
            visit(Argument::Int(start as i64));
            visit(Argument::Int(length as i64));
        });
        let dim = self.named_dim(NAME, dim)?;
        let size = size_of_dim(NAME, self.layout(), *dim)?;
        let first = if start < 0 { start.checked_add_unsigned(size) } else { Some(start) };
        let end = first.filter(|first| *first >= 0).and_then(|first| first.checked_add_unsigned(length));
        match (first, end) {
            (Some(start), Some(end)) if end.unsigned_abs() <= size => {
                Slice { dim, start, end, step: 1 }.call([self])
            }
            _ => {
                let text = format_args!("{length} indices from {start} on are beyond a size of {size}");
                Err(Error::new(Cause::Index, NAME, text))
            }
        }
    }

    /// As [`narrow`](Tensor::narrow), from where a tensor of one integer says.
    pub fn narrow_from(&self, dim: isize, start: &Tensor, length: usize) -> Result<Tensor> {
        const NAME: &str = "aten::narrow";
        if start.dim() != 0 || start.dtype().is_float() || start.dtype() == crate::DType::Bool {
            let text = format_args!(
                "start is shape {:?} of {}, expected one integer without dimensions",
                start.shape(),
                start.dtype()
            );
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(dim as i64));
            visit(Argument::Tensor(start.argument()));
            visit(Argument::Int(length as i64));
        });
        let start = start.item()?.as_i64();
        let start = isize::try_from(start).map_err(|error| Error::new(Cause::Index, NAME, error))?;
        self.narrow(dim, start, length)
    }

    /// What lies at `index` of dimension `dim`, without that dimension; negative ones count from
    /// the back.
    pub fn select(&self, dim: isize, index: isize) -> Result<Tensor> {
        Select { dim: self.named_dim(Select::NAME, dim)?, index }.call([self])
    }

    /// This tensor with `source` in the place of [`slice`](Tensor::slice)'s result.
    pub fn slice_scatter(
        &self,
        source: &Tensor,
        dim: isize,
        range: impl RangeBounds<isize>,
        step: usize,
    ) -> Result<Tensor> {
        let (dim, (start, end)) = (self.named_dim(Slice::SCATTER[0], dim)?, ends(range));
        Replace { part: Slice { dim, start, end, step } }.call([self, source])
    }

    /// This tensor with `source` in the place of [`select`](Tensor::select)'s result.
    pub fn select_scatter(&self, source: &Tensor, dim: isize, index: isize) -> Result<Tensor> {
        let dim = self.named_dim(Select::SCATTER[0], dim)?;
        Replace { part: Select { dim, index } }.call([self, source])
    }
}
