//! Devices: which one a thread works on, how many there are, and what they are called.

use crate::status::AclResult;
use crate::sys::{Origin, call, loaded, text_of};
use cresset_acl::{code, constant};
use cresset_tensor::{Device, Key};
use std::cell::Cell;
use std::sync::OnceLock;

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
pub fn device_count() -> usize {
    FAMILY.get().map_or(0, |(_, count)| *count)
}

/// The NPU with this index, as tensors name it.
///
/// # Panics
/// Before [`init`](crate::init).
pub fn device(index: u8) -> Device {
    let (key, _) = FAMILY.get().expect("call npu::init first");
    Device { key: *key, index }
}

thread_local! {
    /// The device this thread has set; -1 if none.
    static BOUND: Cell<i32> = const { Cell::new(-1) };
}

/// Makes this thread work on `index`. Cheap if it does already.
#[inline]
pub(crate) fn bind(index: u8) -> AclResult {
    if BOUND.get() == i32::from(index) { Ok(()) } else { rebind(index) }
}

#[cold]
fn rebind(index: u8) -> AclResult {
    // SAFETY: has no preconditions.
    unsafe { call!(aclrtSetDevice(i32::from(index))) }?;
    BOUND.set(i32::from(index));
    Ok(())
}

/// Waits for all work on `index`; fails with what failed since the last time.
pub(crate) fn synchronize(index: u8) -> AclResult {
    bind(index)?;
    // SAFETY: has no preconditions.
    unsafe { call!(aclrtSynchronizeDevice()) }
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
