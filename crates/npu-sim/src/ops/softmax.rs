//! Softmax, its logarithm, and their gradients.

use super::cast::{FLOATS, compute, expect_dtype, promote};
use super::shape::{dim, expect};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::{View, ViewMut, softmax as kernels};
use std::ffi::CStr;

/// One line per function and its gradient, with their kernels.
macro_rules! along_dim {
    ($($name:ident = $kernel:literal, $run:path; $back:ident = $back_kernel:literal, $back_run:path;)*) => {$(
        pub(crate) fn $name(x: Tensor, given: i64, out: Tensor) -> Planned {
            forward($kernel, $run, x, given, out)
        }

        pub(crate) fn $back(grad: Tensor, output: Tensor, given: i64, out: Tensor) -> Planned {
            backward($back_kernel, $back_run, [grad, output], given, out)
        }
    )*};
}

along_dim! {
    softmax = c"SoftmaxV2", kernels::softmax;
    softmax_backward = c"SoftmaxGrad", kernels::softmax_backward;
    log_softmax = c"LogSoftmaxV2", kernels::log_softmax;
    log_softmax_backward = c"LogSoftmaxGrad", kernels::log_softmax_backward;
}

type Forward = fn(View<'_>, usize, ViewMut<'_>);
type Backward = fn(View<'_>, View<'_>, usize, ViewMut<'_>);

fn forward(kernel: &'static CStr, run: Forward, x: Tensor, given: i64, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, FLOATS)?;
    expect("out", &out, x.shape())?;
    let (dim, dtype) = (dim(given, x.shape().len())?, x.dtype());
    compute(kernel, [x], dtype, out, dtype, move |[x], out| run(x, dim, out)).map(Plan::with_workspace)
}

fn backward(kernel: &'static CStr, run: Backward, inputs: [Tensor; 2], given: i64, out: Tensor) -> Planned {
    let [grad, output] = inputs;
    for (name, x) in [("grad", &grad), ("output", &output), ("out", &out)] {
        expect_dtype(name, x, FLOATS)?;
        expect(name, x, grad.shape())?;
    }
    let (dim, dtype) = (dim(given, grad.shape().len())?, promote(grad.dtype(), output.dtype()));
    let plan = compute(kernel, [grad, output], dtype, out, dtype, move |[grad, output], out| {
        run(grad, output, dim, out);
    });
    plan.map(Plan::with_workspace)
}
