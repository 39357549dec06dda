//! Copies between the host and devices, and between two devices.

use crate::activity::launching;
use crate::allocator::Block;
use crate::launches::launched;
use crate::pinned::Pinned;
use crate::status::{self, AclResult};
use crate::stream::{self, Stream};
use crate::sys::{call, loaded};
use crate::{device, event};
use cresset_acl::constant::copy;
use cresset_dispatch::activity::{Direction, Work};
use cresset_tensor::backend::{Buffer, Part};
use cresset_tensor::{Cause, Error, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// Host bytes up to this number are laid aside for a copy, so that the caller can go on; more than that
/// would take the host longer than the device.
const LAID_ASIDE: usize = 4 << 20;

/// Copies between host memory and a device, or between two devices, after all work of the streams that
/// this thread fills there.
pub(crate) fn copy(from: Part<'_>, to: Part<'_>, non_blocking: bool) -> Result<()> {
    match (from.storage.host(), to.storage.host()) {
        (Some(host), None) => {
            let (stream, address) = meet(to)?;
            match host.owner::<Pinned>() {
                Some(pinned) => Ok(send_pinned(host, pinned, from, address, &stream)?),
                None => Ok(upload(&host.read().bytes()[from.range()], address, &stream)?),
            }
        }
        (None, Some(host)) => {
            let (stream, address) = meet(from)?;
            match host.owner::<Pinned>().filter(|_| non_blocking) {
                Some(pinned) => Ok(fetch_pinned(host, pinned, to, address, &stream)?),
                None => {
                    download(address, &mut host.write().bytes()[to.range()], &stream)?;
                    Ok(status::kept()?)
                }
            }
        }
        (None, None) => between(from, to),
        (Some(_), Some(_)) => Err(Error::new(Cause::Argument, "", "the host copies by itself")),
    }
}

/// As [`copy`], of bytes.
pub(crate) fn upload_to(from: &[u8], to: Part<'_>) -> Result<()> {
    let (stream, address) = meet(to)?;
    Ok(upload(from, address, &stream)?)
}

/// As [`copy`], to bytes, and waits.
pub(crate) fn download_from(from: Part<'_>, to: &mut [u8]) -> Result<()> {
    let (stream, address) = meet(from)?;
    download(address, to, &stream)?;
    Ok(status::kept()?)
}

/// Copies host bytes to device address `to` after the work of `stream` so far. The bytes are the caller's again
/// when this returns.
fn upload(from: &[u8], to: usize, stream: &Stream) -> AclResult {
    if from.len() > LAID_ASIDE {
        send(from.as_ptr(), to, from.len(), stream)?;
        return stream.finish();
    }
    let aside = Pinned::new(from.len(), stream.device_index())?;
    // SAFETY: the block has room for these bytes, and nobody else has it.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), aside.address(), from.len()) };
    send(aside.address(), to, from.len(), stream)?;
    in_use(&aside, stream, false)
}

fn send_pinned(host: &Buffer, pinned: &Pinned, from: Part<'_>, to: usize, stream: &Stream) -> AclResult {
    // Nobody writes it before the copy is known to it.
    let reading = host.read();
    send(reading.bytes()[from.range()].as_ptr(), to, from.bytes, stream)?;
    in_use(pinned, stream, false)
}

fn fetch_pinned(host: &Buffer, pinned: &Pinned, to: Part<'_>, from: usize, stream: &Stream) -> AclResult {
    // Nobody reads or writes it before the copy is known to it.
    let mut writing = host.write();
    fetch(from, writing.bytes()[to.range()].as_mut_ptr(), to.bytes, stream)?;
    in_use(pinned, stream, true)
}

/// Lets memory know of a copy that was queued; a copy that it cannot be told of is waited for.
fn in_use(pinned: &Pinned, stream: &Stream, is_written: bool) -> AclResult {
    pinned.used_by(stream, is_written).or_else(|_| stream.finish())
}

/// Copies bytes from device address `from` after the work of `stream` so far, and waits.
fn download(from: usize, to: &mut [u8], stream: &Stream) -> AclResult {
    fetch(from, to.as_mut_ptr(), to.len(), stream)?;
    stream.finish()
}

/// Queues a copy of `bytes` from the host. Who calls keeps `from` as it is until the copy is done.
fn send(from: *const u8, to: usize, bytes: usize, stream: &Stream) -> AclResult {
    let (from, to) = (from.cast::<c_void>(), to as *mut c_void);
    // SAFETY: `from` is readable for `bytes` until the copy is done, as the callers see to.
    queue(bytes, Direction::HostToDevice, stream, || unsafe {
        call!(aclrtMemcpyAsync(to, bytes, from, bytes, copy::HOST_TO_DEVICE, stream.raw()))
    })
}

/// Queues a copy of `bytes` to the host. Who calls lets nobody touch `to` until the copy is done.
fn fetch(from: usize, to: *mut u8, bytes: usize, stream: &Stream) -> AclResult {
    let (from, to) = (from as *const c_void, to.cast::<c_void>());
    // SAFETY: `to` is writable for `bytes` until the copy is done, as the callers see to.
    queue(bytes, Direction::DeviceToHost, stream, || unsafe {
        call!(aclrtMemcpyAsync(to, bytes, from, bytes, copy::DEVICE_TO_HOST, stream.raw()))
    })
}

/// Queues a copy, and lets those know of it who want to.
fn queue(bytes: usize, direction: Direction, stream: &Stream, copy: impl FnOnce() -> AclResult) -> AclResult {
    const FUNCTION: &str = "aclrtMemcpyAsync";
    device::bind(stream.device_index())?;
    launching(FUNCTION, Work::Copy { direction }, bytes, stream, copy)?;
    launched(FUNCTION, stream)
}

/// Copies from one device to another: directly if one reaches the other's memory, else through the host.
fn between(from: Part<'_>, to: Part<'_>) -> Result<()> {
    let ((source, from_address), (target, to_address)) = (meet(from)?, meet(to)?);
    if !peers(source.device_index(), target.device_index())? {
        let mut bytes = vec![0; from.bytes];
        download(from_address, &mut bytes, &source)?;
        return Ok(upload(&bytes, to_address, &target)?);
    }
    // What was queued for the target memory comes first, and what is queued for it later waits: streams of
    // two devices have no other order than that of the host.
    let before = event::untimed(target.device_index())?;
    before.mark(&target)?;
    before.reach()?;
    event::spare(before);
    let (from_address, to_address) = (from_address as *const c_void, to_address as *mut c_void);
    let (bytes, kind) = (from.bytes, copy::DEVICE_TO_DEVICE);
    // SAFETY: both are device memory of `bytes`, alive until the stream is done below.
    queue(bytes, Direction::DeviceToDevice, &source, || unsafe {
        call!(aclrtMemcpyAsync(to_address, bytes, from_address, bytes, kind, source.raw()))
    })?;
    Ok(source.finish()?)
}

/// Whether each of two devices reaches the other's memory; asked once, and made so if it can be.
fn peers(one: u8, other: u8) -> AclResult<bool> {
    static KNOWN: Mutex<BTreeMap<(u8, u8), bool>> = Mutex::new(BTreeMap::new());
    let pair = (one.min(other), one.max(other));
    if let Some(known) = KNOWN.lock().get(&pair) {
        return Ok(*known);
    }
    let reached = reaches(one, other)? && reaches(other, one)?;
    KNOWN.lock().insert(pair, reached);
    Ok(reached)
}

fn reaches(device: u8, peer: u8) -> AclResult<bool> {
    let probed = &loaded().probed;
    let (Some(ask), Some(enable)) = (probed.aclrtDeviceCanAccessPeer, probed.aclrtDeviceEnablePeerAccess)
    else {
        return Ok(false);
    };
    device::bind(device)?;
    let mut can = 0;
    // SAFETY: the result has a place.
    let code = unsafe { ask(&mut can, i32::from(device), i32::from(peer)) };
    status::check("aclrtDeviceCanAccessPeer", code)?;
    if can == 0 {
        return Ok(false);
    }
    // SAFETY: has no preconditions.
    status::check("aclrtDeviceEnablePeerAccess", unsafe { enable(i32::from(peer), 0) })?;
    Ok(true)
}

/// The stream and the address of a copy to or from a part of a device's memory.
fn meet(part: Part<'_>) -> Result<(Stream, usize)> {
    let Part { storage, offset, bytes } = part;
    let block = storage
        .device_memory::<Block>()
        .filter(|_| offset.checked_add(bytes).is_some_and(|end| end <= storage.len()));
    let Some(block) = block else {
        let text = format_args!(
            "cannot copy {bytes} bytes at {offset} of a storage of {} bytes on {}",
            storage.len(),
            storage.device()
        );
        return Err(Error::new(Cause::Argument, "", text));
    };
    let stream = stream::current(storage.device().index)?;
    block.used_on(&stream);
    Ok((stream, block.address() + offset))
}
