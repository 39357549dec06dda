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
//! launches     what was given to streams, to name what failed later
//! collective   what the devices of a group do together (communicator: how they find each other)
//! activity     what the device did, in its own time (records, buffers)
//! transfer     copies between the host and devices (pinned: host memory that these reach)
//! device, stream, event, memory   handles as values that clean up
//! random, seed  numbers that devices make, and where they begin
//! usage, properties, info         what there is, and what it is used for
//! status       codes as errors
//! sys          what the library exports, and where it was found
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `CRESSET_NPU` | `hardware`, `sim` or `auto`: hardware if its library is found, else what the program embeds |
//! | `CRESSET_NPU_LIBRARY` | the library, or the directory of the vendor's libraries; must load |
//! | `CRESSET_NPU_BLOCKING` | `1`: every launch waits until it is done, and tells what failed itself |
//! | `CRESSET_NPU_FALLBACK` | `1`: operators without a kernel are computed by the host |
//! | `CRESSET_NPU_VERSION` | `any`: use releases of CANN that are not known here too |
//! | `ASCEND_HOME_PATH` | where the toolkit is, as its own script sets it |

pub mod aclnn;
mod activity;
mod allocator;
mod backend;
mod collective;
mod communicator;
mod descriptor;
mod device;
mod event;
mod fallback;
mod fork;
mod info;
mod kernels;
mod launches;
mod memory;
mod pinned;
mod properties;
mod random;
mod seed;
mod status;
mod stream;
mod sys;
mod transfer;
mod usage;

pub use allocator::{BlockState, MemoryBlock, MemorySegment, MemoryStats, Pools, Stat};
pub use collective::{Queued, Reduction};
pub use communicator::{Communicator, RootInfo};
pub use device::{EnteredDevice, current_device, device, device_count, enter_device, set_device};
pub use event::Event;
pub use fallback::{host_fallback, host_fallbacks, set_host_fallback};
pub use info::{Info, info};
pub use launches::{LaunchedBy, launch_blocking, set_launch_blocking};
pub use properties::{DeviceProperties, properties};
pub use seed::{initial_seed, manual_seed, manual_seed_all, rng_state, set_rng_state};
pub use status::AclError;
pub use stream::{Entered, Stream};
pub use sys::{Library, LoadError, Symbols};
pub use usage::{
    MemorySummary, empty_cache, max_memory_allocated, max_memory_reserved, memory_allocated, memory_info,
    memory_reserved, memory_snapshot, memory_stats, memory_summary, reset_accumulated_memory_stats,
    reset_peak_memory_stats, set_per_process_memory_fraction,
};

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
    launches::watch();
    READY.get_or_init(|| found.tried);
    Ok(())
}

fn tried() -> &'static [String] {
    READY.get().map_or(&[], Vec::as_slice)
}

/// Whether there is a device to use; no before [`init`].
///
/// ```
/// # use cresset_npu::{Library, init, is_available};
/// init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// assert!(is_available());
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn is_available() -> bool {
    device_count() > 0
}

/// Waits for all work on `device`; fails with what failed since the last time.
///
/// ```
/// # use cresset_npu::{Library, device, init, synchronize};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let x = Tensor::ones([4], device(0))?.exp()?;
/// synchronize(device(0))?;
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device; what failed on it, and which operator it was.
pub fn synchronize(device: Device) -> Result<()> {
    check_device(device)?;
    cresset_tensor::backend::synchronize(device)
}

/// Fails unless `device` is an NPU that exists.
pub(crate) fn check_device(device: Device) -> Result<()> {
    let count = device_count();
    if device.key.name() == "npu" && usize::from(device.index) < count {
        return Ok(());
    }
    Err(Error::new(Cause::Device, "", format_args!("{device} is not one of the {count} npu devices")))
}
