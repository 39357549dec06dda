//! Events: points in streams that others wait for, and that take the time.

use crate::device;
use crate::status::{self, AclResult};
use crate::stream::Stream;
use crate::sys::call;
use cresset_acl::constant::event::{RECORDED_COMPLETE, SYNC, TIME_LINE};
use cresset_tensor::{Device, Result};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

/// A point in a stream. Recording it again moves it; who waits already is not affected.
///
/// ```
/// # use cresset_npu::{Event, Library, Stream, device, init};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let (stream, x) = (Stream::current(device(0))?, Tensor::ones([64, 64], device(0))?);
/// let start = stream.record()?;
/// let product = x.mm(&x)?;
/// let end = stream.record()?;
/// end.synchronize()?;
/// println!("the product took {:?}", start.elapsed(&end)?);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub struct Event {
    device: u8,
    raw: *mut c_void,
}

// SAFETY: an event's handle means the same on every thread that works on its device.
unsafe impl Send for Event {}
// SAFETY: as above; the library locks its events itself.
unsafe impl Sync for Event {}

impl Event {
    /// A new event of `device`, nowhere yet.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn new(device: Device) -> Result<Event> {
        crate::check_device(device)?;
        Ok(Event::create(device.index, true)?)
    }

    /// As [`new`](Event::new), for an event that takes no time: streams pass it more quickly.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn untimed(device: Device) -> Result<Event> {
        crate::check_device(device)?;
        Ok(Event::create(device.index, false)?)
    }

    pub(crate) fn create(device: u8, timed: bool) -> AclResult<Event> {
        device::bind(device)?;
        let mut raw = ptr::null_mut();
        let flags = if timed { SYNC | TIME_LINE } else { SYNC };
        // SAFETY: the result has a place.
        unsafe { call!(aclrtCreateEventExWithFlag(&mut raw, flags)) }?;
        Ok(Event { device, raw })
    }

    /// Stands from now on for all work of `stream` so far.
    ///
    /// # Errors
    /// If the device failed.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        Ok(self.mark(stream)?)
    }

    pub(crate) fn mark(&self, stream: &Stream) -> AclResult {
        device::bind(self.device)?;
        // SAFETY: both handles are alive.
        unsafe { call!(aclrtRecordEvent(self.raw, stream.raw())) }
    }

    /// Whether the point was reached; true if the event was never recorded.
    ///
    /// # Errors
    /// If the device failed.
    pub fn query(&self) -> Result<bool> {
        Ok(self.is_reached()?)
    }

    pub(crate) fn is_reached(&self) -> AclResult<bool> {
        device::bind(self.device)?;
        let mut status = 0;
        // SAFETY: the handle is alive, the result has a place.
        unsafe { call!(aclrtQueryEventStatus(self.raw, &mut status)) }?;
        Ok(status == RECORDED_COMPLETE)
    }

    /// Waits on the host until the point is reached.
    ///
    /// # Errors
    /// If the device failed.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.reach()?)
    }

    pub(crate) fn reach(&self) -> AclResult {
        device::bind(self.device)?;
        // SAFETY: the handle is alive.
        unsafe { call!(aclrtSynchronizeEvent(self.raw)) }
    }

    /// The time from this point to `end`, by the device's clock; zero if `end` came first.
    ///
    /// # Errors
    /// If one of them was not recorded or not reached yet, or takes no time.
    pub fn elapsed(&self, end: &Event) -> Result<Duration> {
        Ok(Duration::from_secs_f64(self.milliseconds_to(end)?.max(0.0) / 1e3))
    }

    pub(crate) fn milliseconds_to(&self, end: &Event) -> AclResult<f64> {
        device::bind(self.device)?;
        let mut milliseconds = 0.0;
        // SAFETY: both handles are alive, the result has a place.
        unsafe { call!(aclrtEventElapsedTime(&mut milliseconds, self.raw, end.raw)) }?;
        Ok(f64::from(milliseconds))
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

/// Events that take no time and can be recorded anew, by device.
static SPARE: [Mutex<Vec<Event>>; 256] = [const { Mutex::new(Vec::new()) }; 256];
/// So many are kept of each device.
const MOST: usize = 256;

/// An event that takes no time, made or used before.
pub(crate) fn untimed(device: u8) -> AclResult<Event> {
    let spare = SPARE[usize::from(device)].lock().pop();
    spare.map_or_else(|| Event::create(device, false), Ok)
}

/// Keeps an event of [`untimed`] that nobody waits for any more.
pub(crate) fn spare(event: Event) {
    let mut spare = SPARE[usize::from(event.device)].lock();
    if spare.len() < MOST {
        spare.push(event);
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if device::is_gone(self.device) {
            return;
        }
        status::keep(device::bind(self.device));
        // SAFETY: created by `create`, destroyed once; the library waits for who still needs it.
        status::keep(unsafe { call!(aclrtDestroyEvent(self.raw)) });
    }
}
