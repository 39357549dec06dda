//! Recorded answers of PyTorch, replayed: a selection of them lies in `tests/golden`.

use cresset::tensor::Device;
use cresset_parity::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Operators that are recorded, but not offered here.
const NOT_OFFERED: &[&str] = &[];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/opinfo")
}

fn command(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cresset"));
    command.args(["parity", "ops"]).arg(folder).args(more).output().unwrap()
}

#[test]
fn every_recorded_answer_is_ours_too() {
    let report = Report::replay(&golden(), None, Device::CPU, |_| {}).unwrap();
    for row in &report.rows {
        assert_eq!(row.failed, 0, "{}: {:?}", row.name, row.reasons);
        let offered = !NOT_OFFERED.contains(&row.name.as_str());
        assert_eq!(row.unsupported == 0, offered, "{}: {:?}", row.name, row.reasons.first());
    }
    assert!(report.total("", |row| row.tier == Some(1)).passed > 3000, "the selection has shrunk");
}

/// Replays a suite on the NPU, in a process of its own: some recorded mistakes show when anyone waits for
/// the device. Gives the names of what has cases that are not supported; none may fail.
fn not_on_npu(suite: &str, folder: &str, list: &str, key: &str) -> Vec<String> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let file = std::env::temp_dir().join(format!("cresset-parity-npu-{folder}-{}.json", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_cresset"))
        .args(["parity", suite])
        .arg(golden)
        .args(["--device", "npu", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    assert!(json["total"]["passed"].as_u64().unwrap() > 0 && json["total"]["failed"] == 0);
    let missing = json[list].as_array().unwrap().iter().filter(|row| row["unsupported"] != 0);
    missing.map(|row| row[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_npu_gives_every_recorded_answer() {
    assert_eq!(not_on_npu("ops", "opinfo", "ops", "op"), [""; 0]);
}

#[test]
fn the_npu_runs_and_trains_what_the_host_does() {
    assert_eq!(not_on_npu("modules", "module", "modules", "module"), [""; 0]);
    assert_eq!(not_on_npu("train", "train", "models", "model"), [""; 0]);
}

#[test]
fn every_recorded_module_answers_as_ours_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/module");
    let report = cresset_parity::modules::replay_folder(&folder, None, Device::CPU, |_| {}).unwrap();
    for row in &report.rows {
        assert_eq!(row.failed, 0, "{}: {:?}", row.name, row.reasons);
        let offered = cresset_parity::modules::find(&row.name).is_some();
        assert!(!offered || row.unsupported == 0, "{}: {:?}", row.name, row.reasons.first());
    }
    assert!(report.total("", |_| true).passed > 250, "the selection or the register has shrunk");
}

#[test]
fn models_are_trained_along_the_recorded_curves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/train");
    let report = cresset_parity::train::replay_training(&folder, None, Device::CPU, |_| {}).unwrap();
    for row in &report.rows {
        assert_eq!(row.passed, 3, "{}: {:?}", row.name, row.reasons);
    }
    assert_eq!(report.rows.len(), 4);
}

#[test]
fn a_loss_beside_the_curve_fails_and_words_that_mean_nothing_never_pass() {
    let folder = std::env::temp_dir().join(format!("cresset-parity-train-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/train");
    fs::copy(from.join("MLP.safetensors"), folder.join("MLP.safetensors")).unwrap();
    let text = fs::read_to_string(from.join("MLP.json")).unwrap();
    let verdicts = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut json["cases"][0]);
        fs::write(folder.join("MLP.json"), json.to_string()).unwrap();
        let report =
            cresset_parity::train::replay_training(&folder, Some("MLP"), Device::CPU, |_| {}).unwrap();
        let row = &report.rows[0];
        assert_eq!(row.passed, 0, "{:?}", row.reasons);
        format!("{:?}", row.reasons)
    };
    let told = verdicts(&|case| case["losses"][99] = (case["losses"][99].as_f64().unwrap() + 2e-5).into());
    assert!(told.contains("Failed(\"the loss of step 99 is "), "{told}");
    let told = verdicts(&|case| case["optimizer"] = "SGD(lr=0.05,momentum=0.9)".into());
    assert!(told.contains("Failed(\"the loss of step"), "{told}");
    let told = verdicts(&|case| case["optimizer"] = "SGD(lr=0.05), sharpened each step".into());
    assert!(told.contains("Unsupported"), "{told}");
    let told = verdicts(&|case| case["model"] = "fc1 Linear(12,24) -> Blur -> fc2 Linear(24,8)".into());
    assert!(told.contains("Unsupported"), "{told}");
    let told = verdicts(&|case| case["model"] = "fc1 Linear(12,8)".into());
    assert!(told.contains("Failed(\"load_state_dict: "), "{told}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_wrong_gradient_of_a_parameter_fails_its_module() {
    let folder = std::env::temp_dir().join(format!("cresset-parity-module-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/module");
    let text = fs::read_to_string(from.join("Linear.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let case = json["cases"].as_array_mut().unwrap().iter_mut().find(|case| !case["state"]["bias"].is_null());
    let case = case.unwrap();
    // The bias as its own gradient.
    case["param_grads"]["bias"]["t"] = case["state"]["bias"].clone();
    let id = case["id"].as_str().unwrap().to_owned();
    fs::write(folder.join("Linear.json"), json.to_string()).unwrap();
    fs::copy(from.join("Linear.safetensors"), folder.join("Linear.safetensors")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cresset"));
    let output = command.args(["parity", "modules"]).arg(&folder).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("{id} failed: gradient of bias is ")), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn one_operator_is_replayed_in_all_its_forms() {
    let file = std::env::temp_dir().join(format!("cresset-parity-{}.json", std::process::id()));
    let output = command(&golden(), &["--op", "div", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("div.floor_rounding") && text.contains("div.no_rounding_mode"), "{text}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["ops"].as_array().unwrap().len(), 3);
    assert_eq!(json["total"]["failed"], 0);
    fs::remove_file(file).unwrap();
}

#[test]
fn a_wrong_answer_is_named_and_fails_the_command() {
    let mut id = String::new();
    let folder = altered("wrong", |text| {
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let case = &mut json["cases"][0];
        // The input as its own exponential.
        case["out"]["t"] = case["args"][0]["t"].clone();
        id = case["id"].as_str().unwrap().to_owned();
        json.to_string()
    });
    let output = command(&folder, &[]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("{id} failed: output 0 is ")), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_not_known_is_unsupported_and_never_passes() {
    let folder = altered("unknown", |text| text.replacen(r#""op":"exp""#, r#""op":"expand_your_mind""#, 1));
    let output = command(&folder, &[]);
    assert!(output.status.success(), "nothing failed");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("unsupported: operator"), "{text}");
    let total = text.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(total[3], "0", "cases passed in {total:?}");
    fs::remove_dir_all(folder).unwrap();

    let folder = altered("argument", |text| text.replace(r#""kwargs":{}"#, r#""kwargs":{"speed":{"i":3}}"#));
    let text = String::from_utf8(command(&folder, &[]).stdout).unwrap();
    assert!(text.contains("unsupported: argument speed"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_of_another_format_and_empty_folders_are_refused() {
    let folder = altered("format", |text| text.replacen("golden-v1", "golden-v9", 1));
    let output = command(&folder, &[]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("exp.json: format is \"golden-v9\", expected \"golden-v1\""), "{text}");
    fs::remove_file(folder.join("exp.json")).unwrap();
    let text = String::from_utf8(command(&folder, &[]).stderr).unwrap();
    assert!(text.contains("holds no cases of operators"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

/// A folder with the files of `exp`, its text changed.
fn altered(name: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("cresset-parity-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read_to_string(golden().join("exp.json")).unwrap();
    fs::write(folder.join("exp.json"), change(text)).unwrap();
    fs::copy(golden().join("exp.safetensors"), folder.join("exp.safetensors")).unwrap();
    folder
}

#[test]
fn hostile_files_are_taken_and_refused_as_by_the_reference_readers() {
    let command = || Command::new(env!("CARGO_BIN_EXE_cresset"));
    let run = |folder: &Path| command().args(["parity", "malicious"]).arg(folder).output().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/malicious");
    let output = run(&folder);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("all 37 files were taken or refused as they should be\n"), "{said}");

    // A verdict that is not ours fails the run.
    let other = Path::new(env!("CARGO_TARGET_TMPDIR")).join("malicious");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(folder.join("npy_ok.npy"), other.join("npy_ok.npy")).unwrap();
    let cases = r#"[{"file": "npy_ok.npy", "verdict": "reject"}]"#;
    let index = format!(r#"{{"format": "golden-v1", "suite": "malicious", "cases": {cases}}}"#);
    std::fs::write(other.join("index.json"), index.replace("npy_ok.npy", "../npy_ok.npy")).unwrap();
    assert!(String::from_utf8_lossy(&run(&other).stderr).contains("is not the name of a file"));
    std::fs::write(other.join("index.json"), index).unwrap();
    let output = run(&other);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 1 files failed"));
}
