//! Numbers in even steps.

use crate::composite::composite;
use crate::promote::DEFAULT_FLOAT;
use crate::{Cause, DType, Device, Element, Error, Operand, Options, Result, Scalar, Tensor};
use cresset_kernels::with_dtype;
use std::ops::Range;

/// Where [`Tensor::arange`] starts, what it stops before, and how far apart its numbers are.
///
/// Made from an end, a range, or `(start, end, step)`, of integers or of floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arange {
    /// The first number.
    pub start: Scalar,
    /// What the numbers stay before.
    pub end: Scalar,
    /// From one number to the next.
    pub step: Scalar,
}

macro_rules! ranges {
    ($($number:ty)*) => {$(
        impl From<$number> for Arange {
            fn from(end: $number) -> Arange {
                Arange { start: Scalar::Int(0), end: end.into(), step: Scalar::Int(1) }
            }
        }

        impl From<Range<$number>> for Arange {
            fn from(range: Range<$number>) -> Arange {
                Arange { start: range.start.into(), end: range.end.into(), step: Scalar::Int(1) }
            }
        }

        impl From<($number, $number, $number)> for Arange {
            fn from((start, end, step): ($number, $number, $number)) -> Arange {
                Arange { start: start.into(), end: end.into(), step: step.into() }
            }
        }
    )*};
}

ranges!(i32 i64 f32 f64);

/// A count; one beyond counting is as good as the largest.
impl From<usize> for Arange {
    fn from(end: usize) -> Arange {
        Arange::from(i64::try_from(end).unwrap_or(i64::MAX))
    }
}

impl Arange {
    /// Integers if all numbers are, else floats.
    fn dtype(self) -> DType {
        let floats = [self.start, self.end, self.step].iter().any(|x| matches!(x, Scalar::Float(_)));
        if floats { DEFAULT_FLOAT } else { DType::I64 }
    }

    /// How many numbers there are.
    fn count(self, dtype: DType) -> Result<usize> {
        let refused = |text: &str| {
            let text = format_args!("{text}: from {} to {} by {}", self.start, self.end, self.step);
            Err(Error::new(Cause::Argument, "aten::arange", text))
        };
        let [start, end, step] = [self.start, self.end, self.step].map(|x| {
            // Integers are cut first, so that 0.5 is no step for them.
            if dtype.is_float() { x.as_f64() } else { x.as_i64() as f64 }
        });
        if !(self.start.as_f64().is_finite() && self.end.as_f64().is_finite()) {
            return refused("a range has finite ends");
        }
        if step == 0.0 || step.is_nan() {
            return refused("a step of 0 leads nowhere");
        }
        if (step > 0.0 && start > end) || (step < 0.0 && start < end) {
            return refused("the step leads away from the end");
        }
        let count = match dtype {
            DType::I64 => {
                let [start, end, step] = [self.start, self.end, self.step].map(|x| i128::from(x.as_i64()));
                let distance = (end - start).unsigned_abs();
                usize::try_from(distance.div_ceil(step.unsigned_abs())).ok()
            }
            _ => {
                let count = ((self.end.as_f64() - self.start.as_f64()) / self.step.as_f64()).ceil();
                (count < isize::MAX as f64).then_some(count as usize)
            }
        };
        count.map_or_else(|| refused("there are too many numbers to count"), Ok)
    }
}

impl Tensor {
    /// Numbers in even steps: of `i64` if all that is given are integers, else of `f32`.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// assert_eq!(Tensor::arange(3)?.to_vec::<i64>()?, [0, 1, 2]);
    /// assert_eq!(Tensor::arange(2..5)?.to_vec::<i64>()?, [2, 3, 4]);
    /// assert_eq!(Tensor::arange((1.0, 0.0, -0.5))?.to_vec::<f32>()?, [1.0, 0.5]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn arange(range: impl Into<Arange>) -> Result<Tensor> {
        let range = range.into();
        Tensor::arange_with(range, range.dtype())
    }

    /// As [`arange`](Tensor::arange), of the given element type and device.
    pub fn arange_with(range: impl Into<Arange>, options: impl Into<Options>) -> Result<Tensor> {
        const NAME: &str = "aten::arange";
        let (range, options) = (range.into(), options.into());
        let _span = factory(NAME);
        if options.dtype == DType::Bool && range.count(DType::I64)? > 2 {
            return Err(Error::new(Cause::DType, NAME, "there are two truth values only"));
        }
        let count = range.count(options.dtype)?;
        if options.dtype.is_float() {
            let (start, step) = (range.start.as_f64(), range.step.as_f64());
            return generate(NAME, count, options, |i| Scalar::Float(start + step * i as f64));
        }
        let (start, step) = (range.start.as_i64(), range.step.as_i64());
        generate(NAME, count, options, |i| Scalar::Int(start.wrapping_add(step.wrapping_mul(i as i64))))
    }

    /// `steps` numbers from `start` to `end`, both included. Either may be a tensor of one number.
    pub fn linspace<'a>(
        start: impl Into<Operand<'a>>,
        end: impl Into<Operand<'a>>,
        steps: usize,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::linspace";
        let options = options.into();
        let _span = factory(NAME);
        let line = Line::new(NAME, start.into(), end.into(), steps, options.dtype)?;
        generate(NAME, steps, options, |i| Scalar::Float(line.at(i)))
    }

    /// `base` to the power of `steps` numbers from `start` to `end`, both included. Either may be
    /// a tensor of one number.
    pub fn logspace<'a>(
        start: impl Into<Operand<'a>>,
        end: impl Into<Operand<'a>>,
        steps: usize,
        base: f64,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::logspace";
        let options = options.into();
        let _span = factory(NAME);
        let line = Line::new(NAME, start.into(), end.into(), steps, options.dtype)?;
        if options.dtype.is_float() {
            return generate(NAME, steps, options, |i| Scalar::Float(base.powf(line.at(i))));
        }
        // Integers are powers of an integer, in single precision.
        let base = base.trunc() as f32;
        generate(NAME, steps, options, |i| Scalar::Float(f64::from(base.powf(line.at(i) as f32))))
    }

    /// Ones on the diagonal of a matrix, zeros elsewhere.
    pub fn eye(rows: usize, columns: usize, options: impl Into<Options>) -> Result<Tensor> {
        let _span = factory("aten::eye");
        let out = Tensor::zeros([rows, columns], options)?;
        out.diagonal(0, 0, 1)?.fill_(1)?;
        Ok(out)
    }
}

fn factory(op: &'static str) -> Option<cresset_dispatch::observe::Span> {
    let none: [&Tensor; 0] = [];
    composite(op, none, |_| {})
}

/// Evenly spaced numbers, counted from the nearer end so that both ends are met.
struct Line {
    start: f64,
    end: f64,
    step: f64,
    steps: usize,
}

impl Line {
    fn new(
        op: &'static str,
        start: Operand<'_>,
        end: Operand<'_>,
        steps: usize,
        dtype: DType,
    ) -> Result<Line> {
        let (start, end) = (end_number(op, start)?, end_number(op, end)?);
        let intervals = steps.saturating_sub(1).max(1) as f64;
        let (start, end, step) = if dtype.is_float() {
            with_dtype!(dtype, T => {
                let kept = |x: f64| T::from_scalar(x.into()).scalar().as_f64();
                let (start, end) = (kept(start.as_f64()), kept(end.as_f64()));
                (start, end, (end - start) / intervals)
            })
        } else {
            let (start, end) = (start.as_i64() as f64, end.as_i64() as f64);
            (start, end, (end - start) / intervals)
        };
        Ok(Line { start, end, step, steps })
    }

    fn at(&self, i: usize) -> f64 {
        if i < self.steps / 2 || self.steps == 1 {
            self.start + self.step * i as f64
        } else {
            self.end - self.step * (self.steps - 1 - i) as f64
        }
    }
}

/// A number, or that of a tensor without dimensions.
fn end_number(op: &'static str, operand: Operand<'_>) -> Result<Scalar> {
    match operand {
        Operand::Scalar(scalar) => Ok(scalar),
        Operand::Tensor(tensor) if tensor.dim() == 0 => tensor.item(),
        Operand::Tensor(tensor) => {
            let text =
                format_args!("an end is a number or has no dimensions, not shape {:?}", tensor.shape());
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

/// A vector whose elements are computed from their index.
fn generate(
    op: &'static str,
    count: usize,
    options: Options,
    number: impl Fn(usize) -> Scalar,
) -> Result<Tensor> {
    let out = Tensor::uninit(&[count], options.dtype, Device::CPU).map_err(|error| error.in_op(op))?;
    with_dtype!(options.dtype, T => {
        let mut writing = out.write();
        let mut elements = out.elements_mut(&mut writing);
        let elements = elements.slice::<T>().expect("a fresh tensor is contiguous");
        elements.iter_mut().enumerate().for_each(|(i, element)| *element = T::from_scalar(number(i)));
    });
    if options.device.is_cpu() { Ok(out) } else { out.to(options.device) }
}
