//! What a comparison of two traces found, to be counted, shown and exported.

use super::align::Pair;
use super::compare::Comparison;
use super::forest::Forest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// How a call of one trace differs from the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// Only theirs has it.
    Missing,
    /// Only ours has it.
    Extra,
    /// Both have it at this level, at other places.
    Order,
    /// One has a call around calls that the other has without it.
    Nesting,
    /// Shapes of its arguments.
    Dims,
    /// Types of its arguments.
    Types,
    /// Values of its arguments.
    Concrete,
    /// Which calls share the number of a derivative.
    Sequence,
    /// Arrows from forward to backward.
    Flow,
    /// Memory that it and all it called took.
    Taken,
    /// Memory that it and all it called gave back.
    GivenBack,
    /// Floating-point operations.
    Flops,
    /// A row of the table of averages, times aside.
    Table,
    /// What the program computed.
    Result,
}

impl What {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Missing => "missing",
            What::Extra => "extra",
            What::Order => "order",
            What::Nesting => "nesting",
            What::Dims => "Input Dims",
            What::Types => "Input type",
            What::Concrete => "Concrete Inputs",
            What::Sequence => "Sequence number",
            What::Flow => "flow",
            What::Taken => "bytes taken",
            What::GivenBack => "bytes given back",
            What::Flops => "FLOPs",
            What::Table => "table",
            What::Result => "result",
        }
    }
}

/// How much of one thing is the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What was compared.
    pub name: &'static str,
    /// How often it is the same.
    pub same: usize,
    /// How often it was compared.
    pub of: usize,
}

impl Column {
    /// The same in a hundred.
    pub fn percent(&self) -> f64 {
        self.same as f64 * 100.0 / self.of.max(1) as f64
    }
}

/// Calls side by side that lie in the same call.
pub(super) struct Level {
    pub(super) pairs: Vec<Pair>,
}

/// One difference, by the calls it is about.
pub(super) struct Difference {
    pub(super) what: What,
    /// The level, and where on it.
    pub(super) place: Option<(usize, usize)>,
    pub(super) theirs: Option<usize>,
    pub(super) ours: Option<usize>,
    pub(super) detail: String,
}

/// Differences of one kind that calls of one name in calls of one name have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// How they differ.
    pub what: What,
    /// The calls' name.
    pub name: String,
    /// What they lie in; nothing at the top.
    pub within: String,
    /// How many.
    pub count: usize,
    /// The first, in words.
    pub example: String,
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct TraceReport {
    /// How many calls theirs has, and how many ours.
    pub calls: [usize; 2],
    /// How much of each column is the same.
    pub columns: Vec<Column>,
    /// What differs, most frequent first.
    pub groups: Vec<Group>,
    /// The first difference of each group, with calls around it.
    pub excerpts: Vec<String>,
}

impl TraceReport {
    /// What was found in the trees of calls, and beside them.
    pub(super) fn of(mut comparison: Comparison<'_>, beside: Vec<(Column, Vec<Group>)>) -> TraceReport {
        let calls = [comparison.theirs.nodes.len(), comparison.ours.nodes.len()];
        let mut columns = comparison.columns();
        let (more, others): (Vec<_>, Vec<_>) = beside.into_iter().unzip();
        columns.extend(more.into_iter().filter(|column: &Column| column.of > 0));
        let mut groups: BTreeMap<(What, &str, String), (Group, &Difference)> = BTreeMap::new();
        for difference in &comparison.differences {
            let (name, within) = names(&comparison, difference);
            let key = (difference.what, name, within.clone());
            let entry = groups.entry(key).or_insert_with(|| {
                let example = example(&comparison, difference);
                (
                    Group { what: difference.what, name: name.to_owned(), within, count: 0, example },
                    difference,
                )
            });
            entry.0.count += 1;
        }
        let mut groups: Vec<(Group, &Difference)> = groups.into_values().collect();
        groups.sort_by_key(|(group, _)| (group.what, std::cmp::Reverse(group.count)));
        let excerpts = groups.iter().filter_map(|(_, difference)| excerpt(&comparison, difference)).collect();
        let groups = groups.into_iter().map(|(group, _)| group);
        let groups = groups.chain(others.into_iter().flatten()).collect();
        TraceReport { calls, columns, groups, excerpts }
    }

    /// The least that any column has in common, in percent.
    pub fn percent(&self) -> f64 {
        self.columns.iter().map(Column::percent).fold(100.0, f64::min)
    }

    /// How much of a column is the same, in percent; nothing if it was not compared.
    pub fn column(&self, name: &str) -> Option<f64> {
        self.columns.iter().find(|column| column.name == name).map(Column::percent)
    }

    /// Everything, for other programs.
    pub fn json(&self) -> Value {
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|column| {
                json!({"name": column.name, "same": column.same, "of": column.of, "percent": column.percent()})
            })
            .collect();
        let groups: Vec<Value> = self
            .groups
            .iter()
            .map(|group| {
                json!({"what": group.what.as_str(), "name": group.name, "within": group.within,
                    "count": group.count, "example": group.example})
            })
            .collect();
        json!({"percent": self.percent(), "calls": self.calls, "columns": columns, "differences": groups})
    }

    /// The report as text, with at most so many groups and excerpts.
    pub fn show(&self, limit: usize) -> impl fmt::Display {
        Shown { report: self, limit }
    }
}

fn names<'a>(comparison: &Comparison<'a>, difference: &Difference) -> (&'a str, String) {
    let theirs = difference.theirs.map(|node| (comparison.theirs, node));
    let Some((forest, node)) = theirs.or(difference.ours.map(|node| (comparison.ours, node))) else {
        return ("", String::new());
    };
    let within = forest.path(node).last().map_or(String::new(), |name| (*name).to_owned());
    (forest.nodes[node].name, within)
}

fn example(comparison: &Comparison<'_>, difference: &Difference) -> String {
    let mut text = Vec::new();
    if let Some(node) = difference.theirs {
        text.push(format!("theirs event {}", comparison.theirs.nodes[node].event));
    }
    if let Some(node) = difference.ours {
        text.push(format!("ours event {}", comparison.ours.nodes[node].event));
    }
    let size = |forest: &Forest<'_>, node: usize| match forest.size(node) - 1 {
        0 => String::new(),
        more => format!("with {more} calls inside"),
    };
    let inside = match (difference.what, difference.theirs, difference.ours) {
        (What::Missing, Some(node), _) => size(comparison.theirs, node),
        (What::Extra, _, Some(node)) => size(comparison.ours, node),
        _ => String::new(),
    };
    text.extend([inside, difference.detail.clone()].into_iter().filter(|text| !text.is_empty()));
    text.join(", ")
}

/// Calls shown before and after the one that differs.
const AROUND: usize = 2;

/// The part of a level where a difference is, as a diff shows it; for those of order and number only.
fn excerpt(comparison: &Comparison<'_>, difference: &Difference) -> Option<String> {
    let (level, place) = difference.place?;
    let pairs = &comparison.levels[level].pairs;
    let (forest, node) = match (difference.theirs, difference.ours) {
        (Some(node), _) => (comparison.theirs, node),
        (None, node) => (comparison.ours, node?),
    };
    let path = forest.path(node);
    let inside = if path.is_empty() { "top level".to_owned() } else { path.join(" > ") };
    let mut lines =
        vec![format!("@@ {inside} @@ {}: {}", difference.what.as_str(), example(comparison, difference))];
    let line = |mark: char, forest: &Forest<'_>, node: usize| {
        let node = &forest.nodes[node];
        let dims = node.dims.as_ref().map_or(String::new(), |dims| format!("  {dims}"));
        format!("{mark} {}{dims}", node.name)
    };
    let last = (place + AROUND + 1).min(pairs.len());
    for &pair in &pairs[place.saturating_sub(AROUND)..last] {
        lines.push(match pair {
            (Some(a), Some(_)) => line(' ', comparison.theirs, a),
            (Some(a), None) => line('-', comparison.theirs, a),
            (None, Some(b)) => line('+', comparison.ours, b),
            (None, None) => continue,
        });
    }
    Some(lines.join("\n"))
}

struct Shown<'a> {
    report: &'a TraceReport,
    limit: usize,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { report, limit } = *self;
        for column in &report.columns {
            writeln!(f, "{:<20} {:>7.2}%  {} of {}", column.name, column.percent(), column.same, column.of)?;
        }
        let more = |f: &mut fmt::Formatter<'_>, all: usize| match all.saturating_sub(limit) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more kinds"),
        };
        if !report.groups.is_empty() {
            writeln!(f, "\nwhat differs:")?;
        }
        for group in report.groups.iter().take(limit) {
            let within =
                if group.within.is_empty() { String::new() } else { format!(" in {}", group.within) };
            writeln!(
                f,
                "{:<16} x{:<5} {}{within}: {}",
                group.what.as_str(),
                group.count,
                group.name,
                group.example
            )?;
        }
        more(f, report.groups.len())?;
        if !report.excerpts.is_empty() {
            writeln!(f, "\nthe first of each kind, - theirs, + ours:")?;
        }
        for excerpt in report.excerpts.iter().take(limit) {
            writeln!(f, "{excerpt}")?;
        }
        more(f, report.excerpts.len())
    }
}
