//! Times a workload.
//!
//! It is warmed up, then run in batches of at least a millisecond until its time is spent.
//! The fastest batch counts: everything that disturbs a measurement makes it slower. With one
//! thread, time that other programs had the core is not counted.

use super::{Outcome, say};
use cresset::Result;
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What one call of a workload is, which decides the unit.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A call: nanoseconds each.
    Call,
    /// A training step: steps per second.
    Step,
    /// So many additions and multiplications: billions per second.
    Flops(f64),
    /// So many bytes that must move: billions per second.
    Bytes(f64),
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
        cresset::set_threads(threads);
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

    /// Whether `name`, which its workload measures by itself, is to be timed now.
    pub(super) fn takes(&mut self, name: &str) -> bool {
        let takes = !name.is_empty() && self.mode == Mode::Bench && self.wants(name);
        if !takes && !name.is_empty() && !self.left_out.iter().any(|known| known == name) {
            self.left_out.push(name.to_owned());
        }
        takes
    }

    /// Prepares and measures the workload `name`, if it is wanted.
    pub(super) fn bench<F, R>(
        &mut self,
        name: &str,
        work: Work,
        prepare: impl FnOnce() -> Outcome<F>,
    ) -> Outcome
    where
        F: FnMut() -> Result<R>,
    {
        if !self.wants(name) {
            self.left_out.push(name.to_owned());
            return Ok(());
        }
        self.measured += 1;
        let mut workload = prepare()?;
        let mut call = || workload().map(|result| drop(black_box(result)));
        if let Mode::Memory { steps, .. } = self.mode {
            (0..steps).try_for_each(|_| call())?;
            self.tell(&format!("w7/rss/{name}"), peak_memory(), "MiB", 0.0, 0.0, steps)?;
            return Ok(());
        }
        let Times { fastest, median, samples } = self.time(&mut call)?;
        let (value, unit) = match work {
            Work::Call => (fastest, "ns"),
            Work::Step => (1e9 / fastest, "step/s"),
            Work::Flops(count) => (count / fastest, "GFLOP/s"),
            Work::Bytes(count) => (count / fastest, "GB/s"),
        };
        self.tell(name, value, unit, fastest, median, samples)
    }

    fn time(&self, call: &mut impl FnMut() -> Result<()>) -> Result<Times> {
        let warm = Instant::now();
        let mut calls = 0u32;
        while calls < 2 || (warm.elapsed() < Duration::from_millis(50) && calls < 100_000) {
            call()?;
            calls += 1;
        }
        let each = timed(call, 1)?.0;
        let each = timed(call, batch(each))?.0;
        let batch = batch(each);
        let (mut walls, mut fastest) = (Vec::new(), f64::MAX);
        let started = Instant::now();
        while walls.len() < 5 || started.elapsed() < self.budget {
            let (wall, processor) = timed(call, batch)?;
            walls.push(wall);
            fastest = fastest.min(if self.threads == 1 { wall.min(processor) } else { wall });
            if started.elapsed() > Duration::from_secs(20) {
                break;
            }
        }
        walls.sort_by(f64::total_cmp);
        Ok(Times { fastest, median: walls[walls.len() / 2], samples: walls.len() })
    }

    pub(super) fn tell(
        &self,
        workload: &str,
        value: f64,
        unit: &str,
        ns: f64,
        median: f64,
        samples: usize,
    ) -> Outcome {
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

/// Nanoseconds per call.
struct Times {
    fastest: f64,
    median: f64,
    samples: usize,
}

/// How many calls of so many nanoseconds are worth a look at the clock.
fn batch(each: f64) -> u32 {
    (2e6 / each.max(10.0)).ceil().max(1.0) as u32
}

/// Nanoseconds per call that passed, and that this process had a processor for.
fn timed(call: &mut impl FnMut() -> Result<()>, count: u32) -> Result<(f64, f64)> {
    let (processor, wall) = (processor_time(), Instant::now());
    for _ in 0..count {
        call()?;
    }
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(count);
    let wall = each(wall.elapsed());
    let processor = processor_time().zip(processor).map(|(now, then)| each(now.saturating_sub(then)));
    Ok((wall, processor.unwrap_or(wall)))
}

/// How long this process has run on a processor, where the system tells.
pub(super) fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
    #[cfg(not(unix))]
    None
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
pub(super) fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0)
        / 1024.0
}
