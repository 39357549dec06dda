//! What the tests share.

use cresset_npu::Library;
use cresset_tensor::{DType, Device, Result, Tensor};
use std::process::Command;

/// The simulated device.
pub(crate) fn npu() -> Device {
    let library = Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol);
    cresset_npu::init(library).expect("the simulator needs nothing");
    cresset_npu::device(0)
}

/// Runs `body` in a process of its own, with these variables: it is about what a process has
/// one of. `test` is the full name of the calling test.
pub(crate) fn alone(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    alone_each(test, &[variables.to_vec()], body);
}

/// As [`alone`], in one process after the other, each with variables of its own.
pub(crate) fn alone_each(test: &str, variables: &[Vec<(&str, &str)>], body: impl FnOnce()) {
    const MARK: &str = "CRESSET_TEST_ALONE";
    if std::env::var(MARK).is_ok_and(|name| name == test) {
        return body();
    }
    variables.iter().for_each(|variables| start(test, MARK, variables));
}

fn start(test: &str, mark: &str, variables: &[(&str, &str)]) {
    let program = std::env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(mark, test)
        .envs(variables.iter().copied())
        .output()
        .expect("a test can be started again");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test} {variables:?}: {text}");
}

/// Numbers that are small, different, and the same every time.
pub(crate) fn numbers(shape: &[usize], seed: u64) -> Tensor {
    let count: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let elements: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(&elements, shape).expect("as many as the shape says")
}

/// Fails unless both have the same shape, type and, within `tolerance`, elements.
pub(crate) fn assert_close(name: &str, actual: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!(actual.shape(), expected.shape(), "{name}: shapes");
    assert_eq!(actual.dtype(), expected.dtype(), "{name}: dtypes");
    let wide = |x: &Tensor| -> Result<Vec<f64>> { x.to(Device::CPU)?.to_dtype(DType::F64)?.to_vec() };
    let (actual, expected) = (wide(actual).unwrap(), wide(expected).unwrap());
    for (i, (a, b)) in actual.iter().zip(&expected).enumerate() {
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(same, "{name}: element {i} is {a}, expected {b}");
    }
}
