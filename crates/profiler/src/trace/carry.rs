//! What one piece of a recording hands on to the next, so that together they are one trace.

use super::memory::Seen;
use super::modules::Modules;
use cresset_dispatch::Device;
use std::collections::HashMap;

/// Forward calls that are remembered for derivatives to come. When there are more, the older half
/// is forgotten.
const FORWARD_CALLS: usize = 1 << 20;

/// What later pieces need to know of earlier ones. A recording that is built at once needs none.
#[derive(Default)]
pub(crate) struct Carry {
    /// Host memory that was seen being taken.
    pub(super) seen: Seen,
    /// What each device's allocator had handed out.
    pub(super) totals: HashMap<Device, u64>,
    /// By thread and number, the calls that derivatives may belong to.
    forward: HashMap<(u32, u64), Forward>,
    pub(super) modules: Modules,
    /// When each stream was last at work.
    pub(super) busy: HashMap<(Device, u32), u64>,
}

/// A forward call of an earlier piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    /// The thread it ran on, and when it began, in nanoseconds since 1970.
    pub(crate) tid: u32,
    pub(crate) start: u64,
    /// Where the outermost call of its number was made from; 0 if unknown.
    pub(super) stack: u64,
}

impl Carry {
    /// With what allocators had handed out when the recording began.
    pub(crate) fn new(totals: impl IntoIterator<Item = (Device, u64)>) -> Carry {
        Carry { totals: totals.into_iter().collect(), ..Carry::default() }
    }

    /// The forward call of this thread and number.
    pub(super) fn forward(&self, thread: u32, number: u64) -> Option<Forward> {
        self.forward.get(&(thread, number)).copied()
    }

    /// Remembers the last, innermost call of a number, and the stack of the first.
    pub(super) fn remember(&mut self, thread: u32, number: u64, call: Forward) {
        let known = self.forward.entry((thread, number)).or_insert(call);
        let stack = if known.stack == 0 { call.stack } else { known.stack };
        *known = Forward { stack, ..call };
    }

    pub(super) fn forget_old_calls(&mut self) {
        if self.forward.len() > FORWARD_CALLS {
            let mut starts: Vec<u64> = self.forward.values().map(|call| call.start).collect();
            let middle = starts.len() / 2;
            let middle = *starts.select_nth_unstable(middle).1;
            self.forward.retain(|_, call| call.start >= middle);
        }
    }
}
