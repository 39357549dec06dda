//! Elements as plain numbers in double precision: for operators that are rare, and read best so.

use super::cast::Temporary;
use super::shape::broadcast;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::{DType, Layout, View, ViewMut, elementwise};
use std::ffi::CStr;

/// All elements in row-major order.
pub(super) fn numbers(x: View<'_>) -> Vec<f64> {
    if let Some(slice) = (x.dtype() == DType::F64).then(|| x.slice::<f64>()).flatten() {
        return slice.to_vec();
    }
    Temporary::of(x, DType::F64).read(|x| x.array::<f64>().iter().copied().collect())
}

/// All elements in row-major order, as integers.
pub(super) fn integers(x: View<'_>) -> Vec<i64> {
    Temporary::of(x, DType::I64).read(|x| x.array::<i64>().iter().copied().collect())
}

/// All elements in row-major order, in single precision: what products of matrices are fast in.
pub(super) fn singles(x: View<'_>) -> Vec<f32> {
    Temporary::of(x, DType::F32).read(|x| x.array::<f32>().iter().copied().collect())
}

/// Writes numbers in row-major order.
pub(super) fn store<T: cresset_kernels::Element>(numbers: &[T], out: ViewMut<'_>) {
    let layout = Layout::contiguous(out.shape()).expect("as many numbers as there are");
    elementwise::copy(View::of(numbers, &layout), out);
}

/// A kernel that makes each element from those of its inputs at the same place.
pub(super) fn each<const N: usize, F>(
    kernel: &'static CStr,
    inputs: [Tensor; N],
    out: Tensor,
    f: F,
) -> Planned
where
    F: Fn([f64; N]) -> f64 + Send + 'static,
{
    let inputs = broadcast(inputs, &out)?;
    Plan::new(kernel, inputs, [out], move |inputs, [out]| {
        let inputs = inputs.map(numbers);
        let made: Vec<f64> =
            (0..out.layout().len()).map(|at| f(std::array::from_fn(|i| inputs[i][at]))).collect();
        store(&made, out);
        Ok(())
    })
}
