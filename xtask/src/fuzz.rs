//! `cargo xtask fuzz`: changed files, and sizes and indices beyond reason, for so many seconds.
//!
//! The choices follow from the seed alone: a run with more time makes the same ones, and then more. Each round gives every
//! test some cases with a seed of its own, and the first is made whole. What fails is told with the command that does
//! it again.

use crate::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// After how long no more tests are begun.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Where random choices start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cases for each test in a round.
    #[arg(long, default_value_t = 200)]
    cases: u64,
}

/// A test that makes random choices, and where it is.
pub(crate) struct Reader {
    package: &'static str,
    program: &'static str,
    pub(crate) test: &'static str,
}

/// Every test that changes files, or draws sizes or indices at random.
pub(crate) const READERS: [Reader; 8] = [
    reader("cresset", "integration", "no_change_of_bytes_makes_a_reader_of_data_panic"),
    reader("cresset", "integration", "no_change_of_bytes_makes_a_reader_of_checkpoints_panic"),
    reader("cresset-trace", "hostile", "changed_files_are_read_or_refused"),
    reader("cresset-parity", "hostile", "no_change_of_values_makes_a_program_panic"),
    reader("cresset-parity", "hostile", "no_change_of_bytes_makes_a_program_panic"),
    reader("cresset-parity", "hostile", "no_change_of_a_trace_makes_a_comparison_panic"),
    reader("cresset-tensor", "tensor", "no_sizes_make_a_tensor_or_a_view_panic_or_lie"),
    reader("cresset-tensor", "tensor", "no_index_makes_reading_or_writing_panic_or_reach_beyond"),
];

const fn reader(package: &'static str, program: &'static str, test: &'static str) -> Reader {
    Reader { package, program, test }
}

pub(crate) fn run(options: &Options) -> Result {
    let programs = Programs::build()?;
    let Options { seconds, seed, cases } = *options;
    println!("fuzz: seed {seed}, {cases} cases for each of {} tests in a round", READERS.len());
    let (begin, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut done = 0;
    for (round, reader) in (0..).flat_map(|round| READERS.iter().map(move |reader| (round, reader))) {
        if round > 0 && begin.elapsed() >= time {
            break;
        }
        programs.run(reader, cases, seed + round)?;
        done += 1;
    }
    let (rounds, more) = (done / READERS.len(), done % READERS.len());
    let seconds = begin.elapsed().as_secs_f64();
    println!("fuzz: {rounds} rounds and {more} tests of the next passed in {seconds:.0} s");
    Ok(())
}

/// The tests as programs, by package and name: run by themselves, they begin at once.
struct Programs(BTreeMap<(String, String), PathBuf>);

impl Programs {
    fn build() -> Result<Programs> {
        let mut cargo = Command::new(env!("CARGO"));
        // All of them: some would need other features, and most crates would be built once more.
        cargo.args(["test", "--quiet", "--no-run", "--message-format=json"]);
        let output = cargo.current_dir(root()).stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err("the tests cannot be built".into());
        }
        let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        Ok(Programs(messages.filter_map(|message| program(&message)).collect()))
    }

    /// Gives a test so many cases.
    fn run(&self, reader: &Reader, cases: u64, seed: u64) -> Result {
        let Reader { package, program, test } = *reader;
        let place = self.0.get(&(package.to_owned(), program.to_owned()));
        let place = place.ok_or_else(|| format!("{package} has no tests called {program}"))?;
        let mut command = Command::new(place);
        command.arg(test).current_dir(folder(package));
        command.env("PROPTEST_CASES", cases.to_string()).env("PROPTEST_RNG_SEED", seed.to_string());
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && text.contains("test result: ok. 1 passed") {
            return Ok(());
        }
        Err(format!(
            "{text}{}\nfuzz: {test} failed ({}). Again, with what it was given at the end of what it says:\n    \
             PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test -p {package} --test {program} {test}\n\
             Keep the file or the line that does it in the tests' corpus.",
            String::from_utf8_lossy(&output.stderr),
            output.status,
        )
        .into())
    }
}

/// Where a test that cargo built is, and what it is called.
fn program(message: &serde_json::Value) -> Option<((String, String), PathBuf)> {
    let place = message["executable"].as_str().filter(|_| message["target"]["kind"][0] == "test")?;
    let manifest = Path::new(message["manifest_path"].as_str()?).parent()?;
    let known = READERS.iter().find(|reader| folder(reader.package) == manifest)?;
    let name = message["target"]["name"].as_str()?;
    Some(((known.package.to_owned(), name.to_owned()), place.into()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where a package is, which is where its tests run.
fn folder(package: &str) -> PathBuf {
    match package.strip_prefix("cresset-") {
        Some(name) => root().join("crates").join(name),
        None => root().to_owned(),
    }
}
