//! Copies between host and device, and filling with one byte.

#![expect(unsafe_code, reason = "copies from and to memory of the caller")]

use crate::clock::Cost;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Result, fail};
use crate::memory::Span;
use crate::pinned;
use crate::stream::Stream;
use crate::trace::{Activity, Launch};
use cresset_acl::{code, constant, record};
use std::ffi::CStr;
use std::sync::Arc;

/// One end of a copy.
#[derive(Clone, Copy)]
enum End {
    Device(&'static Device, Span),
    /// Memory that the device reaches by itself, if it is still there.
    Pinned(Span),
    /// Memory that is there while the call lasts.
    Pageable(Span),
}

impl End {
    fn new(start: usize, bytes: usize) -> End {
        let span = Span { start, bytes };
        match Device::owner(start) {
            Some(device) => End::Device(device, span),
            None if pinned::contains(span) => End::Pinned(span),
            None => End::Pageable(span),
        }
    }

    fn is_device(self) -> bool {
        matches!(self, End::Device(..))
    }
}

/// A copy that was checked and can be done.
struct Copy {
    to: End,
    from: End,
    bytes: usize,
}

/// Copies before it returns; the addresses say in which direction.
pub(crate) fn copy(function: &'static CStr, to: usize, from: usize, bytes: usize) -> Result {
    let stream = Context::current()?.stream(0)?;
    if bytes == 0 {
        return Ok(());
    }
    let copy = Copy { to: End::new(to, bytes), from: End::new(from, bytes), bytes };
    let launch = Launch::new(function);
    copy.activity(false).during(&stream, launch.correlation, copy.cost(), || copy.run())
}

/// Copies in a stream. Waits for it if host memory is not pinned.
pub(crate) fn copy_async(
    function: &'static CStr,
    to: usize,
    from: usize,
    bytes: usize,
    kind: i32,
    stream: &Arc<Stream>,
) -> Result {
    if kind == constant::copy::HOST_TO_HOST {
        fail!(code::RT_FEATURE_NOT_SUPPORT, "a stream cannot copy from host to host");
    }
    if bytes == 0 {
        return Ok(());
    }
    let copy = Copy { to: End::new(to, bytes), from: End::new(from, bytes), bytes };
    let pageable = matches!(copy.to, End::Pageable(_)) || matches!(copy.from, End::Pageable(_));
    let launch = Launch::new(function);
    let (target, correlation) = (stream.clone(), launch.correlation);
    let ticket = stream.push(Box::new(move || {
        copy.activity(true)
            .during(&target, correlation, copy.cost(), || copy.run_as(kind))
            .map_err(|failure| failure.of(&function.to_string_lossy()))
    }));
    if pageable { stream.wait(ticket, None) } else { Ok(()) }
}

impl Copy {
    /// Copies if the ends are what the caller said they are.
    fn run_as(&self, kind: i32) -> Result {
        let (from, to) = match kind {
            constant::copy::HOST_TO_DEVICE => (false, true),
            constant::copy::DEVICE_TO_HOST => (true, false),
            constant::copy::DEVICE_TO_DEVICE => (true, true),
            _ => (self.from.is_device(), self.to.is_device()),
        };
        if (from, to) != (self.from.is_device(), self.to.is_device()) {
            fail!(code::RT_AICORE_EXCEPTION, "the addresses of a copy do not fit its direction {kind}");
        }
        self.run()
    }

    fn run(&self) -> Result {
        match (self.from, self.to) {
            (End::Device(a, from), End::Device(b, to)) if a.id == b.id => {
                let mut claim = a.memory.claim(&[from], &[to])?;
                let (from, mut to) = claim.bytes();
                to[0].copy_from_slice(from[0].lease().bytes());
            }
            // Through the host, so that no claim is held while waiting for another device.
            (End::Device(a, from), End::Device(b, to)) => {
                a.expect_peers(b)?;
                let bytes = {
                    let mut claim = a.memory.claim(&[from], &[])?;
                    claim.bytes().0[0].lease().bytes().to_vec()
                };
                b.memory.claim(&[], &[to])?.bytes().1[0].copy_from_slice(&bytes);
            }
            (End::Device(device, from), End::Pinned(to) | End::Pageable(to)) => {
                let _kept = self.keep(self.to)?;
                let mut claim = device.memory.claim(&[from], &[])?;
                let (from, _) = claim.bytes();
                // SAFETY: the caller of the C function gave this memory for writing; pinned
                // memory is kept, and for other memory the call waits.
                unsafe { host_mut(to) }.copy_from_slice(from[0].lease().bytes());
            }
            (End::Pinned(from) | End::Pageable(from), End::Device(device, to)) => {
                let _kept = self.keep(self.from)?;
                let mut claim = device.memory.claim(&[], &[to])?;
                let (_, mut to) = claim.bytes();
                // SAFETY: as above, for reading.
                to[0].copy_from_slice(unsafe { host(from) });
            }
            (End::Pinned(from) | End::Pageable(from), End::Pinned(to) | End::Pageable(to)) => {
                // SAFETY: as above; the two may overlap.
                unsafe { std::ptr::copy(from.start as *const u8, to.start as *mut u8, self.bytes) };
            }
        }
        Ok(())
    }

    /// Makes sure that pinned memory was not freed since the call, and is not while copying.
    fn keep(&self, end: End) -> Result<Option<impl Sized>> {
        let End::Pinned(span) = end else { return Ok(None) };
        match pinned::keep(span) {
            Some(kept) => Ok(Some(kept)),
            None => fail!(
                code::RT_AICORE_EXCEPTION,
                "host memory at {:#x} was freed before it was copied",
                span.start
            ),
        }
    }

    /// A copy to or from the host is bound by the link between them.
    fn cost(&self) -> Cost {
        /// How much slower the link is than the device's memory.
        const LINK: usize = 48;
        moved(if self.from.is_device() && self.to.is_device() { 2 * self.bytes } else { LINK * self.bytes })
    }

    fn activity(&self, asynchronous: bool) -> Activity {
        let direction = match (self.from.is_device(), self.to.is_device()) {
            (false, false) => record::copy::HOST_TO_HOST,
            (false, true) => record::copy::HOST_TO_DEVICE,
            (true, false) => record::copy::DEVICE_TO_HOST,
            (true, true) => record::copy::DEVICE_TO_DEVICE,
        };
        Activity::Copy { direction, bytes: self.bytes, asynchronous }
    }
}

fn moved(bytes: usize) -> Cost {
    Cost { bytes, ..Cost::default() }
}

/// What memory is filled with.
#[derive(Clone, Copy)]
pub(crate) enum Pattern {
    Byte(u8),
    Word(u32),
}

impl Pattern {
    /// As a record tells it.
    fn value(self) -> u32 {
        match self {
            Pattern::Byte(byte) => byte.into(),
            Pattern::Word(word) => word,
        }
    }

    fn fill(self, stream: &Stream, span: Span) -> Result {
        let mut claim = stream.device.memory.claim(&[], &[span])?;
        let (_, mut targets) = claim.bytes();
        match self {
            Pattern::Byte(byte) => targets[0].fill(byte),
            Pattern::Word(word) => targets[0].as_chunks_mut::<4>().0.fill(word.to_ne_bytes()),
        }
        Ok(())
    }
}

/// Fills device memory before it returns.
pub(crate) fn set(function: &'static CStr, start: usize, pattern: Pattern, bytes: usize) -> Result {
    let stream = Context::current()?.stream(0)?;
    let launch = Launch::new(function);
    let activity = Activity::Set { value: pattern.value(), bytes, asynchronous: false };
    let span = Span { start, bytes };
    activity.during(&stream, launch.correlation, moved(bytes), || pattern.fill(&stream, span))
}

/// Fills device memory in a stream.
pub(crate) fn set_async(
    function: &'static CStr,
    start: usize,
    pattern: Pattern,
    bytes: usize,
    stream: &Arc<Stream>,
) -> Result {
    let launch = Launch::new(function);
    let (target, correlation) = (stream.clone(), launch.correlation);
    stream.push(Box::new(move || {
        let activity = Activity::Set { value: pattern.value(), bytes, asynchronous: true };
        let fill = || pattern.fill(&target, Span { start, bytes });
        let result = activity.during(&target, correlation, moved(bytes), fill);
        result.map_err(|failure| failure.of(&function.to_string_lossy()))
    }));
    Ok(())
}

/// # Safety
/// The span is readable host memory that nobody writes meanwhile.
unsafe fn host<'a>(span: Span) -> &'a [u8] {
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts(span.start as *const u8, span.bytes) }
}

/// # Safety
/// The span is writable host memory that nobody else touches meanwhile.
unsafe fn host_mut<'a>(span: Span) -> &'a mut [u8] {
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts_mut(span.start as *mut u8, span.bytes) }
}
