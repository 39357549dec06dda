//! What is there at all, and how often: kinds of elements, and counts of them.

use super::super::check_float;
use super::super::nonzero::not_meta;
use super::super::places::check_room;
use crate::op::kernel_table;
use crate::{Cause, DType, Error, Kernel, Op, Result, Scalar, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{histogram, order};

/// What is left of a tensor when repetitions are dropped.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// One element, or slice, of each kind.
    pub values: Tensor,
    /// For each element, or slice, the place of its kind among the values.
    pub inverse: Tensor,
    /// How many there are of each kind.
    pub counts: Tensor,
}

/// The kinds of elements or slices: of all, in rising order, or of neighbours only.
fn kinds(op: &'static str, x: &Tensor, dim: Option<isize>, of_all: bool) -> Result<Kinds> {
    let x = not_meta(op, x)?.detach()?;
    let dim = dim.map(|dim| x.dim_index(op, dim)).transpose()?;
    let lines = match dim {
        Some(_) => super::as_vector(&x)?,
        None => x.reshape([x.numel()])?,
    };
    let along = dim.unwrap_or(0);
    let others = lines.shape().iter().enumerate().filter(|(at, _)| *at != along);
    if others.into_iter().any(|(_, &size)| size == 0) {
        let text = format_args!("slices along dimension {along} of shape {:?} have no elements", x.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    if !x.device().is_cpu() {
        let Kinds { values, inverse, counts } = in_pieces(&lines, along, of_all)?;
        let inverse = if dim.is_none() { inverse.reshape(x.shape())? } else { inverse };
        return Ok(Kinds { values, inverse, counts });
    }
    let run = if of_all { order::unique } else { order::unique_neighbours };
    let order::Unique { kept, inverse, counts } = run(lines.elements(&lines.read()), Some(along));
    let list = |numbers: &[i64]| Tensor::from_slice(numbers, [numbers.len()]);
    let values = lines.index_select(along as isize, &list(&kept)?)?;
    let inverse = if dim.is_none() { list(&inverse)?.reshape(x.shape())? } else { list(&inverse)? };
    Ok(Kinds { values, inverse, counts: list(&counts)? })
}

/// The kinds of slices of `x` along a dimension made of other operators, where a device has no kernel for them.
fn in_pieces(x: &Tensor, dim: usize, of_all: bool) -> Result<Kinds> {
    let (along, size) = (dim as isize, x.shape()[dim]);
    let numbers = (DType::I64, x.device());
    let none = || Tensor::zeros([0], numbers);
    if size == 0 {
        return Ok(Kinds { values: x.copy()?, inverse: none()?, counts: none()? });
    }
    let slices = x.movedim(&[along], &[0])?.reshape([size, x.numel() / size])?;
    let mut order = Tensor::arange_with(size, numbers)?;
    if of_all {
        // By the last element first: sorting keeps the order of equals.
        for column in (0..slices.shape()[1] as isize).rev() {
            let keys = slices.select(1, column)?.index_select(0, &order)?;
            let [_, places] = keys.sort(0, false, true)?;
            order = order.index_select(0, &places)?;
        }
    }
    let sorted = slices.index_select(0, &order)?;
    let differs = sorted.narrow(0, 1, size - 1)?.ne(&sorted.narrow(0, 0, size - 1)?)?.any_dim(1, false)?;
    let first = Tensor::full([1], true, (DType::Bool, x.device()))?;
    let starts = Tensor::cat(&[&first, &differs], 0)?;
    let kind = starts.to_dtype(DType::I64)?.cumsum(0, None)?.sub(1)?;
    let places = starts.nonzero()?.squeeze_dim(1)?;
    let ends = Tensor::cat(
        &[&places.narrow(0, 1, places.numel() - 1)?, &Tensor::full([1], size as i64, numbers)?],
        0,
    )?;
    Ok(Kinds {
        values: x.index_select(along, &order.index_select(0, &places)?)?,
        inverse: kind.zeros_like()?.scatter(0, &order, &kind)?,
        counts: ends.sub(&places)?,
    })
}

/// How many elements lie in each of a row of equal ranges.
#[derive(Clone, Debug)]
pub struct Histc {
    /// How many ranges.
    pub bins: usize,
    /// Where the first begins.
    pub low: f64,
    /// Where the last ends.
    pub high: f64,
}

impl Op for Histc {
    const NAME: &'static str = "aten::histc";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.bins as i64));
        visit(Argument::Float(self.low));
        visit(Argument::Float(self.high));
    }
}

impl Kernel for Histc {
    kernel_table!(Histc);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        let Histc { bins, low, high } = *self;
        if bins == 0 || !low.is_finite() || !high.is_finite() || low >= high {
            let text =
                format_args!("expects at least one range, and finite ends, not {bins} from {low} to {high}");
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        check_room(Self::NAME, &[bins])?;
        Ok(Spec::new([bins], x.dtype()))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        histogram::histogram(x.elements(&x.read()), self.low, self.high, out.elements_mut(&mut out.write()));
        Ok(())
    }
}

impl Tensor {
    /// The kinds of elements in rising order, or of slices along `dim`.
    pub fn unique(&self, dim: Option<isize>) -> Result<Kinds> {
        const NAME: &str = "aten::unique";
        let _span = composite(NAME, [self], |_| {});
        kinds(NAME, self, dim, true)
    }

    /// The kinds of elements, or of slices along `dim`, where each row of equal neighbours is one.
    pub fn unique_consecutive(&self, dim: Option<isize>) -> Result<Kinds> {
        const NAME: &str = "aten::unique_consecutive";
        let _span = composite(NAME, [self], |_| {});
        kinds(NAME, self, dim, false)
    }

    /// How many elements lie in each of `bins` equal ranges from `low` to `high`, both included; from the
    /// smallest element to the largest if the two are equal.
    pub fn histc(&self, bins: usize, low: f64, high: f64) -> Result<Tensor> {
        check_float(Histc::NAME, self)?;
        let (mut low, mut high) = (low, high);
        if low == high && self.numel() > 0 {
            let x = self.detach()?;
            (low, high) = (x.min()?.item()?.as_f64(), x.max()?.item()?.as_f64());
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        Histc { bins, low, high }.call([self])
    }

    /// How often each number from 0 on is in a vector, up to the largest or to `least` numbers; with
    /// `weights`, what these add up to.
    pub fn bincount(&self, weights: Option<&Tensor>, least: usize) -> Result<Tensor> {
        const NAME: &str = "aten::bincount";
        let _span = composite(NAME, ([self], weights), |_| {});
        let x = not_meta(NAME, self)?;
        if x.dim() != 1 || x.dtype().is_float() || weights.is_some_and(|weights| weights.shape() != x.shape())
        {
            let text = format_args!(
                "expects a vector of integers and as many weights, not {} of shape {:?} and shape {:?}",
                x.dtype(),
                x.shape(),
                weights.map(Tensor::shape)
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let (low, high) = match x.numel() {
            0 => (0, -1),
            _ => (x.min()?.item()?.as_i64(), x.max()?.item()?.as_i64()),
        };
        if low < 0 || high == i64::MAX {
            let text = format_args!("counts numbers from 0 on, not from {low} to {high}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let count = least.max((high + 1) as usize);
        let terms = match weights {
            Some(weights) if weights.dtype() == DType::F32 => weights.detach()?,
            Some(weights) => weights.detach()?.to_dtype(DType::F64)?,
            None => Tensor::full(x.shape(), Scalar::Int(1), (DType::I64, x.device()))?,
        };
        Tensor::zeros([count], (terms.dtype(), x.device()))?.index_add(0, &x.to_dtype(DType::I64)?, &terms)
    }
}
