//! Operators without a kernel: errors, or the host's, where somebody asked for that.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// How often each operator was left to the host.
static COUNTS: OnceLock<Mutex<BTreeMap<&'static str, u64>>> = OnceLock::new();

/// Whether operators that have no kernel on the NPU are computed by the host, with copies to it and back. Without
/// this, or `CRESSET_NPU_FALLBACK=1`, they are errors: a training loop that crosses to the host unnoticed is slow
/// for no visible reason. Traces show it as `cresset::host_fallback`, and [`host_fallbacks`] counts.
///
/// ```
/// cresset_npu::set_host_fallback(true);
/// assert!(cresset_npu::host_fallback());
/// # cresset_npu::set_host_fallback(false);
/// ```
pub fn set_host_fallback(on: bool) {
    MODE.store(if on { ON } else { OFF }, Relaxed);
}

/// Whether operators that have no kernel on the NPU are computed by the host.
pub fn host_fallback() -> bool {
    if MODE.load(Relaxed) == UNKNOWN {
        let asked =
            std::env::var("CRESSET_NPU_FALLBACK").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
        set_host_fallback(asked);
    }
    MODE.load(Relaxed) == ON
}

/// How often each operator was computed by the host instead of the NPU.
///
/// ```
/// assert!(cresset_npu::host_fallbacks().is_empty());
/// ```
pub fn host_fallbacks() -> Vec<(&'static str, u64)> {
    COUNTS
        .get()
        .map_or_else(Vec::new, |counts| counts.lock().iter().map(|(op, count)| (*op, *count)).collect())
}

/// Whether `op` is to be left to the host; if so, it is counted.
pub(crate) fn wanted(op: &'static str) -> bool {
    let wanted = host_fallback();
    if wanted {
        *COUNTS.get_or_init(Mutex::default).lock().entry(op).or_default() += 1;
    }
    wanted
}
