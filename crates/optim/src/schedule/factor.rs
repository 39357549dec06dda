//! Rates multiplied by a factor now and then.

use super::{At, Schedule, check, finite};
use cresset_tensor::{Cause, Error, Result};

/// A function of the count of steps.
pub type Function = Box<dyn Fn(usize) -> f64 + Send>;

/// One function for all groups, or one for each.
fn check_functions(name: &'static str, functions: &[Function], groups: usize) -> Result<()> {
    if functions.len() == 1 || functions.len() == groups {
        return Ok(());
    }
    let text = format_args!("there are {} functions, expected 1 or {groups}", functions.len());
    Err(Error::new(Cause::Argument, name, text))
}

fn function(functions: &[Function], group: usize) -> &Function {
    functions.get(group).unwrap_or(&functions[0])
}

/// The first rate, times a function of the count of steps.
pub struct Lambda {
    /// The function of all groups, or of each.
    pub functions: Vec<Function>,
}

impl Lambda {
    /// One function for all groups.
    pub fn new(function: impl Fn(usize) -> f64 + Send + 'static) -> Lambda {
        Lambda { functions: vec![Box::new(function)] }
    }
}

impl Schedule for Lambda {
    const NAME: &'static str = "LambdaLR";

    fn next(&self, at: At) -> f64 {
        at.base * function(&self.functions, at.group)(at.epoch)
    }

    fn check(&self, groups: usize) -> Result<()> {
        check_functions(Self::NAME, &self.functions, groups)
    }
}

/// The rate times a function of the count of steps, each step.
pub struct Multiplicative {
    /// The function of all groups, or of each.
    pub functions: Vec<Function>,
}

impl Multiplicative {
    /// One function for all groups.
    pub fn new(function: impl Fn(usize) -> f64 + Send + 'static) -> Multiplicative {
        Multiplicative { functions: vec![Box::new(function)] }
    }
}

impl Schedule for Multiplicative {
    const NAME: &'static str = "MultiplicativeLR";

    fn next(&self, at: At) -> f64 {
        if at.is_start { at.current } else { at.current * function(&self.functions, at.group)(at.epoch) }
    }

    fn check(&self, groups: usize) -> Result<()> {
        check_functions(Self::NAME, &self.functions, groups)
    }
}

/// The rate times `gamma`, every few steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepEvery {
    /// How many steps lie between.
    pub step_size: usize,
    /// The factor; 0.1 is usual.
    pub gamma: f64,
}

impl Schedule for StepEvery {
    const NAME: &'static str = "StepLR";

    fn next(&self, at: At) -> f64 {
        let is_time = at.epoch > 0 && at.epoch.is_multiple_of(self.step_size);
        if is_time { at.current * self.gamma } else { at.current }
    }

    fn closed(&self, at: At) -> Option<f64> {
        Some(at.base * self.gamma.powi((at.epoch / self.step_size) as i32))
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("gamma", self.gamma)])?;
        check(Self::NAME, "step_size", self.step_size as f64, self.step_size > 0, "at least 1")
    }
}

/// The rate times `gamma` at each milestone.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStep {
    /// The counts of steps at which the rate changes; twice if given twice.
    pub milestones: Vec<usize>,
    /// The factor; 0.1 is usual.
    pub gamma: f64,
}

impl Schedule for MultiStep {
    const NAME: &'static str = "MultiStepLR";

    fn next(&self, at: At) -> f64 {
        match self.milestones.iter().filter(|&&milestone| milestone == at.epoch).count() {
            0 => at.current,
            times => at.current * self.gamma.powi(times as i32),
        }
    }

    fn closed(&self, at: At) -> Option<f64> {
        let passed = self.milestones.iter().filter(|&&milestone| milestone <= at.epoch).count();
        Some(at.base * self.gamma.powi(passed as i32))
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("gamma", self.gamma)])
    }
}

/// A part of the rate for the first steps, then all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// The part.
    pub factor: f64,
    /// How many steps it holds.
    pub total_iters: usize,
}

impl Default for Constant {
    fn default() -> Constant {
        Constant { factor: 1.0 / 3.0, total_iters: 5 }
    }
}

impl Schedule for Constant {
    const NAME: &'static str = "ConstantLR";

    fn next(&self, at: At) -> f64 {
        match at.epoch {
            0 => at.current * self.factor,
            epoch if epoch == self.total_iters => at.current * (1.0 / self.factor),
            _ => at.current,
        }
    }

    fn closed(&self, at: At) -> Option<f64> {
        Some(at.base * if at.epoch >= self.total_iters { 1.0 } else { self.factor })
    }

    fn check(&self, _groups: usize) -> Result<()> {
        check(Self::NAME, "factor", self.factor, (0.0..=1.0).contains(&self.factor), "from 0 to 1")
    }
}

/// From one part of the rate to another, in equal steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// The part at the start.
    pub start_factor: f64,
    /// The part at the end.
    pub end_factor: f64,
    /// How many steps lie between.
    pub total_iters: usize,
}

impl Default for Linear {
    fn default() -> Linear {
        Linear { start_factor: 1.0 / 3.0, end_factor: 1.0, total_iters: 5 }
    }
}

impl Schedule for Linear {
    const NAME: &'static str = "LinearLR";

    fn next(&self, at: At) -> f64 {
        if at.epoch == 0 {
            return at.current * self.start_factor;
        }
        if at.epoch > self.total_iters {
            return at.current;
        }
        let way = self.end_factor - self.start_factor;
        let before = self.total_iters as f64 * self.start_factor + (at.epoch as f64 - 1.0) * way;
        at.current * (1.0 + way / before)
    }

    fn closed(&self, at: At) -> Option<f64> {
        let done = self.total_iters.min(at.epoch) as f64 / self.total_iters as f64;
        Some(at.base * (self.start_factor + (self.end_factor - self.start_factor) * done))
    }

    fn check(&self, _groups: usize) -> Result<()> {
        let Linear { start_factor: start, end_factor: end, .. } = *self;
        check(Self::NAME, "start_factor", start, start > 0.0 && start <= 1.0, "above 0 and at most 1")?;
        check(Self::NAME, "end_factor", end, (0.0..=1.0).contains(&end), "from 0 to 1")?;
        check(Self::NAME, "total_iters", self.total_iters as f64, self.total_iters > 0, "at least 1")
    }
}

/// The rate times `gamma`, each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The factor.
    pub gamma: f64,
}

impl Schedule for Exponential {
    const NAME: &'static str = "ExponentialLR";

    fn next(&self, at: At) -> f64 {
        if at.is_start { at.current } else { at.current * self.gamma }
    }

    fn closed(&self, at: At) -> Option<f64> {
        Some(at.base * self.gamma.powi(at.epoch as i32))
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("gamma", self.gamma)])
    }
}

/// From the rate to 0 along a power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polynomial {
    /// How many steps it takes.
    pub total_iters: usize,
    /// The power.
    pub power: f64,
}

impl Default for Polynomial {
    fn default() -> Polynomial {
        Polynomial { total_iters: 5, power: 1.0 }
    }
}

impl Schedule for Polynomial {
    const NAME: &'static str = "PolynomialLR";

    fn next(&self, at: At) -> f64 {
        if at.is_start || at.epoch > self.total_iters {
            return at.current;
        }
        let (epoch, total) = (at.epoch as f64, self.total_iters as f64);
        at.current * ((1.0 - epoch / total) / (1.0 - (epoch - 1.0) / total)).powf(self.power)
    }

    fn closed(&self, at: At) -> Option<f64> {
        let done = self.total_iters.min(at.epoch) as f64 / self.total_iters as f64;
        Some(at.base * (1.0 - done).powf(self.power))
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(Self::NAME, &[("power", self.power)])?;
        check(Self::NAME, "total_iters", self.total_iters as f64, self.total_iters > 0, "at least 1")
    }
}
