//! The training loop: steps, checkpoints, and a way out by Ctrl-C.
//!
//! Of several ranks all take the same steps; the first alone tells of them and saves them.

use super::super::Outcome;
use super::super::progress::Progress;
use super::curve::Point;
use super::profile::Profile;
use super::task::{Samples, Task};
use super::team::{self, Team};
use super::{Plan, Precision};
use cresset::checkpoint::{Checkpoints, TrainingState};
use cresset::data::{DataLoader, Pinned};
use cresset::nn::Layer;
use cresset::optim::schedule::{CosineAnnealing, Schedule, Scheduled, Scheduler};
use cresset::prelude::*;
use cresset::tensor::To;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// How a run ended.
pub(super) enum End {
    Finished,
    /// By Ctrl-C, with the directory of checkpoints if there is one.
    Interrupted(Option<PathBuf>),
}

/// A run and where it is.
pub(super) struct Fit<'a> {
    task: &'a Task,
    plan: Plan<'a>,
    device: Device,
    team: Option<Team>,
    loader: DataLoader<Pinned<Arc<Samples>>>,
    optimizer: AdamW,
    schedule: Scheduled<CosineAnnealing>,
    checkpoints: Option<Checkpoints>,
    /// How many steps were taken, in earlier runs too.
    pub(super) step: u64,
    first: u64,
    pub(super) curve: Vec<Point>,
    interrupted: Arc<AtomicBool>,
}

impl<'a> Fit<'a> {
    pub(super) fn new(
        task: &'a Task,
        plan: Plan<'a>,
        device: Device,
        team: Option<Team>,
    ) -> Outcome<Fit<'a>> {
        let arguments = plan.arguments;
        let samples = Pinned::new(task.training.clone()).only_if(!device.is_cpu());
        let loader = DataLoader::builder(samples).batch_size(plan.batch).shuffle(arguments.seed);
        let (rank, ranks) = team.as_ref().map_or((0, 1), |team| (team.rank(), team.size()));
        let loader = loader.shard(rank as usize, ranks as usize).build()?;
        let mut optimizer = AdamW::new(task.model.parameters(), plan.adam())?;
        let steps = plan.epochs * loader.len();
        let schedule = CosineAnnealing { t_max: steps, eta_min: 0.0 }.start(&mut optimizer)?;
        let checkpoints = arguments.checkpoint.as_ref().map(Checkpoints::new).transpose()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let told = interrupted.clone();
        ctrlc::set_handler(move || told.store(true, Relaxed))?;
        team::listen(&interrupted);
        let (step, first, curve) = (0, 0, Vec::new());
        let mut fit = Fit {
            task,
            plan,
            device,
            team,
            loader,
            optimizer,
            schedule,
            checkpoints,
            step,
            first,
            curve,
            interrupted,
        };
        fit.restore()?;
        Ok(fit)
    }

    /// How many steps this run took.
    pub(super) fn steps_taken(&self) -> u64 {
        self.step - self.first
    }

    /// Whether this is the only rank, or the first.
    fn is_first(&self) -> bool {
        self.team.as_ref().is_none_or(|team| team.rank() == 0)
    }

    /// Goes to where the newest checkpoint was, if that is asked for.
    fn restore(&mut self) -> Outcome {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        let newest = checkpoints.newest()?;
        let arguments = self.plan.arguments;
        let newest = match (newest, arguments.resume) {
            (Some(newest), true) => newest,
            (None, _) => return Ok(()),
            (Some(newest), false) => {
                let directory = newest.directory().display();
                return Err(format!("train: there is {directory} already; go on from it with --resume, or choose another directory").into());
            }
        };
        let saved = newest.state()?.notes;
        let differs = |(name, now): &(String, String)| {
            let then = saved.get(name)?;
            (then != now).then(|| format!("--{name} was {then} and is {now}"))
        };
        let differences: Vec<String> = self.plan.identity().iter().filter_map(differs).collect();
        if !differences.is_empty() {
            let list = differences.join(", ").replace("--model", "the model");
            return Err(format!("train: cannot go on from {}: {list}", newest.directory().display()).into());
        }
        let state = newest.restore(&*self.task.model, &mut self.optimizer)?;
        if let Some(schedule) = &state.schedule {
            self.schedule.load_state_dict(schedule)?;
        }
        (self.step, self.first) = (state.step, state.step);
        Ok(())
    }

    /// Takes all steps that are left.
    pub(super) fn run(&mut self) -> Outcome<End> {
        let arguments = self.plan.arguments;
        let steps = self.loader.len();
        let progress = self.is_first().then(|| Progress::new(self.plan.epochs, steps, self.step));
        let rank = self.team.as_ref().map(Team::rank);
        let mut profile = arguments
            .profile
            .as_deref()
            .map(|path| Profile::start(path, arguments.model, self.device, rank))
            .transpose()?;
        let begun = self.step / steps as u64;
        for epoch in begun..self.plan.epochs as u64 {
            let mut losses = Vec::new();
            let first = if epoch == begun { self.step % steps as u64 } else { 0 };
            for batch in self.loader.epoch_from(epoch, first as usize) {
                let (loss, interrupted) = self.take(batch?, epoch)?;
                losses.push(loss);
                if let Some(profile) = &mut profile {
                    profile.step()?;
                }
                if let Some(progress) = &progress {
                    progress.step(self.plan.batch, self.device);
                }
                if interrupted
                    || arguments.save_every.is_some_and(|every| every > 0 && self.step.is_multiple_of(every))
                {
                    self.save()?;
                }
                if interrupted {
                    return Ok(End::Interrupted(arguments.checkpoint.clone()));
                }
            }
            if let Some(progress) = progress.as_ref().filter(|_| !losses.is_empty()) {
                progress.epoch(epoch as usize + 1, losses.iter().sum::<f64>() / losses.len() as f64);
            }
            self.save()?;
        }
        drop(progress);
        if let Some(profile) = profile {
            profile.finish()?;
        }
        Ok(End::Finished)
    }

    /// One step: its loss, and whether it is to be the last.
    fn take(&mut self, [features, classes]: [Tensor; 2], epoch: u64) -> Outcome<(f64, bool)> {
        let started = Instant::now();
        let to = To { device: Some(self.device), non_blocking: true, ..To::default() };
        let batch = [features.to(to)?, classes.to(to)?];
        self.optimizer.zero_grad();
        let loss = self.backward(&batch)?;
        self.optimizer.step()?;
        let lr = self.optimizer.lr();
        self.schedule.step(&mut self.optimizer)?;
        self.step += 1;
        let loss = loss.map_or(Ok(0.0), |loss| loss.item().map(|loss| loss.as_f64()))?;
        let (loss, interrupted) = self.agree(loss, batch[0].shape()[0])?;
        if !loss.is_finite() {
            return Err(format!(
                "train: the loss is {loss} at step {} (epoch {}); try a smaller --lr than {}, or --detect-anomaly to see the first operator that goes wrong",
                self.step,
                epoch + 1,
                self.plan.arguments.lr
            )
            .into());
        }
        let seconds = started.elapsed().as_secs_f64();
        self.curve.push(Point { step: self.step, epoch: epoch + 1, loss, lr, seconds });
        Ok((loss, interrupted))
    }

    /// Computes the gradients of a batch, and its loss unless this rank has no samples of it.
    fn backward(&self, batch: &[Tensor; 2]) -> Outcome<Option<Tensor>> {
        let model: &Layer = self.team.as_ref().map_or(&*self.task.model, |team| &team.model);
        if let Some(team) = &self.team {
            let samples = batch[0].shape()[0];
            team.model.set_samples(samples);
            if samples == 0 {
                team.model.backward_without_samples()?;
                return Ok(None);
            }
        }
        let loss = match self.plan.arguments.dtype {
            Precision::F32 => self.task.loss(model, batch)?,
            Precision::Bf16 => cresset::autocast(DType::BF16, || self.task.loss(model, batch))?,
        };
        loss.backward()?;
        Ok(Some(loss))
    }

    /// The loss of all ranks together, and whether any of them was interrupted.
    fn agree(&self, loss: f64, samples: usize) -> Outcome<(f64, bool)> {
        let interrupted = self.interrupted.load(Relaxed);
        let Some(team) = &self.team else { return Ok((loss, interrupted)) };
        let together = team.agree(loss, samples, interrupted)?;
        Ok((together.loss, together.interrupted))
    }

    /// Saves where the run is, if there is a place for it.
    fn save(&self) -> Outcome {
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| self.is_first()) else { return Ok(()) };
        let steps = self.loader.len() as u64;
        let state = TrainingState {
            epoch: self.step / steps,
            batch: self.step % steps,
            schedule: Some(self.schedule.state_dict()),
            notes: self.plan.identity().into_iter().collect(),
            ..TrainingState::of(self.step, &self.optimizer)?
        };
        checkpoints.save(&*self.task.model, &state)?;
        Ok(())
    }
}
