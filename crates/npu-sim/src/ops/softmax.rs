//! Softmax in logarithms, and its gradient.

use super::cast::{FLOATS, compute, expect_dtype, promote};
use super::shape::{dim, expect};
use crate::objects::Tensor;
use crate::plan::Planned;
use cresset_kernels::softmax;

pub(crate) fn log_softmax(x: Tensor, given: i64, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, FLOATS)?;
    expect("out", &out, x.shape())?;
    let (dim, dtype) = (dim(given, x.shape().len())?, x.dtype());
    compute(c"LogSoftmaxV2", [x], dtype, out, dtype, move |[x], out| softmax::log_softmax(x, dim, out))
}

pub(crate) fn log_softmax_backward(grad: Tensor, output: Tensor, given: i64, out: Tensor) -> Planned {
    for (name, x) in [("grad", &grad), ("output", &output), ("out", &out)] {
        expect_dtype(name, x, FLOATS)?;
        expect(name, x, grad.shape())?;
    }
    let (dim, dtype) = (dim(given, grad.shape().len())?, promote(grad.dtype(), output.dtype()));
    compute(c"LogSoftmaxGrad", [grad, output], dtype, out, dtype, move |[grad, output], out| {
        softmax::log_softmax_backward(grad, output, dim, out);
    })
}
