//! Measurements of several programs side by side, as a table in Markdown.

use super::{Outcome, say};
use serde_json::Value;
use std::path::PathBuf;

const OURS: &str = "cresset";
/// The peer that measures what the machine can do at all.
const MACHINE: &str = "phys";

/// Reads what programs printed, one JSON object per line, and prints the best of each.
pub(super) fn run(files: &[PathBuf]) -> Outcome {
    let mut measurements = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("bench: cannot read {}: {error}", file.display()))?;
        measurements.extend(text.lines().filter_map(Measurement::parse));
    }
    let table = Table(measurements);
    if table.rows().is_empty() {
        return Err(format!("bench: there is no measurement of {OURS} to compare with").into());
    }
    table.lines().iter().try_for_each(say)
}

struct Measurement {
    peer: String,
    workload: String,
    threads: u64,
    unit: String,
    value: f64,
}

impl Measurement {
    /// None for lines of any other kind, such as what a program says on the way.
    fn parse(line: &str) -> Option<Measurement> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        Some(Measurement {
            peer: text("peer")?,
            workload: text("workload")?,
            threads: line["threads"].as_u64()?,
            unit: text("unit")?,
            value: line["value"].as_f64()?,
        })
    }

    /// More is better, whatever the unit.
    fn speed(&self) -> f64 {
        if matches!(self.unit.as_str(), "ns" | "ms" | "MiB") { 1.0 / self.value } else { self.value }
    }
}

struct Table(Vec<Measurement>);

impl Table {
    /// What was measured of ours, by name and number of threads, in the order of first appearance.
    fn rows(&self) -> Vec<(&str, u64)> {
        let mut names: Vec<&str> = Vec::new();
        let mut rows: Vec<(&str, u64)> = Vec::new();
        for measurement in self.0.iter().filter(|measurement| measurement.peer == OURS) {
            let row = (measurement.workload.as_str(), measurement.threads);
            if !names.contains(&row.0) {
                names.push(row.0);
            }
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows.sort_by_key(|(name, threads)| (names.iter().position(|other| other == name), *threads));
        rows
    }

    /// The others, in the order of first appearance.
    fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = Vec::new();
        for Measurement { peer, .. } in &self.0 {
            if peer != OURS && peer != MACHINE && !peers.contains(&peer.as_str()) {
                peers.push(peer);
            }
        }
        peers
    }

    fn best(&self, peer: &str, workload: &str, threads: u64) -> Option<&Measurement> {
        let fits =
            |m: &&Measurement| (m.peer.as_str(), m.workload.as_str(), m.threads) == (peer, workload, threads);
        self.0.iter().filter(fits).max_by(|a, b| a.speed().total_cmp(&b.speed()))
    }

    /// The most that the machine can do of this kind of work.
    fn limit(&self, workload: &str, threads: u64) -> Option<&Measurement> {
        let best = |name| self.best(MACHINE, name, threads);
        let limits = limits(workload).iter().copied().filter_map(best);
        limits.max_by(|a, b| a.speed().total_cmp(&b.speed()))
    }

    fn lines(&self) -> Vec<String> {
        let peers = self.peers();
        let mut head = vec!["work", "unit", "threads", OURS];
        head.extend(&peers);
        head.push("limit");
        let mut lines = vec![line(&head), line(&vec!["---"; head.len()])];
        for (workload, threads) in self.rows() {
            let Some(ours) = self.best(OURS, workload, threads) else { continue };
            let cell = |other: Option<&Measurement>| match other {
                Some(other) => format!("{} ({:.2}×)", short(other.value), ours.speed() / other.speed()),
                None => String::from("–"),
            };
            let mut cells =
                vec![format!("`{workload}`"), ours.unit.clone(), threads.to_string(), short(ours.value)];
            cells.extend(peers.iter().map(|peer| cell(self.best(peer, workload, threads))));
            cells.push(cell(self.limit(workload, threads)));
            lines.push(line(&cells));
        }
        lines
    }
}

/// What limits a workload, by the names under which the machine is measured.
fn limits(workload: &str) -> &'static [&'static str] {
    match workload {
        _ if workload.starts_with("w1/") => &["phys/fma_peak"],
        "w2/add2x2" => &["phys/malloc_free_64"],
        "w3/add16M" | "w3/add16M_out" | "w3/add_transposed4096" => &["phys/stream_add", "phys/stream_add_nt"],
        "w3/sum16M" => &["phys/stream_read"],
        "w3/add256K" | "w3/exp256K" => &[],
        _ if workload.starts_with("w3/") => &["phys/stream_relu", "phys/stream_relu_nt"],
        _ => &[],
    }
}

fn line(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |", cells.join(" | "))
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[&str]) -> Vec<String> {
        Table(lines.iter().filter_map(|line| Measurement::parse(line)).collect()).lines()
    }

    #[test]
    fn the_best_of_each_is_compared() {
        let lines = table(&[
            r#"{"peer":"torch","workload":"w2/add2x2","threads":1,"value":900,"unit":"ns"}"#,
            "# a remark",
            r#"{"peer":"cresset","workload":"w2/add2x2","threads":1,"value":90,"unit":"ns"}"#,
            r#"{"peer":"cresset","workload":"w2/add2x2","threads":1,"value":60,"unit":"ns"}"#,
            r#"{"peer":"cresset","workload":"w3/sum16M","threads":1,"value":8,"unit":"GB/s"}"#,
            r#"{"peer":"phys","workload":"phys/stream_read","threads":1,"value":10,"unit":"GB/s"}"#,
            r#"{"peer":"torch","workload":"w3/nobody_else","threads":1,"value":8,"unit":"GB/s"}"#,
        ]);
        let expected = [
            "| work | unit | threads | cresset | torch | limit |",
            "| --- | --- | --- | --- | --- | --- |",
            "| `w2/add2x2` | ns | 1 | 60.0 | 900 (15.00×) | – |",
            "| `w3/sum16M` | GB/s | 1 | 8.00 | – | 10.0 (0.80×) |",
        ];
        assert_eq!(lines, expected);
    }
}
