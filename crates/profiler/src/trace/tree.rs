//! Who is inside whom: one pass over events in start order, with a stack, no recursion.

use super::record::{EventKind, NONE, Names, Phase, Record};
use crate::names;

/// Gives each event its parent, depth, subtree and phase. `records` are one thread's, in
/// start order, and every index is within them.
///
/// An event that outlasts its parent (a guard that was leaked) is cut to fit, so that
/// events are always strictly nested.
pub(super) fn nest(records: &mut [Record], names: &Names) {
    let mut open: Vec<u32> = Vec::new();
    let last = records.last().map_or(0, |record| record.start);
    for i in 0..records.len() {
        let start = records[i].start;
        while let Some(&top) = open.last()
            && records[top as usize].end <= start
        {
            records[top as usize].next = i as u32;
            open.pop();
        }
        let parent = open.last().map(|&top| records[top as usize]);
        let record = &mut records[i];
        record.parent = open.last().copied().unwrap_or(NONE);
        record.depth = parent.map_or(0, |parent| parent.depth + 1);
        record.end = parent.map_or(record.end, |parent| inside(record.end, parent.end, last));
        record.phase = phase(record, parent.map_or(Phase::Forward, |parent| parent.phase), names);
        open.push(i as u32);
    }
    let end = records.len() as u32;
    open.iter().for_each(|&i| records[i as usize].next = end);
}

/// Ticks between the ends of two events that did not end by themselves.
///
/// Readers add times up in doubles, which are off by a nanosecond: an event that is to lie
/// inside another must end a little before it.
pub(super) const MARGIN: u64 = 16;

/// `end`, cut to lie before the end of the parent, and after the `last` start if it can.
fn inside(end: u64, parent: u64, last: u64) -> u64 {
    if end < parent {
        return end;
    }
    if parent.saturating_sub(MARGIN) > last { parent - MARGIN } else { parent }
}

/// Moves starts and ends apart that one tick of the counter saw, each to a nanosecond after the one before.
///
/// Counters may tick every ten nanoseconds or less often, and two calls can end within one. Readers add times
/// up in doubles, so that of two ends which are equal either may come out later. `records` are one thread's,
/// nested, with times in nanoseconds.
pub(super) fn part(records: &mut [Record]) {
    let mut open: Vec<u32> = Vec::new();
    let mut last = 0;
    for i in 0..records.len() {
        while let Some(&top) = open.last()
            && records[i].parent != top
        {
            last = close(&mut records[top as usize], last);
            open.pop();
        }
        let record = &mut records[i];
        record.start = record.start.max(last + 1);
        last = record.start;
        open.push(i as u32);
    }
    while let Some(top) = open.pop() {
        last = close(&mut records[top as usize], last);
    }
}

fn close(record: &mut Record, last: u64) -> u64 {
    record.end = record.end.max(last + 1);
    record.end
}

fn phase(record: &Record, outer: Phase, names: &Names) -> Phase {
    match record.kind {
        EventKind::Evaluate | EventKind::Backward => Phase::Backward,
        EventKind::Scope if names.get(record.name).starts_with(names::OPTIMIZER_STEP) => Phase::Optimizer,
        _ => outer,
    }
}

/// The innermost event that is open at `time`.
pub(super) fn innermost(records: &[Record], time: u64) -> Option<u32> {
    let after = records.partition_point(|record| record.start <= time);
    let mut candidate = after.checked_sub(1)? as u32;
    while records[candidate as usize].end < time {
        candidate = records[candidate as usize].parent;
        if candidate == NONE {
            return None;
        }
    }
    Some(candidate)
}

/// Adds up the time each event spent in its direct children.
pub(super) fn sum_children(records: &mut [Record]) {
    for i in 0..records.len() {
        let (parent, duration) = (records[i].parent, records[i].duration());
        if let Some(parent) = records.get_mut(parent as usize) {
            parent.children += duration;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(spans: &[(u64, u64)]) -> Vec<Record> {
        spans.iter().map(|&(start, end)| Record::new(EventKind::Operator, 0, start, start, end)).collect()
    }

    #[test]
    fn nesting_follows_time() {
        let mut records = records(&[(0, 100), (10, 40), (20, 30), (50, 60), (100, 110)]);
        nest(&mut records, &Names::default());
        sum_children(&mut records);
        let tree: Vec<_> = records.iter().map(|r| (r.parent, r.depth, r.next, r.children)).collect();
        assert_eq!(tree, [(NONE, 0, 4, 40), (0, 1, 3, 10), (1, 2, 3, 0), (0, 1, 4, 0), (NONE, 0, 5, 0)]);
        assert_eq!(innermost(&records, 25), Some(2));
        assert_eq!(innermost(&records, 45), Some(0));
        assert_eq!(innermost(&records, 200), None);
    }

    #[test]
    fn what_one_tick_saw_is_moved_apart_in_its_order() {
        let mut records = records(&[(10, 50), (10, 40), (20, 40), (40, 50), (50, 60)]);
        nest(&mut records, &Names::default());
        part(&mut records);
        let times: Vec<_> = records.iter().map(|record| (record.start, record.end)).collect();
        assert_eq!(times, [(10, 51), (11, 41), (20, 40), (42, 50), (52, 60)]);
    }

    #[test]
    fn a_leaked_guard_is_cut_to_its_parent() {
        let mut records = records(&[(0, 50), (10, 1000), (60, 70)]);
        nest(&mut records, &Names::default());
        assert_eq!((records[1].end, records[2].parent), (50, NONE));
    }
}
