//! The command, run as a user runs it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn cresset(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cresset"))
        .args(arguments)
        .env_remove("CRESSET_NPU")
        .env_remove("CRESSET_NPU_LIBRARY")
        .output()
        .unwrap()
}

/// What a command that must fail says.
fn complaint(arguments: &[&str]) -> String {
    let output = cresset(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn train_writes_a_trace_and_says_where_to_open_it() {
    for device in ["cpu", "npu"] {
        let folder = scratch(&format!("train-{device}"));
        let arguments =
            ["train", "mlp", "--epochs", "1", "--device", device, "--profile", folder.to_str().unwrap()];
        let output = cresset(&arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for expected in ["held-out accuracy", "Self CPU time total", "aten::addmm", "https://ui.perfetto.dev"]
        {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        let path = folder.join("mlp.pt.trace.json");
        let checked = cresset(&["trace", "check", "--strict", path.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        let trace = std::fs::read(path).unwrap();
        let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let kernels = events.iter().filter(|event| event["cat"] == "kernel").count();
        assert_eq!(kernels > 0, device == "npu", "{kernels} kernels on {device}");
        let report = std::fs::read_to_string(folder.join("mlp.html")).unwrap();
        assert!(report.contains(&format!("\"peaks\":[{{\"device\":\"{device}")), "no peak of {device}");
    }
}

#[test]
fn trace_check_says_which_rules_are_broken() {
    let folder = scratch("trace-check");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("trace.json");
    std::fs::write(&path, r#"{"traceEvents": [{"ph": "X", "name": "no times"}]}"#).unwrap();
    let output = cresset(&["trace", "check", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !output.status.success() && text.contains("event.ts") && text.contains("top.schemaVersion"),
        "{text}"
    );
    assert!(complaint(&["trace", "check", "/nowhere.json"]).contains("cannot read /nowhere.json: "));
}

#[test]
fn doctor_says_which_device_library_is_in_use() {
    let output = cresset(&["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("cpu: ") && text.contains("simulat"), "{text}");
}

#[test]
fn bench_prints_one_json_line_per_workload() {
    let output = Command::new(env!("CARGO_BIN_EXE_cresset"))
        .args(["bench", "w2", "--json"])
        .env("BENCH_BUDGET_MS", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<String> = text
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(
                line["value"].as_f64().unwrap() > 0.0 && line["unit"] == "ns" && line["peer"] == "cresset"
            );
            line["workload"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(names, ["w2/add2x2", "w2/add2x2_grad", "w2/sqsum_fwbw"]);
}

#[test]
fn bad_input_is_an_error_that_says_what_to_do() {
    let text = complaint(&["train", "mlp", "--device", "tpu"]);
    assert!(text.contains(r#"unknown device "tpu": known are cpu, meta, npu"#), "{text}");
    let text = complaint(&["train", "mlp", "--device", "npu:7"]);
    assert!(text.contains("npu:7 does not exist: the last one is npu:0"), "{text}");
    let text = complaint(&["train", "mlp", "--batch", "0"]);
    assert!(text.contains("at least one epoch and one sample per step"), "{text}");
    let text = complaint(&["train", "mlp", "--batch", "5000"]);
    assert!(text.contains("--batch is 5000, expected at most the 1437 digits there are"), "{text}");
    let text = complaint(&["bench", "w99"]);
    assert!(text.contains(r#"no workload has "w99" in its name; there are w1/gemm/64"#), "{text}");
    let text = complaint(&["bench", "--compare", "nowhere.jsonl"]);
    assert!(text.contains("bench: cannot read nowhere.jsonl"), "{text}");
    let text = complaint(&["bench", "--threads", "0"]);
    assert!(text.contains("bench: expects at least one thread"), "{text}");
    let text = complaint(&["train", "mlp", "--lr", "-1"]);
    assert!(text.contains("AdamW: lr is -1, expected"), "{text}");
    let text = complaint(&["train", "mlp", "--device", "meta"]);
    assert!(text.contains("meta tensors have no elements"), "{text}");
}

#[test]
fn an_unwritable_directory_is_refused_before_training() {
    let folder = scratch("unwritable");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "in the way").unwrap();
    let inside = file.join("out");
    let output = cresset(&["train", "mlp", "--profile", inside.to_str().unwrap()]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cannot write to") && text.contains("unwritable"), "{text}");
    assert!(output.stdout.is_empty(), "training had begun");
}

#[test]
fn a_run_too_short_to_profile_is_refused_before_anything_is_written() {
    let folder = scratch("too-short");
    let path = folder.to_str().unwrap();
    let text = complaint(&["train", "mlp", "--epochs", "1", "--batch", "1437", "--profile", path]);
    assert!(text.contains("--profile leaves out 4 steps, and there are 1"), "{text}");
    assert!(!folder.exists());
}

#[test]
fn output_that_nobody_reads_ends_the_command_quietly() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_cresset"))
        .args(["train", "mlp", "--epochs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    assert!(output.status.success());
}

#[test]
fn hardware_that_is_not_there_is_an_error_that_lists_what_was_tried() {
    let train = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cresset"));
        command.args(["train", "mlp", "--device", "npu"]).env_remove("ASCEND_HOME_PATH");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = train(&[("CRESSET_NPU_LIBRARY", "/nowhere/libascendcl.so")]);
    assert!(text.contains("tried /nowhere/libascendcl.so"), "{text}");
    let text = train(&[("CRESSET_NPU", "hardware")]);
    assert!(text.contains("libascendcl.so") && text.contains("CRESSET_NPU"), "{text}");
}

/// The losses of a curve, to the last digit.
fn losses(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let loss = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].to_string();
    text.lines().map(loss).collect()
}

#[test]
fn a_killed_run_goes_on_bit_for_bit() {
    let folder = scratch("resume");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let train = ["train", "cnn", "--epochs", "2"];
    let run = |more: &[&str]| cresset(&[&train[..], more].concat());
    assert!(run(&["--curve", &path("straight.jsonl")]).status.success());
    let straight = losses(&folder.join("straight.jsonl"));

    let checkpoint = path("run");
    let saving = ["--checkpoint", &checkpoint, "--save-every", "3"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_cresset")).args(train).args(saving).spawn().unwrap();
    let saved = || cresset::checkpoint::Checkpoints::new(&checkpoint).unwrap().newest().unwrap();
    while saved().is_none_or(|newest| newest.step() < 9) && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let told = complaint(&[&train[..], &saving].concat());
    assert!(told.contains("go on from it with --resume, or choose another directory"), "{told}");
    let told = complaint(&["train", "cnn", "--epochs", "3", "--resume", "--checkpoint", &checkpoint]);
    assert!(told.contains("--epochs was 2 and is 3"), "{told}");

    let first = saved().expect("several were saved").step() as usize;
    let output = run(&["--resume", "--checkpoint", &checkpoint, "--curve", &path("rest.jsonl")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(losses(&folder.join("rest.jsonl")), straight[first..]);
    assert!(std::fs::read_to_string(folder.join("rest.svg")).unwrap().ends_with("</svg>\n"));

    let digits = folder.join("digits.csv");
    std::fs::write(&digits, vec!["0"; 64].join(",")).unwrap();
    let output = cresset(&["infer", "cnn", "--weights", &checkpoint, "--digits", digits.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.trim_end().ends_with(" %"), "{text}");
}

#[test]
fn a_learning_rate_that_is_too_high_is_told_at_its_step() {
    let told = complaint(&["train", "mlp", "--lr", "1e30", "--epochs", "1"]);
    assert!(
        told.contains("train: the loss is ") && told.contains(" at step ") && told.contains("--lr"),
        "{told}"
    );
}

#[test]
fn the_first_operator_that_overflows_is_named_where_anomalies_are_looked_for() {
    let told = complaint(&["train", "mlp", "--lr", "1e30", "--epochs", "1", "--detect-anomaly"]);
    assert!(told.contains(": gave ") && told.contains("of finite inputs of shapes ["), "{told}");
    assert!(told.contains("; called here:\n") && told.contains("cresset"), "{told}");
    let output = cresset(&["train", "mlp", "--epochs", "1", "--batch", "512", "--detect-anomaly"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn gpt_learns_and_writes() {
    let folder = scratch("gpt");
    let run = folder.to_str().unwrap();
    let arguments = ["train", "gpt", "--epochs", "1", "--batch", "512", "--checkpoint", run];
    let output = cresset(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("perplexity") && text.contains("The whale "), "{text}");
    let told = complaint(&["infer", "gpt", "--weights", run]);
    assert!(told.contains("a --prompt"), "{told}");
    let told = complaint(&["infer", "gpt", "--weights", run, "--prompt", "ß"]);
    assert!(told.contains("'ß' at byte 0 is none of the "), "{told}");
}
