//! Puts calls into a device's library where they belong among the host's events.
//!
//! A device's library has its own idea of the host's clock, off by some nanoseconds. The
//! call a launch names is certain, its times are not: they are moved into the stretch of
//! that call in which nothing else ran, so that slices stay nested.

use super::record::{EventKind, NONE, Record};
use super::tree::{self, MARGIN};
use std::collections::HashMap;

/// Moves the launches of one thread to where they belong, and puts them in start order.
pub(super) fn place(records: &[Record], launches: &mut [Record]) {
    let by_id: HashMap<u64, u32> =
        records.iter().enumerate().map(|(i, record)| (record.id, i as u32)).collect();
    for launch in launches.iter_mut() {
        let middle = launch.start + launch.duration() / 2;
        let owner = by_id.get(&launch.id).copied().or_else(|| tree::innermost(records, middle));
        let (from, to) = narrower(gap(records, owner, middle));
        launch.start = launch.start.clamp(from, to);
        launch.end = launch.end.clamp(launch.start, to);
    }
    launches.sort_by_key(|launch| launch.start);
    for i in 1..launches.len() {
        let limit = launches[i].start.saturating_sub(MARGIN).max(launches[i - 1].start);
        launches[i - 1].end = launches[i - 1].end.min(limit);
    }
}

/// A stretch without its edges, if it has room for them.
fn narrower((from, to): (u64, u64)) -> (u64, u64) {
    if to - from > 4 * MARGIN { (from + MARGIN, to - MARGIN) } else { (from, to) }
}

/// The stretch of `owner` around `time`, or after it, in which no child of it ran.
fn gap(records: &[Record], owner: Option<u32>, time: u64) -> (u64, u64) {
    let (whole, first) = match owner {
        Some(i) => {
            let owner = &records[i as usize];
            ((owner.start, owner.end), i + 1)
        }
        None => ((0, u64::MAX), 0),
    };
    let parent = owner.unwrap_or(NONE);
    let start_of =
        |i: u32| records.get(i as usize).filter(|r| r.parent == parent).map_or(whole.1, |r| r.start);
    let time = time.clamp(whole.0, whole.1);
    match child_before(records, parent, first, time) {
        Some(child) => (child.end, start_of(child.next)),
        None => (whole.0, start_of(first)),
    }
}

/// The last child of `parent` that started by `time`.
fn child_before(records: &[Record], parent: u32, first: u32, time: u64) -> Option<&Record> {
    let after = records.partition_point(|record| record.start <= time) as u32;
    let mut candidate = after.checked_sub(1).filter(|&i| i >= first)?;
    while records[candidate as usize].parent != parent {
        candidate = records[candidate as usize].parent;
        if candidate == NONE {
            return None;
        }
    }
    Some(&records[candidate as usize])
}

/// The launches among the events, in start order.
pub(super) fn merge(records: &mut Vec<Record>, launches: Vec<Record>) {
    records.extend(launches);
    // A call that starts with its launch comes first, being longer.
    records.sort_by_key(|r| (r.start, std::cmp::Reverse(r.end), r.kind == EventKind::Launch));
}

#[cfg(test)]
mod tests {
    use super::super::record::Names;
    use super::*;

    fn launch(call: u64, start: u64, end: u64) -> Record {
        Record::new(EventKind::Launch, 0, call, start, end)
    }

    #[test]
    fn a_launch_lies_in_its_call_beside_the_calls_children() {
        let spans = [(1, 1000, 2000), (2, 1100, 1400), (3, 1600, 1700)];
        let mut records: Vec<_> =
            spans.map(|(id, s, e)| Record::new(EventKind::Operator, 0, id, s, e)).into();
        tree::nest(&mut records, &Names::default());
        let cases = [
            (launch(1, 1450, 1500), (1450, 1500)),
            (launch(1, 1380, 1500), (1400 + MARGIN, 1500)),
            (launch(1, 1550, 1650), (1700 + MARGIN, 1700 + MARGIN)),
            (launch(1, 900, 1050), (1000 + MARGIN, 1050)),
            (launch(1, 1900, 2200), (1900, 2000 - MARGIN)),
            (launch(2, 1000, 1120), (1100 + MARGIN, 1120)),
            (launch(0, 2100, 2200), (2100, 2200)),
            (launch(0, 1150, 1200), (1150, 1200)),
        ];
        for (given, wanted) in cases {
            let mut launches = vec![given];
            place(&records, &mut launches);
            assert_eq!((launches[0].start, launches[0].end), wanted, "{given:?}");
        }
    }
}
