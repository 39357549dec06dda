//! Blocks that were given back while streams other than their own still worked on them.
//!
//! An event is recorded in each of these streams. When all of them are past it, the block can be
//! handed out again; until then it waits here, and no stream waits for another.

use super::blocks::Id;
use crate::event::{self, Event};
use crate::status::AclResult;
use crate::stream::Stream;
use std::collections::{HashMap, VecDeque};

/// What is waited for, in the order of each stream.
#[derive(Default)]
pub(super) struct Pending {
    streams: Vec<(usize, VecDeque<(Event, Id)>)>,
    /// Of how many streams each block still waits.
    left: HashMap<Id, usize>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Lets a block wait for what `guests` have to do now.
    ///
    /// # Errors
    /// If an event cannot be had. The block then waits forever: better than to be handed out too soon.
    pub(super) fn add(&mut self, device: u8, id: Id, guests: &[Stream]) -> AclResult {
        self.left.insert(id, guests.len());
        for guest in guests {
            let event = event::untimed(device)?;
            event.mark(guest)?;
            self.queue(guest.number()).push_back((event, id));
        }
        Ok(())
    }

    /// Takes the blocks whose streams are done with them.
    pub(super) fn take_done(&mut self, mut done: impl FnMut(Id)) -> AclResult {
        let Pending { streams, left } = self;
        for (_, events) in streams.iter_mut() {
            while let Some((event, _)) = events.front()
                && event.is_reached()?
            {
                let Some((event, id)) = events.pop_front() else { break };
                event::spare(event);
                let Some(count) = left.get_mut(&id) else { continue };
                *count -= 1;
                if *count == 0 {
                    left.remove(&id);
                    done(id);
                }
            }
        }
        streams.retain(|(_, events)| !events.is_empty());
        Ok(())
    }

    fn queue(&mut self, stream: usize) -> &mut VecDeque<(Event, Id)> {
        let place = self.streams.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            self.streams.push((stream, VecDeque::new()));
            self.streams.len() - 1
        });
        &mut self.streams[place].1
    }
}
