//! Verdicts, counted per operator.

use crate::golden::{BadFile, Golden};
use crate::replay::{Verdict, replay, replay_error};
use cresset_tensor::Device;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// What became of the cases of one file.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The operator and its form.
    pub name: String,
    /// 1 for operators that everybody needs; none for a total of several tiers.
    pub tier: Option<u64>,
    /// The family.
    pub category: String,
    /// How many cases there are, those that must be refused included.
    pub cases: usize,
    /// As recorded.
    pub passed: usize,
    /// Not as recorded.
    pub failed: usize,
    /// Not known here.
    pub unsupported: usize,
    /// The worst error of all that passed, as a share of what is allowed.
    pub worst: f64,
    /// Each case that did not pass, and why.
    pub reasons: Vec<(String, Verdict)>,
}

impl Row {
    /// Replays all cases of a file.
    pub fn replay(golden: &Golden, device: Device) -> Row {
        let category = golden.category.clone();
        let mut row = Row { name: golden.name(), tier: Some(golden.tier), category, ..Row::default() };
        for case in &golden.cases {
            row.count(&case.id, replay(golden, case, device));
        }
        for case in &golden.errors {
            row.count(&case.id, replay_error(golden, case, device));
        }
        row
    }

    fn tier(&self) -> String {
        self.tier.map_or(String::new(), |tier| tier.to_string())
    }

    pub(crate) fn count(&mut self, id: &str, verdict: Verdict) {
        self.cases += 1;
        match verdict {
            Verdict::Passed { worst } => {
                self.passed += 1;
                self.worst = self.worst.max(worst);
                return;
            }
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Unsupported(_) => self.unsupported += 1,
        }
        self.reasons.push((id.to_owned(), verdict));
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<52} {:>4} {:>6} {:>7} {:>7} {:>12} {:>8.3}",
            self.name,
            self.tier(),
            self.cases,
            self.passed,
            self.failed,
            self.unsupported,
            self.worst
        )
    }
}

/// What kind of thing is recorded in a folder, in the words of a report.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What one of them is called.
    pub one: &'static str,
    /// The list of them in the report for machines.
    pub list: &'static str,
    /// What the page of documentation begins with.
    pub preface: &'static str,
}

/// What became of all files of a folder.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was replayed.
    pub suite: Suite,
    /// One row per file, in the order of their names.
    pub rows: Vec<Row>,
}

/// Why a folder could not be replayed.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

impl Report {
    /// The heads of the columns of a [`Row`].
    pub fn header(suite: &Suite) -> String {
        format!("{:<52} tier  cases  passed  failed  unsupported    worst", suite.one)
    }

    /// Replays the files of `folder`, or those of operator `only`, and shows each row when it is done.
    ///
    /// # Errors
    /// If a file cannot be read, or there is none.
    pub fn replay(
        folder: &Path,
        only: Option<&str>,
        device: Device,
        show: impl FnMut(&Row),
    ) -> Result<Report, Fault> {
        Report::collect(OPERATORS, folder, only, show, |path| {
            Ok(Golden::read(path)?.map(|golden| Row::replay(&golden, device)))
        })
    }

    /// Makes a row of each file of `folder`, or of those whose name is or begins with `only`, and
    /// shows it when it is done. Files of other suites have none.
    pub(crate) fn collect(
        suite: Suite,
        folder: &Path,
        only: Option<&str>,
        mut show: impl FnMut(&Row),
        row: impl Fn(&Path) -> Result<Option<Row>, BadFile>,
    ) -> Result<Report, Fault> {
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let mut report = Report { suite, rows: Vec::new() };
        for path in paths {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            // Reading all files to look for one of them would take as long as replaying it.
            if stem == "index"
                || only.is_some_and(|only| stem != only && !stem.starts_with(&format!("{only}.")))
            {
                continue;
            }
            let Some(row) = row(&path)? else { continue };
            show(&row);
            report.rows.push(row);
        }
        if report.rows.is_empty() {
            let what = only.map_or(format!("{}s", suite.one), |only| format!("{} {only:?}", suite.one));
            return Err(format!("{} holds no cases of {what}", folder.display()).into());
        }
        Ok(report)
    }

    /// The rows that `counts` picks, together.
    pub fn total(&self, name: &str, counts: impl Fn(&Row) -> bool) -> Row {
        let mut total = Row { name: name.to_owned(), ..Row::default() };
        for row in self.rows.iter().filter(|row| counts(row)) {
            total.cases += row.cases;
            total.passed += row.passed;
            total.failed += row.failed;
            total.unsupported += row.unsupported;
            total.worst = total.worst.max(row.worst);
        }
        total
    }

    /// The totals of each tier, if there are several, and of all.
    pub fn totals(&self) -> Vec<Row> {
        let tiers: BTreeSet<u64> = self.rows.iter().filter_map(|row| row.tier).collect();
        let of_tier = |&tier: &u64| Row {
            tier: Some(tier),
            ..self.total(&format!("tier {tier}"), |row| row.tier == Some(tier))
        };
        let mut totals: Vec<Row> = tiers.iter().filter(|_| tiers.len() > 1).map(of_tier).collect();
        totals.push(self.total("total", |_| true));
        totals
    }

    /// The report for machines.
    pub fn json(&self) -> Json {
        let reasons = |row: &Row| -> Vec<Json> {
            let each = |(id, verdict): &(String, Verdict)| match verdict {
                Verdict::Failed(reason) => json!({"id": id, "verdict": "failed", "reason": reason}),
                Verdict::Unsupported(reason) => json!({"id": id, "verdict": "unsupported", "reason": reason}),
                Verdict::Passed { .. } => json!({"id": id, "verdict": "passed"}),
            };
            row.reasons.iter().map(each).collect()
        };
        let key = if self.suite.list == OPERATORS.list { "op" } else { self.suite.one };
        let row = |row: &Row| {
            json!({
                key: row.name, "category": row.category, "tier": row.tier, "cases": row.cases, "passed": row.passed,
                "failed": row.failed, "unsupported": row.unsupported, "worst": row.worst,
                "reasons": reasons(row),
            })
        };
        let rows: Vec<Json> = self.rows.iter().map(row).collect();
        json!({self.suite.list: rows, "total": row(&self.total("total", |_| true))})
    }
}

/// Calls of operators.
pub const OPERATORS: Suite = Suite { one: "operator", list: "ops", preface: PREFACE };

const PREFACE: &str = "\
# Operators, beside PyTorch

What PyTorch answered to its own sample inputs, replayed here by

    cresset parity ops FOLDER --markdown docs/parity.md

A case passes if everything recorded of it is the same: values within torch's own tolerance for the element
type, element type and shape, whether the result is a view and of what, gradients, second gradients, the form
in place with its count of changes, and an error wherever torch raises one. The worst error is a share of
the tolerance, so 1 would be its edge. What is not offered is unsupported; it never counts as passed.

";

/// The report as a page of documentation: a table of totals, and one per family.
pub fn markdown(report: &Report) -> String {
    let Suite { one, preface, .. } = report.suite;
    let head = format!(
        "| {one} | tier | cases | passed | failed | unsupported | worst error |\n|---|--:|--:|--:|--:|--:|--:|\n"
    );
    let line = |row: &Row| {
        let (tier, Row { name, cases, passed, failed, unsupported, worst, .. }) = (row.tier(), row);
        format!("| {name} | {tier} | {cases} | {passed} | {failed} | {unsupported} | {worst:.3} |\n")
    };
    let lines = |rows: &mut dyn Iterator<Item = &Row>| rows.map(line).collect::<String>();
    let mut text = format!("{preface}{head}{}", lines(&mut report.totals().iter()));
    let families: BTreeSet<&str> = report.rows.iter().map(|row| row.category.as_str()).collect();
    for family in families {
        let rows = lines(&mut report.rows.iter().filter(|row| row.category == family));
        text.push_str(&format!("\n## {family}\n\n{head}{rows}"));
    }
    text
}
