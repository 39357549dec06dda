//! How tensors print.

use crate::{Element as _, Scalar, Tensor};
use cresset_kernels::with_dtype;
use std::fmt;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor(")?;
        match self.on_host("display") {
            Ok(host) => {
                let reading = host.read();
                let view = host.elements(&reading);
                let numbers: Vec<String> = with_dtype!(host.dtype(), T => view.array::<T>().iter().map(|x| number(x.scalar())).collect());
                let width = numbers.iter().map(String::len).max().unwrap_or(0);
                write_rows(f, &numbers, self.shape(), width, 8)?;
            }
            Err(_) => write!(f, "..., size={:?}", self.shape())?,
        }
        if !self.device().is_cpu() {
            write!(f, ", device='{}'", self.device())?;
        }
        if !matches!(self.dtype(), crate::DType::F32 | crate::DType::I64 | crate::DType::Bool) {
            write!(f, ", dtype={}", self.dtype())?;
        }
        match self.grad_fn() {
            Some(name) => write!(f, ", grad_fn=<{name}>")?,
            None if self.requires_grad() => f.write_str(", requires_grad=true")?,
            None => {}
        }
        f.write_str(")")
    }
}

fn number(scalar: Scalar) -> String {
    match scalar {
        Scalar::Float(value) if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e8 => {
            format!("{value:.0}.")
        }
        Scalar::Float(value) if value.abs() >= 1e8 || (value != 0.0 && value.abs() < 1e-4) => {
            format!("{value:.4e}")
        }
        Scalar::Float(value) => format!("{value:.4}"),
        other => other.to_string(),
    }
}

/// The most rows or columns shown; of longer ones, the ends.
const SHOWN: usize = 6;

fn write_rows(
    f: &mut fmt::Formatter<'_>,
    numbers: &[String],
    shape: &[usize],
    width: usize,
    indent: usize,
) -> fmt::Result {
    let Some((&count, inner)) = shape.split_first() else {
        return f.write_str(numbers.first().map_or("", String::as_str));
    };
    let step: usize = inner.iter().product();
    f.write_str("[")?;
    for i in 0..count {
        let elided =
            count > 1000 / step.max(1) && count > SHOWN && (SHOWN / 2..count - SHOWN / 2).contains(&i);
        if elided && i > SHOWN / 2 {
            continue;
        }
        if i > 0 {
            f.write_str(if inner.is_empty() { ", " } else { ",\n" })?;
            if !inner.is_empty() {
                write!(f, "{:indent$}", "")?;
            }
        }
        match (elided, inner.is_empty()) {
            (true, _) => f.write_str("...")?,
            (false, true) => write!(f, "{:>width$}", numbers[i])?,
            (false, false) => write_rows(f, &numbers[i * step..(i + 1) * step], inner, width, indent + 1)?,
        }
    }
    f.write_str("]")
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
