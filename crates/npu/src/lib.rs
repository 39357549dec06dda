//! The Ascend NPU as a device of Cresset, over the C functions of CANN.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cresset_tensor::Tensor;
//! cresset_npu::init(cresset_npu::Library::installed())?;
//! let x = Tensor::new([1.0f32, 2.0])?.to(cresset_npu::device(0))?;
//! assert_eq!(x.add(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Each file stands on the ones below it:
//!
//! ```text
//! kernels      tensors to tensors, registered with the operators
//! backend      what tensors need besides: memory, copies, waiting
//! aclnn        operators as plain functions: plan, workspace, launch
//! descriptor   their arguments as the library wants them described
//! allocator    cached memory (blocks: its bookkeeping)
//! activity     what the device did, in its own time (records, buffers)
//! device, stream, event, memory   handles as values that clean up
//! status       codes as errors
//! sys          what the library exports, and where it was found
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `CRESSET_NPU` | `hardware`, `sim` or `auto`: hardware if its library is found, else what the program embeds |
//! | `CRESSET_NPU_LIBRARY` | the library, or the directory of the vendor's libraries; must load |
//! | `CRESSET_NPU_VERSION` | `any`: use releases of CANN that are not known here too |
//! | `ASCEND_HOME_PATH` | where the toolkit is, as its own script sets it |

mod aclnn;
mod activity;
mod allocator;
mod backend;
mod blocks;
mod descriptor;
mod device;
mod event;
mod info;
mod kernels;
mod memory;
mod status;
mod stream;
mod sys;

pub use allocator::MemoryStats;
pub use device::{device, device_count};
pub use event::Event;
pub use info::{Info, info};
pub use status::AclError;
pub use stream::{Entered, Stream};
pub use sys::{Library, LoadError, Symbols};

use cresset_tensor::{Cause, Device, Error, Key, Result};
use parking_lot::Mutex;
use std::sync::OnceLock;

/// What was tried in vain before the library was found; set once all is ready.
static READY: OnceLock<Vec<String>> = OnceLock::new();

/// Finds and starts the device's library, and registers the devices and their kernels.
/// Once it has succeeded, later calls do nothing.
///
/// # Errors
/// If there is no library: every path tried, and what to do. If the runtime does not start.
pub fn init(library: Library) -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    if READY.get().is_some() {
        return Ok(());
    }
    let Some(key) = Key::claim("npu") else {
        return Err(Error::new(
            Cause::Device,
            "",
            "cannot add npu: there are as many backends as there can be",
        ));
    };
    let found = sys::find(&library)?;
    if sys::try_loaded().is_none() {
        sys::load(found.origin)?;
    }
    device::start(key)?;
    kernels::register(key);
    cresset_tensor::backend::register(key, &backend::Npu);
    activity::register();
    READY.get_or_init(|| found.tried);
    Ok(())
}

fn tried() -> &'static [String] {
    READY.get().map_or(&[], Vec::as_slice)
}

/// Whether there is a device to use.
pub fn is_available() -> bool {
    device_count() > 0
}

/// Waits for all work on `device`; fails with what failed since the last time.
pub fn synchronize(device: Device) -> Result<()> {
    check_device(device)?;
    cresset_tensor::backend::synchronize(device)
}

/// Bytes of `device` that tensors and workspaces use.
pub fn memory_allocated(device: Device) -> usize {
    memory_stats(device).allocated
}

/// The most bytes of `device` that tensors and workspaces used at once.
pub fn max_memory_allocated(device: Device) -> usize {
    memory_stats(device).max_allocated
}

/// Bytes of `device` that are held, in use or cached.
pub fn memory_reserved(device: Device) -> usize {
    memory_stats(device).reserved
}

/// All that the allocator of `device` counts; nothing if it is no NPU.
pub fn memory_stats(device: Device) -> MemoryStats {
    check_device(device).map_or_else(|_| MemoryStats::default(), |()| allocator::of(device.index).stats())
}

/// Counts the highest values of `device` anew from now on.
pub fn reset_peak_memory_stats(device: Device) -> Result<()> {
    check_device(device)?;
    allocator::of(device.index).reset_peak();
    Ok(())
}

/// Waits for `device`, and gives memory that is held but not in use back to it.
pub fn empty_cache(device: Device) -> Result<()> {
    check_device(device)?;
    Ok(allocator::of(device.index).empty_cache()?)
}

/// Fails unless `device` is an NPU that exists.
pub(crate) fn check_device(device: Device) -> Result<()> {
    let count = device_count();
    if device.key.name() == "npu" && usize::from(device.index) < count {
        return Ok(());
    }
    Err(Error::new(Cause::Device, "", format_args!("{device} is not one of the {count} npu devices")))
}
