//! Times a workload.
//!
//! It is warmed up, then run in batches of at least a millisecond until its time is spent.
//! The fastest batch counts: everything that disturbs a measurement makes it slower.

use super::{Outcome, say};
use cresset::Result;
use serde_json::json;
use std::time::{Duration, Instant};

/// What one call of a workload is, which decides the unit.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A call: nanoseconds each.
    Call,
    /// A training step: steps per second.
    Step,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// Time workloads.
    Bench,
    /// Make one small call, to time a whole process.
    First,
    /// Run so many steps of one workload, to see how much memory they need.
    Memory { workload: String, steps: usize },
}

pub(super) struct Harness {
    pub(super) mode: Mode,
    pub(super) filter: Option<String>,
    pub(super) measured: usize,
    pub(super) left_out: Vec<String>,
    threads: usize,
    json: bool,
    only: Vec<String>,
    budget: Duration,
}

impl Harness {
    pub(super) fn from_environment(threads: Option<usize>, json: bool) -> Outcome<Harness> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str, default: usize| match variable(name) {
            Some(text) => text.parse().map_err(|_| format!("bench: {name} is {text:?}, expected a number")),
            None => Ok(default),
        };
        let threads = threads.map_or_else(|| number("BENCH_THREADS", 1), Ok)?;
        if threads == 0 {
            return Err("bench: expects at least one thread".into());
        }
        let only = variable("BENCH_ONLY").unwrap_or_default();
        Ok(Harness {
            mode: mode(variable("BENCH_MODE").as_deref())?,
            filter: None,
            measured: 0,
            left_out: Vec::new(),
            threads,
            json,
            only: only.split(',').filter(|prefix| !prefix.is_empty()).map(str::to_owned).collect(),
            budget: Duration::from_millis(number("BENCH_BUDGET_MS", 400)? as u64),
        })
    }

    fn wants(&self, name: &str) -> bool {
        match &self.mode {
            Mode::Memory { workload, .. } => workload == name,
            _ => {
                (self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix)))
                    && self.filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
            }
        }
    }

    /// Prepares and measures the workload `name`, if it is wanted.
    pub(super) fn bench<F>(&mut self, name: &str, work: Work, prepare: impl FnOnce() -> Result<F>) -> Outcome
    where
        F: FnMut() -> Result<()>,
    {
        if !self.wants(name) {
            self.left_out.push(name.to_owned());
            return Ok(());
        }
        self.measured += 1;
        let mut call = prepare()?;
        if let Mode::Memory { steps, .. } = self.mode {
            (0..steps).try_for_each(|_| call())?;
            self.tell(&format!("w7/rss/{name}"), peak_memory(), "MiB", 0.0, 0.0, steps)?;
            return Ok(());
        }
        let samples = self.sample(&mut call)?;
        let (fastest, median) = (samples[0], samples[samples.len() / 2]);
        let (value, unit) = match work {
            Work::Call => (fastest, "ns"),
            Work::Step => (1e9 / fastest, "step/s"),
        };
        self.tell(name, value, unit, fastest, median, samples.len())
    }

    /// Nanoseconds per call, batch by batch, fastest first.
    fn sample(&self, call: &mut impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
        let warm = Instant::now();
        let mut calls = 0u32;
        while calls < 2 || (warm.elapsed() < Duration::from_millis(50) && calls < 100_000) {
            call()?;
            calls += 1;
        }
        let each = warm.elapsed().as_secs_f64() / f64::from(calls);
        let batch = (2e-3 / each).ceil().max(1.0) as u32;
        let mut samples = Vec::new();
        let started = Instant::now();
        while samples.len() < 5 || started.elapsed() < self.budget {
            let begun = Instant::now();
            for _ in 0..batch {
                call()?;
            }
            samples.push(begun.elapsed().as_nanos() as f64 / f64::from(batch));
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples)
    }

    fn tell(&self, workload: &str, value: f64, unit: &str, ns: f64, median: f64, samples: usize) -> Outcome {
        if self.json {
            let line = json!({
                "peer": "cresset", "workload": workload, "threads": self.threads, "value": value,
                "unit": unit, "ns": ns, "med_ns": median, "samples": samples,
            });
            say(line)
        } else {
            say(format_args!(
                "{workload:<24} {value:>12.1} {unit:<7} (median {median:.0} ns, {samples} samples)"
            ))
        }
    }
}

fn mode(text: Option<&str>) -> Outcome<Mode> {
    match text {
        None | Some("bench") => Ok(Mode::Bench),
        Some("first") => Ok(Mode::First),
        Some(text) => {
            let (workload, steps) = text
                .strip_prefix("rss:")
                .and_then(|rest| rest.rsplit_once(':'))
                .and_then(|(workload, steps)| Some((workload.to_owned(), steps.parse().ok()?)))
                .ok_or_else(|| {
                    format!("bench: BENCH_MODE is {text:?}, expected bench, first or rss:NAME:STEPS")
                })?;
            Ok(Mode::Memory { workload, steps })
        }
    }
}

/// The most memory this process ever had, in MiB; 0 where the system does not tell.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0)
        / 1024.0
}
