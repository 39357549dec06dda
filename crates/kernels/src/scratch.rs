//! Room for what a kernel needs for a moment.

#![expect(unsafe_code, reason = "looks at raw memory as elements")]

use crate::blocks::{Block, Contents};
use crate::{DType, Element};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Elements of recycled memory, with whatever was there before.
pub(crate) struct Scratch<T> {
    block: Block,
    len: usize,
    _elements: PhantomData<T>,
}

impl<T: Element> Scratch<T> {
    /// Room for `len` elements.
    ///
    /// # Panics
    /// If there is not enough memory, as with a vector.
    pub(crate) fn new(len: usize) -> Scratch<T> {
        // Not every byte is a truth.
        let contents = if T::DTYPE == DType::Bool { Contents::Zero } else { Contents::Any };
        Scratch::holding(len, contents)
    }

    /// Room for `len` elements, all zero.
    pub(crate) fn zeros(len: usize) -> Scratch<T> {
        Scratch::holding(len, Contents::Zero)
    }

    fn holding(len: usize, contents: Contents) -> Scratch<T> {
        let block = len.checked_mul(size_of::<T>()).and_then(|bytes| Block::new(bytes, contents));
        let block = block.unwrap_or_else(|| panic!("no memory for {len} elements of {}", T::DTYPE));
        Scratch { block, len, _elements: PhantomData }
    }
}

/// Elements in row-major order: as they lie in a view, or in room of their own.
pub(crate) enum Elements<'a, T> {
    /// As they lie.
    Lying(&'a [T]),
    /// Copied or converted.
    Copied(Scratch<T>),
}

impl<T: Element> Elements<'_, T> {
    /// `len` times the same.
    pub(crate) fn repeated(value: T, len: usize) -> Self {
        let mut elements = Scratch::new(len);
        elements.fill(value);
        Elements::Copied(elements)
    }

    /// Room of their own that holds them.
    pub(crate) fn into_scratch(self) -> Scratch<T> {
        match self {
            Elements::Lying(elements) => {
                let mut copied = Scratch::new(elements.len());
                copied.copy_from_slice(elements);
                copied
            }
            Elements::Copied(elements) => elements,
        }
    }
}

impl<T> Deref for Elements<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Elements::Lying(elements) => elements,
            Elements::Copied(elements) => elements,
        }
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: initialised memory of this length, aligned for all element types, for which any
        // bits will do; truths were cleared.
        unsafe { std::slice::from_raw_parts(self.block.start().as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and it is borrowed for change.
        unsafe { std::slice::from_raw_parts_mut(self.block.start().as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_holds_what_is_written() {
        let mut room = Scratch::<f32>::new(1000);
        room.fill(2.0);
        assert_eq!(room.iter().sum::<f32>(), 2000.0);
        assert!(Scratch::<bool>::new(5000).iter().all(|&truth| !truth));
        assert!(Scratch::<i64>::zeros(5000).iter().all(|&number| number == 0));
        assert!(Scratch::<f64>::new(0).is_empty());
    }
}
