//! Learning rates over time.
//!
//! A rule is a plain value; [`Schedule::start`] puts it to work on an optimizer, and each
//! [`Scheduler::step`] moves on by one. Formulas are torch's, in the form that multiplies the present
//! rate, so that several schedulers can change one optimizer.
//!
//! ```
//! use cresset_optim::schedule::{CosineAnnealing, Schedule, Scheduler};
//! use cresset_optim::{Optimizer, Sgd, SgdOptions, Tensor};
//!
//! let weight = Tensor::ones([2], ())?.with_grad()?;
//! let mut optimizer = Sgd::new(vec![weight], SgdOptions { lr: 0.1, ..Default::default() })?;
//! let mut scheduler = CosineAnnealing { t_max: 10, eta_min: 0.0 }.start(&mut optimizer)?;
//! for _ in 0..10 {
//!     optimizer.step()?;
//!     scheduler.step(&mut optimizer)?;
//! }
//! assert!(optimizer.lr() < 1e-9);
//! # Ok::<(), cresset_optim::Error>(())
//! ```

mod compose;
mod cosine;
mod cycle;
mod factor;
mod flat;
mod plateau;

pub use compose::{Chained, Sequential};
pub use cosine::{CosineAnnealing, CosineAnnealingWarmRestarts, Swa};
pub use cycle::{Anneal, Cyclic, CyclicMode, CyclicScale, OneCycle};
pub use factor::{
    Constant, Exponential, Function, Lambda, Linear, MultiStep, Multiplicative, Polynomial, StepEvery,
};
pub use plateau::{Direction, ReduceOnPlateau, Threshold};

use crate::descent::check_count;
use crate::value::finite;
use crate::{Optimizer, Value};
use cresset_tensor::{Cause, Error, Result};
use std::collections::BTreeMap;

/// Changes the learning rates of an optimizer from step to step.
pub trait Scheduler {
    /// Moves on by one.
    ///
    /// # Errors
    /// If the optimizer has not as many groups as it had, or the schedule is over.
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// Starts over, as when it was made.
    ///
    /// # Errors
    /// As [`step`](Scheduler::step).
    fn begin(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// Goes to its first rates, whatever they are now.
    ///
    /// # Errors
    /// As [`step`](Scheduler::step).
    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// How many steps there were.
    fn epoch(&self) -> usize;

    /// The rates that it set last, of each group.
    fn lrs(&self) -> Vec<f64>;

    /// Where it is. What the rule itself is made of is not part of it.
    fn state_dict(&self) -> ScheduleState;

    /// Goes on from where another of the same kind was.
    ///
    /// # Errors
    /// If it does not fit.
    fn load_state_dict(&mut self, state: &ScheduleState) -> Result<()>;
}

/// Where a scheduler is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleState {
    /// How many steps there were.
    pub epoch: usize,
    /// What each group started from.
    pub base_lrs: Vec<f64>,
    /// The rates that it set last.
    pub lrs: Vec<f64>,
    /// What else there is, by torch's names.
    pub numbers: BTreeMap<String, f64>,
    /// The schedulers that it is made of.
    pub parts: Vec<ScheduleState>,
}

/// Where and when a rule is asked.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// How many steps there were.
    pub epoch: usize,
    /// The group.
    pub group: usize,
    /// The group's rate now.
    pub current: f64,
    /// The rate that the group started from.
    pub base: f64,
    /// Whether the scheduler is being made.
    pub is_start: bool,
}

/// A rule for learning rates.
pub trait Schedule: Sized {
    /// The name in messages.
    const NAME: &'static str;

    /// The rate of a group, from that of now.
    fn next(&self, at: At) -> f64;

    /// The rate of a group, from where it started alone; `None` if [`next`](Schedule::next) says that.
    fn closed(&self, _at: At) -> Option<f64> {
        None
    }

    /// The rate that a group starts from, given what it had.
    fn base(&self, _group: usize, initial: f64) -> f64 {
        initial
    }

    /// The momentum of a group, for rules that change it too.
    fn momentum(&self, _at: At) -> Option<f64> {
        None
    }

    /// The last step of a rule that ends.
    fn last(&self) -> Option<usize> {
        None
    }

    /// Refuses numbers that it cannot work with, for so many groups.
    ///
    /// # Errors
    /// If there is one: it is named, with what would be accepted.
    fn check(&self, _groups: usize) -> Result<()> {
        Ok(())
    }

    /// Sets the first rates.
    ///
    /// # Errors
    /// If the rule cannot work with its numbers, or the optimizer has no momentum that it should change.
    fn start(self, optimizer: &mut dyn Optimizer) -> Result<Scheduled<Self>> {
        let initial = optimizer.initial_lrs();
        self.check(initial.len())?;
        let base = initial.iter().enumerate().map(|(group, &lr)| self.base(group, lr)).collect();
        let mut scheduled = Scheduled { rule: self, epoch: 0, base, lrs: Vec::new() };
        scheduled.apply(optimizer, true, false)?;
        Ok(scheduled)
    }
}

/// A rule at work.
#[derive(Clone, Debug)]
pub struct Scheduled<R> {
    rule: R,
    epoch: usize,
    base: Vec<f64>,
    lrs: Vec<f64>,
}

impl<R: Schedule> Scheduled<R> {
    /// The rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    fn apply(&mut self, optimizer: &mut dyn Optimizer, is_start: bool, closed: bool) -> Result<()> {
        if let Some(last) = self.rule.last().filter(|&last| self.epoch > last) {
            let text = format_args!("step {} of a schedule of {last}, expected no more", self.epoch);
            return Err(Error::new(Cause::Argument, R::NAME, text));
        }
        let now = optimizer.lrs();
        check_count(R::NAME, "groups", now.len(), self.base.len())?;
        let at = |group: usize| At {
            epoch: self.epoch,
            group,
            current: now[group],
            base: self.base[group],
            is_start,
        };
        let lr = |group: usize| {
            let closed = if closed { self.rule.closed(at(group)) } else { None };
            closed.unwrap_or_else(|| self.rule.next(at(group)))
        };
        let lrs: Vec<f64> = (0..now.len()).map(lr).collect();
        for group in 0..now.len() {
            if let Some(momentum) = self.rule.momentum(at(group)) {
                set_momentum(R::NAME, optimizer, group, momentum)?;
            }
        }
        optimizer.set_lrs(&lrs)?;
        self.lrs = lrs;
        Ok(())
    }
}

/// Changes the momentum of a group, or the first of its betas.
fn set_momentum(
    name: &'static str,
    optimizer: &mut dyn Optimizer,
    group: usize,
    momentum: f64,
) -> Result<()> {
    if let Some(Value::List(mut betas)) = optimizer.option(group, "betas") {
        betas[0] = Value::Float(momentum);
        return optimizer.set_option(group, "betas", Value::List(betas));
    }
    if optimizer.option(group, "momentum").is_some() {
        return optimizer.set_option(group, "momentum", Value::Float(momentum));
    }
    let text = format_args!(
        "{} has no momentum to be cycled, expected one with momentum or betas, or cycle_momentum: false",
        optimizer.name()
    );
    Err(Error::new(Cause::Argument, name, text))
}

impl<R: Schedule> Scheduler for Scheduled<R> {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.epoch += 1;
        let outcome = self.apply(optimizer, false, false);
        if outcome.is_err() {
            self.epoch -= 1;
        }
        outcome
    }

    fn begin(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.epoch = 0;
        self.apply(optimizer, true, false)
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.epoch = 0;
        self.apply(optimizer, false, true)
    }

    fn epoch(&self) -> usize {
        self.epoch
    }

    fn lrs(&self) -> Vec<f64> {
        self.lrs.clone()
    }

    fn state_dict(&self) -> ScheduleState {
        ScheduleState {
            epoch: self.epoch,
            base_lrs: self.base.clone(),
            lrs: self.lrs.clone(),
            ..ScheduleState::default()
        }
    }

    fn load_state_dict(&mut self, state: &ScheduleState) -> Result<()> {
        check_count(R::NAME, "groups", state.base_lrs.len(), self.base.len())?;
        self.epoch = state.epoch;
        self.base.clone_from(&state.base_lrs);
        self.lrs.clone_from(&state.lrs);
        Ok(())
    }
}

/// Refuses a number that a rule cannot work with.
fn check(name: &'static str, what: &str, value: f64, allowed: bool, expected: &str) -> Result<()> {
    crate::value::check(name, what, value, allowed, expected)
}

/// One number for all groups, or one for each.
fn of_group(list: &[f64], group: usize) -> f64 {
    list.get(group).or(list.first()).copied().unwrap_or(0.0)
}

/// Refuses lists that are neither for all groups nor for each, and numbers in them that are none.
fn check_list(name: &'static str, what: &str, list: &[f64], groups: usize) -> Result<()> {
    if list.len() == 1 || list.len() == groups {
        return list.iter().try_for_each(|&number| finite(name, &[(what, number)]));
    }
    let text = format_args!("there are {} of {what}, expected 1 or {groups}", list.len());
    Err(Error::new(Cause::Argument, name, text))
}
