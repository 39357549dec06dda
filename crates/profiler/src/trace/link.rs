//! Links from forward calls to their derivatives.

use super::carry::{Carry, Forward};
use super::record::{EventKind, NONE, Record};
use std::collections::{HashMap, HashSet};

/// A forward call and the derivative it caused, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// [`NONE`] if it is in an earlier piece of the recording.
    pub(crate) forward: u32,
    pub(crate) backward: u32,
    /// The forward call, if it is in an earlier piece.
    pub(crate) earlier: Option<Forward>,
}

/// The links, in the order the derivatives ran.
///
/// A number is shared by all calls around the one that made the node; the last of them,
/// being the innermost, is the one that is linked, as in torch, and with the first of the derivatives
/// where a graph is run more than once. `threads` maps the index of
/// a thread to the number calls know it by.
pub(super) fn links(records: &[Record], threads: &[u32], carry: &Carry) -> Vec<Link> {
    let mut last: HashMap<(u32, u64), u32> = HashMap::new();
    for (i, record) in (0..).zip(records) {
        if is_forward(record) {
            last.insert((threads[record.thread as usize], record.sequence), i);
        }
    }
    let link = |(backward, record): (u32, &Record)| {
        let (thread, number) = (record.forward_thread, record.sequence);
        match last.get(&(thread, number)) {
            Some(&forward) => {
                let is_before = records[forward as usize].start <= record.start;
                is_before.then_some(Link { forward, backward, earlier: None })
            }
            None => {
                let earlier = Some(carry.forward(thread, number)?);
                Some(Link { forward: NONE, backward, earlier })
            }
        }
    };
    let derivatives = (0..).zip(records).filter(|(_, record)| is_derivative(record));
    let mut links: Vec<Link> = derivatives.filter_map(link).collect();
    links.sort_by_key(|link| records[link.backward as usize].start);
    // A derivative that is run again has its arrow already: torch draws one.
    let mut drawn = HashSet::new();
    links.retain(|link| link.forward == NONE || drawn.insert(link.forward));
    links
}

/// Whether derivatives may belong to it. What began in an earlier piece was looked at there.
pub(super) fn is_forward(record: &Record) -> bool {
    let is_numbered = record.sequence != u64::MAX && record.forward_thread == 0;
    record.kind == EventKind::Operator && is_numbered && !record.before
}

fn is_derivative(record: &Record) -> bool {
    let is_numbered = record.sequence != u64::MAX && record.forward_thread > 0;
    record.kind == EventKind::Backward && is_numbered && !record.before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(kind: EventKind, start: u64, sequence: u64, forward_thread: u32) -> Record {
        let record = Record::new(kind, 0, start, start, start + 1);
        Record { sequence, forward_thread, ..record }
    }

    #[test]
    fn a_derivative_is_linked_to_the_innermost_forward_call() {
        let records = [
            numbered(EventKind::Operator, 0, 7, 0),
            numbered(EventKind::Operator, 1, 7, 0),
            numbered(EventKind::Operator, 2, 8, 0),
            numbered(EventKind::Evaluate, 3, 7, 1),
            numbered(EventKind::Backward, 4, 7, 1),
            numbered(EventKind::Backward, 5, 9, 1),
            numbered(EventKind::Backward, 6, 8, 2),
            numbered(EventKind::Backward, 7, 7, 1),
        ];
        let links = links(&records, &[1], &Carry::default());
        assert_eq!(links, [Link { forward: 1, backward: 4, earlier: None }]);
    }

    #[test]
    fn a_forward_call_of_an_earlier_piece_is_linked_by_time_and_thread() {
        let mut carry = Carry::default();
        for (start, stack) in [(10, 5), (20, 6)] {
            carry.remember(1, 7, Forward { tid: 99, start, stack });
        }
        let outer = Record { before: true, ..numbered(EventKind::Operator, 5, 7, 0) };
        let records = [outer, numbered(EventKind::Backward, 30, 7, 1)];
        let earlier = Some(Forward { tid: 99, start: 20, stack: 5 });
        assert_eq!(links(&records, &[1], &carry), [Link { forward: NONE, backward: 1, earlier }]);

        let others = [numbered(EventKind::Backward, 30, 7, 1), numbered(EventKind::Backward, 40, 7, 1)];
        assert_eq!(links(&others, &[1], &carry).len(), 2, "calls of earlier pieces are not one call");
    }
}
