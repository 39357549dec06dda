//! When to record: torch's schedule of waiting, warming up and recording.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// What the profiler does during a step.
///
/// ```
/// use cresset_profiler::{Action, Schedule};
/// let every_tenth = |step| if step % 10 == 0 { Action::RecordAndSave } else { Action::None };
/// assert_eq!(Schedule::custom(every_tenth).action(30), Action::RecordAndSave);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    None,
    /// Gets devices ready; what they do is thrown away.
    Warmup,
    /// Records.
    Record,
    /// Records, and hands the trace over when the step ends.
    RecordAndSave,
}

impl Action {
    /// Whether steps of this kind are recorded.
    ///
    /// ```
    /// # use cresset_profiler::Action;
    /// assert!(Action::Record.is_recording() && Action::RecordAndSave.is_recording());
    /// assert!(!Action::Warmup.is_recording());
    /// ```
    pub fn is_recording(self) -> bool {
        matches!(self, Action::Record | Action::RecordAndSave)
    }
}

/// Decides the [`Action`] of each step.
///
/// ```
/// use cresset_profiler::{Action, Schedule};
/// let schedule = Schedule::new(1, 1, 2)?.repeat(2).skip_first(3);
/// assert_eq!(schedule.action(3), Action::None);
/// assert_eq!(schedule.action(5), Action::Record);
/// assert_eq!(schedule.action(6), Action::RecordAndSave);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone)]
pub struct Schedule(Rule);

#[derive(Clone)]
enum Rule {
    Cycle(Cycle),
    Custom(Arc<dyn Fn(u64) -> Action + Send + Sync>),
}

#[derive(Clone, Copy)]
struct Cycle {
    wait: u64,
    warmup: u64,
    active: u64,
    repeat: u64,
    skip_first: u64,
    skip_first_wait: bool,
}

impl Schedule {
    /// Cycles of `wait` idle, `warmup` and `active` recorded steps, without end.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let schedule = Schedule::new(2, 1, 3)?;
    /// assert_eq!([0, 2, 3, 5].map(|step| schedule.action(step).is_recording()), [false, false, true, true]);
    /// assert!(Schedule::new(2, 1, 0).is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// `active` is 0, or a cycle is longer than a `u64` can count.
    pub fn new(wait: u64, warmup: u64, active: u64) -> Result<Schedule> {
        let fault = |argument, rule| {
            let given = format!("wait={wait}, warmup={warmup}, active={active}");
            Err(Error::Schedule { argument, given, rule })
        };
        if active == 0 {
            return fault("active", "at least 1");
        }
        if wait.checked_add(warmup).and_then(|sum| sum.checked_add(active)).is_none() {
            return fault("wait + warmup + active", "less than 2^64");
        }
        let cycle = Cycle { wait, warmup, active, repeat: 0, skip_first: 0, skip_first_wait: false };
        Ok(Schedule(Rule::Cycle(cycle)))
    }

    /// Any function of the step's number.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let only_step_7 = Schedule::custom(|step| match step {
    ///     6 => Action::Warmup,
    ///     7 => Action::RecordAndSave,
    ///     _ => Action::None,
    /// });
    /// assert!(only_step_7.action(7).is_recording() && !only_step_7.action(8).is_recording());
    /// ```
    pub fn custom(action: impl Fn(u64) -> Action + Send + Sync + 'static) -> Schedule {
        Schedule(Rule::Custom(Arc::new(action)))
    }

    /// Ends after `cycles`; 0 never ends.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let twice = Schedule::new(0, 0, 1)?.repeat(2);
    /// assert_eq!([1, 2].map(|step| twice.action(step)), [Action::RecordAndSave, Action::None]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn repeat(self, cycles: u64) -> Schedule {
        self.with(|cycle| cycle.repeat = cycles)
    }

    /// Stays idle for `steps` before the first cycle.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let late = Schedule::new(0, 1, 1)?.skip_first(10);
    /// assert_eq!([9, 10].map(|step| late.action(step)), [Action::None, Action::Warmup]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn skip_first(self, steps: u64) -> Schedule {
        self.with(|cycle| cycle.skip_first = steps)
    }

    /// Leaves out the wait of the first cycle.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let schedule = Schedule::new(5, 1, 1)?.skip_first_wait(true);
    /// assert_eq!([0, 1, 2].map(|step| schedule.action(step)), [Action::Warmup, Action::RecordAndSave, Action::None]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn skip_first_wait(self, skip: bool) -> Schedule {
        self.with(|cycle| cycle.skip_first_wait = skip)
    }

    /// Whether recording starts without a warmup; what a user's own function does is not known.
    pub(crate) fn lacks_warmup(&self) -> bool {
        matches!(&self.0, Rule::Cycle(cycle) if cycle.warmup == 0)
    }

    fn with(mut self, change: impl FnOnce(&mut Cycle)) -> Schedule {
        if let Rule::Cycle(cycle) = &mut self.0 {
            change(cycle);
        }
        self
    }

    /// What to do in step number `step`, the first being 0.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Schedule};
    /// let schedule = Schedule::new(1, 1, 1)?;
    /// let actions = [0, 1, 2, 3].map(|step| schedule.action(step));
    /// assert_eq!(actions, [Action::None, Action::Warmup, Action::RecordAndSave, Action::None]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn action(&self, step: u64) -> Action {
        match &self.0 {
            Rule::Cycle(cycle) => cycle.action(step),
            Rule::Custom(action) => action(step),
        }
    }
}

impl Cycle {
    fn action(&self, step: u64) -> Action {
        let Some(mut step) = step.checked_sub(self.skip_first) else { return Action::None };
        if self.skip_first_wait {
            step = step.saturating_add(self.wait);
        }
        let length = self.wait + self.warmup + self.active;
        let position = step % length;
        if self.repeat > 0 && step / length >= self.repeat || position < self.wait {
            Action::None
        } else if position < self.wait + self.warmup {
            Action::Warmup
        } else if position + 1 == length {
            Action::RecordAndSave
        } else {
            Action::Record
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule::Cycle(cycle) = &self.0 else { return f.write_str("Schedule(custom)") };
        f.debug_struct("Schedule")
            .field("wait", &cycle.wait)
            .field("warmup", &cycle.warmup)
            .field("active", &cycle.active)
            .field("repeat", &cycle.repeat)
            .field("skip_first", &cycle.skip_first)
            .field("skip_first_wait", &cycle.skip_first_wait)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(schedule: &Schedule, steps: u64) -> String {
        let letter = |action| match action {
            Action::None => 'N',
            Action::Warmup => 'W',
            Action::Record => 'R',
            Action::RecordAndSave => 'S',
        };
        (0..steps).map(|step| letter(schedule.action(step))).collect()
    }

    #[test]
    fn steps_get_the_actions_torch_gives_them() {
        let schedule = |wait, warmup, active| Schedule::new(wait, warmup, active).unwrap();
        assert_eq!(actions(&schedule(1, 1, 2).repeat(2).skip_first(3), 14), "NNNNWRSNWRSNNN");
        assert_eq!(actions(&schedule(1, 1, 1).repeat(1), 5), "NWSNN");
        assert_eq!(actions(&schedule(0, 0, 1), 4), "SSSS");
        assert_eq!(actions(&schedule(0, 1, 2), 6), "WRSWRS");
        assert_eq!(actions(&schedule(2, 0, 2).skip_first_wait(true), 8), "RSNNRSNN");
        assert_eq!(actions(&schedule(2, 1, 1).skip_first(1).skip_first_wait(true).repeat(2), 9), "NWSNNWSNN");
    }

    #[test]
    fn a_bad_argument_is_named_with_all_values() {
        let error = Schedule::new(1, 2, 0).unwrap_err().to_string();
        assert_eq!(error, "invalid schedule: active must be at least 1 (given wait=1, warmup=2, active=0)");
        assert!(Schedule::new(u64::MAX, 1, 1).is_err());
    }
}
