//! A box of anything, for what comes and goes with every call.

#![expect(unsafe_code, reason = "owns raw memory")]

use crate::waiting::{give_back, take};
use std::alloc::Layout as Allocation;
use std::any::Any;
use std::ptr::NonNull;

/// A value of any type with one owner. As `Box<dyn Any>`, but its memory waits for the next of its size.
pub struct Owned(NonNull<dyn Any + Send + Sync>);

// SAFETY: it owns the value, which may be sent.
unsafe impl Send for Owned {}
// SAFETY: it shows nothing but the value, which may be shared.
unsafe impl Sync for Owned {}

impl Owned {
    /// A value with one owner.
    #[inline]
    pub fn new<T: Any + Send + Sync>(value: T) -> Owned {
        let place = take::<T>();
        // SAFETY: memory for just this, and nobody else knows it.
        unsafe { place.write(value) };
        Owned(place)
    }

    /// The value, if it is a `T`.
    #[inline]
    pub fn get<T: Any>(&self) -> Option<&T> {
        // SAFETY: it lives as long as its owner.
        unsafe { self.0.as_ref() }.downcast_ref()
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it lives, and nobody sees it after its owner.
        unsafe {
            let allocation = Allocation::for_value(self.0.as_ref());
            self.0.drop_in_place();
            give_back(self.0.cast(), allocation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_value_goes_with_its_owner() {
        let witness = Arc::new(());
        let owned = Owned::new((witness.clone(), [7u64; 5]));
        assert_eq!(owned.get::<(Arc<()>, [u64; 5])>().map(|value| value.1), Some([7; 5]));
        assert!(owned.get::<u64>().is_none());
        assert_eq!(Arc::strong_count(&witness), 2);
        drop(owned);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn nothing_and_much_are_owned_too() {
        assert!(Owned::new(()).get::<()>().is_some());
        #[repr(align(128))]
        struct Aligned(u8);
        let aligned = Owned::new(Aligned(3));
        assert_eq!(
            aligned.get::<Aligned>().map(|value| (&raw const *value as usize % 128, value.0)),
            Some((0, 3))
        );
        assert_eq!(Owned::new([1u8; 5000]).get::<[u8; 5000]>().map(|value| value[4999]), Some(1));
    }
}
