//! Groups of devices that communicate: how they find each other, and what they are.
#![allow(non_snake_case, reason = "the names are those of C")]

use crate::collective::{COMMUNICATORS, Communicator, Id};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Failure, Result, call_or, fail};
use crate::marker;
use cresset_acl::collective::{config, result};
use cresset_acl::structure::{CommunicatorConfig, RootInfo};
use cresset_acl::types::{Communicator as Handle, c_char};
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::sync::Arc;

/// Runs the body of the C function `name`. What fails below with a code of the runtime is told as such.
pub(super) fn call(name: &str, body: impl FnOnce() -> Result) -> i32 {
    call_or(result::INTERNAL, name, || {
        body().map_err(|failure| match failure.code {
            0..1000 => failure,
            _ => Failure { code: result::RUNTIME, ..failure },
        })
    })
}

/// # Safety
/// `to` is null or may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        fail!(result::POINTER, "the place for the result is null");
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { to.write(value) };
    Ok(())
}

pub(super) fn communicator_of(handle: Handle) -> Result<Arc<Communicator>> {
    if handle.is_null() {
        fail!(result::POINTER, "the communicator is null");
    }
    match COMMUNICATORS.get(handle as usize) {
        Some(communicator) => Ok(communicator),
        None => fail!(result::NOT_FOUND, "{handle:?} is not a communicator in use"),
    }
}

/// What root information starts with, before the bytes that ranks meet by.
const MAGIC: &[u8; 8] = b"cresset\0";

fn random_id() -> Result<Id> {
    use std::io::Read as _;
    let mut id = Id::default();
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut id));
    match read {
        Ok(()) => Ok(id),
        Err(error) => fail!(result::SYSCALL, "cannot draw random bytes: {error}"),
    }
}

/// # Safety
/// `root` is null or may be read.
unsafe fn id_of(root: *const RootInfo) -> Result<Id> {
    // SAFETY: by the caller's promise.
    let Some(root) = (unsafe { root.as_ref() }) else {
        fail!(result::POINTER, "the root information is null");
    };
    let (magic, rest) = root.bytes.split_at(MAGIC.len());
    if magic != MAGIC {
        fail!(result::PARAMETER, "the root information was not made by HcclGetRootInfo of this library");
    }
    Ok(rest[..size_of::<Id>()].try_into().expect("there are more bytes than that"))
}

/// The name of a group: as it was wished, or by its id.
///
/// # Safety
/// `wishes` is null or may be read, as far as its own size says.
unsafe fn name_of(id: &Id, wishes: *const CommunicatorConfig) -> Result<&'static CStr> {
    // SAFETY: by the caller's promise; every version of the structure has these fields.
    if let Some(wishes) = unsafe { wishes.as_ref() } {
        let magic = u32::from_ne_bytes(wishes.head[8..12].try_into().expect("four bytes"));
        if magic != config::MAGIC {
            fail!(result::PARAMETER, "the configuration was not initialised");
        }
        let bytes = wishes.name.map(|byte| byte as u8);
        if let Ok(name) = CStr::from_bytes_until_nul(&bytes)
            && !name.is_empty()
        {
            return Ok(marker::keep(name));
        }
    }
    let mut name = String::from("group-");
    id[..4].iter().for_each(|byte| write!(name, "{byte:02x}").expect("text grows"));
    Ok(marker::keep(&CString::new(name).expect("has no zero byte")))
}

/// Makes information by which ranks find each other.
///
/// # Safety
/// `root` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRootInfo(root: *mut RootInfo) -> i32 {
    call("HcclGetRootInfo", || {
        Context::current()?;
        let mut bytes = [0; 4108];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..][..size_of::<Id>()].copy_from_slice(&random_id()?);
        // SAFETY: by the caller's promise.
        unsafe { put(root, RootInfo { bytes }) }
    })
}

/// Joins a group, and waits for all others.
///
/// # Safety
/// `root` is null or may be read, `communicator` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitRootInfo(
    ranks: u32,
    root: *const RootInfo,
    rank: u32,
    communicator: *mut Handle,
) -> i32 {
    // SAFETY: by the caller's promise.
    call("HcclCommInitRootInfo", || unsafe { join(ranks, root, rank, std::ptr::null(), communicator) })
}

/// Joins a group, and waits for all others; of the configuration the name counts.
///
/// # Safety
/// `root` and `config` are null or may be read, `communicator` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitRootInfoConfig(
    ranks: u32,
    root: *const RootInfo,
    rank: u32,
    config: *const CommunicatorConfig,
    communicator: *mut Handle,
) -> i32 {
    // SAFETY: by the caller's promise.
    call("HcclCommInitRootInfoConfig", || unsafe { join(ranks, root, rank, config, communicator) })
}

/// # Safety
/// As for `HcclCommInitRootInfoConfig`.
unsafe fn join(
    ranks: u32,
    root: *const RootInfo,
    rank: u32,
    config: *const CommunicatorConfig,
    to: *mut Handle,
) -> Result {
    Context::current()?;
    if to.is_null() {
        fail!(result::POINTER, "the place for the communicator is null");
    }
    // SAFETY: by the caller's promise.
    let (id, name) = unsafe {
        let id = id_of(root)?;
        (id, name_of(&id, config)?)
    };
    let joined = Communicator::join(id, rank, ranks, name, true)?;
    // SAFETY: by the caller's promise.
    unsafe { put(to, COMMUNICATORS.insert(joined) as Handle) }
}

/// Makes a group of devices of this process, a communicator for each.
///
/// # Safety
/// `devices` is null or holds `count` numbers, `communicators` is null or has as many places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitAll(count: u32, devices: *mut i32, communicators: *mut Handle) -> i32 {
    call("HcclCommInitAll", || {
        if devices.is_null() || communicators.is_null() {
            fail!(result::POINTER, "the devices or the places for communicators are null");
        }
        let id = random_id()?;
        // SAFETY: a null configuration is not looked at.
        let name = unsafe { name_of(&id, std::ptr::null())? };
        for rank in 0..count {
            // SAFETY: not null, so the caller vouches for as many as there are.
            Device::by_id(unsafe { *devices.add(rank as usize) })?;
            let joined = Communicator::join(id, rank, count, name, rank + 1 == count)?;
            let handle = COMMUNICATORS.insert(joined) as Handle;
            // SAFETY: as above.
            unsafe { communicators.add(rank as usize).write(handle) };
        }
        Ok(())
    })
}

/// Makes a group of some ranks of another; a rank that is not in it gets null.
///
/// # Safety
/// The pointers are null or may be read or written; `ranks` holds `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCreateSubCommConfig(
    communicator: *mut Handle,
    count: u32,
    ranks: *mut u32,
    id: u64,
    rank: u32,
    config: *mut CommunicatorConfig,
    sub: *mut Handle,
) -> i32 {
    call("HcclCreateSubCommConfig", || {
        if communicator.is_null() || sub.is_null() {
            fail!(result::POINTER, "a communicator is null");
        }
        if ranks.is_null() {
            // SAFETY: by the caller's promise.
            return unsafe { put(sub, std::ptr::null_mut()) };
        }
        // SAFETY: not null, so the caller vouches for it.
        let parent = communicator_of(unsafe { *communicator })?;
        let mut own = parent.id;
        own.iter_mut().zip(id.to_le_bytes()).for_each(|(byte, mixed)| *byte ^= mixed);
        own[15] ^= 0x5a;
        // SAFETY: by the caller's promise.
        let name = unsafe { name_of(&own, config)? };
        let joined = Communicator::join(own, rank, count, name, true)?;
        // SAFETY: by the caller's promise.
        unsafe { put(sub, COMMUNICATORS.insert(joined) as Handle) }
    })
}

/// Leaves a group.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommDestroy(communicator: Handle) -> i32 {
    call("HcclCommDestroy", || {
        communicator_of(communicator)?;
        COMMUNICATORS.remove(communicator as usize);
        Ok(())
    })
}

/// How many ranks a group has.
///
/// # Safety
/// `ranks` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRankSize(communicator: Handle, ranks: *mut u32) -> i32 {
    // SAFETY: by the caller's promise.
    call("HcclGetRankSize", || unsafe { put(ranks, communicator_of(communicator)?.ranks()) })
}

/// Which rank of a group this is.
///
/// # Safety
/// `rank` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRankId(communicator: Handle, rank: *mut u32) -> i32 {
    // SAFETY: by the caller's promise.
    call("HcclGetRankId", || unsafe { put(rank, communicator_of(communicator)?.rank()) })
}

/// The name of a group.
///
/// # Safety
/// `name` is null or has room for 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetCommName(communicator: Handle, name: *mut c_char) -> i32 {
    call("HcclGetCommName", || {
        let text = communicator_of(communicator)?.name.to_bytes_with_nul();
        if name.is_null() {
            fail!(result::POINTER, "the place for the name is null");
        }
        // SAFETY: not null, so the caller vouches for 128 bytes, which no name exceeds.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len().min(128)) };
        Ok(())
    })
}

/// The first failure of a collective of a group.
///
/// # Safety
/// `error` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetCommAsyncError(communicator: Handle, error: *mut i32) -> i32 {
    // SAFETY: by the caller's promise.
    call("HcclGetCommAsyncError", || unsafe { put(error, communicator_of(communicator)?.error()) })
}

/// What a result means.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetErrorString(code: i32) -> *const c_char {
    let text = match code {
        result::SUCCESS => c"no error",
        result::PARAMETER => c"an argument is wrong",
        result::POINTER => c"a pointer is null",
        result::INTERNAL => c"the library failed within itself",
        result::NOT_SUPPORT => c"this cannot be done here",
        result::NOT_FOUND => c"there is no such thing",
        result::SYSCALL => c"the system refused something",
        result::TIMEOUT => c"another rank did not come in time",
        result::RUNTIME => c"the runtime failed",
        result::REMOTE => c"another rank failed",
        _ => c"another error",
    };
    text.as_ptr()
}

/// Which wishes of a configuration are known: the first three.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetCommConfigCapability() -> u32 {
    3
}

/// Remembers a setting: results are the same each time anyway.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclSetConfig(option: i32, _value: i32) -> i32 {
    call("HcclSetConfig", || {
        if option != 0 {
            fail!(result::PARAMETER, "there is no setting {option}");
        }
        Ok(())
    })
}
