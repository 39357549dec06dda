//! Bytes seen as an n-dimensional array of elements.

#![expect(unsafe_code, reason = "the one place that turns bytes into elements")]

use crate::{DType, Element, Float, Layout};
use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn, ShapeBuilder as _};
use std::marker::PhantomData;

/// Elements to read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    dtype: DType,
    layout: &'a Layout,
    _bytes: PhantomData<&'a [u8]>,
}

/// Elements to write. No two indices lead to the same element.
pub struct ViewMut<'a> {
    start: *mut u8,
    dtype: DType,
    layout: &'a Layout,
    _bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> View<'a> {
    /// The elements that `layout` picks from `bytes`.
    ///
    /// # Panics
    /// If the layout reaches beyond the bytes, or they are not aligned for the type.
    #[inline]
    pub fn new(bytes: &'a [u8], dtype: DType, layout: &'a Layout) -> View<'a> {
        check(bytes.as_ptr(), bytes.len(), dtype, layout);
        check_truths(bytes, dtype, layout);
        // Zero-length layouts may start past the end; such a view is never dereferenced.
        View {
            start: bytes.as_ptr().wrapping_add(layout.offset() * dtype.size()),
            dtype,
            layout,
            _bytes: PhantomData,
        }
    }

    /// The elements of a slice, as many as `layout` says.
    pub fn of<T: Element>(elements: &'a [T], layout: &'a Layout) -> View<'a> {
        // SAFETY: any element may be looked at as bytes, none of them has padding.
        let bytes = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) };
        View::new(bytes, T::DTYPE, layout)
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How the elements lie.
    #[inline]
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Size of each dimension.
    #[inline]
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// The elements as one slice, if they lie one after the other.
    ///
    /// # Panics
    /// If `T` is not the element type.
    #[inline]
    pub fn slice<T: Element>(&self) -> Option<&'a [T]> {
        assert_eq!(T::DTYPE, self.dtype, "a view is read as its own element type");
        if !self.layout.is_contiguous() {
            return None;
        }
        if self.layout.is_empty() {
            return Some(&[]);
        }
        // SAFETY: `new` checked alignment and that all elements lie inside the bytes; every
        // bit pattern is an element, for `bool` because `new` looked at all bytes.
        Some(unsafe { std::slice::from_raw_parts(self.start.cast(), self.layout.len()) })
    }

    /// The elements as an `ndarray` view.
    ///
    /// # Panics
    /// If `T` is not the element type.
    pub fn array<T: Element>(&self) -> ArrayViewD<'a, T> {
        assert_eq!(T::DTYPE, self.dtype, "a view is read as its own element type");
        let shape = IxDyn(self.layout.shape()).strides(IxDyn(self.layout.strides()));
        let start = if self.layout.is_empty() {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            self.start.cast_mut().cast()
        };
        // SAFETY: `new` checked alignment and that every index stays inside the bytes.
        unsafe { ArrayViewD::from_shape_ptr(shape, start) }
    }

    /// The only element.
    ///
    /// # Panics
    /// If there is not exactly one, or `T` is not the element type.
    #[inline]
    pub fn only<T: Element>(&self) -> T {
        assert_eq!(T::DTYPE, self.dtype, "a view is read as its own element type");
        assert_eq!(self.layout.len(), 1, "only() is for views of one element");
        // SAFETY: there is one element, at `start`, which `new` checked.
        unsafe { self.start.cast::<T>().read() }
    }

    /// Where the first element is.
    #[inline]
    pub(crate) fn pointer<T: Element>(&self) -> *const T {
        assert_eq!(T::DTYPE, self.dtype, "a view is read as its own element type");
        self.start.cast()
    }

    /// Everything from the first element to the furthest, whether picked or not.
    #[inline]
    pub(crate) fn span<T: Element>(&self) -> &'a [T] {
        assert_eq!(T::DTYPE, self.dtype, "a view is read as its own element type");
        if self.layout.is_empty() {
            return &[];
        }
        // SAFETY: as in `slice`: `new` checked the furthest element, and what lies between
        // is initialised memory of the same buffer.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.layout.end() - self.layout.offset()) }
    }

    /// The same elements as integers of their size: enough to move them.
    pub(crate) fn bits(self) -> View<'a> {
        View { dtype: integer(self.dtype), ..self }
    }

    /// The same elements, or some of them, under another layout of the same bytes.
    ///
    /// # Panics
    /// If `layout` starts before this view or reaches further.
    #[inline]
    pub fn with_layout<'b>(&self, layout: &'b Layout) -> View<'b>
    where
        'a: 'b,
    {
        assert!(
            layout.offset() >= self.layout.offset() && layout.end() <= self.layout.end(),
            "with_layout: {layout:?} is not within {:?}",
            self.layout
        );
        let further = (layout.offset() - self.layout.offset()) * self.dtype.size();
        View { start: self.start.wrapping_add(further), dtype: self.dtype, layout, _bytes: PhantomData }
    }
}

impl<'a> ViewMut<'a> {
    /// The elements that `layout` picks from `bytes`.
    ///
    /// # Panics
    /// As [`View::new`], and if two indices may lead to the same element.
    #[inline]
    pub fn new(bytes: &'a mut [u8], dtype: DType, layout: &'a Layout) -> ViewMut<'a> {
        check(bytes.as_ptr(), bytes.len(), dtype, layout);
        check_truths(bytes, dtype, layout);
        assert!(
            layout.is_contiguous() || !layout.may_overlap(),
            "cannot write through overlapping layout {layout:?}"
        );
        let start = bytes.as_mut_ptr().wrapping_add(layout.offset() * dtype.size());
        ViewMut { start, dtype, layout, _bytes: PhantomData }
    }

    /// The elements of a slice, as many as `layout` says.
    pub fn of<T: Element>(elements: &'a mut [T], layout: &'a Layout) -> ViewMut<'a> {
        let bytes = size_of_val(elements);
        check(elements.as_ptr().cast(), bytes, T::DTYPE, layout);
        assert!(
            layout.is_contiguous() || !layout.may_overlap(),
            "cannot write through overlapping layout {layout:?}"
        );
        let start = elements.as_mut_ptr().wrapping_add(layout.offset()).cast();
        ViewMut { start, dtype: T::DTYPE, layout, _bytes: PhantomData }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How the elements lie.
    #[inline]
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Size of each dimension.
    #[inline]
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// The elements as one slice, if they lie one after the other.
    ///
    /// # Panics
    /// If `T` is not the element type.
    #[inline]
    pub fn slice<T: Element>(&mut self) -> Option<&mut [T]> {
        assert_eq!(T::DTYPE, self.dtype, "a view is written as its own element type");
        if !self.layout.is_contiguous() {
            return None;
        }
        if self.layout.is_empty() {
            return Some(&mut []);
        }
        // SAFETY: as in `View::slice`; `&mut self` is the only way to these bytes.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.layout.len()) })
    }

    /// The elements as an `ndarray` view.
    ///
    /// # Panics
    /// If `T` is not the element type.
    pub fn array<T: Element>(&mut self) -> ArrayViewMutD<'_, T> {
        assert_eq!(T::DTYPE, self.dtype, "a view is written as its own element type");
        let shape = IxDyn(self.layout.shape()).strides(IxDyn(self.layout.strides()));
        let start =
            if self.layout.is_empty() { std::ptr::NonNull::dangling().as_ptr() } else { self.start.cast() };
        // SAFETY: `new` checked alignment, bounds and that no two indices meet; `&mut self`
        // is the only way to these bytes.
        unsafe { ArrayViewMutD::from_shape_ptr(shape, start) }
    }

    /// Everything from the first element to the furthest, whether picked or not.
    #[inline]
    pub(crate) fn span<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.dtype, "a view is written as its own element type");
        if self.layout.is_empty() {
            return &mut [];
        }
        // SAFETY: as in `View::span`; the view borrows all of these bytes, not only those
        // that it picks.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.layout.end() - self.layout.offset()) }
    }

    /// The same elements as integers of their size. What is written must be elements.
    pub(crate) fn bits(self) -> ViewMut<'a> {
        ViewMut { dtype: integer(self.dtype), ..self }
    }

    /// The same elements, to read.
    #[inline]
    pub fn as_view(&self) -> View<'_> {
        View { start: self.start, dtype: self.dtype, layout: self.layout, _bytes: PhantomData }
    }

    /// Where the first element is.
    #[inline]
    pub(crate) fn pointer<T: Element>(&mut self) -> *mut T {
        assert_eq!(T::DTYPE, self.dtype, "a view is written as its own element type");
        self.start.cast()
    }

    /// The same elements, or some of them, under another layout of the same bytes.
    ///
    /// # Panics
    /// As [`View::with_layout`], and if two indices may lead to the same element.
    #[inline]
    pub fn with_layout<'b>(&'b mut self, layout: &'b Layout) -> ViewMut<'b> {
        let View { start, dtype, .. } = self.as_view().with_layout(layout);
        assert!(
            layout.is_contiguous() || !layout.may_overlap(),
            "cannot write through overlapping layout {layout:?}"
        );
        ViewMut { start: start.cast_mut(), dtype, layout, _bytes: PhantomData }
    }

    /// The same view, borrowed for one call.
    #[inline]
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { start: self.start, dtype: self.dtype, layout: self.layout, _bytes: PhantomData }
    }
}

/// Bytes come from anywhere, and a `bool` other than 0 and 1 must not exist.
#[inline]
fn check_truths(bytes: &[u8], dtype: DType, layout: &Layout) {
    if dtype == DType::Bool && !layout.is_empty() {
        let truths = &bytes[layout.offset()..layout.end()];
        assert!(
            truths.iter().fold(true, |valid, &byte| valid & (byte <= 1)),
            "truth values other than 0 and 1"
        );
    }
}

/// Bytes as floats, of which every bit pattern is one.
///
/// # Panics
/// If they are not aligned for the type.
#[inline]
pub(crate) fn floats<T: Float>(bytes: &[u8]) -> &[T] {
    let start: *const T = bytes.as_ptr().cast();
    assert!(start.is_aligned(), "bytes are not aligned for {}", T::DTYPE);
    // SAFETY: aligned, initialised, and no longer than the bytes; they stay borrowed.
    unsafe { std::slice::from_raw_parts(start, bytes.len() / size_of::<T>()) }
}

/// As [`floats`], to be changed.
#[inline]
pub(crate) fn floats_mut<T: Float>(bytes: &mut [u8]) -> &mut [T] {
    let start: *mut T = bytes.as_mut_ptr().cast();
    assert!(start.is_aligned(), "bytes are not aligned for {}", T::DTYPE);
    // SAFETY: aligned, initialised, and no longer than the bytes; they stay borrowed for change.
    unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<T>()) }
}

/// The integers that are as large as elements of `dtype`.
fn integer(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

#[inline]
fn check(start: *const u8, bytes: usize, dtype: DType, layout: &Layout) {
    let end = layout.end().checked_mul(dtype.size());
    assert!(end.is_some_and(|end| end <= bytes), "{layout:?} of {dtype} reaches beyond {bytes} bytes");
    assert!(
        layout.is_empty() || (start as usize).is_multiple_of(dtype.size()),
        "bytes are not aligned for {dtype}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strided_view_reads_the_elements_its_layout_picks() {
        let layout = Layout::contiguous(&[2, 3]).unwrap();
        let swapped = layout.transpose(0, 1);
        let view = View::of(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &swapped);
        assert!(view.slice::<f32>().is_none());
        assert_eq!(view.array::<f32>().iter().copied().collect::<Vec<_>>(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    #[should_panic(expected = "reaches beyond 8 bytes")]
    fn a_layout_beyond_its_bytes_is_refused() {
        View::of(&[1.0f32, 2.0], &Layout::contiguous(&[3]).unwrap());
    }

    #[test]
    #[should_panic(expected = "overlapping layout")]
    fn an_expanded_layout_cannot_be_written() {
        let row = Layout::contiguous(&[1]).unwrap().broadcast_to(&[3]).unwrap();
        ViewMut::of(&mut [0.0f32], &row);
    }

    #[test]
    #[should_panic(expected = "is not within")]
    fn another_layout_may_not_reach_further() {
        let (short, long) = (Layout::contiguous(&[2]).unwrap(), Layout::contiguous(&[3]).unwrap());
        ViewMut::of(&mut [0.0f32; 4], &short).with_layout(&long);
    }

    #[test]
    #[should_panic(expected = "truth values other than 0 and 1")]
    fn bytes_that_are_no_truth_values_are_never_read_as_bool() {
        View::new(&[1, 0, 7], DType::Bool, &Layout::contiguous(&[3]).unwrap());
    }

    #[test]
    fn bytes_outside_a_layout_may_be_anything() {
        let layout = Layout::strided(&[2], &[1], 1).unwrap();
        assert_eq!(View::new(&[7, 1, 0, 9], DType::Bool, &layout).slice::<bool>(), Some(&[true, false][..]));
    }

    #[test]
    #[should_panic(expected = "its own element type")]
    fn elements_are_read_as_what_they_are() {
        View::of(&[1.0f32], &Layout::contiguous(&[1]).unwrap()).slice::<i32>();
    }
}
