//! Several ranks compute what one process would: groups, data parallel, the command, traces.

mod data_parallel;
mod groups;
mod train;

use cresset::distributed::{Hccl, ProcessGroup};
use cresset::npu::{Communicator, RootInfo, device};
use cresset::{Device, Result};
use std::process::Command;
use std::thread;

/// Runs `body` as each of some ranks, on threads of a process of their own, which has a device for each. `test` is
/// the full name of the calling test.
fn ranks(test: &str, count: u32, body: impl Fn(&ProcessGroup) -> Result<()> + Sync) {
    const MARK: &str = "CRESSET_TEST_RANKS";
    if std::env::var(MARK).is_ok_and(|name| name == test) {
        return threads(count, body);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(MARK, test)
        .envs([("CRESSET_SIM_DEVICES", count.to_string()), ("HCCL_EXEC_TIMEOUT", "60".to_owned())])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
}

fn threads(count: u32, body: impl Fn(&ProcessGroup) -> Result<()> + Sync) {
    cresset::load_npu().unwrap();
    let root = RootInfo::new(device(0)).unwrap();
    thread::scope(|scope| {
        for rank in 0..count {
            let (root, body) = (&root, &body);
            scope.spawn(move || {
                let joined = Communicator::join(device(rank as u8), root, rank, count, "world").unwrap();
                let group = ProcessGroup::new(Hccl::new(joined), "world").unwrap();
                body(&group).unwrap();
            });
        }
    });
}

/// The elements of a tensor, wherever it is.
fn numbers(tensor: &cresset::Tensor) -> Result<Vec<f32>> {
    tensor.to(Device::CPU)?.to_vec()
}
