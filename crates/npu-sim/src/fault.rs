//! Faults on demand: the n-th call of a function fails, comes late, or is lost.
//!
//! `CRESSET_SIM_FAIL` is a list of `function:calls:effect` with commas between:
//!
//! | part | is |
//! |---|---|
//! | function | a name, or its start and `*` |
//! | calls | `3` the third, `3..` that and all later ones, `*` all |
//! | effect | a code: the call fails so; `delay=5ms`: it comes later; `drop`: it claims success and does nothing |
//!
//! Faults of the second function of an operator happen in the stream, as those of kernels do. Every function that
//! returns a code or a handle can be told to fail; those that only give a text or a name cannot. Functions of our own
//! are left out, so that `*` always can be taken back.

use crate::config::{complain, text};
use crate::error::{Failure, Result, fail};
use cresset_acl::code;
use parking_lot::RwLock;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const NAME: &str = "CRESSET_SIM_FAIL";

/// What happens to some calls of some functions.
struct Fault {
    function: String,
    which: RangeInclusive<u64>,
    effect: Effect,
    calls: AtomicU64,
    /// As it was asked for.
    entry: String,
    happened: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    Fail(i32),
    Delay(Duration),
    Drop,
}

/// An effect, and the number of the call it is for.
#[derive(Clone, Copy)]
pub(crate) struct Injected {
    effect: Effect,
    call: u64,
}

/// Whether there are faults at all: looked at by every call.
static ANY: AtomicBool = AtomicBool::new(true);

static FAULTS: LazyLock<RwLock<Vec<Fault>>> = LazyLock::new(|| {
    let list = text(NAME).unwrap_or_default();
    let faults: Vec<Fault> = entries(&list)
        .filter_map(|entry| {
            let fault = parse(entry);
            if fault.is_none() {
                complain(NAME, entry);
            }
            fault
        })
        .collect();
    ANY.store(!faults.is_empty(), Ordering::Relaxed);
    RwLock::new(faults)
});

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn parse(entry: &str) -> Option<Fault> {
    let mut parts = entry.split(':');
    let (function, calls, effect) = (parts.next()?, parts.next()?, parts.next()?);
    let which = match calls.strip_suffix("..") {
        Some(first) => first.parse().ok()?..=u64::MAX,
        None if calls == "*" => 1..=u64::MAX,
        None => calls.parse().ok()?..=calls.parse().ok()?,
    };
    let effect = match effect.strip_prefix("delay=") {
        Some(time) => Effect::Delay(duration(time)?),
        None if effect == "drop" => Effect::Drop,
        None => Effect::Fail(effect.parse().ok()?),
    };
    let [calls, happened] = [const { AtomicU64::new(0) }; 2];
    Some(Fault { function: function.into(), which, effect, calls, entry: entry.into(), happened })
}

/// `5ms`, `20us` or `1s`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

impl Fault {
    fn is_for(&self, function: &str) -> bool {
        match self.function.strip_suffix('*') {
            Some(start) => function.starts_with(start),
            None => self.function == function,
        }
    }
}

/// Replaces all faults; counting starts again.
pub(crate) fn set(list: &str) -> Result {
    let mut faults = Vec::new();
    for entry in entries(list) {
        let Some(fault) = parse(entry) else {
            fail!(code::INVALID_PARAM, "{entry:?} is not function:calls:effect");
        };
        faults.push(fault);
    }
    let mut current = FAULTS.write();
    ANY.store(!faults.is_empty(), Ordering::Relaxed);
    *current = faults;
    Ok(())
}

/// Counts a call of `function`; what shall happen to it.
#[inline]
pub(crate) fn injected(function: &str) -> Option<Injected> {
    if ANY.load(Ordering::Relaxed) { look(function) } else { None }
}

#[cold]
fn look(function: &str) -> Option<Injected> {
    let mut found = None;
    for fault in FAULTS.read().iter().filter(|fault| fault.is_for(function)) {
        let call = fault.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if found.is_none() && fault.which.contains(&call) {
            fault.happened.fetch_add(1, Ordering::Relaxed);
            found = Some(Injected { effect: fault.effect, call });
        }
    }
    found
}

/// A line per fault that was asked for, and how often it has happened.
pub(crate) fn report() -> String {
    let line = |fault: &Fault| format!("{} {}\n", fault.entry, fault.happened.load(Ordering::Relaxed));
    FAULTS.read().iter().map(line).collect()
}

impl Injected {
    /// Lets it happen to `body`.
    pub(crate) fn around(self, body: impl FnOnce() -> Result) -> Result {
        match self.effect {
            Effect::Fail(code) => {
                let text = format!("injected {} at call {}", code::name(code), self.call);
                Err(Failure::new(code, text))
            }
            Effect::Delay(time) => {
                thread::sleep(time);
                body()
            }
            Effect::Drop => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_function_calls_and_effect() {
        let fault = parse("aclrtMalloc:3:207001").unwrap();
        assert_eq!(
            (fault.function.as_str(), fault.which, fault.effect),
            ("aclrtMalloc", 3..=3, Effect::Fail(207001))
        );
        let fault = parse("aclnn*:2..:delay=5ms").unwrap();
        assert!(fault.is_for("aclnnAdd") && !fault.is_for("aclrtMalloc"));
        assert_eq!((fault.which, fault.effect), (2..=u64::MAX, Effect::Delay(Duration::from_millis(5))));
        assert_eq!(parse("aclrtFree:*:drop").unwrap().effect, Effect::Drop);
        assert!(parse("*:7:507015").unwrap().is_for("aclrtFree"));
        for wrong in ["aclrtMalloc:3", "", "a:b:1", "a:1:delay=5", "a:1:later"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
