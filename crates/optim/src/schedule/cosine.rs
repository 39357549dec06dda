//! Rates along a cosine, and the rate of averaged weights.

use super::{Anneal, At, Schedule, check, check_list, finite, of_group};
use cresset_tensor::Result;
use std::f64::consts::PI;

/// From the rate to `eta_min` along half a cosine, and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineAnnealing {
    /// How many steps half a cosine takes.
    pub t_max: usize,
    /// The lowest rate.
    pub eta_min: f64,
}

impl Schedule for CosineAnnealing {
    const NAME: &'static str = "CosineAnnealingLR";

    fn next(&self, at: At) -> f64 {
        if at.is_start {
            return at.current;
        }
        let (epoch, max) = (at.epoch as i128, self.t_max as i128);
        if (epoch - 1 - max).rem_euclid(2 * max) == 0 {
            return at.current + (at.base - self.eta_min) * (1.0 - (PI / max as f64).cos()) / 2.0;
        }
        let height = |epoch: f64| 1.0 + (PI * epoch / max as f64).cos();
        height(epoch as f64) / height(epoch as f64 - 1.0) * (at.current - self.eta_min) + self.eta_min
    }

    fn closed(&self, at: At) -> Option<f64> {
        let height = 1.0 + (PI * at.epoch as f64 / self.t_max as f64).cos();
        Some(self.eta_min + (at.base - self.eta_min) * height / 2.0)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("eta_min", self.eta_min)])?;
        check(Self::NAME, "t_max", self.t_max as f64, self.t_max > 0, "at least 1")
    }
}

/// From the rate to `eta_min` along half a cosine, again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineAnnealingWarmRestarts {
    /// How many steps the first takes.
    pub t_0: usize,
    /// How many times longer than the last each is; 1 is usual.
    pub t_mult: usize,
    /// The lowest rate.
    pub eta_min: f64,
}

impl Schedule for CosineAnnealingWarmRestarts {
    const NAME: &'static str = "CosineAnnealingWarmRestarts";

    fn next(&self, at: At) -> f64 {
        let (mut since, mut length) = (at.epoch, self.t_0);
        while since >= length {
            since -= length;
            length = length.saturating_mul(self.t_mult);
        }
        let height = 1.0 + (PI * since as f64 / length as f64).cos();
        self.eta_min + (at.base - self.eta_min) * height / 2.0
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("eta_min", self.eta_min)])?;
        check(Self::NAME, "t_0", self.t_0 as f64, self.t_0 > 0, "at least 1")?;
        check(Self::NAME, "t_mult", self.t_mult as f64, self.t_mult > 0, "at least 1")
    }
}

/// From the rate to one that stays, for [averaged weights](crate::average::Average).
#[derive(Clone, Debug, PartialEq)]
pub struct Swa {
    /// The rate that stays, of all groups or of each.
    pub swa_lr: Vec<f64>,
    /// How many steps it takes; 10 is usual.
    pub anneal_epochs: usize,
    /// Along what.
    pub anneal_strategy: Anneal,
}

impl Swa {
    /// How far the way is done.
    fn done(&self, step: f64) -> f64 {
        let share = (step / self.anneal_epochs.max(1) as f64).clamp(0.0, 1.0);
        match self.anneal_strategy {
            Anneal::Linear => share,
            Anneal::Cos => (1.0 - (PI * share).cos()) / 2.0,
        }
    }
}

impl Schedule for Swa {
    const NAME: &'static str = "SWALR";

    fn next(&self, at: At) -> f64 {
        let least = if self.anneal_epochs == 0 { 1 } else { 0 };
        let step = at.epoch.max(least) as f64;
        let (target, before, now) =
            (of_group(&self.swa_lr, at.group), self.done(step - 1.0), self.done(step));
        let start = if before == 1.0 { target } else { (at.current - before * target) / (1.0 - before) };
        target * now + start * (1.0 - now)
    }

    fn check(&self, groups: usize) -> Result<()> {
        check_list(Self::NAME, "swa_lr", &self.swa_lr, groups)
    }
}
