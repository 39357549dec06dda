//! The stacks of a trace: each once, named when first asked for.

use super::carry::Carry;
use super::link;
use super::record::{EventKind, NONE, Record};
use crate::stack::{self, Frame, Frames};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Stacks by a number of this trace's own.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// From the recorder's numbers to indices.
    known: HashMap<u64, u32>,
    /// And back.
    numbers: Vec<u64>,
    addresses: Vec<Arc<[usize]>>,
    named: OnceLock<Vec<Frames>>,
}

impl Stacks {
    /// The index of the stack that was recorded as `number`; [`NONE`] if there is none.
    pub(super) fn add(&mut self, number: u64) -> u32 {
        if number == 0 {
            return NONE;
        }
        *self.known.entry(number).or_insert_with(|| {
            let Some(stack) = stack::get(number) else { return NONE };
            self.addresses.push(stack);
            self.numbers.push(number);
            self.addresses.len() as u32 - 1
        })
    }

    /// The recorder's number of a stack; 0 if there is none.
    pub(super) fn number(&self, index: u32) -> u64 {
        self.numbers.get(index as usize).copied().unwrap_or(0)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&[Frame]> {
        if index == NONE { None } else { self.all().get(index as usize).map(|frames| &**frames) }
    }

    /// All stacks, in the order they were first seen.
    pub(crate) fn all(&self) -> &[Frames] {
        self.named.get_or_init(|| self.addresses.iter().map(|stack| stack::resolve(stack)).collect())
    }
}

/// Gives derivatives, and all they called, the stacks of the forward calls they belong to, by
/// number and thread. One whose forward call was not recorded keeps its own: where `backward`
/// was called. `threads` maps the index of a thread to the number calls know it by.
pub(super) fn inherit(records: &mut [Record], threads: &[u32], stacks: &mut Stacks, carry: &Carry) {
    let mut forward: HashMap<(u32, u64), u32> = HashMap::new();
    let mut derivative = vec![NONE; records.len()];
    for i in 0..records.len() {
        let record = &records[i];
        derivative[i] = match record.kind {
            EventKind::Evaluate | EventKind::Backward if record.forward_thread > 0 => i as u32,
            _ => derivative.get(record.parent as usize).copied().unwrap_or(NONE),
        };
        if derivative[i] == NONE && link::is_forward(record) && record.stack != NONE {
            // The first is the outermost, the one that the program called.
            forward.entry((threads[record.thread as usize], record.sequence)).or_insert(record.stack);
        }
    }
    for (i, of) in derivative.into_iter().enumerate() {
        let Some(of) = records.get(of as usize) else { continue };
        let (thread, number) = (of.forward_thread, of.sequence);
        // A call of an earlier piece is the outer one.
        let earlier = carry.forward(thread, number).map_or(NONE, |call| stacks.add(call.stack));
        let later = forward.get(&(thread, number)).copied().unwrap_or(NONE);
        let stack = if earlier == NONE { later } else { earlier };
        if stack != NONE {
            records[i].stack = stack;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_take_the_stack_of_the_outermost_forward_call() {
        let record = |kind, sequence, forward_thread, parent, stack| Record {
            sequence,
            forward_thread,
            parent,
            stack,
            ..Record::new(kind, 0, 0, 0, 0)
        };
        let mut records = [
            record(EventKind::Operator, 7, 0, NONE, 1),
            record(EventKind::Operator, 7, 0, 0, 2),
            record(EventKind::Evaluate, 7, 1, NONE, 3),
            record(EventKind::Backward, 7, 1, 2, 3),
            record(EventKind::Operator, u64::MAX, 0, 3, 3),
            record(EventKind::Evaluate, u64::MAX, 0, NONE, 3),
            record(EventKind::Evaluate, 7, 2, NONE, 3),
        ];
        inherit(&mut records, &[1], &mut Stacks::default(), &Carry::default());
        assert_eq!(records.map(|record| record.stack), [1, 2, 1, 1, 1, 3, 3]);
    }
}
