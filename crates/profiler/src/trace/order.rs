//! The order in which an allocator counted its reports, found again from their totals.
//!
//! A thread stamps a report after the allocator counted it, and may be interrupted in
//! between, so stamps of two threads can be in the wrong order, by any distance. Two things
//! are certain: each thread's own reports are in order, and each report goes on from the
//! total that the one before it left. So this is a merge of the threads' lists along the
//! totals. Totals recur, so more than one list may go on; the earliest is taken, and if that
//! leads nowhere the last such choice is made anew.
//!
//! An allocator that reports while it holds its lock is in order already. For one that does
//! not, this finds the order in most cases but cannot in all: reports carry no number. The
//! search is bounded, so that it stays linear; where it gives up, stamps decide.

use super::memory::MemoryEvent;
use std::collections::VecDeque;

/// Steps that may be taken back per report, on average.
const PATIENCE: usize = 32;
/// How many choices can be made anew; older ones stand.
const CHOICES: usize = 64;

/// Puts one device's reports in the order they were counted; times may only become earlier.
pub(super) fn restore(events: &mut [MemoryEvent]) {
    let mut merge = Merge::new(events);
    if merge.lists.len() < 2 {
        return;
    }
    while merge.order.len() < events.len() {
        merge.advance();
    }
    let mut taken = vec![0; merge.lists.len()];
    for (slot, &list) in events.iter_mut().zip(&merge.order) {
        *slot = merge.lists[list][taken[list]];
        taken[list] += 1;
    }
    for i in (1..events.len()).rev() {
        events[i - 1].time = events[i - 1].time.min(events[i].time);
    }
}

struct Merge {
    /// The reports of each thread.
    lists: Vec<Vec<MemoryEvent>>,
    /// How many of each list are taken.
    taken: Vec<usize>,
    /// From which list each report so far was taken.
    order: Vec<usize>,
    choices: VecDeque<Choice>,
    patience: usize,
    /// As far as we got before going back, from the length at which we began to.
    furthest: (usize, Vec<usize>),
}

/// A place where several lists went on, and those that were not tried, the best last.
struct Choice {
    at: usize,
    others: Vec<usize>,
}

impl Merge {
    fn new(events: &[MemoryEvent]) -> Merge {
        let mut lists: Vec<Vec<MemoryEvent>> = Vec::new();
        for event in events {
            match lists.iter_mut().find(|list| list[0].thread == event.thread) {
                Some(list) => list.push(*event),
                None => lists.push(vec![*event]),
            }
        }
        let taken = vec![0; lists.len()];
        let patience = PATIENCE * events.len();
        Merge {
            lists,
            taken,
            order: Vec::new(),
            choices: VecDeque::new(),
            patience,
            furthest: (0, Vec::new()),
        }
    }

    fn head(&self, list: usize) -> Option<&MemoryEvent> {
        self.lists[list].get(self.taken[list])
    }

    /// The total that the last report left.
    fn total(&self) -> Option<u64> {
        let &last = self.order.last()?;
        Some(self.lists[last][self.taken[last] - 1].report.allocated)
    }

    /// The lists that go on from here, the latest first. At the beginning all may.
    fn candidates(&self) -> Vec<usize> {
        let total = self.total();
        let goes_on = |head: &MemoryEvent| total.is_none_or(|total| head.before() == total);
        let mut lists: Vec<usize> =
            (0..self.lists.len()).filter(|&i| self.head(i).is_some_and(goes_on)).collect();
        lists.sort_by_key(|&i| std::cmp::Reverse(self.head(i).map(|head| head.time)));
        lists
    }

    fn advance(&mut self) {
        let mut candidates = self.candidates();
        match candidates.pop() {
            Some(list) => {
                if !candidates.is_empty() {
                    self.choices.push_back(Choice { at: self.order.len(), others: candidates });
                    if self.choices.len() > CHOICES {
                        self.choices.pop_front();
                    }
                }
                self.take(list);
            }
            None => self.go_back(),
        }
    }

    fn take(&mut self, list: usize) {
        self.taken[list] += 1;
        self.order.push(list);
    }

    fn undo_to(&mut self, length: usize) {
        for list in self.order.drain(length..) {
            self.taken[list] -= 1;
        }
    }

    /// Makes the last choice anew; if there is none or patience is at its end, jumps the gap
    /// at the furthest place.
    fn go_back(&mut self) {
        let from = self.choices.front().map_or(self.order.len(), |choice| choice.at);
        let (start, tail) = &self.furthest;
        if self.order.len() > start + tail.len() {
            self.furthest = (from, self.order[from..].to_vec());
        }
        let Some(mut choice) = self.choices.pop_back() else { return self.jump() };
        let cost = self.order.len() - choice.at + 1;
        let Some(patience) = self.patience.checked_sub(cost) else { return self.jump() };
        self.patience = patience;
        self.undo_to(choice.at);
        if let Some(list) = choice.others.pop() {
            if !choice.others.is_empty() {
                self.choices.push_back(choice);
            }
            self.take(list);
        }
    }

    fn jump(&mut self) {
        let (from, tail) = std::mem::take(&mut self.furthest);
        // Nothing was undone below `from`, so what was there then is there now.
        if from <= self.order.len() {
            self.undo_to(from);
            tail.into_iter().for_each(|list| self.take(list));
        }
        self.choices.clear();
        let earliest = (0..self.lists.len()).filter_map(|i| Some((self.head(i)?.time, i))).min();
        if let Some((_, list)) = earliest {
            self.take(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cresset_dispatch::Device;
    use cresset_dispatch::memory::Report;

    /// Thread, stamp, bytes and total of each report.
    fn restored(reports: &[(u32, u64, i64, u64)]) -> Vec<(u64, u64)> {
        let mut events: Vec<MemoryEvent> = reports
            .iter()
            .map(|&(thread, time, bytes, allocated)| {
                let report = Report { device: Device::CPU, address: 0, bytes, allocated, reserved: 0 };
                MemoryEvent { time, report, event: None, thread }
            })
            .collect();
        restore(&mut events);
        events.iter().map(|event| (event.time, event.report.allocated)).collect()
    }

    #[test]
    fn a_report_that_was_stamped_late_moves_to_its_place() {
        let reports = [(0, 10, 4, 104), (0, 30, 2, 116), (0, 40, -4, 112), (1, 90, 10, 114)];
        assert_eq!(restored(&reports), [(10, 104), (30, 114), (30, 116), (40, 112)]);
    }

    #[test]
    fn a_choice_that_leads_nowhere_is_made_anew() {
        // From 100 both threads go on; beginning with the earlier stamp ends at 105.
        let reports = [(1, 10, 5, 105), (0, 20, 3, 103), (0, 21, -3, 100), (1, 30, 2, 107)];
        let totals: Vec<u64> = restored(&reports).into_iter().map(|(_, total)| total).collect();
        assert_eq!(totals, [103, 100, 105, 107]);
    }

    #[test]
    fn a_missing_report_is_a_gap_and_no_more() {
        let reports = [(0, 10, 4, 104), (1, 20, 4, 208), (0, 30, 4, 212), (1, 40, 4, 216)];
        assert_eq!(restored(&reports), [(10, 104), (20, 208), (30, 212), (40, 216)]);
    }
}
