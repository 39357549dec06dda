//! Rates that rise and fall, with momentum that falls and rises.

use super::{At, Schedule, check, check_list, finite, of_group};
use crate::value::choices;
use cresset_tensor::Result;
use std::f64::consts::PI;

/// The way from one number to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anneal {
    /// Half a cosine.
    #[default]
    Cos,
    /// A straight line.
    Linear,
}

choices!(Anneal, "\"cos\" or \"linear\"": Cos = "cos", Linear = "linear");

impl Anneal {
    fn between(self, start: f64, end: f64, share: f64) -> f64 {
        match self {
            Anneal::Cos => end + (start - end) / 2.0 * ((PI * share).cos() + 1.0),
            Anneal::Linear => (end - start) * share + start,
        }
    }
}

/// How the height of cycles changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CyclicMode {
    /// It stays.
    #[default]
    Triangular,
    /// Each cycle is half as high.
    Triangular2,
    /// By `gamma`, each step.
    ExpRange,
}

choices!(CyclicMode, "\"triangular\", \"triangular2\" or \"exp_range\"":
    Triangular = "triangular", Triangular2 = "triangular2", ExpRange = "exp_range");

/// A height of cycles as a function: torch's `scale_fn`, and by `scale_mode` what it is given.
#[derive(Clone, Copy, Debug)]
pub enum CyclicScale {
    /// Of the number of the cycle, from 1.
    OfCycle(fn(f64) -> f64),
    /// Of the number of the step, from 0.
    OfStep(fn(f64) -> f64),
}

/// Up and down between two rates.
#[derive(Clone, Debug)]
pub struct Cyclic {
    /// The lowest rate, of all groups or of each.
    pub base_lr: Vec<f64>,
    /// The highest rate, of all groups or of each.
    pub max_lr: Vec<f64>,
    /// How many steps the way up takes.
    pub step_size_up: usize,
    /// How many steps the way down takes; as many as up if `None`.
    pub step_size_down: Option<usize>,
    /// How the height changes.
    pub mode: CyclicMode,
    /// What the height is multiplied by each step, with [`CyclicMode::ExpRange`].
    pub gamma: f64,
    /// A rule of one's own for the height, in the place of the mode.
    pub scale: Option<CyclicScale>,
    /// Whether the momentum goes the other way.
    pub cycle_momentum: bool,
    /// The lowest momentum.
    pub base_momentum: Vec<f64>,
    /// The highest momentum.
    pub max_momentum: Vec<f64>,
}

impl Default for Cyclic {
    fn default() -> Cyclic {
        Cyclic {
            base_lr: vec![1e-3],
            max_lr: vec![1e-2],
            step_size_up: 2000,
            step_size_down: None,
            mode: CyclicMode::Triangular,
            gamma: 1.0,
            scale: None,
            cycle_momentum: true,
            base_momentum: vec![0.8],
            max_momentum: vec![0.9],
        }
    }
}

impl Cyclic {
    /// How high it is now: from 0 to 1 and back, times the height of the cycle.
    fn height(&self, epoch: usize) -> f64 {
        let up = self.step_size_up as f64;
        let total = up + self.step_size_down.map_or(up, |down| down as f64);
        let (turns, ratio) = (epoch as f64 / total, up / total);
        let cycle = (1.0 + turns).floor();
        let x = 1.0 + turns - cycle;
        let share = if x <= ratio { x / ratio } else { (x - 1.0) / (ratio - 1.0) };
        let scale = match (self.scale, self.mode) {
            (Some(CyclicScale::OfCycle(scale)), _) => scale(cycle),
            (Some(CyclicScale::OfStep(scale)), _) => scale(epoch as f64),
            (None, CyclicMode::Triangular) => 1.0,
            (None, CyclicMode::Triangular2) => 1.0 / 2f64.powf(cycle - 1.0),
            (None, CyclicMode::ExpRange) => self.gamma.powf(epoch as f64),
        };
        share * scale
    }
}

impl Schedule for Cyclic {
    const NAME: &'static str = "CyclicLR";

    fn next(&self, at: At) -> f64 {
        at.base + (of_group(&self.max_lr, at.group) - at.base) * self.height(at.epoch)
    }

    fn base(&self, group: usize, _initial: f64) -> f64 {
        of_group(&self.base_lr, group)
    }

    fn momentum(&self, at: At) -> Option<f64> {
        let (low, high) = (of_group(&self.base_momentum, at.group), of_group(&self.max_momentum, at.group));
        self.cycle_momentum.then(|| high - (high - low) * self.height(at.epoch))
    }

    fn check(&self, groups: usize) -> Result<()> {
        check(Self::NAME, "step_size_up", self.step_size_up as f64, self.step_size_up > 0, "at least 1")?;
        finite(Self::NAME, &[("gamma", self.gamma)])?;
        check_list(Self::NAME, "base_lr", &self.base_lr, groups)?;
        check_list(Self::NAME, "max_lr", &self.max_lr, groups)?;
        check_list(Self::NAME, "base_momentum", &self.base_momentum, groups)?;
        check_list(Self::NAME, "max_momentum", &self.max_momentum, groups)
    }
}

/// Up once, and down to almost nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct OneCycle {
    /// The highest rate, of all groups or of each.
    pub max_lr: Vec<f64>,
    /// How many steps there are in all.
    pub total_steps: usize,
    /// The share of steps on the way up.
    pub pct_start: f64,
    /// The way between rates.
    pub anneal_strategy: Anneal,
    /// Whether the momentum goes the other way.
    pub cycle_momentum: bool,
    /// The lowest momentum.
    pub base_momentum: Vec<f64>,
    /// The highest momentum.
    pub max_momentum: Vec<f64>,
    /// How many times the first rate is in the highest.
    pub div_factor: f64,
    /// How many times the last rate is in the first.
    pub final_div_factor: f64,
    /// Whether to come back to the first rate before the end.
    pub three_phase: bool,
}

impl Default for OneCycle {
    fn default() -> OneCycle {
        OneCycle {
            max_lr: vec![1e-2],
            total_steps: 1,
            pct_start: 0.3,
            anneal_strategy: Anneal::Cos,
            cycle_momentum: true,
            base_momentum: vec![0.85],
            max_momentum: vec![0.95],
            div_factor: 25.0,
            final_div_factor: 1e4,
            three_phase: false,
        }
    }
}

/// What a phase goes between: the first rate, the highest, the last.
#[derive(Clone, Copy)]
enum Rate {
    First,
    Highest,
    Last,
}

impl OneCycle {
    /// The phase of a step, from what to what, and the share of it that is done.
    fn phase(&self, epoch: usize) -> (Rate, Rate, f64) {
        use Rate::*;
        let (total, step) = (self.total_steps as f64, epoch as f64);
        let up = self.pct_start * total - 1.0;
        let down = 2.0 * self.pct_start * total - 2.0;
        let phases: &[(f64, Rate, Rate)] = if self.three_phase {
            &[(up, First, Highest), (down, Highest, First), (total - 1.0, First, Last)]
        } else {
            &[(up, First, Highest), (total - 1.0, Highest, Last)]
        };
        let mut start = 0.0;
        let mut now = (First, First, 0.0);
        for &(end, from, to) in phases {
            now = (from, to, (step - start) / (end - start));
            if step <= end {
                break;
            }
            start = end;
        }
        now
    }
}

impl Schedule for OneCycle {
    const NAME: &'static str = "OneCycleLR";

    fn next(&self, at: At) -> f64 {
        let rate = |rate: Rate| match rate {
            Rate::First => at.base,
            Rate::Highest => of_group(&self.max_lr, at.group),
            Rate::Last => at.base / self.final_div_factor,
        };
        let (from, to, share) = self.phase(at.epoch);
        self.anneal_strategy.between(rate(from), rate(to), share)
    }

    fn base(&self, group: usize, _initial: f64) -> f64 {
        of_group(&self.max_lr, group) / self.div_factor
    }

    fn momentum(&self, at: At) -> Option<f64> {
        let momentum = |rate: Rate| match rate {
            Rate::First | Rate::Last => of_group(&self.max_momentum, at.group),
            Rate::Highest => of_group(&self.base_momentum, at.group),
        };
        let (from, to, share) = self.phase(at.epoch);
        self.cycle_momentum.then(|| self.anneal_strategy.between(momentum(from), momentum(to), share))
    }

    fn last(&self) -> Option<usize> {
        Some(self.total_steps)
    }

    fn check(&self, groups: usize) -> Result<()> {
        let share = self.pct_start;
        check(Self::NAME, "total_steps", self.total_steps as f64, self.total_steps > 0, "at least 1")?;
        check(Self::NAME, "pct_start", share, (0.0..=1.0).contains(&share), "from 0 to 1")?;
        for (name, factor) in [("div_factor", self.div_factor), ("final_div_factor", self.final_div_factor)] {
            let allowed = factor > 0.0 && factor.is_finite();
            check(Self::NAME, name, factor, allowed, "a finite number above 0")?;
        }
        check_list(Self::NAME, "max_lr", &self.max_lr, groups)?;
        check_list(Self::NAME, "base_momentum", &self.base_momentum, groups)?;
        check_list(Self::NAME, "max_momentum", &self.max_momentum, groups)
    }
}
