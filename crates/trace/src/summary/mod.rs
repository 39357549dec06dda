//! A trace summed up: torch's `key_averages`, of a file.

mod rows;

use crate::error::Result;
use crate::row::Row;
use crate::slices::{Keep, Kind, Slices, Track};
use crate::table::Table;
use crate::tree::Tree;
use std::fmt;
use std::path::Path;

/// What besides the name keeps rows apart, and whose rows there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// One row per name and shapes of the arguments.
    pub by_input_shape: bool,
    /// One row per name and innermost so many frames of the recorded stack.
    pub by_stack: usize,
    /// Calls of Python and of modules have rows, too.
    pub include_python: bool,
}

/// A step of the program, as the profiler named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// When it began, and how long it took, in nanoseconds.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
}

/// A track, and what it has on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackSummary {
    /// What it is called: its name if it has one, else by process and thread.
    pub name: String,
    /// How many slices.
    pub slices: u64,
    /// Nanoseconds during which any slice ran.
    pub busy: i64,
    /// Whether it is a device's.
    pub on_device: bool,
}

/// A trace, summed up.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-doc-summary-{}.json", std::process::id()));
/// # let text = r#"{"traceEvents": [
/// #   {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5.000, "dur": 2.500}]}"#;
/// # std::fs::write(&path, text)?;
/// use cresset_trace::{Grouping, Summary};
/// let summary = Summary::read(&path, Grouping::default())?;
/// assert_eq!(summary.rows[0].key, "aten::add");
/// print!("{}", summary.table().sort_by("self_cpu_time_total")?);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Totals by name, in the order that names first occur.
    pub rows: Vec<Row>,
    /// The steps, by when they begin.
    pub steps: Vec<Step>,
    /// The threads and streams that have slices, in the order of the file.
    pub tracks: Vec<TrackSummary>,
    /// When the first slice begins and the last ends, in nanoseconds.
    pub span: (i64, i64),
    /// Events of all kinds.
    pub events: u64,
    /// Slices that could not be used, because they have no name or no times.
    pub left_out: u64,
    /// What the device is called, if there is one.
    pub device: Option<String>,
    /// Whether memory was recorded.
    pub has_memory: bool,
    /// Whether floating-point operations were counted.
    pub has_flops: bool,
}

impl Summary {
    /// Reads a trace, compressed or not, and sums it up.
    ///
    /// # Errors
    /// The file cannot be read, or it is no trace; the error says where it breaks.
    pub fn read(path: impl AsRef<Path>, grouping: Grouping) -> Result<Summary> {
        let keep = Keep { shapes: grouping.by_input_shape, stacks: grouping.by_stack > 0, ..Keep::default() };
        Ok(Summary::of(&Slices::read(path, keep)?, grouping))
    }

    /// Sums up what was read.
    pub fn of(trace: &Slices, grouping: Grouping) -> Summary {
        let tree = Tree::of(trace);
        let real = || trace.slices.iter().filter(|slice| slice.kind != Kind::Span);
        let start = real().map(|slice| slice.start).min().unwrap_or(0);
        let end = real().map(|slice| slice.end()).max().unwrap_or(0);
        Summary {
            rows: rows::rows(trace, &tree, grouping),
            steps: steps(trace),
            tracks: tracks(trace, &tree),
            span: (start, end),
            events: trace.events,
            left_out: trace.left_out,
            device: trace.device.clone(),
            has_memory: trace.has_memory,
            has_flops: !trace.flops.is_empty(),
        }
    }

    /// The rows as a table.
    pub fn table(&self) -> Table<'_> {
        Table::new(&self.rows)
            .profile_memory(self.has_memory)
            .with_flops(self.has_flops)
            .device(self.device.as_deref())
    }

    /// What stands above the table: events, time span, steps, threads.
    pub fn heading(&self) -> impl fmt::Display {
        Heading(self)
    }
}

fn steps(trace: &Slices) -> Vec<Step> {
    let number = |name: &str| name.strip_prefix("ProfilerStep#").and_then(|number| number.parse().ok());
    let annotations = trace.slices.iter().filter(|slice| slice.kind == Kind::Annotation);
    let mut steps: Vec<Step> = annotations
        .filter_map(|slice| {
            let number = number(trace.name(slice))?;
            Some(Step { number, start: slice.start, duration: slice.duration })
        })
        .collect();
    steps.sort_by_key(|step| step.start);
    steps
}

fn tracks(trace: &Slices, tree: &Tree) -> Vec<TrackSummary> {
    let summary = |track: &Track| TrackSummary { name: track.label(), slices: 0, busy: 0, on_device: false };
    let mut tracks: Vec<TrackSummary> = trace.tracks.iter().map(summary).collect();
    let mut until = vec![i64::MIN; tracks.len()];
    for &i in &tree.order {
        let slice = &trace.slices[i as usize];
        let (track, until) = (&mut tracks[slice.track as usize], &mut until[slice.track as usize]);
        track.slices += 1;
        track.on_device |= slice.kind.is_on_device();
        if slice.end() > *until {
            track.busy = track.busy.saturating_add(slice.end().saturating_sub(slice.start.max(*until)));
            *until = slice.end();
        }
    }
    tracks.retain(|track| track.slices > 0);
    tracks
}

struct Heading<'a>(&'a Summary);

/// Tracks and steps that are told one by one.
const TOLD: usize = 8;

impl fmt::Display for Heading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Heading(summary) = self;
        let time = |nanos: i64| crate::table::time(nanos.max(0) as u64);
        write!(f, "{} events over {}", summary.events, time(summary.span.1.saturating_sub(summary.span.0)))?;
        if summary.left_out > 0 {
            write!(f, "; {} without name or times are left out", summary.left_out)?;
        }
        writeln!(f)?;
        if let (Some(first), Some(last)) = (summary.steps.first(), summary.steps.last()) {
            let mut durations: Vec<i64> = summary.steps.iter().map(|step| step.duration).collect();
            durations.sort_unstable();
            let [least, middle, most] = [0, durations.len() / 2, durations.len() - 1].map(|i| durations[i]);
            let count = durations.len();
            writeln!(
                f,
                "{count} steps, #{} to #{}: median {}, {} to {}",
                first.number,
                last.number,
                time(middle),
                time(least),
                time(most)
            )?;
        }
        for track in summary.tracks.iter().take(TOLD) {
            let kind = if track.on_device { "stream" } else { "thread" };
            writeln!(f, "{kind} {:?}: {} slices, busy {}", track.name, track.slices, time(track.busy))?;
        }
        match summary.tracks.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}
