//! Work on devices, and the calls on the host that launched it.

use super::event::Event;
use super::{Checker, Report, Spot};
use crate::read::json::Json;
use crate::texts::Texts;
use std::collections::HashMap;

pub(super) fn is_work(category: &str) -> bool {
    ["kernel", "gpu_memcpy", "gpu_memset"].contains(&category)
}

pub(super) fn is_runtime(category: &str) -> bool {
    const RUNTIME: [&str; 8] = [
        "cuda_runtime",
        "cuda_driver",
        "xpu_runtime",
        "xpu_driver",
        "mtia_runtime",
        "privateuse1_runtime",
        "privateuse1_driver",
        "hpu_op",
    ];
    RUNTIME.contains(&category)
}

/// What there was of both.
#[derive(Default)]
pub(super) struct Seen {
    work: Vec<Work>,
    /// By correlation, when and in which category each launch was.
    launches: HashMap<i128, Vec<(f64, String)>>,
}

struct Work {
    spot: Spot,
    name: u32,
    time: f64,
    external: Option<i64>,
    correlation: Option<i128>,
}

impl Seen {
    pub(super) fn runtime(&mut self, event: &Event<'_>, report: &mut Report) {
        match event.int("correlation") {
            None => report.error("runtime.correlation", || format!("{}: correlation missing", event.place())),
            Some(correlation) => {
                let category = event.category.unwrap_or_default().to_owned();
                self.launches.entry(correlation).or_default().push((event.time, category));
            }
        }
        if event.arg("stream").is_some() {
            let place = || format!("{}: a call on the host has no args.stream", event.place());
            report.error("runtime.stream", place);
        }
    }

    pub(super) fn work(&mut self, event: &Event<'_>, report: &mut Report, texts: &mut Texts) {
        for key in ["device", "stream", "correlation"] {
            if event.int(key).is_none() {
                let place =
                    || format!("{}: args.{key} must be an integer, got {:?}", event.place(), event.arg(key));
                report.error("device.args", place);
            }
        }
        if let Some(device) = event.int("device").filter(|&device| device != event.track.0.into()) {
            report.error("device.pid", || {
                format!("{}: pid {} on device {device}", event.place(), event.track.0)
            });
        }
        if let Some(stream) = event.int("stream") {
            if stream != event.track.1.into() && event.arg("original_stream").is_none() {
                report.error("device.tid", || {
                    format!("{}: tid {} on stream {stream}", event.place(), event.track.1)
                });
            }
            if stream < 0 {
                report.error("device.stream", || format!("{}: negative stream", event.place()));
            } else if stream == 0 {
                report
                    .warning("device.stream0", || format!("{}: stream 0 gets no step in HTA", event.place()));
            }
        }
        if event.category == Some("kernel") {
            shape(event, report)
        } else {
            transfer(event, report)
        }
        self.work.push(Work {
            spot: event.spot,
            name: texts.number(event.name),
            time: event.time,
            external: event.natural("External id"),
            correlation: event.int("correlation"),
        });
    }
}

fn shape(event: &Event<'_>, report: &mut Report) {
    for key in ["grid", "block"] {
        let fits = |value: &Json<'_>| {
            value.list().is_some_and(|list| list.len() == 3 && list.iter().all(|size| size.int().is_some()))
        };
        if event.arg(key).is_some_and(|value| !fits(value)) {
            report.error("device.grid", || format!("{}: {key} must be three integers", event.place()));
        }
    }
}

fn transfer(event: &Event<'_>, report: &mut Report) {
    if event.int("bytes").is_none() {
        report.error("device.bytes", || format!("{}: args.bytes missing", event.place()));
    }
    let bandwidth = event.arg("memory bandwidth (GB/s)").and_then(Json::number);
    if bandwidth.is_none() && event.duration > 0.0 {
        report.warning("device.bandwidth", || format!("{}: no memory bandwidth (GB/s)", event.place()));
    }
    if !is_transfer_name(event.name) {
        let place = || format!("{}: neither Memcpy AtoB (X -> Y) nor Memset (X)", event.place());
        report.warning("device.mem-name", place);
    }
}

/// `Memcpy \w+ \(.+ -> .+\)` or `Memset \(.+\)`.
fn is_transfer_name(name: &str) -> bool {
    let within =
        |text: &str| -> Option<String> { Some(text.strip_prefix('(')?.strip_suffix(')')?.to_owned()) };
    if let Some(rest) = name.strip_prefix("Memset ") {
        return within(rest).is_some_and(|inner| !inner.is_empty());
    }
    let Some((direction, rest)) = name.strip_prefix("Memcpy ").and_then(|rest| rest.split_once(' ')) else {
        return false;
    };
    let is_word = !direction.is_empty() && direction.chars().all(|c| c.is_alphanumeric() || c == '_');
    let arrow = within(rest).and_then(|inner| Some(inner.split_once(" -> ")?.0.len()));
    is_word && arrow.is_some_and(|before| before > 0)
}

impl Checker {
    /// Work comes after its launch, and from a call that exists.
    pub(super) fn device(&mut self) {
        for (correlation, launches) in &self.device.launches {
            let mut categories: Vec<&str> = launches.iter().map(|(_, category)| category.as_str()).collect();
            categories.sort_unstable();
            categories.dedup();
            if categories.len() < launches.len() {
                let place = || format!("correlation {correlation} is that of {} calls", launches.len());
                self.report.error("runtime.correlation.unique", place);
            }
        }
        let is_call = |id| self.external.binary_search_by_key(&id, |&(id, _)| id).is_ok();
        for work in &self.device.work {
            let place =
                |what: &str| format!("{} {:?}: {what}", work.spot, super::short(self.texts.get(work.name)));
            if work.external.is_some_and(|id| !is_call(id)) {
                self.report.warning("device.external-id", || place("External id names no call"));
            }
            let launches = work.correlation.and_then(|correlation| self.device.launches.get(&correlation));
            match launches.and_then(|launches| launches.iter().map(|(time, _)| *time).min_by(f64::total_cmp))
            {
                None => self.report.warning("device.launch", || place("no call has its correlation")),
                Some(launched) if work.time < launched => {
                    self.report.error("device.causality", || place("starts before its launch"));
                }
                Some(_) => {}
            }
        }
    }
}
