//! Memory that was handed out: goes back to its allocator on drop.

use super::blocks::Id;
use super::of;
use crate::stream::Stream;
use crate::{device, status};
use cresset_tensor::DeviceMemory;
use parking_lot::Mutex;

/// Memory on a device; goes back to its allocator on drop.
pub(crate) struct Block {
    id: Option<Id>,
    address: usize,
    /// The stream that it can be handed out on again.
    home: Stream,
    /// Other streams that work on it.
    guests: Mutex<Vec<Stream>>,
}

impl Block {
    pub(super) fn new(id: Id, address: usize, home: Stream) -> Block {
        Block { id: Some(id), address, home, guests: Mutex::new(Vec::new()) }
    }

    /// No memory at all.
    pub(super) fn empty(home: Stream) -> Block {
        Block { id: None, address: 0, home, guests: Mutex::new(Vec::new()) }
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Remembers that work on `stream` uses the block.
    #[inline]
    pub(crate) fn used_on(&self, stream: &Stream) {
        if stream.number() != self.home.number() {
            self.add_guest(stream);
        }
    }

    #[cold]
    fn add_guest(&self, stream: &Stream) {
        let mut guests = self.guests.lock();
        if guests.iter().all(|guest| guest.number() != stream.number()) {
            guests.push(stream.clone());
        }
    }
}

impl DeviceMemory for Block {
    fn address(&self) -> usize {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        // A child process has no devices, and its copy of the books may have been caught in a change.
        if device::is_forked() {
            return;
        }
        let (allocator, guests) = (of(self.home.device_index()), self.guests.get_mut());
        if guests.is_empty() {
            return allocator.give_back(id, self.address);
        }
        status::keep(allocator.park(id, self.address, guests));
    }
}
