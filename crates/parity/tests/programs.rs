//! The programs that come with the project, run here and laid beside torch's recorded runs.
//!
//! One test in a process of its own: the profiler sees all threads.

use cresset_parity::program::Program;
use cresset_parity::{Group, TraceReport, What, compare_traces};
use cresset_tensor::Device;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What may not get worse, in percent.
const FIGURES: [&str; 3] = ["events", "every column", "table"];

/// Set to write better figures into the table.
const RAISE: &str = "CRESSET_RAISE_FIGURES";

fn parity(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity").join(file)
}

fn names(folder: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(parity(folder)).unwrap();
    let name = |file: std::fs::DirEntry| file.file_name().into_string().unwrap();
    files.map(|file| name(file.unwrap()).split('.').next().unwrap().to_owned()).collect()
}

fn compared(name: &str, scratch: &Path) -> TraceReport {
    let program = Program::read(&parity(&format!("programs/{name}.json"))).unwrap();
    let ran = program.run(Device::CPU).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    let trace = scratch.join(format!("{name}.json"));
    ran.profiler.export_chrome_trace(&trace).unwrap();
    compare_traces(&trace, &parity(&format!("golden/{name}.json.gz"))).unwrap()
}

/// Hundredths of a percent, rounded down: what is not the same never counts as such.
fn figures(report: &TraceReport) -> Map<String, Value> {
    let column = |name: &&str| report.columns.iter().find(|column| column.name == *name).copied();
    let figure = |name: &str| {
        column(&name)
            .map(|column| (name.to_owned(), json!((column.same * 10_000 / column.of) as f64 / 100.0)))
    };
    FIGURES.iter().filter_map(|name| figure(name)).collect()
}

#[test]
fn programs_compute_what_torch_does_and_call_no_less_of_it_than_before() {
    let programs = names("programs");
    assert_eq!(programs, names("golden"), "every program has a recorded run, and the other way round");
    let known: Map<String, Value> =
        serde_json::from_slice(&std::fs::read(parity("figures.json")).unwrap()).unwrap();
    let scratch = std::env::temp_dir().join(format!("cresset-programs-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let (mut worse, mut better, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = Map::new();
    for name in &programs {
        let report = compared(name, &scratch);
        let results = report.groups.iter().filter(|group| group.what == What::Result);
        wrong.extend(
            results.map(|Group { name: result, example, .. }| format!("{name}: {result}: {example}")),
        );
        let figures = figures(&report);
        for (column, figure) in &figures {
            let before = known.get(name).and_then(|figures| figures[column].as_f64()).unwrap_or(0.0);
            let figure = figure.as_f64().unwrap();
            let line = format!("{name}: {column} {figure} %, in the table {before} %");
            match figure.total_cmp(&before) {
                std::cmp::Ordering::Less => worse.push(line),
                std::cmp::Ordering::Greater => better.push(line),
                std::cmp::Ordering::Equal => {}
            }
        }
        now.insert(name.clone(), Value::Object(figures));
    }
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(wrong.is_empty(), "results differ from torch's:\n{}", wrong.join("\n"));
    assert!(worse.is_empty(), "fewer calls are torch's than before:\n{}", worse.join("\n"));
    if std::env::var_os(RAISE).is_some() {
        return write(&now);
    }
    if !better.is_empty() {
        let text = format!(
            "more calls are torch's than parity/figures.json says; raise it with {RAISE}=1:\n{}\n",
            better.join("\n")
        );
        // Not by a macro: what those print is shown only when a test fails.
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }
}

fn write(figures: &Map<String, Value>) {
    let line = |(name, figures): (&String, &Value)| format!(" {}: {figures}", json!(name));
    let lines: Vec<String> = figures.iter().map(line).collect();
    std::fs::write(parity("figures.json"), format!("{{\n{}\n}}\n", lines.join(",\n"))).unwrap();
}
