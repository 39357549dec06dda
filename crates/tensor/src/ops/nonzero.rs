//! Where elements are, as numbers, and numbers as rows of zeros and a one.

use super::places::check_room;
use crate::op::kernel_table;
use crate::{Cause, DType, Error, Forward, Kernel, Key, Layout, Op, Result, Spec, Tensor, composite, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::{View, elementwise, index};

/// Refuses tensors whose elements a host kernel cannot see: the shape of its result depends on them.
pub(super) fn host_only<'a>(op: &'static str, x: &'a Tensor) -> Result<&'a Tensor> {
    if x.device().is_cpu() {
        return Ok(x);
    }
    let text = format_args!(
        "the shape of the result depends on elements, which are on {}; move them with to(Device::CPU) first",
        x.device()
    );
    Err(Error::new(Cause::NoKernel, op, text))
}

/// As [`host_only`], where only elements that nobody has are refused.
pub(super) fn not_meta<'a>(op: &'static str, x: &'a Tensor) -> Result<&'a Tensor> {
    if x.device().key == Key::META { host_only(op, x) } else { Ok(x) }
}

/// The coordinates of all elements that are not zero, a row for each.
#[derive(Clone, Debug)]
pub struct Nonzero;

impl Op for Nonzero {
    const NAME: &'static str = "aten::nonzero";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Forward for Nonzero {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = not_meta(Self::NAME, x)?;
        if !x.device().is_cpu() {
            return counted(x);
        }
        check_room(Self::NAME, x.shape())?;
        if observe::is_watched() {
            Tensor::empty([0], (DType::I64, x.device()))?;
        }
        let rank = x.dim();
        if rank == 0 {
            // A coordinate of a single number has no parts, so the rows cannot be counted by them.
            let line = x.layout().view(&[1]).map(|line| x.with_layout(line));
            let found = line.is_some_and(|line| !index::nonzero(line.elements(&x.read())).is_empty());
            return by_columns(Tensor::uninit(&[usize::from(found), 0], DType::I64, x.device())?);
        }
        let coordinates = index::nonzero(x.elements(&x.read()));
        let count = coordinates.len() / rank;
        let columns: Vec<i64> =
            (0..rank).flat_map(|dim| coordinates.iter().skip(dim).step_by(rank)).copied().collect();
        by_columns(Tensor::from_slice(&columns, [count, rank])?)
    }
}

/// The rows of a tensor whose memory has one column after the other.
fn by_columns(rows: Tensor) -> Result<Tensor> {
    let &[count, rank] = rows.shape() else { return Ok(rows) };
    let Some(layout) = Layout::strided(&[count, rank], &[1, count], 0) else { return Ok(rows) };
    let (shape, strides) = ([count as i64, rank as i64], [1, count as i64]);
    let more = [Argument::Ints(&shape), Argument::Ints(&strides), Argument::None];
    shown::within("aten::as_strided_", [&rows], &more, || Ok(rows.with_layout(layout)))
}

/// Where elements are on a device: their number is asked for, and then as many rows are kept.
fn counted(x: &Tensor) -> Result<Tensor> {
    let count = x.ne(0)?.sum()?.item()?.as_i64() as usize;
    if x.dim() == 0 {
        return Tensor::empty([count, 0], (DType::I64, x.device()));
    }
    NonzeroRows.launch([x])?.narrow(0, 0, count)?.t()?.contiguous()?.t()
}

/// The coordinates of elements other than 0 as rows, as many as there are elements; what follows the
/// last one means nothing.
#[derive(Clone, Debug)]
pub struct NonzeroRows;

impl Op for NonzeroRows {
    const NAME: &'static str = Nonzero::NAME;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Kernel for NonzeroRows {
    kernel_table!(NonzeroRows);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::new([x.numel(), x.dim()], DType::I64))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let mut coordinates = index::nonzero(x.elements(&x.read()));
        coordinates.resize(out.numel(), 0);
        let layout = out.layout().clone();
        elementwise::copy(View::of(&coordinates, &layout), out.elements_mut(&mut out.write()));
        Ok(())
    }
}

impl Tensor {
    /// The coordinates of all elements that are not zero, a row for each.
    pub fn nonzero(&self) -> Result<Tensor> {
        Nonzero.call([self])
    }

    /// The coordinates of all elements that are not zero, a tensor for each dimension: an index that
    /// picks them.
    pub fn nonzero_tuple(&self) -> Result<Vec<Tensor>> {
        let _span = composite("aten::nonzero_numpy", [self], |_| {});
        let x = if self.dim() == 0 { self.unsqueeze(0)? } else { self.clone() };
        x.nonzero()?.unbind(1)
    }

    /// As [`nonzero`](Tensor::nonzero).
    pub fn argwhere(&self) -> Result<Tensor> {
        let _span = composite("aten::argwhere", [self], |_| {});
        self.nonzero()
    }

    /// A row of `classes` zeros with a one in it for each number; as many classes as there are numbers
    /// if it is `None`.
    ///
    /// # Errors
    /// If the numbers are not of i64, negative, or not below `classes`; if there are none and `classes`
    /// is `None`.
    pub fn one_hot(&self, classes: Option<usize>) -> Result<Tensor> {
        const NAME: &str = "aten::one_hot";
        let given = classes.map_or(-1, |classes| classes as i64);
        let _span = composite(NAME, [self], |visit| visit(Argument::Int(given)));
        if self.dtype() != DType::I64 {
            let text = format_args!("expects numbers of i64, not {}; convert with to_dtype()", self.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let largest = if self.device().is_cpu() { self.largest_shown()? } else { None };
        let classes = match classes {
            Some(classes) if classes > 0 => classes,
            None if self.numel() > 0 => largest.map_or_else(|| largest_of(self), Ok)?,
            _ => {
                let text = format_args!(
                    "cannot tell how many classes {} numbers have; expects a number of classes above 0",
                    self.numel()
                );
                return Err(Error::new(Cause::Argument, NAME, text));
            }
        };
        let mut shape = self.shape().to_vec();
        shape.push(classes);
        let rows = Tensor::zeros(shape, (DType::I64, self.device()))?;
        rows.scatter_(-1, &self.unsqueeze(-1)?, 1).map_err(|error| error.because(Cause::Index))?;
        Ok(rows)
    }
}

impl Tensor {
    /// One more than the largest number, by the calls that torch makes to find it; `None` unwatched.
    fn largest_shown(&self) -> Result<Option<usize>> {
        if !observe::is_watched() || self.numel() == 0 {
            return Ok(None);
        }
        let [smallest, largest] = self.aminmax(None, false)?;
        smallest.item()?;
        let largest = largest.item()?.as_i64();
        Ok(Some(usize::try_from(largest).unwrap_or(0).saturating_add(1)))
    }
}

/// One more than the largest number, or 1.
fn largest_of(x: &Tensor) -> Result<usize> {
    let largest = x.to_vec::<i64>()?.into_iter().max().unwrap_or(0);
    Ok(usize::try_from(largest).unwrap_or(0).saturating_add(1))
}
