//! When streams run their tasks: at once, late, at random, or only when somebody waits.
//!
//! `CRESSET_SIM_ASYNC=lazy` is the worst case that hardware may show: nothing runs before it must, so a
//! missing event or an early free gives a wrong result each time instead of once in a while.

use crate::config::{complain, text};
use crate::error::{Result, fail};
use cresset_acl::code;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Tasks wait until somebody wants them done.
static LAZY: AtomicBool = AtomicBool::new(false);
/// The state of the generator of delays; 0 for a constant delay.
static RANDOM: AtomicU64 = AtomicU64::new(0);
/// Microseconds, before every task.
static DELAY: AtomicU64 = AtomicU64::new(0);
/// What tasks are delayed by at most when at random and nothing else is said.
const RANDOM_DELAY: u64 = 200;

static FROM_ENVIRONMENT: LazyLock<()> = LazyLock::new(|| {
    for (name, set) in
        [("CRESSET_SIM_DELAY_US", set_delay as fn(&str) -> Result), ("CRESSET_SIM_ASYNC", set_order)]
    {
        if let Some(value) = text(name)
            && set(&value).is_err()
        {
            complain(name, &value);
        }
    }
});

/// `eager`, `lazy`, or `random:seed`.
pub(crate) fn set_order(value: &str) -> Result {
    let (lazy, seed) = match value.split_once(':') {
        None if value == "eager" => (false, 0),
        None if value == "lazy" => (true, 0),
        Some(("random", seed)) if seed.parse::<u64>().is_ok_and(|seed| seed > 0) => {
            DELAY.compare_exchange(0, RANDOM_DELAY, Ordering::Relaxed, Ordering::Relaxed).ok();
            (false, seed.parse().expect("it was just read"))
        }
        _ => fail!(code::INVALID_PARAM, "{value:?} is not eager, lazy or random:seed"),
    };
    RANDOM.store(seed, Ordering::Relaxed);
    LAZY.store(lazy, Ordering::Relaxed);
    Ok(())
}

/// Microseconds before every task.
pub(crate) fn set_delay(value: &str) -> Result {
    let Ok(delay) = value.parse() else {
        fail!(code::INVALID_PARAM, "{value:?} is no number of microseconds");
    };
    DELAY.store(delay, Ordering::Relaxed);
    Ok(())
}

/// Reads the environment, once.
pub(crate) fn prepare() {
    LazyLock::force(&FROM_ENVIRONMENT);
}

/// Whether tasks wait until somebody wants them done.
#[inline]
pub(crate) fn is_lazy() -> bool {
    LAZY.load(Ordering::Relaxed)
}

/// Waits as long as a task shall wait before it runs.
#[inline]
pub(crate) fn hold() {
    let most = DELAY.load(Ordering::Relaxed);
    if most > 0 {
        thread::sleep(Duration::from_micros(some_of(most)));
    }
}

/// All of `most`, or a random part of it.
fn some_of(most: u64) -> u64 {
    let draw = |state: u64| {
        // Xorshift, which never leaves the states other than 0.
        let state = state ^ (state << 13);
        let state = state ^ (state >> 7);
        state ^ (state << 17)
    };
    match RANDOM.load(Ordering::Relaxed) {
        0 => most,
        _ => {
            let next = |state| Some(draw(state));
            let state = RANDOM.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            state.map_or(most, |state| draw(state) % (most + 1))
        }
    }
}
