//! Checks a chrome trace against what its readers expect: `cresset trace check`.
//!
//! The rules are those of torch's own traces (errors) and of what Perfetto, Holistic Trace
//! Analysis, TensorBoard and speedscope need beyond them (warnings). Each has a name.

mod device;
mod event;
mod flows;
mod head;
mod host;
mod json;
mod memory;
mod tracks;

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::Read;
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
    let path = path.as_ref();
    let bytes = read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut report = Report::default();
    let text = String::from_utf8_lossy(&bytes);
    if let Cow::Owned(_) = text {
        report.error("json.utf8", || "the file is not UTF-8".to_owned());
    }
    Checker::new(report).check(&text)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain)?;
    Ok(plain)
}

/// Slices are rounded to a nanosecond; times are microseconds, and one unit may be off.
const SLACK: f64 = 0.0011;

/// A process or thread: a number, or one that stands for a text.
type Id = i128;

/// Where a slice is shown.
type Track = (Id, Id);

/// A slice, as far as later rules need it.
struct Slice {
    name: u32,
    category: u32,
    track: Track,
    start: f64,
    duration: f64,
    sequence: Option<i128>,
    is_backward: bool,
    correlation: Option<i128>,
}

impl Slice {
    fn end(&self) -> f64 {
        self.start + self.duration
    }
}

/// Each text once.
#[derive(Default)]
struct Texts {
    all: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.all.push(text.into());
        let number = self.all.len() as u32 - 1;
        self.numbers.insert(text.into(), number);
        number
    }

    fn get(&self, number: u32) -> &str {
        &self.all[number as usize]
    }
}

/// What is kept of the events, one after the other.
struct Checker {
    report: Report,
    texts: Texts,
    slices: Vec<Slice>,
    flows: Vec<flows::Flow>,
    reports: Vec<memory::Report>,
    frames: Vec<host::Frame>,
    device: device::Seen,
    pairs: Vec<tracks::Half>,
    processes: HashSet<Id>,
    threads: HashSet<Track>,
    external: HashMap<i128, u32>,
    indices: HashSet<i128>,
    window_end: Option<f64>,
    has_shapes: bool,
    has_frames: bool,
}

impl Checker {
    fn new(report: Report) -> Checker {
        Checker {
            report,
            texts: Texts::default(),
            slices: Vec::new(),
            flows: Vec::new(),
            reports: Vec::new(),
            frames: Vec::new(),
            device: device::Seen::default(),
            pairs: Vec::new(),
            processes: HashSet::new(),
            threads: HashSet::new(),
            external: HashMap::new(),
            indices: HashSet::new(),
            window_end: None,
            has_shapes: false,
            has_frames: false,
        }
    }

    fn check(mut self, text: &str) -> Result<Report> {
        let mut place = 0;
        let document = json::document(text, |event| {
            self.event(place, &event);
            place += 1;
        });
        let head = match document {
            Ok(document) => {
                for key in document.repeated {
                    let place = || format!("key {key:?} occurs twice in one object");
                    self.report.error("json.duplicate-key", place);
                }
                self.head(text, &document.head)
            }
            Err(fault) => {
                self.report.error("json.parse", || fault);
                return Ok(self.report);
            }
        };
        if self.report.events == 0 {
            self.report.error("events.none", || "no usable event".to_owned());
            return Ok(self.report);
        }
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
        Ok(self.report)
    }

    fn name(&self, slice: &Slice) -> &str {
        self.texts.get(slice.name)
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
