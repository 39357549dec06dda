//! The architecture, as tests: who may depend on whom, and where `unsafe` may stand.

use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and the only crates of ours that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("acl", &[]),
    ("checkpoint", &["nn", "optim", "tensor"]),
    ("data", &["dispatch", "kernels", "tensor"]),
    ("dispatch", &[]),
    ("distributed", &["dispatch", "nn", "tensor"]),
    ("kernels", &[]),
    ("nn", &["dispatch", "nn-derive", "tensor"]),
    ("nn-derive", &[]),
    ("npu", &["acl", "dispatch", "tensor"]),
    ("npu-sim", &["acl", "kernels"]),
    ("npu-sim-library", &["npu-sim"]),
    ("optim", &["dispatch", "tensor"]),
    ("parity", &["data", "kernels", "nn", "optim", "profiler", "tensor", "trace"]),
    ("profiler", &["dispatch", "trace"]),
    ("tensor", &["dispatch", "kernels"]),
    ("trace", &[]),
];

/// Crates without a line of `unsafe`.
const SAFE: &[&str] = &[
    "acl",
    "checkpoint",
    "data",
    "dispatch",
    "distributed",
    "nn",
    "nn-derive",
    "optim",
    "parity",
    "tensor",
    "trace",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names under `[dependencies]`, and not those that only tests or benchmarks use.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("[dependencies]").nth(1).unwrap_or("");
    let section = section.split("\n[").next().unwrap_or("");
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
}

#[test]
fn dependencies_point_downwards() {
    let crates = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(crates, ALLOWED.len(), "every crate has a line in ALLOWED");
    for (name, allowed) in ALLOWED {
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        for used in dependencies(&manifest).iter().filter_map(|used| used.strip_prefix("cresset-")) {
            assert!(allowed.contains(&used), "crates/{name} must not depend on crates/{used}");
        }
    }
}

#[test]
fn profiler_has_no_foreign_framework_dependency() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let graph = closure(&lock, "cresset-profiler");
    assert!(graph.contains(&"cresset-dispatch") && graph.contains(&"gimli"), "{graph:?}");
    let ours: Vec<_> = graph.iter().filter(|name| name.starts_with("cresset-")).collect();
    assert_eq!(ours.len(), 3, "{ours:?}");
    let frameworks =
        ["torch", "tch", "candle", "burn", "dfdx", "ort", "tract", "tensorflow", "pyo3", "mindspore"];
    let is_one = |name: &str| frameworks.iter().any(|f| name.split(['-', '_']).any(|word| word == *f));
    assert!(!graph.iter().any(|name| is_one(name)), "{graph:?}");
}

/// All packages that `name` is built from, itself included, by the lock file.
fn closure<'a>(lock: &'a str, name: &'a str) -> Vec<&'a str> {
    let quoted = |line: &'a str| line.trim().trim_matches([',', '"']).split(' ').next().unwrap_or("");
    let mut names = vec![name];
    let mut next = 0;
    while let Some(name) = names.get(next) {
        let head = format!("name = \"{name}\"\n");
        for package in lock.split("[[package]]\n").filter(|package| package.starts_with(&head)) {
            let list = package.split("dependencies = [\n").nth(1).unwrap_or("");
            for line in list.lines().take_while(|line| *line != "]") {
                if !names.contains(&quoted(line)) {
                    names.push(quoted(line));
                }
            }
        }
        next += 1;
    }
    names
}

#[test]
fn safe_crates_forbid_unsafe_code() {
    for name in SAFE {
        let lib = fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).unwrap();
        assert!(lib.contains("#![forbid(unsafe_code)]"), "crates/{name} must forbid unsafe code");
    }
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let mut files = Vec::new();
    for folder in ["src", "tests", "examples", "benches", "crates"] {
        collect(&root().join(folder), &mut files);
    }
    assert!(files.len() > 50, "only {} files found", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // What examples of the documentation include cannot have a doc comment of its own.
        let opening =
            if file.parent().is_some_and(|folder| folder.ends_with("doc")) { "// " } else { "//! " };
        assert!(text.starts_with(opening), "{} does not open with a {opening}line", file.display());
    }
}

#[test]
fn operators_read_as_a_catalogue_of_short_files() {
    let mut files = Vec::new();
    collect(&root().join("crates/tensor/src/ops"), &mut files);
    assert!(files.len() > 50, "only {} files found", files.len());
    for file in files {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
