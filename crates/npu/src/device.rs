//! Devices: how many there are, which one a thread works on, and whether it still can.

use crate::status::{AclError, AclResult};
use crate::sys::{Origin, call, loaded, text_of};
use crate::{check_device, fork, launches};
use cresset_acl::{code, constant};
use cresset_tensor::{Device, Key, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) use fork::is_forked;

/// The key of all NPUs and how many there are, once initialised.
static FAMILY: OnceLock<(Key, usize)> = OnceLock::new();

/// Starts the runtime, and counts the devices.
pub(crate) fn start(key: Key) -> AclResult {
    // SAFETY: a null configuration stands for the default one.
    match unsafe { call!(aclInit(std::ptr::null())) } {
        // Somebody else in this process uses the runtime too; this counts as one more user.
        Err(error) if error.code == code::REPEAT_INITIALIZE => {}
        result => result?,
    }
    let count = match count() {
        Err(error) if error.code == code::RT_NO_DEVICE => 0,
        count => count?,
    };
    fork::watch(&TROUBLE);
    FAMILY.get_or_init(|| (key, count));
    Ok(())
}

fn count() -> AclResult<usize> {
    let mut count = 0;
    // SAFETY: the result has a place.
    unsafe { call!(aclrtGetDeviceCount(&mut count)) }?;
    // An index of a `Device` is a byte.
    Ok((count as usize).min(256))
}

/// How many devices there are; none before [`init`](crate::init).
///
/// ```
/// # use cresset_npu::{Library, device_count, init};
/// assert_eq!(device_count(), 0);
/// init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// assert_eq!(device_count(), 1);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn device_count() -> usize {
    FAMILY.get().map_or(0, |(_, count)| *count)
}

/// The NPU with this index, as tensors name it. Whether it exists shows when it is used.
///
/// ```
/// assert_eq!(cresset_npu::device(1).to_string(), "npu:1");
/// ```
///
/// # Panics
/// If other crates have claimed every place for a backend.
pub fn device(index: u8) -> Device {
    let key = FAMILY.get().map(|(key, _)| *key).or_else(|| Key::claim("npu"));
    Device { key: key.expect("there is a place for a backend"), index }
}

thread_local! {
    /// The device this thread has set; -1 if none.
    static BOUND: Cell<i32> = const { Cell::new(-1) };
    /// The device this thread has chosen for what names none.
    static CHOSEN: Cell<u8> = const { Cell::new(0) };
}

/// The device that `npu` without a number stands for on this thread: the first one, until another
/// is [set](set_device) or [entered](enter_device).
///
/// ```
/// assert_eq!(cresset_npu::current_device(), cresset_npu::device(0));
/// ```
pub fn current_device() -> Device {
    device(CHOSEN.get())
}

pub(crate) fn current_index() -> u8 {
    CHOSEN.get()
}

/// Makes `device` the one that `npu` without a number stands for on this thread.
///
/// ```
/// # use cresset_npu::{Library, current_device, device, init, set_device};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// set_device(device(0))?;
/// assert!(set_device(device(7)).is_err(), "there is one device only");
/// assert_eq!(current_device(), device(0));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn set_device(device: Device) -> Result<()> {
    check_device(device)?;
    bind(device.index)?;
    CHOSEN.set(device.index);
    Ok(())
}

/// As [`set_device`], until the guard drops.
///
/// ```
/// # use cresset_npu::{Library, current_device, device, enter_device, init};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let here = enter_device(device(0))?;
/// assert_eq!(current_device(), device(0));
/// drop(here);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn enter_device(device: Device) -> Result<EnteredDevice> {
    let before = CHOSEN.get();
    set_device(device)?;
    Ok(EnteredDevice { before, _this_thread: PhantomData })
}

/// Guard of [`enter_device`]: the thread goes back to the device it had before.
#[must_use = "the device is the thread's only while the guard lives"]
pub struct EnteredDevice {
    before: u8,
    /// The guard restores the thread it was made on, so it must drop there.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for EnteredDevice {
    fn drop(&mut self) {
        CHOSEN.set(self.before);
    }
}

/// Whether there may be something that [`bind`] must look at: a lost device, or a forked process.
static TROUBLE: AtomicBool = AtomicBool::new(false);
/// Why devices were lost.
static LOST: [OnceLock<AclError>; 256] = [const { OnceLock::new() }; 256];

/// Makes this thread work on `index`. Cheap if it does already.
#[inline]
pub(crate) fn bind(index: u8) -> AclResult {
    if BOUND.get() == i32::from(index) && !TROUBLE.load(Relaxed) { Ok(()) } else { rebind(index) }
}

#[cold]
fn rebind(index: u8) -> AclResult {
    if is_forked() {
        return Err(AclError::forked());
    }
    if let Some(lost) = LOST[usize::from(index)].get() {
        return Err(lost.clone());
    }
    if BOUND.get() == i32::from(index) {
        return Ok(());
    }
    // SAFETY: has no preconditions.
    unsafe { call!(aclrtSetDevice(i32::from(index))) }?;
    BOUND.set(i32::from(index));
    Ok(())
}

/// Whether a value of `index` has to be given up as it is, because the device cannot be reached.
pub(crate) fn is_gone(index: u8) -> bool {
    TROUBLE.load(Relaxed) && (is_forked() || LOST[usize::from(index)].get().is_some())
}

/// The device that this thread works on, if any.
pub(crate) fn bound() -> Option<u8> {
    u8::try_from(BOUND.get()).ok()
}

/// Remembers that a call on this thread's device failed so that no other can succeed.
pub(crate) fn lose(error: &AclError) {
    if let Some(index) = bound() {
        LOST[usize::from(index)].get_or_init(|| error.clone());
        TROUBLE.store(true, Relaxed);
    }
}

/// Waits for all work on `index`; fails with what failed since the last time.
pub(crate) fn synchronize(index: u8) -> AclResult {
    bind(index)?;
    // SAFETY: has no preconditions.
    unsafe { call!(aclrtSynchronizeDevice()) }?;
    launches::clear(index);
    Ok(())
}

/// Free bytes and all bytes of a device.
pub(crate) fn memory(index: u8) -> AclResult<(usize, usize)> {
    bind(index)?;
    let (mut free, mut total) = (0, 0);
    // SAFETY: both results have a place.
    unsafe { call!(aclrtGetMemInfo(constant::memory::HBM, &mut free, &mut total)) }?;
    Ok((free, total))
}

/// What the chip is called; an embedded one says that it is simulated, whatever it is called.
pub(crate) fn name() -> String {
    let (name, embedded) = (soc_name(), matches!(loaded().origin, Origin::Embedded { .. }));
    if embedded && !name.contains("simulated") { format!("{name} (simulated)") } else { name }
}

fn soc_name() -> String {
    // SAFETY: has no preconditions.
    let name = unsafe { (loaded().runtime.aclrtGetSocName)() };
    // SAFETY: null, or a text that lives as long as the library.
    unsafe { text_of(name) }
}

/// The release of the library, or the version of its interface where it cannot tell.
pub(crate) fn version() -> AclResult<String> {
    if let Some(version) = loaded().version {
        return Ok(format!("CANN {version}"));
    }
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: all results have a place.
    unsafe { call!(aclrtGetVersion(&mut major, &mut minor, &mut patch)) }?;
    Ok(format!("interface {major}.{minor}.{patch}"))
}
