//! Tracks and what lies on them: names, nesting, steps, order, the session's own marks.

use super::device::{is_runtime, is_work};
use super::event::{Event, is_number};
use super::head::Head;
use super::{Checker, SLACK, Severity, Slice, Spot, Track};
use crate::texts::Texts;
use std::collections::{BTreeSet, HashMap};

/// The beginning or the end of a slice that is told in two halves.
pub(super) struct Half {
    spot: Spot,
    name: u32,
    track: Track,
    time: f64,
    begins: bool,
}

impl Half {
    pub(super) fn new(event: &Event<'_>, texts: &mut Texts) -> Half {
        let name = texts.number(event.name);
        Half { spot: event.spot, name, track: event.track, time: event.time, begins: event.phase == "B" }
    }
}

impl Checker {
    /// Every process and thread with slices has a name.
    pub(super) fn covered(&mut self) {
        let tracks: BTreeSet<Track> =
            self.real().map(|slice| slice.track).filter(|&(pid, _)| is_number(pid)).collect();
        let processes: BTreeSet<_> = tracks.iter().map(|&(pid, _)| pid).collect();
        for pid in processes.into_iter().filter(|pid| !self.processes.contains(pid)) {
            self.report.error("meta.process_name", || format!("pid {pid} has no process_name"));
        }
        for (pid, tid) in
            tracks.into_iter().filter(|track| is_number(track.1) && !self.threads.contains(track))
        {
            self.report.warning("meta.thread_name", || format!("pid {pid} tid {tid} has no thread_name"));
        }
    }

    /// Slices of a track lie in each other or apart.
    pub(super) fn nesting(&mut self) {
        let mut found = Vec::new();
        for ((pid, tid), mut slices) in self.by_track() {
            slices.sort_by(|a, b| a.start.total_cmp(&b.start).then(b.duration.total_cmp(&a.duration)));
            let mut open: Vec<&Slice> = Vec::new();
            for slice in slices {
                while open.pop_if(|top| slice.start >= top.end() - SLACK).is_some() {}
                match open.last() {
                    Some(outer) if slice.end() > outer.end() + SLACK => {
                        let (severity, rule) = self.crossing(slice, outer);
                        let [inner, outer] = [slice, outer]
                            .map(|slice| format!("{} ({})", self.place(slice), self.category(slice)));
                        let place =
                            format!("pid {pid} tid {tid}: {inner} and {outer} overlap without nesting");
                        found.push((severity, rule, place));
                    }
                    // One that crosses is left out, as Perfetto does.
                    _ => open.push(slice),
                }
            }
        }
        for (severity, rule, place) in found {
            self.report.add(severity, rule, || place);
        }
    }

    fn crossing(&self, a: &Slice, b: &Slice) -> (Severity, &'static str) {
        let categories = [self.category(a), self.category(b)];
        let is_host = |name: &str| ["cpu_op", "user_annotation"].contains(&name) || is_runtime(name);
        let is_device =
            |name: &str| is_work(name) || ["gpu_user_annotation", "cuda_sync", "cuda_event"].contains(&name);
        let collects = [a, b].iter().any(|slice| self.name(slice) == "Python GC");
        if categories.contains(&"python_function")
            && (collects || categories.iter().any(|name| is_host(name)))
        {
            (Severity::Warning, "nesting.python")
        } else if categories.iter().all(|name| is_device(name)) {
            (Severity::Warning, "nesting.device")
        } else {
            (Severity::Error, "nesting")
        }
    }

    /// Slices in two halves have both.
    pub(super) fn pairs(&mut self) {
        self.pairs.sort_by(|a, b| a.time.total_cmp(&b.time));
        let mut open: HashMap<Track, Vec<u32>> = HashMap::new();
        for half in &self.pairs {
            let names = open.entry(half.track).or_default();
            if half.begins {
                names.push(half.name);
                continue;
            }
            let name = self.texts.get(half.name);
            match names.pop() {
                None => self.report.error("be.match", || format!("{}: E without B", half.spot)),
                Some(begun) if !name.is_empty() && begun != half.name => {
                    let begun = self.texts.get(begun);
                    self.report.error("be.match", || format!("{}: E {name:?} closes B {begun:?}", half.spot));
                }
                Some(_) => {}
            }
        }
        for (track, names) in open.into_iter().filter(|(_, names)| !names.is_empty()) {
            self.report.error("be.match", || format!("{} B are never closed on {track:?}", names.len()));
        }
    }

    /// What is there was asked for.
    pub(super) fn flags(&mut self, head: &Head) {
        if !head.is_object {
            return;
        }
        let found = [
            ("flag.record_shapes", self.has_shapes && !head.has_arguments),
            ("flag.profile_memory", !self.reports.is_empty() && !head.has_memory),
            ("flag.with_stack", self.has_frames && !head.has_stack),
        ];
        for (rule, _) in found.into_iter().filter(|(_, broken)| *broken) {
            self.report.warning(rule, || "such events are there, and the flag is not set".to_owned());
        }
    }

    /// Steps come one after the other, by rising numbers.
    pub(super) fn steps(&mut self) {
        let number = |slice: &Slice| -> Option<u64> {
            let number = self.name(slice).strip_prefix("ProfilerStep#")?;
            if number.bytes().all(|byte| byte.is_ascii_digit()) { number.parse().ok() } else { None }
        };
        let mut steps: Vec<(u64, f64, f64, Spot)> = self
            .slices
            .iter()
            .filter(|slice| self.category(slice) == "user_annotation")
            .filter_map(|slice| Some((number(slice)?, slice.start, slice.end(), slice.spot)))
            .collect();
        steps.sort_by(|a, b| a.1.total_cmp(&b.1));
        for pair in steps.windows(2) {
            let ((first, _, end, _), (second, start, _, spot)) = (pair[0], pair[1]);
            if second <= first {
                self.report.error("steps.order", || format!("{spot}: step {second} follows step {first}"));
            }
            if start < end - SLACK {
                self.report.error("steps.overlap", || format!("{spot}: steps {first} and {second} overlap"));
            }
        }
    }

    /// The profiler's span covers the calls, and the mark of the end is at the end.
    pub(super) fn marks(&mut self) {
        let spans: Vec<&Slice> = self.slices.iter().filter(|slice| self.category(slice) == "Trace").collect();
        let own = spans.iter().find(|slice| self.name(slice).starts_with("PyTorch Profiler"));
        let own = own.map(|span| (span.start, spans.iter().map(|span| span.end()).fold(0.0, f64::max)));
        let calls = self.slices.iter().filter(|s| ["cpu_op", "user_annotation"].contains(&self.category(s)));
        let range = calls.fold((f64::INFINITY, 0.0), |(first, last): (f64, f64), call| {
            (first.min(call.start), last.max(call.end()))
        });
        let latest = self.real().map(|slice| slice.start).max_by(f64::total_cmp);
        match own {
            None => self.report.warning("span.trace", || "no span PyTorch Profiler (0)".to_owned()),
            Some((start, end)) if latest.is_some() && (range.0 < start - 1.0 || range.1 > end + 1000.0) => {
                self.report.warning("span.covers", || "the span does not cover the calls".to_owned());
            }
            Some(_) => {}
        }
        match (self.window_end, latest) {
            (None, _) => self.report.warning("span.window-end", || "no Record Window End".to_owned()),
            (Some(end), Some(latest)) if end < latest => {
                self.report.error("span.window-end", || "Record Window End lies before an event".to_owned());
            }
            _ => {}
        }
    }

    /// Events of one track and category are in the file by time.
    pub(super) fn order(&mut self) {
        let mut last: HashMap<(Track, u32), f64> = HashMap::new();
        let mut late = Vec::new();
        for slice in self.real() {
            let before = last.insert((slice.track, slice.category), slice.start);
            if before.is_some_and(|before| slice.start < before - SLACK) {
                late.push(self.place(slice));
            }
        }
        for place in late {
            self.report.warning("order.ts", || format!("{place} stands after a later one of its track"));
        }
    }
}
