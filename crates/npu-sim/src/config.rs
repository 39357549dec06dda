//! What the environment says about the device, and what a program may change while it runs.

use crate::error::{Result, fail};
use crate::{calls, fault, pace};
use cresset_acl::code;
use std::ffi::CString;
use std::sync::LazyLock;

/// Read once, at first use.
pub(crate) struct Config {
    /// `CRESSET_SIM_DEVICES`: how many devices there are.
    pub(crate) devices: usize,
    /// `CRESSET_SIM_MEMORY`: bytes of memory per device.
    pub(crate) memory: usize,
    /// `CRESSET_SIM_SOC`: the name of the chip.
    pub(crate) soc: CString,
    /// `CRESSET_SIM_CANN`: the release that this claims to be.
    pub(crate) release: Release,
    /// `CRESSET_SIM_CLOCK=910b`: kernels take as long as on that chip, by a model.
    pub(crate) modelled: bool,
    /// `CRESSET_SIM_LEAKS`: say at the end what was never destroyed.
    pub(crate) leaks: bool,
}

/// The release of the toolkit that the device claims to come with.
pub(crate) struct Release {
    /// As its vendor writes it, e.g. `8.1.RC1`.
    pub(crate) text: CString,
    /// Major, minor and patch number.
    pub(crate) numbers: [i32; 3],
}

pub(crate) static CONFIG: LazyLock<Config> = LazyLock::new(|| Config {
    devices: number("CRESSET_SIM_DEVICES").unwrap_or(1),
    memory: number("CRESSET_SIM_MEMORY").unwrap_or(2 << 30),
    soc: c_text("CRESSET_SIM_SOC", "Ascend910B3 (simulated)"),
    release: Release::new(c_text("CRESSET_SIM_CANN", "9.1.0")),
    modelled: choice("CRESSET_SIM_CLOCK", &["host", "910b"]) == 1,
    leaks: choice("CRESSET_SIM_LEAKS", &["0", "1"]) == 1,
});

impl Release {
    fn new(text: CString) -> Release {
        let mut numbers = [0; 3];
        let given = text.to_string_lossy().into_owned();
        for (number, part) in numbers.iter_mut().zip(given.split('.')) {
            *number = part.parse().unwrap_or(0);
        }
        Release { text, numbers }
    }

    /// Whether a function is hidden because this release does not have it yet.
    pub(crate) fn lacks(&self, function: &str) -> bool {
        self.numbers < [8, 2, 0] && cresset_acl::release::is_newer(function)
    }
}

/// Changes what may be changed while a program runs.
pub(crate) fn change(name: &str, value: &str) -> Result {
    match name {
        "CRESSET_SIM_FAIL" => fault::set(value),
        "CRESSET_SIM_ASYNC" => pace::set_order(value),
        "CRESSET_SIM_DELAY_US" => pace::set_delay(value),
        "CRESSET_SIM_CALLS" => calls::set(value),
        _ => fail!(code::INVALID_PARAM, "{name} is not known, or cannot be changed any more"),
    }
}

/// An environment variable; empty counts as unset.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn c_text(name: &str, default: &str) -> CString {
    let given = text(name).and_then(|value| CString::new(value).ok());
    given.unwrap_or_else(|| CString::new(default).expect("has no zero byte"))
}

fn number(name: &str) -> Option<usize> {
    let value = text(name)?;
    let number = value.parse().ok();
    if number.is_none() {
        complain(name, &value);
    }
    number
}

/// The place of a variable's value among `choices`; the first if it is not set.
fn choice(name: &str, choices: &[&str]) -> usize {
    let Some(value) = text(name) else { return 0 };
    choices.iter().position(|choice| *choice == value).unwrap_or_else(|| {
        complain(name, &value);
        0
    })
}

/// Says that a value is passed over: silence would look like obedience.
pub(crate) fn complain(name: &str, value: &str) {
    eprintln!("cresset-npu-sim: {name}: cannot read `{value}`, passed over");
}
