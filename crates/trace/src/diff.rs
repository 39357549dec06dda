//! What changed between runs: slower, faster, new, gone; and what is only noise.
//!
//! One run says little about time. With several on each side a change counts when nearly every run
//! of one side is slower than nearly every run of the other; how large it is, is told by medians.

use crate::error::{Error, Result};
use crate::row::Row;
use crate::summary::Summary;
use crate::table::time;
use std::collections::HashMap;
use std::fmt;

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Host time without what was called.
    #[default]
    SelfHost,
    /// Host time, of all that was called too.
    Host,
    /// Device time of the work that was launched by itself.
    SelfDevice,
    /// Device time, of all that was called too.
    Device,
}

impl Metric {
    /// The names of all, as tables can be sorted by them.
    pub const NAMES: [&str; 4] =
        ["self_cpu_time_total", "cpu_time_total", "self_device_time_total", "device_time_total"];

    /// The metric called `asked`.
    ///
    /// # Errors
    /// There is none; the error lists those there are.
    pub fn named(asked: &str) -> Result<Metric> {
        let all = [Metric::SelfHost, Metric::Host, Metric::SelfDevice, Metric::Device];
        let found = Metric::NAMES.iter().position(|name| *name == asked);
        found.map(|i| all[i]).ok_or_else(|| Error::Metric { asked: asked.to_owned() })
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Metric::NAMES[self as usize]
    }

    fn of(self, row: &Row) -> u64 {
        match self {
            Metric::SelfHost => row.self_cpu_time_total,
            Metric::Host => row.cpu_time_total,
            Metric::SelfDevice => row.self_device_time_total,
            Metric::Device => row.device_time_total,
        }
    }
}

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less.
    Faster,
    /// It was not there.
    New,
    /// It is no longer there.
    Gone,
    /// It takes as long, as far as the runs can tell.
    Same,
}

impl Verdict {
    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::New => "new",
            Verdict::Gone => "gone",
            Verdict::Same => "same",
        }
    }
}

/// A figure of several runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Nanoseconds, from the least to the most.
    pub times: Vec<u64>,
    /// How often it was called, from the least to the most.
    pub counts: Vec<u64>,
}

impl Runs {
    /// The middle of all times.
    pub fn time(&self) -> u64 {
        median(&self.times)
    }

    /// The middle of all counts.
    pub fn count(&self) -> u64 {
        median(&self.counts)
    }

    /// How far the runs are apart, as a part of their middle.
    pub fn spread(&self) -> f64 {
        match (self.times.first(), self.times.last(), self.time()) {
            (Some(least), Some(most), middle @ 1..) => (most - least) as f64 / middle as f64,
            _ => 0.0,
        }
    }
}

fn median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// One name on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name.
    pub name: String,
    /// Whether it is work on a device.
    pub on_device: bool,
    /// What happened.
    pub verdict: Verdict,
    /// How it was.
    pub before: Runs,
    /// How it is.
    pub after: Runs,
}

impl Change {
    /// Nanoseconds more than before.
    pub fn difference(&self) -> i64 {
        let nanos = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        nanos(self.after.time()) - nanos(self.before.time())
    }

    /// The same in percent; `None` if there was nothing before.
    pub fn percent(&self) -> Option<f64> {
        let before = self.before.time();
        (before > 0).then(|| self.difference() as f64 * 100.0 / before as f64)
    }
}

/// What changed between two sets of runs.
#[derive(Clone, Debug)]
pub struct Diff {
    /// What was compared.
    pub metric: Metric,
    /// All names, the largest changes first.
    pub rows: Vec<Change>,
    /// All of them together.
    pub total: Change,
}

/// In so many of all pairs of runs one side must be slower.
const SURE: f64 = 0.95;
/// Smaller changes are none, however sure they are.
const LEAST_PERCENT: f64 = 1.0;
/// A row is worth a failure if it takes such a part of the whole.
const WORTH: f64 = 0.01;

impl Diff {
    /// Compares runs. With `per_step`, times and counts are those of one step.
    ///
    /// ```
    /// use cresset_trace::{Diff, Metric, Row, Summary, Verdict};
    /// let run = |nanos| {
    ///     let row = Row { key: "aten::mm".into(), count: 1, self_cpu_time_total: nanos, ..Row::default() };
    ///     Summary { rows: vec![row], ..Summary::default() }
    /// };
    /// let (before, after) = ([run(100), run(104), run(98)], [run(150), run(149), run(153)]);
    /// let diff = Diff::of(&before, &after, Metric::SelfHost, false);
    /// assert_eq!((diff.rows[0].verdict, diff.rows[0].percent()), (Verdict::Slower, Some(50.0)));
    /// ```
    pub fn of(before: &[Summary], after: &[Summary], metric: Metric, per_step: bool) -> Diff {
        let mut rows: HashMap<(String, bool, bool), Change> = HashMap::new();
        let mut total = change("total", false);
        for (is_after, runs) in [(false, before), (true, after)] {
            for run in runs {
                let steps = if per_step { run.steps.len().max(1) as u64 } else { 1 };
                let mut sum = (0u64, 0u64);
                for row in &run.rows {
                    let key = (row.key.clone(), row.on_device, row.is_user_annotation);
                    let entry = rows.entry(key).or_insert_with(|| change(&row.key, row.on_device));
                    let side = if is_after { &mut entry.after } else { &mut entry.before };
                    side.times.push(metric.of(row) / steps);
                    side.counts.push(row.count / steps);
                    sum.0 = counted_once(metric, row).saturating_add(sum.0);
                    sum.1 += row.count;
                }
                let side = if is_after { &mut total.after } else { &mut total.before };
                side.times.push(sum.0 / steps);
                side.counts.push(sum.1 / steps);
            }
        }
        let counts = (before.len(), after.len());
        let mut rows: Vec<Change> = rows.into_values().map(|row| judged(row, counts)).collect();
        rows.sort_by(|a, b| {
            b.difference()
                .unsigned_abs()
                .cmp(&a.difference().unsigned_abs())
                .then_with(|| a.name.cmp(&b.name))
        });
        Diff { metric, rows, total: judged(total, counts) }
    }

    /// What became slower by more than `percent`: all together, and each name that takes at least
    /// one percent of the whole.
    pub fn slower_than(&self, percent: f64) -> Vec<&Change> {
        let worth = (self.total.before.time() as f64 * WORTH) as u64;
        let is_slower = |change: &&Change| {
            change.verdict == Verdict::Slower && change.percent().is_some_and(|more| more > percent)
        };
        let rows = self.rows.iter().filter(|row| row.after.time() >= worth);
        [&self.total].into_iter().chain(rows).filter(is_slower).collect()
    }

    /// The changes as a table of at most so many rows.
    pub fn table(&self, row_limit: usize) -> impl fmt::Display {
        Shown { diff: self, row_limit }
    }
}

fn change(name: &str, on_device: bool) -> Change {
    let (before, after) = (Runs::default(), Runs::default());
    Change { name: name.to_owned(), on_device, verdict: Verdict::Same, before, after }
}

/// What a row adds to the whole: totals of rows that lie in each other would count twice.
fn counted_once(metric: Metric, row: &Row) -> u64 {
    match metric {
        Metric::SelfHost | Metric::Host => row.self_cpu_time_total,
        Metric::SelfDevice | Metric::Device if row.on_device && !row.is_user_annotation => {
            row.self_device_time_total
        }
        Metric::SelfDevice | Metric::Device => 0,
    }
}

/// A change with its verdict; runs that do not have the name count as nothing.
fn judged(mut change: Change, (before, after): (usize, usize)) -> Change {
    let was_there = !change.before.times.is_empty();
    let is_there = !change.after.times.is_empty();
    for (side, runs) in [(&mut change.before, before), (&mut change.after, after)] {
        side.times.resize(runs, 0);
        side.counts.resize(runs, 0);
        side.times.sort_unstable();
        side.counts.sort_unstable();
    }
    change.verdict = match (was_there, is_there) {
        (false, _) => Verdict::New,
        (_, false) => Verdict::Gone,
        _ if change.percent().is_some_and(|percent| percent.abs() < LEAST_PERCENT) => Verdict::Same,
        _ => match superiority(&change.before.times, &change.after.times) {
            part if part >= SURE => Verdict::Slower,
            part if part <= 1.0 - SURE => Verdict::Faster,
            _ => Verdict::Same,
        },
    };
    change
}

/// In which part of all pairs of runs the one after takes longer; ties count half.
fn superiority(before: &[u64], after: &[u64]) -> f64 {
    let twice: usize = after
        .iter()
        .map(|time| {
            let below = before.partition_point(|other| other < time);
            let upto = before.partition_point(|other| other <= time);
            below + upto
        })
        .sum();
    twice as f64 / (2 * before.len() * after.len()).max(1) as f64
}

struct Shown<'a> {
    diff: &'a Diff,
    row_limit: usize,
}

/// Names are cut after so many letters.
const NAME: usize = 52;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { diff, row_limit } = *self;
        let runs = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        let (before, after) = (diff.total.before.times.len(), diff.total.after.times.len());
        writeln!(f, "{}: {} before, {} after", diff.metric.as_str(), runs(before), runs(after))?;
        if before.min(after) < 3 {
            writeln!(f, "few runs: a change of time may be noise (trace diff A... -- B... takes several)")?;
        }
        writeln!(
            f,
            "{:<8}{:<NAME$}{:>12}{:>12}{:>13}{:>10}{:>9}  calls",
            "", "", "before", "after", "change", "", "spread"
        )?;
        let changed: Vec<&Change> = diff.rows.iter().filter(|row| row.verdict != Verdict::Same).collect();
        changed.iter().take(row_limit).try_for_each(|row| line(f, row))?;
        if changed.len() > row_limit {
            writeln!(f, "and {} more", changed.len() - row_limit)?;
        }
        line(f, &diff.total)?;
        writeln!(f, "{} of {} names did not change", diff.rows.len() - changed.len(), diff.rows.len())
    }
}

fn line(f: &mut fmt::Formatter<'_>, row: &Change) -> fmt::Result {
    let mut name: String = row.name.chars().take(NAME - 2).collect();
    if name.len() < row.name.len() {
        name = row.name.chars().take(NAME - 5).chain("...".chars()).collect();
    }
    let sign = if row.difference() < 0 { "-" } else { "+" };
    let change = format!("{sign}{}", time(row.difference().unsigned_abs()));
    let percent = row.percent().map_or(String::new(), |percent| format!("{percent:+.1}%"));
    let spread = row.before.spread().max(row.after.spread()) * 100.0;
    let calls = match (row.before.count(), row.after.count()) {
        (before, after) if before == after => after.to_string(),
        (before, after) => format!("{before} -> {after}"),
    };
    let (before, after) = (time(row.before.time()), time(row.after.time()));
    let verdict = row.verdict.as_str();
    writeln!(
        f,
        "{verdict:<8}{name:<NAME$}{before:>12}{after:>12}{change:>13}{percent:>10}{spread:>8.1}%  {calls}"
    )
}
