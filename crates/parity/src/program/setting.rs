//! How a program's profiler is set up.

use super::cursor::{Cursor, Read};
use cresset_profiler::{Builder, Profiler, Schedule};

#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    record_shapes: bool,
    profile_memory: bool,
    with_stack: bool,
    with_flops: bool,
    with_modules: bool,
    capture_overload_names: bool,
    acc_events: bool,
    schedule: Option<Cycle>,
}

/// The numbers of a schedule, in torch's order.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    wait: u64,
    warmup: u64,
    active: u64,
    repeat: u64,
    skip_first: u64,
    skip_first_wait: bool,
}

/// Steps of one phase: no more.
const MOST_STEPS: u64 = 1 << 32;

impl Setting {
    pub(super) fn parse(at: &Cursor<'_>) -> Read<Setting> {
        at.only(&[
            "record_shapes",
            "profile_memory",
            "with_stack",
            "with_flops",
            "with_modules",
            "capture_overload_names",
            "acc_events",
            "schedule",
        ])?;
        let on = |name: &str| at.member(name).map_or(Ok(false), |truth| truth.truth());
        Ok(Setting {
            record_shapes: on("record_shapes")?,
            profile_memory: on("profile_memory")?,
            with_stack: on("with_stack")?,
            with_flops: on("with_flops")?,
            with_modules: on("with_modules")?,
            capture_overload_names: on("capture_overload_names")?,
            acc_events: on("acc_events")?,
            schedule: at.member("schedule").map(|cycle| Cycle::parse(&cycle)).transpose()?,
        })
    }

    pub(super) fn without_memory(self) -> Setting {
        Setting { profile_memory: false, ..self }
    }

    pub(super) fn builder(&self) -> cresset_profiler::Result<Builder> {
        let builder = Profiler::builder()
            .record_shapes(self.record_shapes)
            .profile_memory(self.profile_memory)
            .with_stack(self.with_stack)
            .with_flops(self.with_flops)
            .with_modules(self.with_modules)
            .capture_overload_names(self.capture_overload_names)
            .acc_events(self.acc_events);
        Ok(match self.schedule {
            Some(cycle) => builder.schedule(cycle.schedule()?),
            None => builder,
        })
    }
}

impl Cycle {
    fn parse(at: &Cursor<'_>) -> Read<Cycle> {
        at.only(&["wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"])?;
        let number = |name: &str| at.member(name).map_or(Ok(0), |number| number.count(MOST_STEPS));
        Ok(Cycle {
            wait: number("wait")?,
            warmup: number("warmup")?,
            active: at.need("active")?.count(MOST_STEPS)?,
            repeat: number("repeat")?,
            skip_first: number("skip_first")?,
            skip_first_wait: number("skip_first_wait")? != 0,
        })
    }

    fn schedule(self) -> cresset_profiler::Result<Schedule> {
        let schedule = Schedule::new(self.wait, self.warmup, self.active)?;
        let schedule = schedule.repeat(self.repeat).skip_first(self.skip_first);
        Ok(schedule.skip_first_wait(self.skip_first_wait))
    }
}
