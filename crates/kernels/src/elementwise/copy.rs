//! Moving elements between layouts and element types.

use super::{large, spread};
use crate::scratch::{Elements, Scratch};
use crate::{DType, Element, Layout, Scalar, View, ViewMut, bf16, count_copy, f16, with_dtype};
use half::slice::HalfFloatSliceExt as _;

/// Every element of `out` becomes `value`.
pub fn fill(value: Scalar, mut out: ViewMut<'_>) {
    with_dtype!(out.dtype(), T => {
        let value = T::from_scalar(value);
        match out.slice::<T>() {
            Some(out) => large::fill(value, out),
            None => out.array::<T>().fill(value),
        }
    });
}

/// Copies elements, converted to the element type of `to`: floats are cut towards zero for
/// integers, and anything but zero is true.
pub fn copy(from: View<'_>, mut to: ViewMut<'_>) {
    assert_eq!(from.shape(), to.shape(), "copy: shapes differ");
    if from.dtype() == to.dtype() {
        rearrange(from, to);
    } else if to.layout().is_contiguous() {
        convert(from, &mut to);
    } else {
        with_dtype!(to.dtype(), T => {
            let elements = to_scratch::<T>(from);
            unpack(&elements, to);
        });
    }
}

/// Copies elements of one type. Only their size matters, so it is compiled for four sizes
/// rather than for all types, and in this crate only.
#[inline(never)]
fn rearrange(from: View<'_>, to: ViewMut<'_>) {
    let (from, to) = (from.bits(), to.bits());
    match to.dtype() {
        DType::U8 => copy_same::<u8>(from, to),
        DType::I16 => copy_same::<i16>(from, to),
        DType::I32 => copy_same::<i32>(from, to),
        _ => copy_same::<i64>(from, to),
    }
}

fn copy_same<T: Element>(from: View<'_>, mut to: ViewMut<'_>) {
    if let (Some(from), Some(to)) = (from.slice::<T>(), to.slice::<T>()) {
        large::copy(from, to);
    } else if spread::copies(from.layout(), to.layout()) {
        spread::map1(from, to, &|from: &[T], to: &mut [T]| to.copy_from_slice(from));
    } else {
        to.array::<T>().assign(&from.array());
    }
}

/// The elements in row-major order: as they lie if they lie so, else copied.
pub(crate) fn pack<T: Element>(x: View<'_>) -> Elements<'_, T> {
    if let Some(slice) = x.slice() {
        return Elements::Lying(slice);
    }
    let mut elements = Scratch::new(x.layout().len());
    rearrange(x, ViewMut::of(&mut elements, &contiguous(x.shape())));
    count_copy(size_of_val(&*elements));
    Elements::Copied(elements)
}

/// The opposite of [`pack`].
pub(crate) fn unpack<T: Element>(elements: &[T], out: ViewMut<'_>) {
    let layout = contiguous(out.shape());
    rearrange(View::of(elements, &layout), out);
    count_copy(size_of_val(elements));
}

/// The elements in row-major order, converted.
pub(crate) fn to_vec<T: Element>(x: View<'_>) -> Vec<T> {
    if x.dtype() == T::DTYPE {
        return pack::<T>(x).to_vec();
    }
    let layout = contiguous(x.shape());
    let mut elements = vec![T::default(); layout.len()];
    convert(x, &mut ViewMut::of(&mut elements, &layout));
    count_copy(size_of_val(elements.as_slice()));
    elements
}

/// The elements in row-major order, converted, for a moment.
pub(crate) fn to_scratch<T: Element>(x: View<'_>) -> Scratch<T> {
    let layout = contiguous(x.shape());
    let mut elements = Scratch::new(layout.len());
    copy(x, ViewMut::of(&mut elements, &layout));
    count_copy(size_of_val(&*elements));
    elements
}

/// Calls `f` with the elements of `out` in row-major order, to be overwritten.
pub(crate) fn write<T: Element>(mut out: ViewMut<'_>, f: impl FnOnce(&mut [T])) {
    if let Some(out) = out.slice() {
        return f(out);
    }
    let mut elements = Scratch::new(out.layout().len());
    f(&mut elements);
    unpack(&elements, out);
}

/// The row-major layout of a shape that some view has.
pub(crate) fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).expect("a view's elements can be counted")
}

/// Fills contiguous elements from those of another type. Half precision goes through `f32`.
fn convert(from: View<'_>, to: &mut ViewMut<'_>) {
    match (from.dtype(), to.dtype()) {
        (DType::F16, DType::F32) => pack::<f16>(from).convert_to_f32_slice(plain(to)),
        (DType::BF16, DType::F32) => pack::<bf16>(from).convert_to_f32_slice(plain(to)),
        (DType::F32, DType::F16) => plain::<f16>(to).convert_from_f32_slice(&pack::<f32>(from)),
        (DType::F32, DType::BF16) => plain::<bf16>(to).convert_from_f32_slice(&pack::<f32>(from)),
        (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16) => {
            let (middle, layout) = (to_scratch::<f32>(from), contiguous(from.shape()));
            convert(View::of(&middle, &layout), to);
        }
        (from_type, to_type) => with_dtype!(from_type, A => {
            let from = pack::<A>(from);
            with_dtype!(to_type, B => convert_slice::<A, B>(&from, plain(to)))
        }),
    }
}

fn plain<'a, T: Element>(to: &'a mut ViewMut<'_>) -> &'a mut [T] {
    to.slice().expect("elements are converted into contiguous views")
}

fn convert_slice<A: Element, B: Element>(from: &[A], to: &mut [B]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = B::from_scalar(from.scalar());
    }
}
