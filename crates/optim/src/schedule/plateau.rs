//! Rates that fall when a measure stops getting better.

use super::{ScheduleState, check, check_list, finite, of_group};
use crate::Optimizer;
use crate::value::choices;
use cresset_tensor::{Cause, Error, Result};
use std::collections::BTreeMap;

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Down, as a loss.
    #[default]
    Min,
    /// Up, as an accuracy.
    Max,
}

choices!(Direction, "\"min\" or \"max\"": Min = "min", Max = "max");

/// What a threshold is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// The share of the best so far.
    #[default]
    Rel,
    /// The difference to the best so far.
    Abs,
}

choices!(Threshold, "\"rel\" or \"abs\"": Rel = "rel", Abs = "abs");

/// Multiplies the rates when a measure has not become better for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceOnPlateau {
    /// Which way is better.
    pub mode: Direction,
    /// What the rates are multiplied by.
    pub factor: f64,
    /// How many steps without progress are put up with.
    pub patience: usize,
    /// How much better is better.
    pub threshold: f64,
    /// What that is compared with.
    pub threshold_mode: Threshold,
    /// How many steps to wait after rates have changed.
    pub cooldown: usize,
    /// The lowest rate, of all groups or of each.
    pub min_lr: Vec<f64>,
    /// The least change of a rate.
    pub eps: f64,
    progress: Progress,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Progress {
    best: Option<f64>,
    bad: usize,
    cooling: usize,
    epoch: usize,
    lrs: Vec<f64>,
}

impl Default for ReduceOnPlateau {
    fn default() -> ReduceOnPlateau {
        ReduceOnPlateau {
            mode: Direction::Min,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            threshold_mode: Threshold::Rel,
            cooldown: 0,
            min_lr: vec![0.0],
            eps: 1e-8,
            progress: Progress::default(),
        }
    }
}

const NAME: &str = "ReduceLROnPlateau";

impl ReduceOnPlateau {
    /// A scheduler that falls by `factor` after more than `patience` steps without progress. The other
    /// fields may be set before it is used.
    pub fn new(factor: f64, patience: usize) -> ReduceOnPlateau {
        ReduceOnPlateau { factor, patience, ..ReduceOnPlateau::default() }
    }

    /// Takes note of a measure, and changes the rates if it is time.
    ///
    /// # Errors
    /// If a factor is not below 1, a number is not finite, or there is not one lowest rate for all groups or for each.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, measure: f64) -> Result<()> {
        let mut lrs = optimizer.lrs();
        check(NAME, "factor", self.factor, self.factor < 1.0, "below 1")?;
        finite(NAME, &[("factor", self.factor), ("threshold", self.threshold), ("eps", self.eps)])?;
        check_list(NAME, "min_lr", &self.min_lr, lrs.len())?;
        self.progress.epoch += 1;
        if self.is_better(measure) {
            self.progress.best = Some(measure);
            self.progress.bad = 0;
        } else {
            self.progress.bad += 1;
        }
        if self.progress.cooling > 0 {
            self.progress.cooling -= 1;
            self.progress.bad = 0;
        }
        if self.progress.bad > self.patience {
            for (group, lr) in lrs.iter_mut().enumerate() {
                let lower = (*lr * self.factor).max(of_group(&self.min_lr, group));
                if *lr - lower > self.eps {
                    *lr = lower;
                }
            }
            optimizer.set_lrs(&lrs)?;
            self.progress.cooling = self.cooldown;
            self.progress.bad = 0;
        }
        self.progress.lrs = lrs;
        Ok(())
    }

    fn is_better(&self, measure: f64) -> bool {
        let worst = if self.mode == Direction::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        let best = self.progress.best.unwrap_or(worst);
        match (self.mode, self.threshold_mode) {
            (Direction::Min, Threshold::Rel) => measure < best * (1.0 - self.threshold),
            (Direction::Min, Threshold::Abs) => measure < best - self.threshold,
            (Direction::Max, Threshold::Rel) => measure > best * (1.0 + self.threshold),
            (Direction::Max, Threshold::Abs) => measure > best + self.threshold,
        }
    }

    /// The rates that it left last, of each group.
    pub fn lrs(&self) -> &[f64] {
        &self.progress.lrs
    }

    /// The best measure so far.
    pub fn best(&self) -> Option<f64> {
        self.progress.best
    }

    /// Where it is.
    pub fn state_dict(&self) -> ScheduleState {
        let Progress { best, bad, cooling, epoch, lrs } = self.progress.clone();
        let mut numbers = BTreeMap::from([
            ("num_bad_epochs".to_owned(), bad as f64),
            ("cooldown_counter".to_owned(), cooling as f64),
        ]);
        numbers.extend(best.map(|best| ("best".to_owned(), best)));
        ScheduleState { epoch, lrs, numbers, ..ScheduleState::default() }
    }

    /// Goes on from where another was.
    ///
    /// # Errors
    /// If it is the state of a scheduler of another kind.
    pub fn load_state_dict(&mut self, state: &ScheduleState) -> Result<()> {
        let count = |name: &str| {
            let missing = || Error::new(Cause::Argument, NAME, format_args!("the state has no {name}"));
            state.numbers.get(name).map(|&number| number as usize).ok_or_else(missing)
        };
        self.progress = Progress {
            best: state.numbers.get("best").copied(),
            bad: count("num_bad_epochs")?,
            cooling: count("cooldown_counter")?,
            epoch: state.epoch,
            lrs: state.lrs.clone(),
        };
        Ok(())
    }
}
