//! Pooling: averages and maxima of what windows see.

mod adaptive;
mod average;
mod maximum;

pub use adaptive::*;
pub use average::*;
pub use maximum::*;

use super::check_gradient;
use super::sliding::{PerDim, per_dim, three, windows};
use crate::{Cause, DType, Error, Result, Tensor, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;
use cresset_kernels::pooling::{Span, Windows};

/// Windows that slide over the last dimensions; one number stands for all of them.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// How many places a window has.
    pub kernel: PerDim,
    /// From one window to the next; as far as a window reaches if empty.
    pub stride: PerDim,
    /// How far the first window begins before the input.
    pub padding: PerDim,
    /// From one place of a window to the next.
    pub dilation: PerDim,
    /// Whether a last window may reach beyond the input.
    pub ceil_mode: bool,
}

impl Pooling {
    /// Windows side by side.
    pub fn new(kernel: impl AsRef<[isize]>) -> Pooling {
        Pooling {
            kernel: PerDim::from_slice(kernel.as_ref()),
            stride: PerDim::new(),
            padding: PerDim::from_elem(0, 1),
            dilation: PerDim::from_elem(1, 1),
            ceil_mode: false,
        }
    }

    /// The same windows over the last dimension of a tensor that got one of size 1 before it.
    fn flat(&self, op: &'static str, x: &Tensor) -> Result<Pooling> {
        if !matches!(x.dim(), 2 | 3) {
            let text = format_args!("expects 2 or 3 dimensions, not shape {:?}", x.shape());
            return Err(Error::new(Cause::Shape, op, text));
        }
        let beside = |name, given: &PerDim, unit: isize| match given[..] {
            [] => Ok(PerDim::new()),
            [one] => Ok(PerDim::from_slice(&[unit, one])),
            _ => {
                let text = format_args!("expects a {name} of one number, not {given:?}");
                Err(Error::new(Cause::Argument, op, text))
            }
        };
        Ok(Pooling {
            kernel: beside("kernel size", &self.kernel, 1)?,
            stride: beside("stride", if self.stride.is_empty() { &self.kernel } else { &self.stride }, 1)?,
            padding: beside("padding", &self.padding, 0)?,
            dilation: beside("dilation", &self.dilation, 1)?,
            ceil_mode: self.ceil_mode,
        })
    }

    /// Checks all numbers, and how the windows lie on `x`, whose last `rank` dimensions they slide over.
    fn on(&self, op: &'static str, x: &Tensor, rank: usize) -> Result<Plan> {
        let numbers = |name, given: &[isize], least| per_dim(op, name, given, rank, least);
        let kernel = numbers("kernel size", &self.kernel, 1)?;
        let stride =
            if self.stride.is_empty() { kernel.clone() } else { numbers("stride", &self.stride, 1)? };
        let padding = numbers("padding", &self.padding, 0)?;
        let dilation = numbers("dilation", &self.dilation, 1)?;
        for dim in 0..rank {
            let reach = (kernel[dim] as u128 - 1) * dilation[dim] as u128 + 1;
            if padding[dim] as u128 > reach / 2 {
                let text = format_args!(
                    "a padding of {} is more than half of a window that reaches {reach}",
                    padding[dim]
                );
                return Err(Error::new(Cause::Argument, op, text));
            }
        }
        let input = pooled_dims(op, x, rank)?;
        let mut output = Dims::new();
        for dim in 0..rank {
            let numbers = [kernel[dim], stride[dim], padding[dim], dilation[dim]];
            let count = windows(input[dim], numbers, self.ceil_mode);
            let Some(count) = count.filter(|&count| count > 0) else {
                let text =
                    format_args!("no window of {:?} fits on an input of shape {:?}", &kernel[..], x.shape());
                return Err(Error::new(Cause::Shape, op, text));
            };
            output.push(count);
        }
        Ok(Plan { input: Dims::from_slice(input), kernel, stride, padding, dilation, output })
    }
}

/// The sizes that windows slide over. All but those of the batch must be larger than 0.
fn pooled_dims<'a>(op: &'static str, x: &'a Tensor, rank: usize) -> Result<&'a [usize]> {
    let batch = x.dim().checked_sub(rank + 1).filter(|&batch| batch <= 1);
    match batch {
        Some(batch) if !x.shape()[batch..].contains(&0) && x.dtype() != DType::Bool => {
            Ok(&x.shape()[batch + 1..])
        }
        _ => {
            let text = format_args!(
                "expects numbers of {} or {} dimensions, none of size 0 but the batch, not {} of shape {:?}",
                rank + 1,
                rank + 2,
                x.dtype(),
                x.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

/// Windows on a tensor, all numbers checked.
struct Plan {
    input: Dims,
    kernel: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    output: Dims,
}

impl Plan {
    /// What each window sees along each dimension. Places in the padding count if `count_padding`.
    fn windows(&self, count_padding: bool) -> Windows {
        let spans = |dim: usize| (0..self.output[dim]).map(|i| self.span(dim, i, count_padding)).collect();
        plane(&self.input, (0..self.input.len()).map(spans).collect())
    }

    fn span(&self, dim: usize, i: usize, count_padding: bool) -> Span {
        let (size, padding, step) = (self.input[dim], self.padding[dim], self.dilation[dim]);
        let first = i * self.stride[dim];
        let reach = (self.kernel[dim] - 1) * step + 1;
        let end = (first + reach).saturating_sub(padding).min(size);
        // The first place that is not in the padding.
        let start = first + padding.saturating_sub(first).div_ceil(step) * step - padding;
        let inside = end.saturating_sub(start).max(1);
        let count = if count_padding { (first + reach).min(size + 2 * padding) - first } else { inside };
        Span { start, end, step, count }
    }
}

/// Windows over three dimensions, from those over fewer.
fn plane(input: &[usize], mut spans: Vec<Vec<Span>>) -> Windows {
    while spans.len() < 3 {
        spans.insert(0, vec![Span { start: 0, end: 1, step: 1, count: 1 }]);
    }
    let spans = spans.try_into().expect("windows slide over three dimensions at most");
    Windows { input: three(input, 1), spans }
}

/// The shape of `x` with its last sizes replaced.
fn resized(x: &Tensor, last: &[usize]) -> Dims {
    x.shape()[..x.dim() - last.len()].iter().chain(last).copied().collect()
}

/// Numbers per dimension as observers see them: one for each.
fn listed(numbers: &[isize], rank: usize) -> Vec<i64> {
    match numbers {
        [one] => vec![*one as i64; rank],
        _ => numbers.iter().map(|&number| number as i64).collect(),
    }
}

/// A gradient that starts as zeros in memory of its own.
fn zeroed(x: &Tensor) -> Result<Tensor> {
    let out = Tensor::uninit(x.shape(), x.dtype(), x.device())?;
    out.zero_()?;
    Ok(out)
}

/// As [`zeroed`], in memory that grows from none.
fn grown_zeroed(x: &Tensor) -> Result<Tensor> {
    let out = grown(x.dtype(), x.shape())?;
    out.zero_()?;
    Ok(out)
}

/// Memory of this shape that grows from none.
fn grown(dtype: DType, shape: &[usize]) -> Result<Tensor> {
    shown::grown(&shown::empty_output(dtype)?, shape, Argument::Int(0))
}
