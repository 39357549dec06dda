//! What the profiler costs: per call while it records, per call while it does not, and after the stop.
//!
//! A call's added cost is a difference of two times, so all settings take turns in short rounds, and
//! the fastest round of each counts: what is subtracted saw the same disturbances.

use super::Outcome;
use super::harness::{Harness, peak_memory, processor_time};
use cresset::prelude::*;
use cresset::profiler::Builder;
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 10_000;
const ROUNDS: usize = 40;
const EVENTS: u32 = 1_000_000;

/// What is measured: its name, what is switched on, what is done, and what it is compared with.
struct Case {
    name: &'static str,
    session: Option<fn() -> Builder>,
    body: Body,
    beside: usize,
}

#[derive(Clone, Copy)]
enum Body {
    /// An operator that computes next to nothing.
    Operator,
    /// The same without its span.
    Nothing,
    Scope,
    /// The operator below 32 frames.
    Deep,
}

/// The first two are what others are compared with.
const CASES: [Case; 9] = [
    Case { name: "", session: None, body: Body::Operator, beside: 0 },
    Case { name: "", session: None, body: Body::Nothing, beside: 0 },
    Case { name: "profiler/scope_off", session: None, body: Body::Scope, beside: 1 },
    Case { name: "profiler/scope_on", session: Some(Profiler::builder), body: Body::Scope, beside: 1 },
    Case { name: "profiler/op", session: Some(Profiler::builder), body: Body::Operator, beside: 0 },
    Case {
        name: "profiler/op_shapes",
        session: Some(|| Profiler::builder().record_shapes(true)),
        body: Body::Operator,
        beside: 4,
    },
    Case {
        name: "profiler/op_memory",
        session: Some(|| Profiler::builder().profile_memory(true)),
        body: Body::Operator,
        beside: 4,
    },
    Case { name: "", session: Some(Profiler::builder), body: Body::Deep, beside: 0 },
    Case {
        name: "profiler/op_stack32",
        session: Some(|| Profiler::builder().with_stack(true)),
        body: Body::Deep,
        beside: 7,
    },
];

pub(super) fn run(harness: &mut Harness) -> Outcome {
    // First, while no memory of the profiler's was touched yet.
    after_the_run(harness)?;
    per_call(harness)?;
    off(harness)
}

fn per_call(harness: &mut Harness) -> Outcome {
    if !CASES.iter().any(|case| harness.takes(case.name)) {
        return Ok(());
    }
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    let mut times = [const { Vec::new() }; CASES.len()];
    for _ in 0..ROUNDS {
        for (case, times) in CASES.iter().zip(&mut times) {
            times.push(round(case, &x)?);
        }
    }
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    for (case, own) in CASES.iter().zip(&times) {
        if harness.takes(case.name) {
            let beside = &times[case.beside];
            let (fastest, median) = (own[0] - beside[0], own[ROUNDS / 2] - beside[ROUNDS / 2]);
            harness.measured += 1;
            harness.tell(case.name, fastest, "ns", fastest, median, ROUNDS)?;
        }
    }
    Ok(())
}

/// Nanoseconds per call.
fn round(case: &Case, x: &Tensor) -> Outcome<f64> {
    let session = case.session.map(|builder| builder().start()).transpose()?;
    let start = Instant::now();
    for _ in 0..CALLS {
        match case.body {
            Body::Operator => drop(black_box(x.add(x)?)),
            Body::Nothing => {
                black_box(x);
            }
            Body::Scope => drop(record_function(black_box("forward"))),
            Body::Deep => deep(x, 32)?,
        }
    }
    let nanos = start.elapsed().as_nanos() as f64 / f64::from(CALLS);
    drop(session);
    Ok(nanos)
}

#[inline(never)]
fn deep(x: &Tensor, frames: u32) -> cresset::Result<()> {
    match frames {
        0 => drop(black_box(x.add(x)?)),
        _ => deep(black_box(x), frames - 1)?,
    }
    // Something to come back for, so that no frame is left out.
    black_box(frames);
    Ok(())
}

/// The one branch of a call that nobody watches.
fn off(harness: &mut Harness) -> Outcome {
    let name = "profiler/off";
    if !harness.takes(name) {
        return Ok(());
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(cresset::profiler::is_watched());
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    times.sort_by(f64::total_cmp);
    harness.measured += 1;
    harness.tell(name, times[0], "ns", times[0], times[ROUNDS / 2], ROUNDS)
}

/// A million events, the first of the process: recorded, stopped, averaged, written.
fn after_the_run(harness: &mut Harness) -> Outcome {
    const FIRST: &str = "profiler/op_first_million";
    const PARTS: [&str; 4] = ["profiler/stop", "profiler/averages", "profiler/chrome", "profiler/all_three"];
    const PEAK: &str = "profiler/peak_memory";
    if ![FIRST, PEAK].iter().chain(&PARTS).any(|name| harness.takes(name)) {
        return Ok(());
    }
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    let calls = || (0..EVENTS).try_for_each(|_| x.add(&x).map(|sum| drop(black_box(sum))));
    let alone = processor(calls)?;
    let mut profiler = Profiler::builder().start()?;
    let added = (processor(calls)? - alone) / f64::from(EVENTS);
    let path = std::env::temp_dir().join(format!("cresset-bench-{}.json", std::process::id()));
    let start = Instant::now();
    profiler.stop()?;
    let stopped = start.elapsed();
    black_box(profiler.key_averages()?);
    let averaged = start.elapsed();
    profiler.export_chrome_trace(&path)?;
    let written = start.elapsed();
    std::fs::remove_file(&path)?;
    let times = [stopped, averaged - stopped, written - averaged, written];
    harness.measured += PARTS.len() + 2;
    harness.tell(FIRST, added, "ns", added, added, 1)?;
    for (name, time) in PARTS.into_iter().zip(times) {
        let nanos = time.as_nanos() as f64;
        harness.tell(name, nanos / 1e6, "ms", nanos, nanos, 1)?;
    }
    harness.tell(PEAK, peak_memory(), "MiB", 0.0, 0.0, 1)
}

/// Nanoseconds this process had a processor for `body`; by the clock where the system does not tell.
fn processor(body: impl Fn() -> cresset::Result<()>) -> Outcome<f64> {
    let (clock, before) = (Instant::now(), processor_time());
    body()?;
    let spent = processor_time().zip(before).map(|(now, then)| now.saturating_sub(then));
    Ok(spent.unwrap_or_else(|| clock.elapsed()).as_nanos() as f64)
}
