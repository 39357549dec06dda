//! This process as one of several that train a model together.

use super::super::Outcome;
use cresset::distributed::{self, DataParallel, DataParallelOptions, ProcessGroup, Reduce, Rendezvous};
use cresset::nn::Layer;
use cresset::prelude::*;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Set for ranks that `cresset train --nproc` started: it holds the other end of their standard input.
pub(super) const LAUNCHED: &str = "CRESSET_LAUNCHED";

/// The ranks, and the model that they share.
pub(super) struct Team {
    group: ProcessGroup,
    pub(super) model: DataParallel<Arc<Layer>>,
}

/// What a step was on all ranks together.
pub(super) struct Together {
    /// The mean loss of all samples.
    pub(super) loss: f64,
    /// Whether any rank is to stop.
    pub(super) interrupted: bool,
}

impl Team {
    /// Joins the other ranks, and takes over the weights of the first. Gradients travel in buckets of so many KiB.
    pub(super) fn join(
        rendezvous: &Rendezvous,
        model: &Arc<Layer>,
        device: Device,
        bucket: Option<u32>,
    ) -> Outcome<Team> {
        let group = distributed::join(rendezvous, device, "world")?;
        if rendezvous.rank == 0 && is_launched() {
            // All have found each other. What is left behind if the launcher is killed would be nobody's.
            let _ = std::fs::remove_dir_all(&rendezvous.directory);
        }
        let mut options = DataParallelOptions::default();
        if let Some(kib) = bucket {
            options.bucket_bytes = (kib as usize) << 10;
            options.first_bucket_bytes = options.first_bucket_bytes.min(options.bucket_bytes);
        }
        let model = DataParallel::with(model.clone(), &group, options)?;
        Ok(Team { group, model })
    }

    pub(super) fn rank(&self) -> u32 {
        self.group.rank()
    }

    pub(super) fn size(&self) -> u32 {
        self.group.size()
    }

    /// Tells the other ranks how a step of `samples` was, and hears how theirs were.
    pub(super) fn agree(&self, loss: f64, samples: usize, interrupted: bool) -> Outcome<Together> {
        let sum = if samples == 0 { 0.0 } else { loss * samples as f64 };
        let told = [sum as f32, samples as f32, f32::from(u8::from(interrupted))];
        let told = Tensor::from_slice(&told, [3])?.to(self.group.device())?;
        self.group.all_reduce(&told, Reduce::Sum)?;
        let heard = told.to_vec::<f32>()?;
        Ok(Together { loss: f64::from(heard[0]) / f64::from(heard[1]), interrupted: heard[2] > 0.0 })
    }
}

/// The device of this rank: as many as there are ranks are used, one each.
pub(super) fn device_of(rendezvous: &Rendezvous, asked: &str) -> Outcome<Device> {
    if asked != "npu" {
        return Err(refuse_device(asked).into());
    }
    let name = format!("npu:{}", rendezvous.local_rank);
    device(&name).map_err(|error| {
        format!("train: rank {} has no device: {error}; start fewer ranks with --nproc", rendezvous.rank)
            .into()
    })
}

/// Why several ranks cannot train there.
pub(super) fn refuse_device(asked: &str) -> String {
    format!("train: --nproc is for --device npu, of which each rank has one; --device is {asked}")
}

fn is_launched() -> bool {
    std::env::var_os(LAUNCHED).is_some()
}

/// Listens to whoever started this rank: a byte asks it to stop after the step, and the end of the input means that
/// nobody waits for it any more.
pub(super) fn listen(interrupted: &Arc<AtomicBool>) {
    if !is_launched() {
        return;
    }
    let interrupted = interrupted.clone();
    thread::spawn(move || {
        let mut byte = [0];
        while let Ok(1) = std::io::stdin().read(&mut byte) {
            interrupted.store(true, Relaxed);
        }
        // It may be in the middle of waiting for another rank.
        std::process::exit(1);
    });
}
