//! Two folders of traces, program by program, and what differs most over all.

use super::compare_traces;
use super::report::{TraceReport, What};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// What comparisons of many programs found.
#[derive(Clone, Debug, Default)]
pub struct FolderReport {
    /// Each program with its report, or with why there is none.
    pub programs: Vec<(String, Result<TraceReport, String>)>,
}

/// Compares all traces of two folders that have the same name up to the first dot.
///
/// # Errors
/// A folder cannot be read. Files that cannot are told of in the report.
pub fn compare_folders(ours: &Path, theirs: &Path) -> std::io::Result<FolderReport> {
    let (ours, theirs) = (traces(ours)?, traces(theirs)?);
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let compared = |name: &String| match (ours.get(name), theirs.get(name)) {
        (Some(ours), Some(theirs)) => compare_traces(ours, theirs).map_err(|error| error.to_string()),
        (Some(_), None) => Err("only ours is there".to_owned()),
        _ => Err("only theirs is there".to_owned()),
    };
    Ok(FolderReport { programs: names.into_iter().map(|name| (name.clone(), compared(name))).collect() })
}

/// The traces of a folder, by the names of their programs.
fn traces(folder: &Path) -> std::io::Result<BTreeMap<String, PathBuf>> {
    let named = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("cannot read {}: {error}", folder.display()))
    };
    let mut traces = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some((program, "json" | "json.gz")) = name.split_once('.') {
            traces.insert(program.to_owned(), path);
        }
    }
    Ok(traces)
}

/// Differences of one kind over all programs.
struct Common<'a> {
    what: What,
    name: &'a str,
    within: &'a str,
    count: usize,
    programs: usize,
    /// The first program that has it, and the first difference there.
    first: (&'a str, &'a str),
}

impl FolderReport {
    /// The least that any column of any program has in common, in percent.
    pub fn percent(&self) -> f64 {
        let percent =
            |report: &Result<TraceReport, String>| report.as_ref().map_or(0.0, TraceReport::percent);
        self.programs.iter().map(|(_, report)| percent(report)).fold(100.0, f64::min)
    }

    /// Columns summed over all programs: what is the same, and of how many.
    pub fn totals(&self) -> Vec<(&'static str, usize, usize)> {
        let mut totals: Vec<(&'static str, usize, usize)> = Vec::new();
        let columns = self.programs.iter().filter_map(|(_, report)| report.as_ref().ok());
        for column in columns.flat_map(|report| &report.columns) {
            match totals.iter_mut().find(|total| total.0 == column.name) {
                Some(total) => *total = (total.0, total.1 + column.same, total.2 + column.of),
                None => totals.push((column.name, column.same, column.of)),
            }
        }
        totals
    }

    fn common(&self) -> Vec<Common<'_>> {
        let mut common: BTreeMap<(What, &str, &str), Common<'_>> = BTreeMap::new();
        for (program, report) in &self.programs {
            for group in report.iter().flat_map(|report| &report.groups) {
                let key = (group.what, group.name.as_str(), group.within.as_str());
                let entry = common.entry(key).or_insert_with(|| Common {
                    what: group.what,
                    name: &group.name,
                    within: &group.within,
                    count: 0,
                    programs: 0,
                    first: (program, &group.example),
                });
                entry.count += group.count;
                entry.programs += 1;
            }
        }
        let mut common: Vec<Common<'_>> = common.into_values().collect();
        common.sort_by_key(|one| std::cmp::Reverse(one.count));
        common
    }

    /// Everything, for other programs.
    pub fn json(&self) -> Value {
        let programs = self.programs.iter().map(|(name, report)| match report {
            Ok(report) => (name.clone(), report.json()),
            Err(reason) => (name.clone(), json!({ "error": reason })),
        });
        let totals =
            self.totals().into_iter().map(|(name, same, of)| json!({"name": name, "same": same, "of": of}));
        json!({
            "percent": self.percent(),
            "columns": totals.collect::<Vec<_>>(),
            "programs": programs.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// The report as text, with at most so many kinds of differences.
    pub fn show(&self, limit: usize) -> impl fmt::Display {
        Shown { report: self, limit }
    }
}

struct Shown<'a> {
    report: &'a FolderReport,
    limit: usize,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = ["theirs", "ours", "events", "every column", "table", "results"];
        let [theirs, ours, events, every, table, results] = titles;
        writeln!(f, "{:<28}{theirs:>8}{ours:>8}{events:>9}{every:>14}{table:>9}{results:>9}", "program")?;
        for (name, report) in &self.report.programs {
            match report {
                Ok(report) => line(f, name, report)?,
                Err(reason) => writeln!(f, "{name:<28}{reason}")?,
            }
        }
        writeln!(f)?;
        for (name, same, of) in self.report.totals() {
            let percent = same as f64 * 100.0 / of.max(1) as f64;
            writeln!(f, "{name:<20} {percent:>7.2}%  {same} of {of}")?;
        }
        let common = self.report.common();
        if !common.is_empty() {
            writeln!(f, "\nwhat differs most:")?;
        }
        for Common { what, name, within, count, programs, first: (program, example) } in
            common.iter().take(self.limit)
        {
            let within = if within.is_empty() { String::new() } else { format!(" in {within}") };
            let what = what.as_str();
            writeln!(f, "{what:<16} x{count:<5} {name}{within}, {programs} programs, {program}: {example}")?;
        }
        match common.len().saturating_sub(self.limit) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more kinds"),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, report: &TraceReport) -> fmt::Result {
    let percent = |name: &str| report.column(name).map_or("-".to_owned(), |percent| format!("{percent:.2}%"));
    let [events, every, table, results] = ["events", "every column", "table", "results"].map(percent);
    let [theirs, ours] = report.calls;
    writeln!(f, "{name:<28}{theirs:>8}{ours:>8}{events:>9}{every:>14}{table:>9}{results:>9}")
}
