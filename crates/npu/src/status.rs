//! Status codes as errors.
//!
//! What goes wrong while a value is dropped is kept, and told by the next call that can.

use crate::device;
use crate::launches::{self, LaunchedBy};
use crate::sys::{self, LoadError};
use cresset_acl::code;
use cresset_acl::collective::result;
use cresset_tensor::{Cause, Error};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A function of the device's library that did not succeed.
///
/// ```
/// # use cresset_npu::{AclError, Library, device, init};
/// # use cresset_tensor::{DType, Tensor};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let error = Tensor::empty([1 << 40], (DType::U8, device(0))).unwrap_err();
/// assert!(error.to_string().contains("aclrtMalloc failed with code 207001"));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclError {
    /// The C function.
    pub function: &'static str,
    /// What it returned; 0 if it was not called, because that could not have helped.
    pub code: i32,
    /// The vendor's name of the code; empty for one that is not known.
    pub name: &'static str,
    /// What the library says about it; may be empty.
    pub message: String,
    /// Who gave the device the work that failed, if that is known.
    pub launched_by: Option<LaunchedBy>,
}

/// The result of a call into the device's library.
pub(crate) type AclResult<T = ()> = Result<T, AclError>;

impl AclError {
    /// Whether the device had no memory left.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == code::RT_MEMORY_ALLOCATION
    }

    /// Whether the device cannot be used any more by this process.
    pub fn is_lost_device(&self) -> bool {
        matches!(
            self.code,
            code::RT_LOST_HEARTBEAT
                | code::RT_DEVICE_MEM_ERROR
                | code::RT_HBM_MULTI_BIT_ECC_ERROR
                | code::RT_SUSPECT_DEVICE_MEM_ERROR
                | code::RT_LINK_ERROR
                | code::RT_DRV_INTERNAL_ERROR
        )
    }

    /// In a process that was forked from one that uses the devices.
    pub(crate) fn forked() -> AclError {
        let message = "an npu cannot be used in a forked process: its parent has the device; start a new \
                       program instead of forking";
        AclError { function: "fork", code: 0, name: "", message: message.to_owned(), launched_by: None }
    }
}

impl fmt::Display for AclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == code::SUCCESS {
            return f.write_str(&self.message);
        }
        write!(f, "{} failed with code {}", self.function, self.code)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if let Some(launched_by) = self.launched_by {
            write!(f, "; {launched_by}")?;
        }
        if self.is_lost_device() {
            return f.write_str("; the device is lost to this process: look at npu-smi, then start again");
        }
        match advice(self.code) {
            "" => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

/// What to do about codes that say little by themselves.
fn advice(code: i32) -> &'static str {
    match code {
        code::COMPILING_STUB_MODE => {
            "a stub for linking was loaded: put the toolkit's lib64 before its devlib"
        }
        code::RT_NO_DEVICE => "no device is visible: check npu-smi and ASCEND_RT_VISIBLE_DEVICES",
        _ => "",
    }
}

impl std::error::Error for AclError {}

impl From<AclError> for Error {
    fn from(error: AclError) -> Error {
        let cause = if error.is_out_of_memory() { Cause::Memory } else { Cause::DeviceFailure };
        Error::device_failure("", error).because(cause)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        Error::device_failure("", error)
    }
}

/// The status of `function` as a result.
#[inline]
pub(crate) fn check(function: &'static str, code: i32) -> AclResult {
    if code == code::SUCCESS { Ok(()) } else { Err(failed(function, code)) }
}

/// As [`check`], for a function for communication: its codes are of another kind.
#[inline]
pub(crate) fn check_collective(function: &'static str, code: i32) -> AclResult {
    if code == result::SUCCESS { Ok(()) } else { Err(collective_failed(function, code)) }
}

#[cold]
fn collective_failed(function: &'static str, code: i32) -> AclError {
    let (name, message) = (result::name(code), sys::recent_message());
    AclError { function, code, name, message, launched_by: None }
}

/// Codes of work that failed on a device, told by whoever waits for it.
const FAILED_WORK: std::ops::Range<i32> = 507_000..508_000;

#[cold]
fn failed(function: &'static str, code: i32) -> AclError {
    let message = sys::recent_message();
    let of_work = FAILED_WORK.contains(&code);
    let launched_by =
        device::bound().filter(|_| of_work).and_then(|device| launches::blamed(device, &message));
    let error = AclError { function, code, name: code::name(code), message, launched_by };
    if error.is_lost_device() {
        device::lose(&error);
    }
    error
}

static LATE: Mutex<Option<AclError>> = Mutex::new(None);
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// Keeps an error that cannot be returned; the first one stays until it is told.
pub(crate) fn keep(result: AclResult) {
    if let Err(error) = result {
        LATE.lock().get_or_insert(error);
        IS_LATE.store(true, Relaxed);
    }
}

/// The error that was kept, if there is one.
pub(crate) fn kept() -> AclResult {
    if !IS_LATE.load(Relaxed) {
        return Ok(());
    }
    IS_LATE.store(false, Relaxed);
    LATE.lock().take().map_or(Ok(()), Err)
}
