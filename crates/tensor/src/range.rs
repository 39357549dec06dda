//! Numbers in even steps.

use crate::composite::composite;
use crate::create::Told;
use crate::op::InPlace as _;
use crate::ops::Fill;
use crate::promote::DEFAULT_FLOAT;
use crate::{Cause, DType, Device, Element, Error, Operand, Options, Result, Scalar, Tensor, shown};
use cresset_dispatch::observe::{self, Argument, Span};
use cresset_kernels::with_dtype;
use smallvec::SmallVec;
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

    /// The numbers as a program writes them: what goes without saying is left out.
    fn written(self) -> SmallVec<[Argument<'static>; 3]> {
        let numbers = [self.start, self.end, self.step].map(shown::plain);
        let counts = self.step == Scalar::Int(1);
        let skipped = usize::from(counts && self.start == Scalar::Int(0));
        numbers[skipped..3 - usize::from(counts)].iter().copied().collect()
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
        Tensor::arange_with(range, Options { dtype: range.dtype(), ..Options::default() })
    }

    /// As [`arange`](Tensor::arange), of the given element type and device.
    pub fn arange_with(range: impl Into<Arange>, options: impl Into<Options>) -> Result<Tensor> {
        const NAME: &str = "aten::arange";
        let (range, told) = (range.into(), Told::now(options));
        let options = told.options;
        let _made = shown::factory();
        let _span = factory(NAME, told, &range.written());
        if options.dtype == DType::Bool && range.count(DType::I64)? > 2 {
            return Err(Error::new(Cause::DType, NAME, "there are two truth values only"));
        }
        let count = range.count(options.dtype)?;
        let made = Steps::Grown.show(NAME, told, &[range.start, range.end, range.step], &[count])?;
        if options.dtype.is_float() {
            let (start, step) = (range.start.as_f64(), range.step.as_f64());
            return generate(NAME, made, count, options, |i| Scalar::Float(start + step * i as f64));
        }
        let (start, step) = (range.start.as_i64(), range.step.as_i64());
        generate(NAME, made, count, options, |i| Scalar::Int(start.wrapping_add(step.wrapping_mul(i as i64))))
    }

    /// `steps` numbers from `start` to `end`, both included. Either may be a tensor of one number.
    pub fn linspace<'a>(
        start: impl Into<Operand<'a>>,
        end: impl Into<Operand<'a>>,
        steps: usize,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::linspace";
        let told = Told::now(options);
        let (options, start, end) = (told.options, start.into(), end.into());
        let count = Scalar::Int(steps as i64);
        let written = [start.given().into_argument(), end.given().into_argument(), shown::plain(count)];
        let _made = shown::factory();
        let _span = factory(NAME, told, &written);
        let line = Line::new(NAME, start, end, steps, options.dtype)?;
        let ends = [Scalar::Float(line.start), Scalar::Float(line.end), count];
        let ends = match (start, end) {
            (Operand::Scalar(start), Operand::Scalar(end)) => [start, end, count],
            _ => ends,
        };
        let made = Steps::AtOnce.show(NAME, told, &ends, &[steps])?;
        generate(NAME, made, steps, options, |i| Scalar::Float(line.at(i)))
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
        let told = Told::now(options);
        let options = told.options;
        let _made = shown::factory();
        let _span = factory(NAME, told, &[]);
        let line = Line::new(NAME, start.into(), end.into(), steps, options.dtype)?;
        if options.dtype.is_float() {
            return generate(NAME, None, steps, options, |i| Scalar::Float(base.powf(line.at(i))));
        }
        // Integers are powers of an integer, in single precision.
        let base = base.trunc() as f32;
        generate(NAME, None, steps, options, |i| Scalar::Float(f64::from(base.powf(line.at(i) as f32))))
    }

    /// Ones on the diagonal of a matrix, zeros elsewhere.
    pub fn eye(rows: usize, columns: usize, options: impl Into<Options>) -> Result<Tensor> {
        const NAME: &str = "aten::eye";
        let told = Told::now(options);
        let [n, m] = [rows, columns].map(|size| Argument::Int(size as i64));
        let _made = shown::factory();
        // A square matrix is asked for by one size, and made by two.
        let _square = if rows == columns { factory(NAME, told, &[n]) } else { None };
        let _span = factory(NAME, told, &[n, m]);
        let sizes = [rows, columns].map(|size| Scalar::Int(size as i64));
        let make = || Tensor::uninit(&[rows, columns], told.options.dtype, told.options.device);
        let (_inner, out) = match Steps::Grown.show(NAME, told, &sizes, &[rows, columns])? {
            Some(Made { out, span }) => (span, out),
            None => (None, make().map_err(|error| error.in_op(NAME))?),
        };
        out.zero_()?;
        let diagonal = out.with_layout(out.layout().diagonal(0, 1, 0));
        Fill { value: Scalar::Int(1) }.write([&diagonal])?;
        Ok(out)
    }
}

/// A span of the operator `op`, told of `before` and of what the new tensor is like.
fn factory(op: &'static str, told: Told, before: &[Argument<'_>]) -> Option<Span> {
    composite(op, shown::NOTHING, |visit| {
        before.iter().for_each(|argument| visit(*argument));
        told.written().into_iter().for_each(visit);
    })
}

/// An output, and the call that fills it.
struct Made {
    out: Tensor,
    span: Option<Span>,
}

/// How torch makes the output of an operator that fills it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Without elements, then resized.
    Grown,
    /// As large as it is to be.
    AtOnce,
}

impl Steps {
    /// Shows how the output is made, and the second call that fills it until the guard drops.
    fn show(self, op: &'static str, told: Told, numbers: &[Scalar], shape: &[usize]) -> Result<Option<Made>> {
        if !observe::is_watched() || !told.options.device.is_cpu() {
            return Ok(None);
        }
        let out = told.empty(if self == Steps::Grown { &[0] } else { shape })?;
        let mut more: SmallVec<[Argument<'_>; 4]> =
            numbers.iter().map(|&number| shown::plain(number)).collect();
        more.push(Argument::Tensor(out.argument()));
        let span = shown::call(op, shown::NOTHING, &more);
        if self == Steps::Grown && shape != [0] {
            let sizes = shown::ints(shape);
            let options = told.options;
            let grown =
                shown::within("aten::resize_", [&out], &[Argument::Ints(&sizes), Argument::None], || {
                    Tensor::uninit(shape, options.dtype, options.device)
                })?;
            return Ok(Some(Made { out: grown, span }));
        }
        drop(more);
        Ok(Some(Made { out, span }))
    }
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
    made: Option<Made>,
    count: usize,
    options: Options,
    number: impl Fn(usize) -> Scalar,
) -> Result<Tensor> {
    let (_inner, out) = match made {
        Some(Made { out, span }) => (span, out),
        None => {
            (None, Tensor::uninit(&[count], options.dtype, Device::CPU).map_err(|error| error.in_op(op))?)
        }
    };
    with_dtype!(options.dtype, T => {
        let mut writing = out.write();
        let mut elements = out.elements_mut(&mut writing);
        let elements = elements.slice::<T>().expect("a fresh tensor is contiguous");
        elements.iter_mut().enumerate().for_each(|(i, element)| *element = T::from_scalar(number(i)));
    });
    if options.device.is_cpu() { Ok(out) } else { out.to(options.device) }
}
