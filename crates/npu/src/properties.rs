//! What a device is.

use crate::sys::loaded;
use crate::{check_device, device};
use cresset_acl::code::SUCCESS;
use cresset_acl::constant::capability;
use cresset_tensor::{Device, Result};

/// What [`properties`] tells of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Which device.
    pub device: Device,
    /// What the chip is called. A simulated one says so here.
    pub name: String,
    /// Bytes of its memory.
    pub total_memory: usize,
    /// Units for products of matrices; `None` if the library cannot tell.
    pub cube_cores: Option<usize>,
    /// Units for all else; `None` if the library cannot tell.
    pub vector_cores: Option<usize>,
    /// Bytes of the cache that all units share; `None` if the library cannot tell.
    pub l2_cache: Option<usize>,
}

/// What `device` is.
///
/// ```
/// # use cresset_npu::{Library, device, init, properties};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let properties = properties(device(0))?;
/// assert_eq!(properties.name, "Ascend910B3 (simulated)");
/// assert_eq!(properties.total_memory, 2 << 30);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn properties(device: Device) -> Result<DeviceProperties> {
    check_device(device)?;
    let (_, total_memory) = device::memory(device.index)?;
    let capability = |which| capability(device.index, which);
    Ok(DeviceProperties {
        device,
        name: device::name(),
        total_memory,
        cube_cores: capability(capability::AI_CORES),
        vector_cores: capability(capability::VECTOR_CORES),
        l2_cache: capability(capability::L2_BYTES),
    })
}

fn capability(device: u8, which: i32) -> Option<usize> {
    let mut value = 0;
    // SAFETY: the result has a place.
    let code = unsafe { loaded().probed.aclGetDeviceCapability?(u32::from(device), which, &mut value) };
    usize::try_from(value).ok().filter(|&value| code == SUCCESS && value > 0)
}
