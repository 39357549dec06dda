//! How tensors print: as torch prints them.

use crate::{DType, Element as _, Scalar, Tensor};
use cresset_kernels::with_dtype;
use std::fmt::{self, Write as _};

/// Tensors of more elements are shown by their ends.
const SUMMARIZED_ABOVE: usize = 1000;
/// How many rows or elements of each end are shown then.
const EDGE: usize = 3;
/// Where lines break.
const LINE: usize = 80;
/// What stands in front of the numbers.
const PREFIX: &str = "tensor(";

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = PREFIX.to_owned();
        match self.on_host("display") {
            Err(_) => text.push_str("..."),
            Ok(_) if self.numel() == 0 => text.push_str("[]"),
            Ok(host) => write_numbers(&host, &mut text)?,
        }
        let mut column = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
        for attribute in self.attributes() {
            if column + attribute.len() + 2 > LINE {
                write!(text, ",\n{:indent$}{attribute}", "", indent = PREFIX.len())?;
                column = PREFIX.len() + attribute.len();
            } else {
                write!(text, ", {attribute}")?;
                column += attribute.len() + 2;
            }
        }
        write!(f, "{text})")
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Tensor {
    /// What stands behind the numbers: all that they do not tell themselves.
    fn attributes(&self) -> Vec<String> {
        let mut attributes = Vec::new();
        if !self.device().is_cpu() {
            attributes.push(format!("device='{}'", self.device()));
        }
        let shows_nothing = self.numel() == 0 || self.is_meta();
        if self.is_meta() || self.numel() == 0 && self.dim() != 1 {
            let sizes: Vec<_> = self.shape().iter().map(usize::to_string).collect();
            let last = if sizes.len() == 1 { "," } else { "" };
            attributes.push(format!("size=({}{last})", sizes.join(", ")));
        }
        let evident = match self.dtype() {
            DType::F32 => true,
            DType::I64 | DType::Bool => !shows_nothing,
            _ => false,
        };
        if !evident {
            attributes.push(format!("dtype=torch.{}", torch_name(self.dtype())));
        }
        match self.grad_fn() {
            Some(name) => attributes.push(format!("grad_fn=<{name}>")),
            None if self.requires_grad() => attributes.push("requires_grad=True".to_owned()),
            None => {}
        }
        attributes
    }
}

const fn torch_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::U8 => "uint8",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
    }
}

fn write_numbers(host: &Tensor, text: &mut String) -> fmt::Result {
    let summarized = host.numel() > SUMMARIZED_ABOVE;
    let shown: Vec<Shown> = host.shape().iter().map(|&size| shown(size, summarized)).collect();
    let reading = host.read();
    let view = host.elements(&reading);
    let mut numbers = Vec::new();
    with_dtype!(host.dtype(), T => {
        let array = view.array::<T>();
        for_each_index(&shown, &mut Vec::new(), &mut |index| numbers.push(array[index].scalar()));
    });
    let style = Style::of(&numbers);
    let texts: Vec<String> = numbers.into_iter().map(|number| style.text(number)).collect();
    let width = style.width(&texts);
    Rows { shown: &shown, width }.write(&mut texts.iter(), 0, text)
}

/// Which indices of a dimension are shown; `None` stands for those that are left out.
type Shown = Vec<Option<usize>>;

fn shown(size: usize, summarized: bool) -> Shown {
    if summarized && size > 2 * EDGE {
        (0..EDGE).map(Some).chain([None]).chain((size - EDGE..size).map(Some)).collect()
    } else {
        (0..size).map(Some).collect()
    }
}

fn for_each_index(shown: &[Shown], index: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    let Some((first, rest)) = shown.split_first() else { return visit(index) };
    for &i in first.iter().flatten() {
        index.push(i);
        for_each_index(rest, index, visit);
        index.pop();
    }
}

/// How all numbers of a tensor are written, so that they line up.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// Integers and truth values.
    Plain,
    /// `3.`
    Whole,
    /// `3.1416`
    Fixed,
    /// `3.1416e+00`
    Scientific,
}

impl Style {
    fn of(numbers: &[Scalar]) -> Style {
        if !matches!(numbers.first(), Some(Scalar::Float(_))) {
            return Style::Plain;
        }
        let sizes = numbers.iter().map(|number| number.as_f64().abs()).filter(|&size| counts(size));
        let (smallest, largest) =
            sizes.clone().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
        let whole = sizes.clone().all(|size| size.fract() == 0.0);
        let apart = largest / smallest > 1000.0 || largest > 1e8;
        match whole {
            _ if apart => Style::Scientific,
            true => Style::Whole,
            false if smallest < 1e-4 => Style::Scientific,
            false => Style::Fixed,
        }
    }

    fn text(self, number: Scalar) -> String {
        match number {
            Scalar::Bool(true) => "True".to_owned(),
            Scalar::Bool(false) => "False".to_owned(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Float(value) if value.is_nan() => "nan".to_owned(),
            Scalar::Float(value) if value.is_infinite() => value.to_string(),
            Scalar::Float(value) => match self {
                Style::Plain | Style::Whole => format!("{value:.0}."),
                Style::Fixed => format!("{value:.4}"),
                Style::Scientific => scientific(value),
            },
        }
    }

    /// How wide a column is. Zeros, NaN and infinities have no say in it.
    fn width(self, texts: &[String]) -> usize {
        let says = |text: &&String| self == Style::Plain || text.parse().is_ok_and(|x: f64| counts(x));
        texts.iter().filter(says).map(String::len).max().unwrap_or(1)
    }
}

/// Whether a number decides how the others are written.
fn counts(number: f64) -> bool {
    number.is_finite() && number != 0.0
}

/// With a sign and at least two digits in the exponent.
fn scientific(value: f64) -> String {
    let text = format!("{value:.4e}");
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("and it is an integer");
    format!("{digits}e{exponent:+03}")
}

/// The brackets and commas between numbers.
struct Rows<'a> {
    shown: &'a [Shown],
    width: usize,
}

impl Rows<'_> {
    fn write(&self, texts: &mut std::slice::Iter<'_, String>, depth: usize, to: &mut String) -> fmt::Result {
        let Some(shown) = self.shown.get(depth) else {
            return write!(to, "{:>width$}", texts.next().expect("one each"), width = self.width);
        };
        let inner = self.shown.len() - depth - 1;
        // Rows and lines start below the first one.
        let indent = PREFIX.len() + depth + 1;
        let per_line = (LINE.saturating_sub(indent) / (self.width + 2)).max(1);
        to.push('[');
        for (cell, index) in shown.iter().enumerate() {
            match (cell, inner) {
                (0, _) => {}
                (_, 0) if cell % per_line != 0 => to.push_str(", "),
                _ => write!(to, ",{:\n<lines$}{:indent$}", "", "", lines = inner.max(1))?,
            }
            match (index, inner) {
                (Some(_), _) => self.write(texts, depth + 1, to)?,
                (None, 0) => to.push_str(" ..."),
                (None, _) => to.push_str("..."),
            }
        }
        to.push(']');
        Ok(())
    }
}
