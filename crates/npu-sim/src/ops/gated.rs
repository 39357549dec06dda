//! Activations of one half of a tensor by the other, and their gradients.

use super::cast::{FLOATS, compute, expect_dtype};
use super::shape::{dim, expect};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::{FloatBinary, FloatTernary, Mul, Unary};
use cresset_kernels::{Float, Layout, elementwise};
use std::ffi::CStr;

/// The dimension to halve.
fn halved(x: &Tensor, given: i64) -> Result<usize> {
    expect_dtype("x", x, FLOATS)?;
    let dim = dim(given, x.shape().len())?;
    match x.shape().get(dim) {
        Some(size) if size % 2 == 0 => Ok(dim),
        _ => fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no halves along {dim}", x.shape()),
    }
}

fn halves(layout: &Layout, dim: usize) -> [Layout; 2] {
    let half = layout.shape()[dim] / 2;
    [layout.narrow(dim, 0, half), layout.narrow(dim, half, half)]
}

fn half_shape(x: &Tensor, dim: usize) -> Vec<usize> {
    let mut shape = x.shape().to_vec();
    shape[dim] /= 2;
    shape
}

/// A gate: what it makes of the two halves.
fn forward<F>(kernel: &'static CStr, f: F, x: Tensor, given: i64, out: Tensor) -> Planned
where
    F: FloatBinary + Send + 'static,
{
    let dim = halved(&x, given)?;
    expect("out", &out, &half_shape(&x, dim))?;
    let dtype = x.dtype();
    compute(kernel, [x], dtype, out, dtype, move |[x], out| {
        let [a, b] = halves(x.layout(), dim);
        elementwise::float_binary(f, x.with_layout(&a), x.with_layout(&b), out);
    })
}

/// The gradients of a gate for the two halves.
fn backward<F>(
    kernel: &'static CStr,
    [to_first, to_second]: [F; 2],
    grad: Tensor,
    x: Tensor,
    given: i64,
    out: Tensor,
) -> Planned
where
    F: FloatTernary + Send + 'static,
{
    let dim = halved(&x, given)?;
    expect("out", &out, x.shape())?;
    expect("grad", &grad, &half_shape(&x, dim))?;
    expect_dtype("grad", &grad, &[x.dtype()])?;
    let dtype = x.dtype();
    compute(kernel, [grad, x], dtype, out, dtype, move |[grad, x], mut out| {
        let ([a, b], [first, second]) = (halves(x.layout(), dim), halves(out.layout(), dim));
        let (a, b) = (x.with_layout(&a), x.with_layout(&b));
        elementwise::float_ternary(to_first, grad, a, b, out.with_layout(&first));
        elementwise::float_ternary(to_second, grad, a, b, out.with_layout(&second));
    })
}

/// `a` times the logistic function of `b`.
#[derive(Clone, Copy)]
struct Glu;

impl FloatBinary for Glu {
    fn apply<T: Float>(self, a: T, b: T) -> T {
        a / (T::ONE + (-b).exp())
    }
}

/// `a` times the logistic function of itself, times `b`.
#[derive(Clone, Copy)]
struct SwiGlu;

impl FloatBinary for SwiGlu {
    fn apply<T: Float>(self, a: T, b: T) -> T {
        a / (T::ONE + (-a).exp()) * b
    }
}

/// What a gradient makes of one half.
#[derive(Clone, Copy)]
enum Slope {
    GluValue,
    GluGate,
    SwiGluGate,
    SwiGluValue,
}

impl FloatTernary for Slope {
    fn apply<T: Float>(self, grad: T, a: T, b: T) -> T {
        let share = |x: T| (T::ONE + (-x).exp()).recip();
        match self {
            Slope::GluValue => grad * share(b),
            Slope::GluGate => grad * a * share(b) * (T::ONE - share(b)),
            Slope::SwiGluGate => grad * b * share(a) * (T::ONE + a * (T::ONE - share(a))),
            Slope::SwiGluValue => grad * a * share(a),
        }
    }
}

pub(crate) fn glu(x: Tensor, dim: i64, out: Tensor) -> Planned {
    forward(c"GLU", Glu, x, dim, out)
}

pub(crate) fn glu_backward(grad: Tensor, x: Tensor, dim: i64, out: Tensor) -> Planned {
    backward(c"GLUGrad", [Slope::GluValue, Slope::GluGate], grad, x, dim, out)
}

pub(crate) fn swi_glu(x: Tensor, dim: i64, out: Tensor) -> Planned {
    forward(c"SwiGlu", SwiGlu, x, dim, out)
}

pub(crate) fn swi_glu_grad(grad: Tensor, x: Tensor, dim: i64, out: Tensor) -> Planned {
    backward(c"SwiGluGrad", [Slope::SwiGluGate, Slope::SwiGluValue], grad, x, dim, out)
}

pub(crate) fn ge_glu_v3(
    x: Tensor,
    given: i64,
    approximate: i64,
    left: bool,
    out: Tensor,
    gelu: Tensor,
) -> Planned {
    let dim = halved(&x, given)?;
    let shape = half_shape(&x, dim);
    for (name, tensor) in [("out", &out), ("gelu", &gelu)] {
        expect(name, tensor, &shape)?;
        expect_dtype(name, tensor, &[x.dtype()])?;
    }
    let f = match approximate {
        0 => Gelu::ByErf,
        1 => Gelu::ByTanh,
        _ => fail!(code::NN_PARAM_INVALID, "there is no approximation {approximate}"),
    };
    Plan::new(c"GeGluV2", [x], [out, gelu], move |[x], [mut out, mut gelu]| {
        let [a, b] = halves(x.layout(), dim);
        let (bent, kept) = if left { (&a, &b) } else { (&b, &a) };
        elementwise::unary(f, x.with_layout(bent), gelu.reborrow());
        elementwise::copy(gelu.as_view(), out.reborrow());
        elementwise::binary_in_place(Mul, out, x.with_layout(kept));
        Ok(())
    })
}

/// A share of `x`, by one of two formulas.
#[derive(Clone, Copy)]
enum Gelu {
    ByErf,
    ByTanh,
}

impl Unary for Gelu {
    fn apply<T: Float>(self, x: T) -> T {
        match self {
            Gelu::ByErf => super::activation::gelu_by_erf(x),
            Gelu::ByTanh => super::activation::gelu_by_tanh(x),
        }
    }
}
