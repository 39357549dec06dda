//! Training for real: a model learns, and two devices learn the same.

use std::path::PathBuf;
use std::process::Command;

/// Trains as a user would; returns the loss of each step and the held-out accuracy in percent.
fn train(device: &str) -> (Vec<f64>, f64) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("losses-{device}.jsonl"));
    let output = Command::new(env!("CARGO_BIN_EXE_cresset"))
        .args(["train", "mlp", "--device", device, "--curve", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let accuracy = text.split("held-out accuracy ").nth(1).unwrap().split(' ').next().unwrap();
    let losses = std::fs::read_to_string(file).unwrap();
    let loss =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].as_f64().unwrap();
    (losses.lines().map(loss).collect(), accuracy.parse().unwrap())
}

#[test]
fn digits_are_learned_alike_on_both_devices() {
    let (on_cpu, accuracy_on_cpu) = train("cpu");
    let (on_npu, accuracy_on_npu) = train("npu");
    assert!(on_cpu.len() >= 50 && on_cpu.len() == on_npu.len());
    for (step, (cpu, npu)) in on_cpu.iter().zip(&on_npu).take(50).enumerate() {
        assert!((cpu - npu).abs() <= 1e-5 * cpu.abs(), "step {step}: {cpu} on cpu, {npu} on npu");
    }
    assert!(accuracy_on_cpu >= 96.0, "{accuracy_on_cpu} % on cpu");
    assert!(accuracy_on_npu >= 96.0, "{accuracy_on_npu} % on npu");
}

#[test]
fn batches_of_several_workers_wait_where_the_device_fetches_them() {
    use cresset::data::{DataLoader, Pinned, TensorDataset};
    use cresset::prelude::*;
    use cresset::tensor::To;

    let npu = cresset::device("npu").unwrap();
    let x = Tensor::arange(96).unwrap().reshape([24, 4]).unwrap();
    let samples = Pinned::new(TensorDataset::new([x.clone()]).unwrap());
    let loader = DataLoader::builder(samples).batch_size(5).workers(3).build().unwrap();
    let mut there = Vec::new();
    for batch in loader.epoch(0) {
        let [batch] = batch.unwrap();
        assert!(batch.is_pinned());
        there.push(batch.to(To { device: Some(npu), non_blocking: true, ..To::default() }).unwrap());
    }
    let all = Tensor::cat(&there.iter().collect::<Vec<_>>(), 0).unwrap();
    assert_eq!(all.to_vec::<i64>().unwrap(), x.to_vec::<i64>().unwrap());
}
