//! What the NPU backend costs on the host, and how fast models train there, beside the host itself.
//!
//! Launches are timed without waiting for the device; it catches up between rounds. Which device it is, the
//! first line says: on the simulated one, kernels share the host's cores.

use super::harness::Harness;
use super::{Outcome, say};
use cresset::prelude::*;
use cresset::tensor::{Device, Storage};
use cresset::{npu, tensor::DType};
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 500;
const ROUNDS: usize = 60;
const LAUNCH: &str = "npu/launch_add2x2";
const IN_PLACE: &str = "npu/launch_add2x2_";
const HIT: &str = "npu/allocator_hit";
const HIT_AND_BACK: &str = "npu/allocator_hit_and_back";
const PROFILED: &str = "npu/profiled_add2x2";

pub(super) fn run(harness: &mut Harness) -> Outcome {
    if ![LAUNCH, IN_PLACE, HIT, HIT_AND_BACK, PROFILED].iter().any(|name| harness.takes(name)) {
        return Ok(());
    }
    let device = cresset::device("npu")?;
    say(format_args!("npu: {}", npu::info()?.soc))?;
    launches(harness, device)?;
    profiled(harness, device)
}

/// Nanoseconds per call of rounds, fastest first.
fn rounds(device: Device, mut call: impl FnMut() -> cresset::Result<()>) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(round(device, &mut call)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn round(device: Device, call: &mut impl FnMut() -> cresset::Result<()>) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..CALLS {
        call()?;
    }
    let passed = start.elapsed().as_nanos() as f64 / f64::from(CALLS);
    npu::synchronize(device)?;
    Ok(passed)
}

fn launches(harness: &mut Harness, device: Device) -> Outcome {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.to(device)?;
    if harness.takes(LAUNCH) {
        let times = rounds(device, || x.add(&x).map(|sum| drop(black_box(sum))))?;
        tell(harness, LAUNCH, &times)?;
    }
    if harness.takes(IN_PLACE) {
        let zero = Tensor::zeros([2, 2], device)?;
        let times = rounds(device, || x.add_(&zero))?;
        tell(harness, IN_PLACE, &times)?;
    }
    let storage = || Storage::new(device, 1024, DType::F32);
    if harness.takes(HIT) {
        tell(harness, HIT, &hits(storage)?)?;
    }
    if harness.takes(HIT_AND_BACK) {
        let times = rounds(device, || storage().map(|block| drop(black_box(block))))?;
        tell(harness, HIT_AND_BACK, &times)?;
    }
    Ok(())
}

/// Nanoseconds per storage whose memory is in the cache, of rounds, fastest first. All of a round's are
/// held until it is over.
fn hits(storage: impl Fn() -> cresset::Result<Storage>) -> Outcome<Vec<f64>> {
    let mut held = Vec::with_capacity(CALLS as usize);
    let mut times = Vec::new();
    // The first round fills the cache.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            held.push(storage()?);
        }
        let passed = start.elapsed().as_nanos() as f64 / f64::from(CALLS);
        held.clear();
        times.extend((round > 0).then_some(passed));
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// What a session adds to a launch: rounds with and without one take turns.
fn profiled(harness: &mut Harness, device: Device) -> Outcome {
    if !harness.takes(PROFILED) {
        return Ok(());
    }
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.to(device)?;
    let mut call = || x.add(&x).map(|sum| drop(black_box(sum)));
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(round(device, &mut call)?);
        let session = Profiler::builder().start()?;
        watched.push(round(device, &mut call)?);
        drop(session);
    }
    alone.sort_by(f64::total_cmp);
    watched.sort_by(f64::total_cmp);
    let added: Vec<f64> = alone.iter().zip(&watched).map(|(alone, watched)| watched - alone).collect();
    tell(harness, PROFILED, &added)
}

fn tell(harness: &mut Harness, name: &str, times: &[f64]) -> Outcome {
    harness.measured += 1;
    harness.tell(name, times[0], "ns", times[0], times[times.len() / 2], times.len())
}
