//! Streams: in-order queues of device work, and which one a thread fills.
//!
//! Each device has a default stream. A thread that [enters](Stream::enter) another one fills
//! that until the guard drops. Work in different streams has no order but the one that
//! [events](crate::Event) give it; only memory is kept safe without them, see
//! [`allocator`](crate::allocator).

use crate::event::Event;
use crate::status::{self, AclResult};
use crate::sys::call;
use crate::{allocator, device};
use cresset_acl::constant::stream::COMPLETE;
use cresset_tensor::{Device, Result};
use std::cell::RefCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// An in-order queue of work on one device. A handle: clones are the same stream.
#[derive(Clone)]
pub struct Stream {
    device: u8,
    /// Absent for the default stream, which nobody creates or destroys.
    own: Option<Arc<Own>>,
}

struct Own {
    device: u8,
    raw: *mut c_void,
}

// SAFETY: a stream's handle means the same on every thread that works on its device.
unsafe impl Send for Own {}
// SAFETY: as above; the library locks its queues itself.
unsafe impl Sync for Own {}

impl Stream {
    /// A new stream of `device`.
    pub fn new(device: Device) -> Result<Stream> {
        crate::check_device(device)?;
        device::bind(device.index)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the result has a place.
        unsafe { call!(aclrtCreateStream(&mut raw)) }?;
        let own = Some(Arc::new(Own { device: device.index, raw }));
        Ok(Stream { device: device.index, own })
    }

    /// The stream that a device has from the start.
    pub fn default_of(device: Device) -> Stream {
        Stream::main(device.index)
    }

    /// The stream that this thread fills on `device`.
    pub fn current(device: Device) -> Stream {
        current(device.index)
    }

    pub(crate) fn main(device: u8) -> Stream {
        Stream { device, own: None }
    }

    /// Lets this thread fill this stream until the guard drops.
    pub fn enter(&self) -> Entered {
        let before = exchange(self.device, self.own.is_some().then(|| self.clone()));
        Entered { device: self.device, before, _this_thread: PhantomData }
    }

    /// Makes work that is queued from now on wait for what `event` stands for.
    pub fn wait(&self, event: &Event) -> Result<()> {
        Ok(self.hold(event)?)
    }

    pub(crate) fn hold(&self, event: &Event) -> AclResult {
        device::bind(self.device)?;
        // SAFETY: both handles are alive.
        unsafe { call!(aclrtStreamWaitEvent(self.raw(), event.raw())) }
    }

    /// Whether all work so far is done.
    pub fn is_done(&self) -> Result<bool> {
        device::bind(self.device)?;
        let mut status = 0;
        // SAFETY: the handle is alive, the result has a place.
        unsafe { call!(aclrtStreamQuery(self.raw(), &mut status)) }?;
        Ok(status == COMPLETE)
    }

    /// Waits for all work so far; fails with what failed since the last time.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.finish()?)
    }

    pub(crate) fn finish(&self) -> AclResult {
        device::bind(self.device)?;
        // SAFETY: the handle is alive.
        unsafe { call!(aclrtSynchronizeStream(self.raw())) }
    }

    pub(crate) fn device(&self) -> u8 {
        self.device
    }

    /// The handle; null for the default stream.
    #[inline]
    pub(crate) fn raw(&self) -> *mut c_void {
        self.own.as_ref().map_or(ptr::null_mut(), |own| own.raw)
    }

    /// A number that no other stream of the device has while this one lives.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.raw() as usize
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        status::keep(device::bind(self.device));
        // SAFETY: created by `new`, destroyed once; the library finishes its work first.
        status::keep(unsafe { call!(aclrtDestroyStream(self.raw)) });
        allocator::of(self.device).inherit(self.raw as usize);
    }
}

thread_local! {
    /// The streams that this thread entered, by device; default streams are left out.
    static ENTERED: RefCell<Vec<Option<Stream>>> = const { RefCell::new(Vec::new()) };
}

/// The stream that this thread fills on `device`.
#[inline]
pub(crate) fn current(device: u8) -> Stream {
    ENTERED.with_borrow(|entered| match entered.get(usize::from(device)) {
        Some(Some(stream)) => stream.clone(),
        _ => Stream::main(device),
    })
}

fn exchange(device: u8, stream: Option<Stream>) -> Option<Stream> {
    ENTERED.with_borrow_mut(|entered| {
        let at = usize::from(device);
        if entered.len() <= at {
            entered.resize(at + 1, None);
        }
        std::mem::replace(&mut entered[at], stream)
    })
}

/// Guard of [`Stream::enter`]: the thread goes back to the stream it filled before.
#[must_use = "the stream is filled only while the guard lives"]
pub struct Entered {
    device: u8,
    before: Option<Stream>,
    /// The guard restores the thread it was made on, so it must drop there.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Dropped outside of the exchange: the last handle of a stream destroys it.
        let left = exchange(self.device, self.before.take());
        drop(left);
    }
}
