//! Schedulers made of others.

use super::{ScheduleState, Scheduler};
use crate::Optimizer;
use crate::descent::check_count;
use cresset_tensor::{Cause, Error, Result};

/// A scheduler of any kind.
type Part = Box<dyn Scheduler>;

/// One scheduler after the other.
pub struct Sequential {
    parts: Vec<Part>,
    milestones: Vec<usize>,
    epoch: usize,
    lrs: Vec<f64>,
}

impl Sequential {
    /// Goes on with the next of `parts` at each of `milestones`, and starts with the first now.
    ///
    /// # Errors
    /// If there are no parts, or not one milestone less than parts, in rising order.
    pub fn new(
        parts: Vec<Box<dyn Scheduler>>,
        milestones: Vec<usize>,
        optimizer: &mut dyn Optimizer,
    ) -> Result<Sequential> {
        if parts.is_empty() {
            return Err(Error::new(
                Cause::Argument,
                "SequentialLR",
                "there are no parts, expected at least one",
            ));
        }
        check_count("SequentialLR", "milestones", milestones.len(), parts.len() - 1)?;
        if !milestones.is_sorted() {
            let text = format_args!("milestones are {milestones:?}, expected rising ones");
            return Err(Error::new(Cause::Argument, "SequentialLR", text));
        }
        let mut sequential = Sequential { parts, milestones, epoch: 0, lrs: Vec::new() };
        sequential.begin(optimizer)?;
        Ok(sequential)
    }

    /// The part of a count of steps.
    fn part(&self, epoch: usize) -> usize {
        self.milestones.iter().filter(|&&milestone| milestone <= epoch).count()
    }
}

impl Scheduler for Sequential {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let epoch = self.epoch + 1;
        let part = self.part(epoch);
        let is_new = part > 0 && self.milestones[part - 1] == epoch;
        let scheduler = &mut self.parts[part];
        if is_new {
            scheduler.restart(optimizer)?
        } else {
            scheduler.step(optimizer)?
        }
        self.epoch = epoch;
        self.lrs = scheduler.lrs();
        Ok(())
    }

    fn begin(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let initial = optimizer.initial_lrs();
        optimizer.set_lrs(&initial)?;
        let part = self.part(0);
        self.parts[part].begin(optimizer)?;
        self.epoch = 0;
        self.lrs = self.parts[part].lrs();
        Ok(())
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.begin(optimizer)
    }

    fn epoch(&self) -> usize {
        self.epoch
    }

    fn lrs(&self) -> Vec<f64> {
        self.lrs.clone()
    }

    fn state_dict(&self) -> ScheduleState {
        let parts = self.parts.iter().map(|part| part.state_dict()).collect();
        ScheduleState { epoch: self.epoch, lrs: self.lrs.clone(), parts, ..ScheduleState::default() }
    }

    fn load_state_dict(&mut self, state: &ScheduleState) -> Result<()> {
        check_count("SequentialLR", "parts", state.parts.len(), self.parts.len())?;
        self.parts.iter_mut().zip(&state.parts).try_for_each(|(part, state)| part.load_state_dict(state))?;
        self.epoch = state.epoch;
        self.lrs.clone_from(&state.lrs);
        Ok(())
    }
}

/// Several schedulers at once, each changing what the one before it set.
pub struct Chained {
    parts: Vec<Part>,
    lrs: Vec<f64>,
}

impl Chained {
    /// All of `parts`, in this order, on the optimizer that they were started with.
    ///
    /// # Errors
    /// If there are none.
    pub fn new(parts: Vec<Box<dyn Scheduler>>, optimizer: &dyn Optimizer) -> Result<Chained> {
        if parts.is_empty() {
            let text = "there are no parts, expected at least one";
            return Err(Error::new(Cause::Argument, "ChainedScheduler", text));
        }
        Ok(Chained { parts, lrs: optimizer.lrs() })
    }

    fn each(
        &mut self,
        optimizer: &mut dyn Optimizer,
        run: fn(&mut dyn Scheduler, &mut dyn Optimizer) -> Result<()>,
    ) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| run(&mut **part, optimizer))?;
        self.lrs = optimizer.lrs();
        Ok(())
    }
}

impl Scheduler for Chained {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.each(optimizer, |part, optimizer| part.step(optimizer))
    }

    fn begin(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.each(optimizer, |part, optimizer| part.begin(optimizer))
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let initial = optimizer.initial_lrs();
        optimizer.set_lrs(&initial)?;
        self.begin(optimizer)
    }

    fn epoch(&self) -> usize {
        self.parts[0].epoch()
    }

    fn lrs(&self) -> Vec<f64> {
        self.lrs.clone()
    }

    fn state_dict(&self) -> ScheduleState {
        let parts = self.parts.iter().map(|part| part.state_dict()).collect();
        ScheduleState { epoch: self.epoch(), lrs: self.lrs.clone(), parts, ..ScheduleState::default() }
    }

    fn load_state_dict(&mut self, state: &ScheduleState) -> Result<()> {
        check_count("ChainedScheduler", "parts", state.parts.len(), self.parts.len())?;
        self.parts.iter_mut().zip(&state.parts).try_for_each(|(part, state)| part.load_state_dict(state))?;
        self.lrs.clone_from(&state.lrs);
        Ok(())
    }
}
