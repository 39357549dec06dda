//! Devices by name, made ready when first asked for.

use crate::tensor::Key;
use crate::{Device, Result};

/// The device called `name`: `cpu`, `meta`, `npu` or `npu:1`.
///
/// `npu` alone is the device that this thread has [set](cresset_npu::set_device), the first one unless another was.
///
/// The first time an NPU is asked for, its library is loaded; without one, the embedded
/// simulator takes its place unless `CRESSET_NPU=hardware` forbids it.
///
/// # Errors
/// If there is no such device, or its library cannot be loaded.
pub fn device(name: &str) -> Result<Device> {
    if name.split(':').next() == Some("npu") {
        load_npu()?;
    }
    // Known from the start, so that whoever mistypes a name is told of it.
    Key::claim("npu");
    let device: Device = match name {
        #[cfg(feature = "npu")]
        "npu" => cresset_npu::current_device(),
        name => name.parse()?,
    };
    if !matches!(device, Device::CPU | Device::META) {
        crate::tensor::backend::of(device)?;
    }
    Ok(device)
}

/// Loads the library of the NPU, or the embedded simulator in its place; see [`device`].
///
/// # Errors
/// If neither can be had: every path tried, and what to do.
#[cfg(feature = "npu")]
pub fn load_npu() -> Result<()> {
    use cresset_npu::Library;
    cresset_npu::init(Library::installed().or_embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))
}

/// Says that this build has no NPU.
///
/// # Errors
/// Always.
#[cfg(not(feature = "npu"))]
pub fn load_npu() -> Result<()> {
    use crate::tensor::{Cause, Error};
    let text = "this program was built without the NPU; enable the feature \"npu\" of cresset";
    Err(Error::new(Cause::Device, "device", text))
}
