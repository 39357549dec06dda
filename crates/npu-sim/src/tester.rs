//! For programs in Rust that test with the embedded device: settings, faults, and what happened.

use crate::{calls, config, fault, objects};

/// Changes a setting while the program runs, by the name of its environment variable: `CRESSET_SIM_FAIL`,
/// `CRESSET_SIM_ASYNC`, `CRESSET_SIM_DELAY_US` or `CRESSET_SIM_CALLS`.
///
/// ```
/// // The third allocation from now on fails.
/// cresset_npu_sim::configure("CRESSET_SIM_FAIL", "aclrtMalloc:3:207001")?;
/// assert_eq!(cresset_npu_sim::report("faults").unwrap(), "aclrtMalloc:3:207001 0\n");
/// cresset_npu_sim::configure("CRESSET_SIM_FAIL", "")?;
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// If it is no setting that can be changed, or the value cannot be read.
pub fn configure(variable: &str, value: &str) -> Result<(), String> {
    config::change(variable, value).map_err(|failure| failure.message)
}

/// A text about `calls` (a line per function and how often it was called, if these are counted), `faults` (a
/// line per fault that was asked for and how often it has happened) or `leaks` (a line per kind of object of
/// which some are alive); nothing about anything else.
///
/// ```
/// assert_eq!(cresset_npu_sim::report("weather"), None);
/// ```
pub fn report(what: &str) -> Option<String> {
    match what {
        "calls" => Some(calls::report()),
        "faults" => Some(fault::report()),
        "leaks" => Some(objects::leaks()),
        _ => None,
    }
}
