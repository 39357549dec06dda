//! Checks a chrome trace against what its readers expect: `cresset trace check`.
//!
//! The rules are those of torch's own traces (errors) and of what Perfetto, Holistic Trace
//! Analysis, TensorBoard and speedscope need beyond them (warnings). Each has a name.

mod device;
mod event;
mod flows;
mod head;
mod host;
mod memory;
mod tracks;

use crate::error::{Error, Result};
use crate::read::json::{self, Json};
use crate::read::{Part, Scanner, Source, Stop, Visit, walk};
use crate::texts::Texts;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Some reader refuses the trace or shows it wrongly.
    Error,
    /// Torch's own traces do it too, but some reader loses something.
    Warning,
}

/// A rule that a trace breaks.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How much it weighs.
    pub severity: Severity,
    /// The rule's name, e.g. `event.dur`.
    pub rule: &'static str,
    /// How often it is broken.
    pub count: usize,
    /// The first few places.
    pub examples: Vec<String>,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
    events: usize,
}

/// Places that are told per rule.
const EXAMPLES: usize = 2;

impl Report {
    fn error(&mut self, rule: &'static str, place: impl FnOnce() -> String) {
        self.add(Severity::Error, rule, place);
    }

    fn warning(&mut self, rule: &'static str, place: impl FnOnce() -> String) {
        self.add(Severity::Warning, rule, place);
    }

    fn add(&mut self, severity: Severity, rule: &'static str, place: impl FnOnce() -> String) {
        let known = self.findings.iter().position(|found| (found.severity, found.rule) == (severity, rule));
        let at = known.unwrap_or_else(|| {
            self.findings.push(Finding { severity, rule, count: 0, examples: Vec::new() });
            self.findings.len() - 1
        });
        let finding = &mut self.findings[at];
        finding.count += 1;
        if finding.examples.len() < EXAMPLES {
            finding.examples.push(place());
        }
    }

    /// The rules that are broken, in the order they were found.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many events could be read.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Whether nothing is wrong; if `strict`, warnings count.
    pub fn passes(&self, strict: bool) -> bool {
        self.findings.iter().all(|found| !strict && found.severity == Severity::Warning)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |severity| -> usize {
            self.findings.iter().filter(|found| found.severity == severity).map(|found| found.count).sum()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        write!(f, "{} events, {errors} errors, {warnings} warnings", self.events)?;
        for found in &self.findings {
            let severity = if found.severity == Severity::Error { "error" } else { "warning" };
            write!(f, "\n  {severity:<8} {:<28} x{}", found.rule, found.count)?;
            for example in &found.examples {
                write!(f, "\n           {example}")?;
            }
        }
        Ok(())
    }
}

/// Checks the trace in `path`, compressed or not.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-doc-{}.json", std::process::id()));
/// std::fs::write(&path, r#"{"traceEvents": [{"ph": "X", "name": "without times"}]}"#)?;
/// let report = cresset_trace::check_trace(&path)?;
/// assert!(report.findings().iter().any(|found| found.rule == "event.ts"));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be read.
pub fn check_trace(path: impl AsRef<Path>) -> Result<Report> {
    let mut source = Source::open(path.as_ref())?;
    let mut checker = Checker::default();
    match walk(&mut source, &mut checker) {
        Ok(shape) => checker.finish(shape.is_object, shape.has_events),
        Err(Error::Format { place, message, .. }) => {
            checker.report.error("json.parse", || format!("{place}: {message}"));
        }
        Err(Error::Utf8 { place, .. }) => {
            checker.report.error("json.utf8", || format!("{place}: not UTF-8"));
        }
        Err(other) => return Err(other),
    }
    Ok(checker.report)
}

/// Slices are rounded to a nanosecond; times are microseconds, and one unit may be off.
const SLACK: f64 = 0.0011;

/// A process or thread: a number, or one that stands for a text.
type Id = i64;

/// Where a slice is shown.
type Track = (Id, Id);

/// Which event: its number, and the bytes before it.
#[derive(Clone, Copy)]
struct Spot {
    event: u32,
    byte: u64,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} at byte {}", self.event, self.byte)
    }
}

/// A slice, as far as later rules need it. There are millions: -1 is no number at all.
struct Slice {
    start: f64,
    duration: f64,
    sequence: i64,
    correlation: i64,
    spot: Spot,
    name: u32,
    category: u32,
    track: Track,
    is_backward: bool,
}

impl Slice {
    fn end(&self) -> f64 {
        self.start + self.duration
    }

    fn sequence(&self) -> Option<i64> {
        (self.sequence >= 0).then_some(self.sequence)
    }

    fn correlation(&self) -> Option<i64> {
        (self.correlation >= 0).then_some(self.correlation)
    }
}

/// What is kept of the events, one after the other.
#[derive(Default)]
struct Checker {
    report: Report,
    texts: Texts,
    head: Vec<(Cow<'static, str>, Json<'static>)>,
    shows_rank: bool,
    slices: Vec<Slice>,
    flows: Vec<flows::Flow>,
    reports: Vec<memory::Report>,
    frames: Vec<host::Frame>,
    device: device::Seen,
    pairs: Vec<tracks::Half>,
    processes: HashSet<Id>,
    threads: HashSet<Track>,
    /// The External ids of calls, and which slices they are of.
    external: Vec<(i64, u32)>,
    indices: Vec<(i64, Spot)>,
    window_end: Option<f64>,
    has_shapes: bool,
    has_frames: bool,
}

impl Visit for Checker {
    fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop> {
        let start = scanner.position();
        let (value, repeated) = json::value(scanner)?;
        for key in repeated {
            let place = || format!("{part}: key {key:?} occurs twice in one object");
            self.report.error("json.duplicate-key", place);
        }
        match part {
            Part::Event(event, byte) => {
                let spot = Spot { event: u32::try_from(event).unwrap_or(u32::MAX), byte };
                self.event(spot, &value);
            }
            Part::Head(key) => {
                if self.head.iter().any(|(known, _)| known == key) {
                    let place = || format!("key {key:?} occurs twice in one object");
                    self.report.error("json.duplicate-key", place);
                }
                self.shows_rank |= head::shows_rank(scanner.since(start));
                self.head.push((Cow::Owned(key.to_owned()), value.into_owned()));
            }
        }
        Ok(())
    }
}

impl Checker {
    /// What can be said when all events are known.
    fn finish(&mut self, is_object: bool, has_events: bool) {
        let head = self.head(is_object, has_events);
        if self.report.events == 0 {
            return self.report.error("events.none", || "no usable event".to_owned());
        }
        self.unique();
        self.covered();
        self.memory();
        self.frames();
        self.device();
        self.nesting();
        self.flows();
        self.pairs();
        self.flags(&head);
        self.steps();
        self.marks();
        self.order();
    }

    fn name(&self, slice: &Slice) -> &str {
        self.texts.get(slice.name)
    }

    /// Which slice, for messages.
    fn place(&self, slice: &Slice) -> String {
        format!("{} {:?}", slice.spot, short(self.name(slice)))
    }

    fn category(&self, slice: &Slice) -> &str {
        self.texts.get(slice.category)
    }

    /// Slices of the program and its devices: all but the profiler's own span.
    fn real(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter().filter(|slice| self.category(slice) != "Trace")
    }

    /// Slices by track, each track's as they came.
    fn by_track(&self) -> BTreeMap<Track, Vec<&Slice>> {
        let mut tracks: BTreeMap<Track, Vec<&Slice>> = BTreeMap::new();
        for slice in self.real() {
            tracks.entry(slice.track).or_default().push(slice);
        }
        tracks
    }
}

/// At most so many letters of a name.
fn short(name: &str) -> String {
    name.chars().take(60).collect()
}
