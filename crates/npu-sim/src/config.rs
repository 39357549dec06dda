//! What the environment says about the device.

use std::ffi::CString;
use std::sync::LazyLock;
use std::time::Duration;

/// Read once, at first use.
pub(crate) struct Config {
    /// `CRESSET_SIM_DEVICES`: how many devices there are.
    pub(crate) devices: usize,
    /// `CRESSET_SIM_MEMORY`: bytes of memory per device.
    pub(crate) memory: usize,
    /// `CRESSET_SIM_SOC`: the name of the chip.
    pub(crate) soc: CString,
    /// `CRESSET_SIM_DELAY_US`: how long every task takes at least.
    pub(crate) delay: Option<Duration>,
}

pub(crate) static CONFIG: LazyLock<Config> = LazyLock::new(|| Config {
    devices: number("CRESSET_SIM_DEVICES").unwrap_or(1),
    memory: number("CRESSET_SIM_MEMORY").unwrap_or(2 << 30),
    soc: text("CRESSET_SIM_SOC")
        .and_then(|name| CString::new(name).ok())
        .unwrap_or_else(|| c"Ascend910B3 (simulated)".into()),
    delay: number("CRESSET_SIM_DELAY_US").map(|us| Duration::from_micros(us as u64)),
});

/// An environment variable; empty counts as unset.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<usize> {
    let value = text(name)?;
    let number = value.parse().ok();
    if number.is_none() {
        complain(name, &value);
    }
    number
}

/// Says that a value is passed over: silence would look like obedience.
pub(crate) fn complain(name: &str, value: &str) {
    eprintln!("cresset-npu-sim: {name}: cannot read `{value}`, passed over");
}
