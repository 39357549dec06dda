//! Copies, and one value everywhere.

use super::shape::broadcast_to;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::{Scalar, elementwise};

pub(crate) fn inplace_copy(x: Tensor, source: Tensor) -> Planned {
    let source = broadcast_to("source", &source, x.shape())?;
    let kernel = if source.dtype() == x.dtype() { c"TensorMove" } else { c"Cast" };
    Plan::new(kernel, [source], [x], |[source], [x]| {
        elementwise::copy(source, x);
        Ok(())
    })
}

pub(crate) fn inplace_fill_scalar(x: Tensor, value: Scalar) -> Planned {
    Plan::new(c"Fill", [], [x], move |[], [x]| {
        elementwise::fill(value, x);
        Ok(())
    })
}

pub(crate) fn inplace_zero(x: Tensor) -> Planned {
    Plan::new(c"ZerosLike", [], [x], |[], [x]| {
        elementwise::fill(Scalar::Int(0), x);
        Ok(())
    })
}
