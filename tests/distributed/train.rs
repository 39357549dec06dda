//! `cresset train --nproc`: the losses of one process, traces of every rank, and an end to all ranks however one ends.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn cresset(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cresset"));
    command.args(["train", "mlp", "--device", "npu"]).args(arguments).env("CRESSET_NPU", "sim");
    command
}

fn finished(arguments: &[&str]) -> String {
    let output = cresset(arguments).output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A directory of one test; gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("cresset-distributed-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn losses(path: &str) -> Vec<f64> {
    let lines = fs::read_to_string(path).unwrap();
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["loss"].as_f64().unwrap()).collect()
}

#[test]
fn ranks_have_the_losses_of_one_process() {
    let scratch = Scratch::new("losses");
    let (one, two, three) = (scratch.file("one"), scratch.file("two"), scratch.file("three"));
    finished(&["--epochs", "2", "--curve", &one]);
    finished(&["--epochs", "2", "--curve", &two, "--nproc", "2", "--bucket", "16"]);
    finished(&["--epochs", "2", "--curve", &three, "--nproc", "3"]);
    let expected = losses(&one);
    assert_eq!(expected.len(), 46, "the last batch of an epoch cannot be divided evenly");
    for path in [two, three] {
        for (step, (a, b)) in losses(&path).iter().zip(&expected).enumerate() {
            assert!((a - b).abs() <= 1e-5 * b, "step {step}: {a} instead of {b}");
        }
    }
}

#[test]
fn every_rank_writes_a_trace_that_knows_its_rank_and_what_it_exchanged() {
    let scratch = Scratch::new("traces");
    let folder = scratch.file("profile");
    finished(&["--epochs", "1", "--nproc", "2", "--bucket", "16", "--profile", &folder]);
    for rank in 0..2 {
        let path = Path::new(&folder).join(format!("mlp.rank{rank}.pt.trace.json"));
        let trace: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let info = &trace["distributedInfo"];
        assert_eq!((info["rank"].as_u64(), info["world_size"].as_u64()), (Some(rank), Some(2)));
        assert_eq!((info["backend"].as_str(), info["pg_count"].as_u64()), (Some("hccl"), Some(1)));
        assert_eq!(info["pg_config"][0]["ranks"], serde_json::json!([0, 1]));
        let events = trace["traceEvents"].as_array().unwrap();
        let reduced = |category: &str, name: &str| -> Vec<&Value> {
            let is_one = |event: &&Value| {
                event["cat"] == category
                    && event["name"] == name
                    && event["args"]["Collective name"] == "allreduce"
            };
            events.iter().filter(is_one).collect()
        };
        let (calls, kernels) =
            (reduced("cpu_op", "record_param_comms"), reduced("kernel", "hcom_allReduce_"));
        // Three buckets of gradients and one exchange of losses in each of five steps.
        assert_eq!((calls.len(), kernels.len()), (calls.len().max(20), calls.len()));
        for event in calls.iter().chain(&kernels) {
            let arguments = &event["args"];
            assert_eq!((&arguments["Group size"], &arguments["dtype"]), (&2.into(), &"Float".into()));
            assert_eq!(arguments["Process Group Name"], "world");
            assert_eq!(arguments["Process Group Ranks"], "[0, 1]");
            assert!(arguments["In msg nelems"].as_u64().unwrap() > 0);
            assert_eq!(arguments["In msg nelems"], arguments["Out msg nelems"]);
            assert_eq!(arguments["Rank"], rank);
        }
        assert!(overlaps(events, &kernels), "no collective ran while something was computed");
        let report = cresset::trace::check_trace(&path).unwrap();
        assert!(
            report.findings().iter().all(|found| found.severity != cresset::trace::Severity::Error),
            "{report}"
        );
    }
}

/// Whether a kernel of another stream ran during one of these.
fn overlaps(events: &[Value], collectives: &[&Value]) -> bool {
    let span = |event: &Value| {
        let start = event["ts"].as_f64().unwrap();
        (start, start + event["dur"].as_f64().unwrap())
    };
    events.iter().filter(|event| event["cat"] == "kernel").any(|kernel| {
        let (start, end) = span(kernel);
        collectives.iter().any(|collective| {
            let (begun, done) = span(collective);
            kernel["tid"] != collective["tid"] && start < done && begun < end
        })
    })
}

/// A run that goes on until something ends it.
struct Run {
    launcher: Child,
    ranks: Vec<u32>,
}

impl Run {
    /// Starts some ranks, and waits until they have saved a new checkpoint.
    fn start(scratch: &Scratch, ranks: usize, more: &[&str]) -> Run {
        let (run, count) = (scratch.file("run"), ranks.to_string());
        let arguments = ["--epochs", "2000", "--nproc", &count, "--checkpoint", &run, "--save-every", "3"];
        let before = saved(scratch);
        let mut launcher = cresset(&[&arguments[..], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("a checkpoint is there", || {
            assert!(launcher.try_wait().unwrap().is_none(), "training ended");
            saved(scratch) > before
        });
        let processes = ranks_of(launcher.id());
        assert_eq!(processes.len(), ranks);
        Run { launcher, ranks: processes }
    }

    /// What the launcher says in the end; fails if a rank is left.
    fn end(self) -> (bool, String) {
        let output = self.launcher.wait_with_output().unwrap();
        for rank in &self.ranks {
            assert!(!is_alive(*rank), "process {rank} is left");
        }
        (output.status.success(), text(&output))
    }
}

/// The step that was saved last; 0 if none was.
fn saved(scratch: &Scratch) -> u64 {
    let newest = cresset::checkpoint::Checkpoints::new(scratch.file("run")).unwrap().newest().unwrap();
    newest.map_or(0, |newest| newest.state().unwrap().step)
}

/// The processes of the ranks, in their order.
fn ranks_of(launcher: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap();
    let mut ranks: Vec<(String, u32)> = children
        .split_whitespace()
        .map(|process| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let rank = environment.split('\0').find_map(|one| one.strip_prefix("RANK=")).unwrap().to_owned();
            (rank, process.parse().unwrap())
        })
        .collect();
    ranks.sort();
    ranks.into_iter().map(|(_, process)| process).collect()
}

fn is_alive(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn signal(name: &str, process: u32) {
    // The shell's own: not every machine has it as a program.
    let sent = Command::new("sh").args(["-c", &format!("kill {name} {process}")]).status();
    assert!(sent.unwrap().success());
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited too long until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rank_that_dies_is_named_and_none_is_left() {
    let scratch = Scratch::new("dies");
    let run = Run::start(&scratch, 2, &[]);
    let victim = run.ranks[1];
    signal("-KILL", victim);
    let (well, told) = run.end();
    assert!(!well && told.contains("error: train: rank 1 died of signal 9"), "{told}");
    assert!(told.contains(&format!("rank 1 (process {victim}) is gone")), "the other names it too: {told}");
    assert!(saved(&scratch) > 0, "the checkpoint is intact");
}

#[test]
fn a_rank_that_hangs_is_named_when_time_is_up_and_none_is_left() {
    let scratch = Scratch::new("hangs");
    let run = Run::start(&scratch, 2, &["--timeout", "2"]);
    signal("-STOP", run.ranks[1]);
    let (well, told) = run.end();
    assert!(!well && told.contains("rank 0: "), "{told}");
    assert!(told.contains("rank 1 did not ") && told.contains("within 2 s"), "{told}");
    assert!(told.contains("rank 1 did not end within 5 s and was killed"), "{told}");
}

#[test]
fn ranks_end_when_their_launcher_is_killed() {
    let scratch = Scratch::new("launcher");
    let mut run = Run::start(&scratch, 2, &[]);
    run.launcher.kill().unwrap();
    run.launcher.wait().unwrap();
    wait_until("the ranks ended", || run.ranks.iter().all(|rank| !is_alive(*rank)));
}

#[test]
fn an_interrupted_run_saves_once_and_goes_on_with_other_ranks() {
    let scratch = Scratch::new("interrupted");
    let run = Run::start(&scratch, 2, &[]);
    signal("-INT", run.launcher.id());
    let (well, told) = run.end();
    assert!(well && told.contains("go on with: cresset train mlp --resume"), "{told}");
    let more = Run::start(&scratch, 3, &["--resume"]);
    signal("-INT", more.launcher.id());
    let (well, told) = more.end();
    assert!(well && told.contains("stopped after step"), "{told}");

    let checkpoint = scratch.file("run");
    let told = text(
        &cresset(&["--epochs", "3", "--nproc", "2", "--resume", "--checkpoint", &checkpoint])
            .output()
            .unwrap(),
    );
    // What all ranks complain of is told once.
    assert_eq!(told.matches("--epochs was 2000 and is 3").count(), 1, "{told}");
}

#[test]
fn what_several_ranks_cannot_do_is_refused() {
    let complaint = |arguments: &[&str]| {
        let output = cresset(arguments).output().unwrap();
        assert!(!output.status.success());
        text(&output)
    };
    let output = Command::new(env!("CARGO_BIN_EXE_cresset")).args(["train", "mlp", "--nproc", "2"]).output();
    let told = text(&output.unwrap());
    assert!(told.contains("--nproc is for --device npu"), "{told}");
    let mut few = cresset(&["--nproc", "2", "--epochs", "1", "--timeout", "2"]);
    let told = text(&few.env("CRESSET_SIM_DEVICES", "1").output().unwrap());
    assert!(told.contains("rank 1 has no device") && told.contains("start fewer ranks"), "{told}");
    let told = complaint(&["--nproc", "0"]);
    assert!(told.contains("1..=64"), "{told}");
}
