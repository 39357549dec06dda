//! Recorded paths of optimizers, replayed: a selection of them lies in `tests/golden/optim`.

use cresset_parity::Verdict;
use cresset_parity::optim::replay_optim;
use cresset_tensor::Device;
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/optim")
}

#[test]
fn every_recorded_path_is_ours_too() {
    let report = replay_optim(&golden(), None, Device::CPU, |_| {}).unwrap();
    let known = Verdict::Unsupported("complex parameters".to_owned());
    let reasons = report.rows.iter().flat_map(|row| &row.reasons);
    let reasons: Vec<_> = reasons.filter(|(_, verdict)| *verdict != known).collect();
    assert!(reasons.is_empty(), "{reasons:#?}");
    assert_eq!(report.rows.len(), 16, "the selection has shrunk");
    assert!(report.total("", |_| true).passed > 300, "the selection has shrunk");
}

#[test]
fn one_optimizer_is_replayed_alone() {
    let report = replay_optim(&golden(), Some("AdamW"), Device::CPU, |_| {}).unwrap();
    assert_eq!(report.rows.len(), 1);
    assert_eq!(report.rows[0].name, "AdamW");
}
