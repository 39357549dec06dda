//! Links from forward calls to their derivatives.

use super::record::{EventKind, NONE, Record};
use std::collections::HashMap;

/// A forward call and the derivative it caused, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) forward: u32,
    pub(crate) backward: u32,
}

/// The links, in the order the derivatives ran.
///
/// A number is shared by all calls around the one that made the node; the last of them,
/// being the innermost, is the one that is linked, as in torch. `threads` maps the index of
/// a thread to the number calls know it by.
pub(super) fn links(records: &[Record], threads: &[u32]) -> Vec<Link> {
    let mut last: HashMap<(u32, u64), u32> = HashMap::new();
    for (i, record) in records.iter().enumerate() {
        if record.kind == EventKind::Operator && record.sequence != u64::MAX && record.forward_thread == 0 {
            last.insert((threads[record.thread as usize], record.sequence), i as u32);
        }
    }
    let is_derivative =
        |r: &Record| r.kind == EventKind::Backward && r.sequence != u64::MAX && r.forward_thread > 0;
    let mut links: Vec<Link> = (0..)
        .zip(records)
        .filter(|(_, record)| is_derivative(record))
        .filter_map(|(backward, record)| {
            let forward = last.get(&(record.forward_thread, record.sequence)).copied().unwrap_or(NONE);
            let earlier = records.get(forward as usize).is_some_and(|call| call.start <= record.start);
            earlier.then_some(Link { forward, backward })
        })
        .collect();
    links.sort_by_key(|link| records[link.backward as usize].start);
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derivative_is_linked_to_the_innermost_forward_call() {
        let numbered = |kind, start, sequence, forward_thread| {
            let record = Record::new(kind, 0, start, start, start + 1);
            Record { sequence, forward_thread, ..record }
        };
        let records = [
            numbered(EventKind::Operator, 0, 7, 0),
            numbered(EventKind::Operator, 1, 7, 0),
            numbered(EventKind::Operator, 2, 8, 0),
            numbered(EventKind::Evaluate, 3, 7, 1),
            numbered(EventKind::Backward, 4, 7, 1),
            numbered(EventKind::Backward, 5, 9, 1),
            numbered(EventKind::Backward, 6, 8, 2),
        ];
        assert_eq!(links(&records, &[1]), [Link { forward: 1, backward: 4 }]);
    }
}
