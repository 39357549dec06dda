//! What allocators report: memory taken and given back, and their totals after it; and copies that
//! kernels make beside their work.

use crate::Device;
use crate::slots::Slots;

/// One allocation or one free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Where the memory is.
    pub device: Device,
    /// The block's address.
    pub address: usize,
    /// The block's size; negative when it is given back. Zero for a request that failed.
    pub bytes: i64,
    /// What the allocator has handed out after this.
    pub allocated: u64,
    /// What the allocator holds after this, cached blocks included; 0 where nothing is cached.
    pub reserved: u64,
}

/// Hears every report, on the thread that made it. A listener is a static.
pub trait Listener: Sync {
    /// Memory was taken or given back.
    fn memory(&self, report: &Report);

    /// A kernel copied so many bytes before or after its work: operands that lie apart, or are of
    /// another type than it computes in.
    fn copied(&self, _bytes: u64) {}
}

static LISTENERS: Slots<dyn Listener> = Slots::new();

/// A listener's place in the channel, used to switch it on and off.
#[derive(Clone, Copy, Debug)]
pub struct Slot(u8);

impl Slot {
    /// Takes a free slot for `listener`; inactive until [`set_active`](Slot::set_active).
    pub fn claim(listener: &'static dyn Listener) -> Option<Slot> {
        LISTENERS.claim(listener).map(Slot)
    }

    /// Starts or stops the flow of reports to this listener.
    pub fn set_active(self, active: bool) {
        LISTENERS.set_active(self.0, active);
    }
}

/// Tells the listeners, if there are any; `make` runs only then.
#[inline]
pub fn report(make: impl FnOnce() -> Report) {
    let active = LISTENERS.active();
    if active != 0 {
        tell(active, &make());
    }
}

/// Whether anyone listens.
#[inline]
pub fn is_heard() -> bool {
    LISTENERS.active() != 0
}

/// Tells the listeners, if there are any, that a kernel copied so many bytes beside its work.
pub fn copied(bytes: u64) {
    if bytes > 0 {
        LISTENERS.each(LISTENERS.active(), |_, listener| listener.copied(bytes));
    }
}

#[cold]
#[inline(never)]
fn tell(active: u8, report: &Report) {
    LISTENERS.each(active, |_, listener| listener.memory(report));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    struct Sum(AtomicI64);

    impl Listener for Sum {
        fn memory(&self, report: &Report) {
            self.0.fetch_add(report.bytes, Relaxed);
        }
    }

    #[test]
    fn a_report_is_made_only_while_someone_listens() {
        static SUM: Sum = Sum(AtomicI64::new(0));
        let slot = Slot::claim(&SUM).expect("a slot is free");
        let eight = || Report { device: Device::CPU, address: 64, bytes: 8, allocated: 8, reserved: 0 };
        report(|| panic!("nobody listens"));
        slot.set_active(true);
        report(eight);
        slot.set_active(false);
        report(|| panic!("nobody listens any more"));
        assert_eq!(SUM.0.load(Relaxed), 8);
    }
}
