//! Memory shared by all tensors that alias it.

use crate::{Cause, DType, Device, Element, Error, Key, Result, backend, tally};
use cresset_dispatch::memory::{self, Report};
use cresset_kernels::{Buffer, Shared};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Memory that a device owns; only its backend can look inside.
pub trait DeviceMemory: Any + Send + Sync {
    /// Where the block starts, as the device counts.
    fn address(&self) -> usize;
}

/// Where a storage's bytes are.
pub enum Memory {
    /// On the host.
    Host(Buffer),
    /// On a plugged-in device.
    Device(Box<dyn DeviceMemory>),
    /// Nowhere.
    Meta,
}

/// A block of memory, shared by reference. Aliases see each other's changes, and count
/// them together.
#[derive(Clone)]
pub struct Storage(Shared<Inner>);

struct Inner {
    memory: Held,
    bytes: usize,
    device: Device,
    /// How often the contents were changed in place.
    version: AtomicU64,
    /// The version after the last change in place that was recorded for gradients.
    recorded: AtomicU64,
    changed_by: Mutex<&'static str>,
}

/// Memory of one's own, or of another storage whose changes are counted apart.
enum Held {
    Own(Memory),
    Of(Storage),
}

impl Inner {
    #[inline]
    fn new(memory: Held, bytes: usize, device: Device) -> Inner {
        let (version, recorded) = (AtomicU64::new(0), AtomicU64::new(0));
        Inner { memory, bytes, device, version, recorded, changed_by: Mutex::new("") }
    }
}

/// What tensors may hold on the host at most, in bytes.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Smaller requests are always met.
const LIMITED: usize = 4096;

/// Limits the host memory of all tensors together: what would need more is an error, in the place of
/// a process that the system ends. For programs that somebody else wrote.
pub fn limit_host_bytes(bytes: u64) {
    LIMIT.store(bytes, Relaxed);
}

/// Bytes of host memory that tensors hold now.
pub fn host_bytes_allocated() -> u64 {
    tally::total()
}

impl Storage {
    /// `bytes` on `device` for elements of `dtype`, contents undefined.
    #[inline]
    pub fn new(device: Device, bytes: usize, dtype: DType) -> Result<Storage> {
        let memory = match device.key {
            Key::CPU => Memory::Host(host(bytes, dtype)?),
            Key::META => Memory::Meta,
            _ => Memory::Device(backend::of(device)?.allocate(device, bytes)?),
        };
        Ok(Storage::of(memory, bytes, device))
    }

    /// New host memory for elements of `dtype`, filled before anybody else can see it: that takes no
    /// lock.
    #[inline]
    pub(crate) fn filled(bytes: usize, dtype: DType, fill: impl FnOnce(&mut [u8])) -> Result<Storage> {
        let buffer = match Buffer::here(bytes) {
            Some(buffer) => buffer,
            None => host(bytes, dtype)?,
        };
        let mut inner = Shared::with(|| Inner::new(Held::Own(Memory::Host(buffer)), bytes, Device::CPU));
        if let Some(Inner { memory: Held::Own(Memory::Host(buffer)), .. }) = Shared::get_mut(&mut inner) {
            count(buffer, bytes as i64);
            fill(buffer.bytes_mut());
        }
        Ok(Storage(inner))
    }

    /// The memory of a vector, not copied; the vector, if it is not aligned for any element type.
    pub(crate) fn from_vec<T: Element>(elements: Vec<T>) -> Result<Storage, Vec<T>> {
        let buffer = Buffer::from_vec(elements)?;
        let bytes = buffer.len();
        Ok(Storage::of(Memory::Host(buffer), bytes, Device::CPU))
    }

    #[inline]
    fn of(memory: Memory, bytes: usize, device: Device) -> Storage {
        let storage = Storage(Shared::new(Inner::new(Held::Own(memory), bytes, device)));
        if let Some(buffer) = storage.host() {
            count(buffer, bytes as i64);
        }
        storage
    }

    /// Host memory that a device reaches by itself.
    pub(crate) fn pinned(buffer: Buffer) -> Storage {
        let bytes = buffer.len();
        Storage::of(Memory::Host(buffer), bytes, Device::CPU)
    }

    /// `bytes` that are nowhere.
    pub(crate) fn nowhere(bytes: usize) -> Storage {
        Storage::of(Memory::Meta, bytes, Device::META)
    }

    /// The same memory, its changes counted apart: for parts that never meet, each changed by itself.
    pub(crate) fn counted_apart(&self) -> Storage {
        let of = self.whole().clone();
        let (bytes, device) = (of.len(), of.device());
        Storage(Shared::new(Inner::new(Held::Of(of), bytes, device)))
    }

    /// The storage that owns the memory.
    #[inline]
    fn whole(&self) -> &Storage {
        match &self.0.memory {
            Held::Own(_) => self,
            Held::Of(storage) => storage,
        }
    }

    /// Where the bytes are.
    #[inline]
    pub fn memory(&self) -> &Memory {
        match &self.0.memory {
            Held::Own(memory) => memory,
            Held::Of(storage) => storage.memory(),
        }
    }

    /// The host buffer; `None` if the bytes are elsewhere.
    #[inline]
    pub fn host(&self) -> Option<&Buffer> {
        match self.memory() {
            Memory::Host(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The device's memory as its own type; `None` if it is not of that type.
    pub fn device_memory<M: DeviceMemory>(&self) -> Option<&M> {
        match self.memory() {
            Memory::Device(memory) => (&**memory as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Where the bytes begin, as their device counts: an identity, not to be read through.
    /// `None` if they are nowhere.
    pub fn address(&self) -> Option<usize> {
        match self.memory() {
            Memory::Host(buffer) => Some(buffer.address()),
            Memory::Device(memory) => Some(memory.address()),
            Memory::Meta => None,
        }
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.bytes == 0
    }

    /// Where the bytes are.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// How often the contents were changed in place.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version.load(Relaxed)
    }

    /// Counts a change in place by `op`. Operators do so themselves; this is for what else writes to memory, so that
    /// gradients which need the old contents notice.
    pub fn changed(&self, op: &'static str) {
        *self.0.changed_by.lock() = op;
        self.0.version.fetch_add(1, Relaxed);
    }

    /// Counts the last change as one that gradients flow through.
    pub(crate) fn change_recorded(&self) {
        self.0.recorded.store(self.version(), Relaxed);
    }

    /// The version after the last change that gradients flow through.
    #[inline]
    pub(crate) fn recorded_version(&self) -> u64 {
        self.0.recorded.load(Relaxed)
    }

    /// The last operator that changed the contents in place.
    pub(crate) fn changed_by(&self) -> &'static str {
        *self.0.changed_by.lock()
    }

    /// How many tensors hold this memory.
    pub(crate) fn holders(&self) -> usize {
        match &self.0.memory {
            Held::Own(_) => Shared::count(&self.0),
            Held::Of(storage) => Shared::count(&self.0) + storage.holders(),
        }
    }

    /// Whether both are the same memory.
    #[inline]
    pub fn same_as(&self, other: &Storage) -> bool {
        Shared::ptr_eq(&self.whole().0, &other.whole().0)
    }
}

#[inline]
fn host(bytes: usize, dtype: DType) -> Result<Buffer> {
    if bytes >= LIMITED {
        within_limit(bytes as u64)?;
    }
    let buffer = if dtype == DType::Bool { Buffer::zeroed(bytes) } else { Buffer::uninit(bytes) };
    buffer.map_err(|failed| Error::new(Cause::Memory, "", failed))
}

fn within_limit(bytes: u64) -> Result<()> {
    let limit = LIMIT.load(Relaxed);
    if limit == u64::MAX || host_bytes_allocated().saturating_add(bytes) <= limit {
        return Ok(());
    }
    let text = format_args!("{bytes} bytes more than tensors hold are over the limit of {limit} bytes");
    Err(Error::new(Cause::Memory, "", text))
}

/// Counts memory that was taken or given back, and tells who listens.
#[inline]
fn count(buffer: &Buffer, bytes: i64) {
    if memory::is_heard() { count_aloud(buffer, bytes) } else { tally::add(bytes) }
}

#[cold]
fn count_aloud(buffer: &Buffer, bytes: i64) {
    let (address, allocated) = (buffer.address(), tally::add_and_total(bytes));
    if bytes != 0 {
        memory::report(|| Report { device: Device::CPU, address, bytes, allocated, reserved: 0 });
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if let Held::Own(Memory::Host(buffer)) = &self.memory {
            count(buffer, -(self.bytes as i64));
        }
    }
}
