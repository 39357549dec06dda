//! How often each function was called, for who wants to know: `CRESSET_SIM_CALLS=1`.

use crate::config::text;
use crate::error::{Result, fail};
use cresset_acl::code;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
static WANTED: LazyLock<AtomicBool> =
    LazyLock::new(|| AtomicBool::new(text("CRESSET_SIM_CALLS").is_some_and(|value| value != "0")));

/// `1` starts to count anew, `0` stops.
pub(crate) fn set(value: &str) -> Result {
    match value {
        "0" => WANTED.store(false, Ordering::Relaxed),
        "1" => {
            COUNTS.lock().clear();
            WANTED.store(true, Ordering::Relaxed);
        }
        _ => fail!(code::INVALID_PARAM, "CRESSET_SIM_CALLS is 0 or 1, not {value:?}"),
    }
    Ok(())
}

/// Counts a call.
#[inline]
pub(crate) fn count(function: &str) {
    if WANTED.load(Ordering::Relaxed) {
        *COUNTS.lock().entry(function.to_owned()).or_default() += 1;
    }
}

/// A line per function: its name and how often it was called.
pub(crate) fn report() -> String {
    COUNTS.lock().iter().map(|(function, count)| format!("{function} {count}\n")).collect()
}
