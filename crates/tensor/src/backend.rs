//! What a device other than the host must provide besides kernels.

use crate::{Cause, Device, DeviceMemory, Error, Key, Result, Storage};
use cresset_dispatch::Table;

/// A family of devices, e.g. all NPUs.
pub trait Backend: Sync {
    /// How many devices there are.
    fn device_count(&self) -> usize;
    /// Memory on `device`, contents undefined.
    fn allocate(&self, device: Device, bytes: usize) -> Result<Box<dyn DeviceMemory>>;
    /// Copies host bytes into `to`, from `offset` bytes on.
    fn upload(&self, from: &[u8], to: &Storage, offset: usize) -> Result<()>;
    /// Copies bytes of `from`, from `offset` bytes on, to the host, after all work
    /// queued so far.
    fn download(&self, from: &Storage, offset: usize, to: &mut [u8]) -> Result<()>;
    /// Waits for all work on `device`; reports what failed since the last time.
    fn synchronize(&self, device: Device) -> Result<()>;
}

static BACKENDS: Table<&'static dyn Backend> = Table::new();

/// Makes `backend` serve the devices of `key`. Returns false if another does already.
pub fn register(key: Key, backend: &'static dyn Backend) -> bool {
    BACKENDS.register(key, backend)
}

/// The backend of `device`.
///
/// # Errors
/// If the device is not served, or its index is beyond what there is.
pub fn of(device: Device) -> Result<&'static dyn Backend> {
    let backend = BACKENDS.get(device.key).ok_or_else(|| match device.key {
        key @ (Key::CPU | Key::META) => {
            let text = format_args!("{key}:{} does not exist: there is one {key} only", device.index);
            Error::new(Cause::Device, "", text)
        }
        _ => {
            Error::new(Cause::Device, "", format_args!("{device} has no backend: initialise its crate first"))
        }
    })?;
    let count = backend.device_count();
    if usize::from(device.index) >= count {
        let text = match count.checked_sub(1) {
            Some(last) => format!("{device} does not exist: the last one is {}:{last}", device.key),
            None => format!("{device} does not exist: there is no {} device", device.key),
        };
        return Err(Error::new(Cause::Device, "", text));
    }
    Ok(backend)
}

/// Waits for all work on `device`. The host has nothing to wait for.
pub fn synchronize(device: Device) -> Result<()> {
    match device.key {
        Key::CPU | Key::META => Ok(()),
        _ => of(device)?.synchronize(device),
    }
}
