//! Counting, common divisors, traces, and rows of bounded length.

use super::cast::{FLOATS, INTEGERS, expect_dtype};
use super::numbers::{integers, numbers, store};
use super::shape::{broadcast, broadcast_to, dim, expect, expect_rank};
use crate::error::fail;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::Scalar;

/// How often each number occurs, or the sum of its weights. The client knows the largest, and so the shape.
pub(crate) fn bincount(x: Tensor, weights: Option<Tensor>, least: i64, out: Tensor) -> Planned {
    expect_rank("x", &x, 1)?;
    expect_dtype("x", &x, INTEGERS)?;
    expect_rank("out", &out, 1)?;
    if (out.shape()[0] as i64) < least {
        fail!(code::NN_PARAM_INVALID, "out of shape {:?}, expected at least {least}", out.shape());
    }
    let weighted = weights.is_some();
    let weights = weights.unwrap_or_else(|| x.clone());
    expect("weights", &weights, x.shape())?;
    let plan = Plan::new(c"Bincount", [x, weights], [out], move |[x, weights], [out]| {
        let mut counts = vec![0.0; out.layout().len()];
        for (at, weight) in integers(x).into_iter().zip(numbers(weights)) {
            let Some(count) = usize::try_from(at).ok().and_then(|at| counts.get_mut(at)) else {
                fail!(code::RT_AICORE_EXCEPTION, "{at} is out of range 0..{}", out.layout().len());
            };
            *count += if weighted { weight } else { 1.0 };
        }
        store(&counts, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn gcd(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    for (name, tensor) in [("x", &x), ("other", &other), ("out", &out)] {
        expect_dtype(name, tensor, INTEGERS)?;
    }
    let inputs = broadcast([x, other], &out)?;
    Plan::new(c"Gcd", inputs, [out], |inputs, [out]| {
        let [a, b] = inputs.map(integers);
        let divisors: Vec<i64> = a.into_iter().zip(b).map(|(a, b)| divisor(a, b)).collect();
        store(&divisors, out);
        Ok(())
    })
}

fn divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

pub(crate) fn trace(x: Tensor, out: Tensor) -> Planned {
    expect_rank("x", &x, 2)?;
    expect_rank("out", &out, 0)?;
    let &[rows, columns] = x.shape() else { unreachable!("of rank 2") };
    let is_whole = !x.dtype().is_float();
    let plan = Plan::new(c"Trace", [x], [out], move |[x], [out]| {
        let places = (0..rows.min(columns)).map(|at| at * columns + at);
        if is_whole {
            let elements = integers(x);
            store(&[places.map(|at| elements[at]).sum::<i64>()], out);
        } else {
            let elements = numbers(x);
            store(&[places.map(|at| elements[at]).sum::<f64>()], out);
        }
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// `beta * x + alpha * outer(a, b)`.
pub(crate) fn addr(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Option<Scalar>,
    alpha: Option<Scalar>,
    out: Tensor,
) -> Planned {
    expect_rank("a", &a, 1)?;
    expect_rank("b", &b, 1)?;
    expect("out", &out, &[a.shape()[0], b.shape()[0]])?;
    let x = broadcast_to("x", &x, out.shape())?;
    let [beta, alpha] = [beta, alpha].map(|number| number.map_or(1.0, Scalar::as_f64));
    let truths = out.dtype() == cresset_kernels::DType::Bool;
    Plan::new(c"Addr", [x, a, b], [out], move |inputs, [out]| {
        let [x, a, b] = inputs.map(numbers);
        let element = |(at, x): (usize, &f64)| {
            let product = alpha * a[at / b.len()] * b[at % b.len()];
            // With a factor of zero, what `x` holds does not count.
            let sum = product + if beta == 0.0 { 0.0 } else { beta * x };
            if truths { (sum != 0.0) as u8 as f64 } else { sum }
        };
        let made: Vec<f64> = x.iter().enumerate().map(element).collect();
        store(&made, out);
        Ok(())
    })
}

/// Slices along a dimension, none longer than `most`.
pub(crate) fn renorm(x: Tensor, p: Scalar, given: i64, most: Scalar, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let dim = dim(given, x.shape().len())?;
    let (size, inner) = (x.shape()[dim], x.shape()[dim + 1..].iter().product::<usize>());
    let (p, most) = (p.as_f64(), most.as_f64());
    let plan = Plan::new(c"Renorm", [x], [out], move |[x], [out]| {
        let mut elements = numbers(x);
        let slice = |at: usize| at / inner.max(1) % size.max(1);
        let mut norms = vec![0.0f64; size];
        for (at, x) in elements.iter().enumerate() {
            let norm = &mut norms[slice(at)];
            *norm = if p.is_infinite() { norm.max(x.abs()) } else { *norm + x.abs().powf(p) };
        }
        let length = |norm: &f64| if p.is_infinite() { *norm } else { norm.powf(1.0 / p) };
        let scales: Vec<f64> = norms
            .iter()
            .map(length)
            .map(|norm| if norm > most { most / (norm + 1e-7) } else { 1.0 })
            .collect();
        elements.iter_mut().enumerate().for_each(|(at, x)| *x *= scales[slice(at)]);
        store(&elements, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}
