//! One event: its shape, and what is kept of it for the rules about several.

use super::{Checker, Id, Slice, Spot, Track, device, flows, host, memory, short, tracks};
use crate::read::json::Json;

/// What events can be, beside calls into a device's library.
const CATEGORIES: [&str; 24] = [
    "cpu_op",
    "user_annotation",
    "python_function",
    "cpu_instant_event",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "gpu_user_annotation",
    "external_correlation",
    "overhead",
    "mtia_ccp_events",
    "mtia_insight",
    "cuda_sync",
    "cuda_event",
    "mtia_counters",
    "glow_runtime",
    "cuda_profiler_range",
    "collective_comm",
    "xpu_scope_profiler",
    "xpu_sync",
    "hardware_counters",
    "Trace",
    "fwdbwd",
    "ac2g",
];

/// Metadata by name: its key, and whether that is a number.
const METADATA: [(&str, &str, bool); 5] = [
    ("process_name", "name", false),
    ("process_labels", "labels", false),
    ("process_sort_index", "sort_index", true),
    ("thread_name", "name", false),
    ("thread_sort_index", "sort_index", true),
];

/// Microseconds beyond which a double no longer holds whole nanoseconds.
const LATEST: f64 = (1u64 << 53) as f64 / 1000.0;

/// An event whose shape is right.
pub(super) struct Event<'e> {
    pub(super) spot: Spot,
    pub(super) name: &'e str,
    pub(super) phase: &'e str,
    pub(super) category: Option<&'e str>,
    pub(super) track: Track,
    pub(super) time: f64,
    pub(super) duration: f64,
    pub(super) json: &'e Json<'e>,
}

impl<'e> Event<'e> {
    pub(super) fn arg(&self, key: &str) -> Option<&'e Json<'e>> {
        self.json.get("args")?.get(key)
    }

    pub(super) fn int(&self, key: &str) -> Option<i128> {
        self.arg(key).and_then(Json::int)
    }

    /// A number that is not negative and not larger than any real one.
    pub(super) fn natural(&self, key: &str) -> Option<i64> {
        self.int(key).and_then(|number| i64::try_from(number).ok()).filter(|&number| number >= 0)
    }

    pub(super) fn place(&self) -> String {
        format!("{} {:?} ts={}", self.spot, short(self.name), self.time)
    }
}

impl Checker {
    /// Takes one event in.
    pub(super) fn event(&mut self, spot: Spot, json: &Json<'_>) {
        let Some(event) = self.shape(spot, json) else { return };
        self.report.events += 1;
        self.index(&event);
        if event.category == Some("cpu_instant_event") && event.phase != "i" {
            let place = || format!("{}: cpu_instant_event must be an instant event", event.place());
            self.report.error("memory.phase", place);
        }
        match event.phase {
            "X" => self.slice(&event),
            "M" if event.name == "process_name" => drop(self.processes.insert(event.track.0)),
            "M" if event.name == "thread_name" => drop(self.threads.insert(event.track)),
            "i" if event.name == "[memory]" => {
                if let Some(report) = memory::Report::new(&event, &mut self.report) {
                    self.reports.push(report);
                }
            }
            "i" if event.name == "Record Window End" => {
                self.window_end.get_or_insert(event.time);
            }
            "s" | "f" | "t" => {
                if let Some(flow) = flows::Flow::new(&event, &mut self.report, &mut self.texts) {
                    self.flows.push(flow);
                }
            }
            "B" | "E" => self.pairs.push(tracks::Half::new(&event, &mut self.texts)),
            _ => {}
        }
    }

    fn index(&mut self, event: &Event<'_>) {
        let Some(value) = event.arg("Ev Idx").filter(|value| **value != Json::Null) else { return };
        match event.natural("Ev Idx") {
            None => self.report.error("ev-idx", || format!("{}: Ev Idx {value:?}", event.place())),
            Some(index) => self.indices.push((index, event.spot)),
        }
    }

    /// Numbers that must be those of one event only.
    pub(super) fn unique(&mut self) {
        self.indices.sort_by_key(|&(index, spot)| (index, spot.event));
        for pair in self.indices.windows(2) {
            let ((index, first), (same, second)) = (pair[0], pair[1]);
            if index == same {
                let place = || format!("{second}: Ev Idx {index} is that of {first}");
                self.report.error("ev-idx.unique", place);
            }
        }
        self.external.sort_unstable();
        for pair in self.external.windows(2) {
            let ((id, first), (same, second)) = (pair[0], pair[1]);
            if id == same {
                let [first, second] = [first, second].map(|slice| self.place(&self.slices[slice as usize]));
                let place = || format!("{second}: External id {id} is that of {first}");
                self.report.error("op.external-id.unique", place);
            }
        }
    }

    fn slice(&mut self, event: &Event<'_>) {
        let Some(category) = event.category else { return };
        match category {
            "cpu_op" | "user_annotation" => host::call(event, self),
            "python_function" => {
                self.has_frames |= event.name != "Python GC";
                if let Some(frame) = host::Frame::new(event, self) {
                    self.frames.push(frame);
                }
            }
            _ if device::is_work(category) => self.device.work(event, &mut self.report, &mut self.texts),
            _ if device::is_runtime(category) => self.device.runtime(event, &mut self.report),
            _ => {}
        }
        let slice = Slice {
            name: self.texts.number(event.name),
            category: self.texts.number(category),
            track: event.track,
            start: event.time,
            duration: event.duration,
            sequence: event.natural("Sequence number").unwrap_or(-1),
            is_backward: event.int("Fwd thread id").is_some_and(|thread| thread != 0),
            correlation: event.natural("correlation").unwrap_or(-1),
            spot: event.spot,
        };
        self.slices.push(slice);
    }

    fn shape<'e>(&mut self, spot: Spot, json: &'e Json<'e>) -> Option<Event<'e>> {
        let report = &mut self.report;
        let Json::Object(_) = json else {
            report.error("event.object", || format!("{spot} is no object"));
            return None;
        };
        let Some(name) = json.get("name").and_then(Json::text) else {
            report.error("event.name", || format!("{spot} has no name"));
            return None;
        };
        let what = || format!("{spot} {:?}", short(name));
        let phase = json.get("ph").and_then(Json::text).unwrap_or_default();
        if !["X", "M", "i", "s", "f", "t", "C", "B", "E"].contains(&phase) {
            report.error("event.ph", || format!("{}: unexpected phase {:?}", what(), json.get("ph")));
            return None;
        }
        if name.chars().any(|c| c < ' ') {
            report.error("event.name.control", || format!("{}: control character in the name", what()));
        }
        let mut time = 0.0;
        if json.get("ts").is_some() || phase != "M" {
            let Some(given) = json.get("ts").and_then(Json::number) else {
                report.error("event.ts", || {
                    format!("{}: ts must be a number, got {:?}", what(), json.get("ts"))
                });
                return None;
            };
            time = given;
            if time < 0.0 {
                report.error("event.ts", || format!("{}: negative ts", what()));
            }
            if time > LATEST {
                report.error("event.ts.precision", || {
                    format!("{}: too large for nanoseconds in a double", what())
                });
            }
        }
        let track = self.track(json, phase, &what)?;
        let report = &mut self.report;
        if json.get("args").is_some_and(|args| !matches!(args, Json::Object(_))) {
            report.error("event.args", || format!("{}: args must be an object", what()));
            return None;
        }
        let category = json.get("cat").and_then(Json::text);
        let mut duration = 0.0;
        if phase == "X" {
            let given = json.get("dur").and_then(Json::number).filter(|&given| given >= 0.0);
            let Some(given) = given else {
                report.error("event.dur", || {
                    format!("{}: dur must be a number from 0 on, got {:?}", what(), json.get("dur"))
                });
                return None;
            };
            duration = given;
            if category.is_none() {
                report.error("event.cat", || format!("{}: a slice without cat", what()));
                return None;
            }
        }
        if let Some(category) =
            category.filter(|name| !CATEGORIES.contains(name) && !device::is_runtime(name))
        {
            report.warning("event.cat.unknown", || {
                format!("{}: category {category:?} is none of kineto's", what())
            });
        }
        let event = Event { spot, name, phase, category, track, time, duration, json };
        self.kind(&event, &what);
        Some(event)
    }

    /// Rules of instants, metadata and counters.
    fn kind(&mut self, event: &Event<'_>, what: &dyn Fn() -> String) {
        let report = &mut self.report;
        let args = event.json.get("args");
        match event.phase {
            "i" => {
                let scope = event.json.get("s").and_then(Json::text).unwrap_or_default();
                if !["g", "p", "t"].contains(&scope) {
                    report.error("event.instant.scope", || {
                        format!("{}: an instant needs s: g, p or t", what())
                    });
                }
            }
            "M" => match METADATA.iter().find(|(name, ..)| *name == event.name) {
                None => report.warning("meta.unknown", what),
                Some(&(_, key, is_number)) => {
                    let value = event.arg(key);
                    let fits = if is_number {
                        value.and_then(Json::int).is_some()
                    } else {
                        value.and_then(Json::text).is_some()
                    };
                    if !fits {
                        report.error("meta.args", || format!("{}: args.{key} is {value:?}", what()));
                    }
                }
            },
            "C" => {
                let fits = matches!(args, Some(Json::Object(pairs))
                    if !pairs.is_empty() && pairs.iter().all(|(_, value)| value.number().is_some()));
                if !fits {
                    report.error("event.counter", || format!("{}: counters must be numbers", what()));
                }
            }
            _ => {}
        }
    }

    /// Process and thread; texts are allowed where torch has them, and told of.
    fn track(&mut self, json: &Json<'_>, phase: &str, what: &dyn Fn() -> String) -> Option<Track> {
        let category = json.get("cat").and_then(Json::text);
        let torch_does =
            phase == "M" || category.is_none_or(|name| ["Trace", "hardware_counters"].contains(&name));
        let rules = [("pid", "event.pid", "event.pid.string"), ("tid", "event.tid", "event.tid.string")];
        let mut track = [0, 0];
        for (place, (key, rule, text_rule)) in track.iter_mut().zip(rules) {
            let given = json.get(key);
            let whole = given.and_then(Json::int).and_then(|id| Id::try_from(id).ok());
            if let Some(id) = whole.filter(|&id| is_number(id)) {
                *place = id;
                continue;
            }
            *place = match given {
                Some(Json::Text(text)) if torch_does => {
                    self.report.warning(text_rule, || format!("{}: {key} is {text:?}", what()));
                    self.stand_in(text)
                }
                Some(Json::Text(text)) => {
                    self.report.error(rule, || format!("{}: {key} must be an integer, got {text:?}", what()));
                    self.stand_in(text)
                }
                other => {
                    self.report
                        .error(rule, || format!("{}: {key} must be an integer, got {other:?}", what()));
                    return None;
                }
            };
        }
        Some((track[0], track[1]))
    }

    fn stand_in(&mut self, text: &str) -> Id {
        Id::MIN + Id::from(self.texts.number(text))
    }
}

/// Whether an id is a number in the file.
pub(super) fn is_number(id: Id) -> bool {
    id > Id::MIN + (1 << 40)
}
