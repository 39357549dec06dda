//! `cargo xtask soak`: the tests of faults that take long, each a part that can be run by itself.
//!
//! - `kills` ends the command by SIGKILL at random moments, and looks at what is left;
//! - `programs` builds and runs the command and the tests, as a user would;
//! - `record` keeps the last result of each part in docs/faults.md.

mod kills;
mod programs;
mod record;

use crate::Result;
use crate::fuzz::READERS;
use programs::Programs;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which parts to run; all of them unless some are named.
    #[arg(long, value_delimiter = ',')]
    parts: Vec<Part>,
    /// A hundredth of everything, to see that it works.
    #[arg(long)]
    quick: bool,
    /// Build with all optimisations.
    #[arg(long)]
    release: bool,
    /// Take the programs as they were built last.
    #[arg(long)]
    no_build: bool,
    /// How often a process is killed, per part.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// How long threads train and profile.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Sessions of the profiler.
    #[arg(long, default_value_t = 1_000)]
    sessions: u64,
    /// Steps of training, on each device.
    #[arg(long, default_value_t = 10_000)]
    steps: u64,
    /// Times that device memory is filled and emptied.
    #[arg(long, default_value_t = 1_000)]
    cycles: u64,
    /// Events that go into one session.
    #[arg(long, default_value_t = 20_000_000)]
    events: u64,
    /// Gigabytes of tensors at once.
    #[arg(long, default_value_t = 10)]
    gigabytes: u64,
    /// Changed files per reader.
    #[arg(long, default_value_t = 1_000_000)]
    cases: u64,
    /// Random programs on several streams of the device.
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Where random choices start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the results into docs/faults.md.
    #[arg(long)]
    record: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// SIGKILL while a model is trained; it goes on to the same weights.
    KillTraining,
    /// SIGKILL while checkpoints are written; each is whole or not there.
    KillCheckpointing,
    /// SIGKILL while profiles are exported; each file is old or whole.
    KillExporting,
    /// Many sessions, steps and device allocations; memory does not grow.
    Growth,
    /// 16 threads that train and profile at once.
    Threads,
    /// As many events as two threads can make, into one session.
    Events,
    /// Tensors up to a limit of memory.
    Memory,
    /// Random programs on several streams of the device.
    Streams,
    /// Changed files for every reader, and sizes and indices beyond reason.
    Fuzz,
}

const ALL: [Part; 9] = [
    Part::KillTraining,
    Part::KillCheckpointing,
    Part::KillExporting,
    Part::Growth,
    Part::Threads,
    Part::Events,
    Part::Memory,
    Part::Streams,
    Part::Fuzz,
];

impl Options {
    fn amount(&self, full: u64) -> String {
        if self.quick { (full / 100).max(1) } else { full }.to_string()
    }
}

pub(crate) fn run(options: &Options) -> Result {
    let parts = if options.parts.is_empty() { &ALL[..] } else { &options.parts };
    let programs = Programs::new(options.release);
    if !options.no_build {
        programs.build()?;
    }
    let mut failed = Vec::new();
    for &part in parts {
        println!("{part:?} …");
        let begin = Instant::now();
        let outcome = part.run(options, &programs);
        let minutes = begin.elapsed().as_secs_f64() / 60.0;
        match &outcome {
            Ok(figures) => println!("{part:?}: {figures} ({minutes:.1} min)"),
            Err(error) => {
                println!("{part:?} failed: {error}");
                failed.push(format!("{part:?}"));
            }
        }
        if options.record {
            let build = if options.release { "release" } else { "dev" };
            record::write(part, build, outcome.as_deref().map_err(ToString::to_string))?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

impl Part {
    /// Runs it; its figures.
    fn run(self, options: &Options, programs: &Programs) -> Result<String> {
        let kills = if options.quick { 3 } else { options.kills };
        let amount = |variable, full| (variable, options.amount(full));
        match self {
            Part::KillTraining => kills::training(programs, kills, options.seed, 7),
            Part::KillCheckpointing => kills::training(programs, kills, options.seed + 1, 1),
            Part::KillExporting => kills::exporting(programs, kills, options.seed),
            Part::Growth => {
                let variables = [
                    amount("CRESSET_SOAK_SESSIONS", options.sessions),
                    amount("CRESSET_SOAK_STEPS", options.steps),
                    amount("CRESSET_SOAK_CYCLES", options.cycles),
                ];
                programs.tests("without_growth", &variables)
            }
            Part::Threads => programs.tests(
                "sixteen_threads_train_and_profile_at_once_and_each_is_right",
                &[amount("CRESSET_SOAK_SECONDS", options.seconds)],
            ),
            Part::Events => programs.tests(
                "a_session_keeps_every_event_that_comes_as_fast_as_threads_can_call",
                &[amount("CRESSET_SOAK_EVENTS", options.events)],
            ),
            Part::Memory => memory(options, programs),
            Part::Streams => programs.tests(
                "random_programs_on_several_streams_give_what_they_give_on_the_host",
                &[amount("CRESSET_SOAK", options.programs)],
            ),
            Part::Fuzz => fuzz(options, programs),
        }
    }
}

fn memory(options: &Options, programs: &Programs) -> Result<String> {
    let bytes: u64 = options.amount(options.gigabytes << 30).parse()?;
    let known = std::fs::read_to_string("/proc/meminfo")?;
    let line = known.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap_or_default();
    let free = 1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?;
    if free < bytes + bytes / 4 {
        return Err(format!("{bytes} bytes of tensors do not fit: {free} are free").into());
    }
    let test = "tensors_up_to_the_limit_of_memory_are_right_and_one_more_is_an_error";
    programs.tests(test, &[("CRESSET_SOAK_BYTES", bytes.to_string())])
}

fn fuzz(options: &Options, programs: &Programs) -> Result<String> {
    let variables =
        [("PROPTEST_CASES", options.amount(options.cases)), ("PROPTEST_RNG_SEED", options.seed.to_string())];
    for reader in &READERS {
        println!("  {}", reader.test);
        programs.tests(reader.test, &variables)?;
    }
    Ok(format!("{} cases for each of {} tests", variables[0].1, READERS.len()))
}
