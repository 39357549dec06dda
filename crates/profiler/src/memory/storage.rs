//! Which memory an address meant at a moment. An address is used again as soon as it is free.

use crate::trace::MemoryEvent;
use cresset_dispatch::Device;
use cresset_dispatch::observe::Identity;
use std::collections::HashMap;

/// The number of a storage.
pub(super) type Id = u32;

/// A block of memory from when it is taken until it is given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) device: Device,
    /// As the allocator said, or for one it never spoke of, as far as tensors reach.
    pub(super) bytes: u64,
    /// `None` if it was there before.
    pub(super) created: Option<u64>,
    /// `None` if it is there still.
    pub(super) destroyed: Option<u64>,
}

/// All storages of a trace.
#[derive(Default)]
pub(super) struct Storages {
    pub(super) all: Vec<Storage>,
    /// The storages at an address, in the order of time.
    places: HashMap<(Device, usize), Vec<Id>>,
    /// Which storage each memory event is of; none for a request that failed.
    pub(super) of_event: Vec<Option<Id>>,
}

impl Storages {
    /// The storages that `events`, which are in the order of time, tell of.
    pub(super) fn new(events: &[MemoryEvent]) -> Storages {
        let mut storages = Storages::default();
        for event in events {
            let (place, bytes) = ((event.report.device, event.report.address), event.report.bytes);
            let id = match bytes {
                0 => None,
                1.. => Some(storages.add(place, bytes.unsigned_abs(), Some(event.time))),
                _ => Some(storages.end(place, bytes.unsigned_abs(), event.time)),
            };
            storages.of_event.push(id);
        }
        storages
    }

    fn add(&mut self, place: (Device, usize), bytes: u64, created: Option<u64>) -> Id {
        let id = self.all.len() as Id;
        self.all.push(Storage { device: place.0, bytes, created, destroyed: None });
        self.places.entry(place).or_default().push(id);
        id
    }

    fn end(&mut self, place: (Device, usize), bytes: u64, time: u64) -> Id {
        let last = self.places.get(&place).and_then(|ids| ids.last().copied());
        let open = last.filter(|&id| self.all[id as usize].destroyed.is_none());
        let id = open.unwrap_or_else(|| self.add(place, bytes, None));
        self.all[id as usize].destroyed = Some(time);
        id
    }

    /// The storage that a tensor showed at `time`, `reach` being the bytes it reaches to.
    pub(super) fn at(&mut self, identity: &Identity, reach: u64, time: u64) -> Id {
        let place = (identity.device, identity.storage);
        let ids = self.places.get(&place).map_or(&[][..], Vec::as_slice);
        let lived = |id: &&Id| {
            let storage = &self.all[**id as usize];
            storage.created.is_none_or(|created| created <= time)
                && storage.destroyed.is_none_or(|destroyed| time <= destroyed)
        };
        let id = ids.iter().rev().find(lived).copied().unwrap_or_else(|| self.add_before(place));
        let storage = &mut self.all[id as usize];
        if storage.created.is_none() && storage.destroyed.is_none() {
            storage.bytes = storage.bytes.max(reach);
        }
        id
    }

    /// A storage that was there before and that no allocator spoke of.
    fn add_before(&mut self, place: (Device, usize)) -> Id {
        let id = self.add(place, 0, None);
        let first = self.places.get(&place).and_then(|ids| ids.first().copied());
        // If the address was taken later, it must have been given back before that.
        if let Some(next) = first.filter(|&first| first != id) {
            self.all[id as usize].destroyed = self.all[next as usize].created;
        }
        id
    }
}
