//! Element types: which one an operator computes in, and kernels that convert on the way.

use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::elementwise::{copy, fill};
use cresset_kernels::{Buffer, DType, Layout, Reading, Scalar, View, ViewMut};
use std::ffi::CStr;

/// The type that can hold elements of both.
pub(super) fn promote(a: DType, b: DType) -> DType {
    use DType::*;
    let rank = |dtype: DType| DType::ALL.iter().position(|&other| other == dtype);
    match if rank(a) <= rank(b) { (a, b) } else { (b, a) } {
        (U8, I8) => I16,
        (F16, BF16) => F32,
        (_, higher) => higher,
    }
}

/// The type of a tensor's elements together with a number, which only its kind matters of.
pub(super) fn with_number(dtype: DType, number: Scalar) -> DType {
    match number {
        Scalar::Float(_) if !dtype.is_float() => DType::F32,
        Scalar::Int(_) if dtype == DType::Bool => DType::I64,
        _ => dtype,
    }
}

/// The type itself if it is a float, else single precision.
pub(super) fn float(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// The type in which numbers are computed: truth values count as small integers.
pub(super) fn number(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}

/// Fails if a result would lose its kind: floats do not become integers, nor numbers truths.
pub(super) fn expect_castable(from: DType, out: &Tensor) -> Result {
    let kind = |dtype: DType| (dtype != DType::Bool) as u8 + dtype.is_float() as u8;
    if kind(from) > kind(out.dtype()) {
        fail!(code::NN_PARAM_INVALID, "a result of {from} cannot be stored as {}", out.dtype());
    }
    Ok(())
}

/// Fails unless a tensor is of one of these types.
pub(super) fn expect_dtype(name: &str, x: &Tensor, allowed: &[DType]) -> Result {
    if !allowed.contains(&x.dtype()) {
        fail!(code::NN_PARAM_INVALID, "{name} is of {}, expected one of {allowed:?}", x.dtype());
    }
    Ok(())
}

pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64];
pub(super) const INTEGERS: &[DType] =
    &[DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::Bool];
pub(super) const INDICES: &[DType] = &[DType::I64, DType::I32];

/// Elements of the kernel's own, row-major.
pub(super) struct Temporary {
    buffer: Buffer,
    dtype: DType,
    layout: Layout,
}

impl Temporary {
    pub(super) fn new(dtype: DType, shape: &[usize]) -> Temporary {
        let layout = Layout::contiguous(shape).expect("as many elements as another view has");
        let buffer =
            Buffer::zeroed(layout.len() * dtype.size()).expect("the host has room for a kernel's memory");
        Temporary { buffer, dtype, layout }
    }

    /// One number everywhere.
    pub(super) fn filled(number: Scalar, dtype: DType, shape: &[usize]) -> Temporary {
        let temporary = Temporary::new(dtype, shape);
        temporary.write(|to| fill(number, to));
        temporary
    }

    /// The elements of `x`, converted.
    pub(super) fn of(x: View<'_>, dtype: DType) -> Temporary {
        let temporary = Temporary::new(dtype, x.shape());
        temporary.write(|to| copy(x, to));
        temporary
    }

    pub(super) fn write<R>(&self, body: impl FnOnce(ViewMut<'_>) -> R) -> R {
        body(ViewMut::new(self.buffer.write().bytes(), self.dtype, &self.layout))
    }

    pub(super) fn read<R>(&self, body: impl FnOnce(View<'_>) -> R) -> R {
        body(self.view(&self.lock()))
    }

    /// Keeps the elements as they are, while it is held.
    pub(super) fn lock(&self) -> Reading<'_> {
        self.buffer.read()
    }

    /// The elements under a lock.
    pub(super) fn view<'a>(&'a self, lock: &'a Reading<'_>) -> View<'a> {
        View::new(lock.bytes(), self.dtype, &self.layout)
    }
}

/// Runs `body` with `x` in the type `dtype`.
pub(super) fn converted<R>(x: View<'_>, dtype: DType, body: impl FnOnce(View<'_>) -> R) -> R {
    if x.dtype() == dtype { body(x) } else { Temporary::of(x, dtype).read(body) }
}

/// Runs `body` with an output of the type `dtype`, and converts what it wrote.
pub(super) fn stored<R>(out: ViewMut<'_>, dtype: DType, body: impl FnOnce(ViewMut<'_>) -> R) -> R {
    if out.dtype() == dtype {
        return body(out);
    }
    let temporary = Temporary::new(dtype, out.shape());
    let result = temporary.write(body);
    temporary.read(|x| copy(x, out));
    result
}

/// A kernel that sees its inputs in one type and its output in another, whatever they are.
pub(super) fn compute<const N: usize, F>(
    kernel: &'static CStr,
    inputs: [Tensor; N],
    dtype: DType,
    out: Tensor,
    result: DType,
    f: F,
) -> Planned
where
    F: FnOnce([View<'_>; N], ViewMut<'_>) + Send + 'static,
{
    Plan::new(kernel, inputs, [out], move |inputs, [out]| {
        let copies = inputs.map(|x| (x.dtype() != dtype).then(|| Temporary::of(x, dtype)));
        let locks = copies.each_ref().map(|copy| copy.as_ref().map(Temporary::lock));
        let views = std::array::from_fn(|i| match (&copies[i], &locks[i]) {
            (Some(copy), Some(lock)) => copy.view(lock),
            _ => inputs[i],
        });
        stored(out, result, |out| f(views, out));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_keeps_the_higher_kind_and_widens_where_neither_holds_both() {
        for (a, b, expected) in [
            (DType::F32, DType::F16, DType::F32),
            (DType::BF16, DType::F16, DType::F32),
            (DType::I64, DType::F16, DType::F16),
            (DType::U8, DType::I8, DType::I16),
            (DType::Bool, DType::U8, DType::U8),
            (DType::I32, DType::I64, DType::I64),
        ] {
            assert_eq!((promote(a, b), promote(b, a)), (expected, expected));
        }
    }
}
