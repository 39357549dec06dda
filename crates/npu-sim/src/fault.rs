//! Failures on demand: `CRESSET_SIM_FAIL="aclrtMalloc:3:207001,aclnnAdd:1:507015"`.

use crate::config::{complain, text};
use crate::error::{Failure, Result};
use cresset_acl::code;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "CRESSET_SIM_FAIL";

/// The `nth` call of `function` fails with `code`.
struct Fault {
    function: String,
    nth: u64,
    code: i32,
    calls: AtomicU64,
}

static FAULTS: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    let list = text(NAME).unwrap_or_default();
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let read = |entry| {
        parse(entry).or_else(|| {
            complain(NAME, entry);
            None
        })
    };
    entries.filter_map(read).collect()
});

fn parse(entry: &str) -> Option<Fault> {
    let mut parts = entry.split(':');
    let (function, nth, code) = (parts.next()?, parts.next()?, parts.next()?);
    let calls = AtomicU64::new(0);
    Some(Fault { function: function.into(), nth: nth.parse().ok()?, code: code.parse().ok()?, calls })
}

/// Counts a call of `function`; an error if this one is to fail.
#[inline]
pub(crate) fn injected(function: &str) -> Result {
    for fault in FAULTS.iter().filter(|fault| fault.function == function) {
        if fault.calls.fetch_add(1, Ordering::Relaxed) + 1 == fault.nth {
            let text = format!("injected {} at call {}", code::name(fault.code), fault.nth);
            return Err(Failure::new(fault.code, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_function_call_and_code() {
        let fault = parse("aclrtMalloc:3:207001").unwrap();
        assert_eq!((fault.function.as_str(), fault.nth, fault.code), ("aclrtMalloc", 3, 207001));
        assert!(parse("aclrtMalloc:3").is_none() && parse("").is_none());
    }
}
