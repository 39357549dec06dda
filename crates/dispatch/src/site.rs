//! For which operator a thread gives work to a device.
//!
//! Devices work later than they are told to. What fails then is told with the help of this: whoever launches
//! something notes the operator, and names it if that is what failed. Who computes at once needs none of it.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static CURRENT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The innermost operator that this thread is at work for, if any.
#[inline]
pub fn current() -> Option<&'static str> {
    CURRENT.get()
}

/// Lets this thread be at work for `op` until the guard drops.
#[inline]
pub fn enter(op: &'static str) -> Entered {
    Entered { before: CURRENT.replace(Some(op)), _this_thread: PhantomData }
}

/// Guard of [`enter`].
#[must_use = "the thread is at work for the operator only while the guard lives"]
pub struct Entered {
    before: Option<&'static str>,
    /// The guard restores the thread it was made on, so it must drop there.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_inside_another_is_the_one_at_work_until_it_ends() {
        assert_eq!(current(), None);
        let outer = enter("outer");
        let inner = enter("inner");
        assert_eq!(current(), Some("inner"));
        drop(inner);
        assert_eq!(current(), Some("outer"));
        drop(outer);
        assert_eq!(current(), None);
    }
}
