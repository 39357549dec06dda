//! What a device other than the host must provide besides kernels.

use crate::{Cause, Device, DeviceMemory, Error, Key, RandomState, Result, Storage, Tensor};
use cresset_dispatch::Table;
pub use cresset_kernels::{Buffer, Foreign};
use std::ops::Range;

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

    /// Copies between the host and one of the devices, or between two of them. With `non_blocking`, host
    /// memory of [`pin`](Backend::pin) need not be written when this returns: whoever reads it waits.
    fn copy(&self, from: Part<'_>, to: Part<'_>, _non_blocking: bool) -> Result<()> {
        match (from.storage.host(), to.storage.host()) {
            (Some(host), _) => self.upload(&host.read().bytes()[from.range()], to.storage, to.offset),
            (None, Some(host)) => {
                self.download(from.storage, from.offset, &mut host.write().bytes()[to.range()])
            }
            (None, None) => {
                let mut bytes =
                    Buffer::uninit(from.bytes).map_err(|failed| Error::new(Cause::Memory, "", failed))?;
                self.download(from.storage, from.offset, bytes.bytes_mut())?;
                self.upload(bytes.bytes_mut(), to.storage, to.offset)
            }
        }
    }

    /// Host memory that the devices reach by themselves, contents undefined; `None` if they reach none.
    fn pin(&self, _bytes: usize) -> Result<Option<Buffer>> {
        Ok(None)
    }

    /// Fills `out`, whose elements lie without gaps, with random numbers that follow from `state`. False
    /// if the device has none: those of the host are copied then.
    fn random(&self, _out: &Tensor, _numbers: Random, _state: RandomState) -> Result<bool> {
        Ok(false)
    }

    /// Whether operators that have no kernel on the devices are to be computed by the host. Asked for
    /// `op` each time one is missing.
    fn falls_back(&self, _op: &'static str) -> bool {
        false
    }
}

/// Some bytes of a storage.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The storage.
    pub storage: &'a Storage,
    /// The first byte.
    pub offset: usize,
    /// How many there are.
    pub bytes: usize,
}

impl Part<'_> {
    /// Where they lie in the storage.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.bytes
    }
}

/// How random numbers are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Random {
    /// Evenly from `low` up to, not including, `high`.
    Uniform {
        /// The least.
        low: f64,
        /// What is never reached.
        high: f64,
    },
    /// Normally.
    Normal {
        /// The mean.
        mean: f64,
        /// The deviation.
        std: f64,
    },
    /// Integers from `low` up to, not including, `high`.
    Integers {
        /// The least.
        low: i64,
        /// What is never reached.
        high: i64,
    },
    /// Ones, each a zero with probability `dropped`.
    Kept {
        /// The probability of a zero.
        dropped: f64,
    },
    /// `0, 1, …` in random order.
    Permutation,
}

static BACKENDS: Table<&'static dyn Backend> = Table::new();

/// Makes `backend` serve the devices of `key`. Returns false if another does already.
pub fn register(key: Key, backend: &'static dyn Backend) -> bool {
    BACKENDS.register(key, backend)
}

/// The backend of `key`, if there is one.
pub(crate) fn find(key: Key) -> Option<&'static dyn Backend> {
    BACKENDS.get(key)
}

/// All devices that are served, but for the host.
pub(crate) fn devices() -> impl Iterator<Item = Device> {
    let served = Key::backends().filter_map(|key| find(key).map(|backend| (key, backend)));
    served.flat_map(|(key, backend)| {
        (0..backend.device_count().min(256)).map(move |index| Device { key, index: index as u8 })
    })
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
