//! The course of `examples/`: each program runs and says what its page in `tests/examples` says.
//!
//! `[..]` on a page stands for anything within a line, a line `...` for any number of lines. To write
//! the pages anew: `CRESSET_WRITE_PAGES=1 cargo test examples`, then put the marks back.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Beside the command: `cargo test` builds the examples before it runs tests.
fn program(name: &str) -> PathBuf {
    let file = format!("examples/{name}{}", std::env::consts::EXE_SUFFIX);
    Path::new(env!("CARGO_BIN_EXE_cresset")).with_file_name(file)
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples").join(name).with_extension("txt")
}

/// Runs example `name` in a directory of its own, and holds what it prints against its page.
fn says_what_its_page_says(name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("example-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let output =
        Command::new(program(name)).current_dir(&folder).env("CRESSET_NPU", "sim").output().unwrap_or_else(
            |error| panic!("{}: {error}; build it with `cargo build --examples`", program(name).display()),
        );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    if std::env::var_os("CRESSET_WRITE_PAGES").is_some() {
        std::fs::write(page(name), &said).unwrap();
    }
    let expected = std::fs::read_to_string(page(name)).unwrap();
    let (expected, said): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), said.lines().collect());
    if let Err(at) = same(&expected, &said) {
        panic!(
            "{name}: line {} is\n{}\nexpected\n{}\nin\n{}",
            at + 1,
            said.get(at).unwrap_or(&"the end"),
            page(name).display(),
            said.join("\n")
        );
    }
}

/// Whether `said` is as `expected`; if not, the first line of it that is not.
fn same(expected: &[&str], said: &[&str]) -> Result<(), usize> {
    match expected {
        [] if said.is_empty() => Ok(()),
        [] => Err(0),
        ["...", rest @ ..] => {
            let mut ways = (0..=said.len()).map(|skipped| same(rest, &said[skipped..]));
            if ways.any(|way| way.is_ok()) { Ok(()) } else { Err(0) }
        }
        [line, rest @ ..] => match said.first() {
            Some(other) if alike(line, other) => same(rest, &said[1..]).map_err(|at| at + 1),
            _ => Err(0),
        },
    }
}

/// Whether a line is as `expected`, where `[..]` is anything.
fn alike(expected: &str, line: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            ends.any(|at| alike(rest, &line[at..]))
        }),
    }
}

macro_rules! examples {
    ($($test:ident = $name:literal;)*) => {$(
        #[test]
        fn $test() {
            says_what_its_page_says($name);
        }
    )*};
}

examples! {
    the_first_profile_runs = "first_profile";
    tensors_runs = "01_tensors";
    autograd_runs = "02_autograd";
    modules_runs = "03_modules";
    training_runs = "04_training";
    data_runs = "05_data";
    checkpoints_runs = "06_checkpoints";
    profiling_runs = "07_profiling";
    npu_runs = "08_npu";
    custom_op_runs = "09_custom_op";
    custom_op_on_npu_runs = "10_custom_op_on_npu";
}

#[test]
fn every_example_has_its_page() {
    let names = |folder: &str, ending: &str| -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|file| file.extension().is_some_and(|found| found == ending))
            .map(|file| file.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("examples", "rs"), names("tests/examples", "txt"));
}

#[test]
fn pages_leave_open_what_they_mark() {
    assert!(alike("took [..] ms", "took 3 ms") && !alike("took [..] ms", "took 3 s"));
    assert_eq!(same(&["a", "...", "d"], &["a", "b", "c", "d"]), Ok(()));
    assert_eq!(same(&["a", "b"], &["a", "c"]), Err(1));
    assert_eq!(same(&["a"], &["a", "b"]), Err(1));
}
