//! Streams: in-order queues of device work, and which one a thread fills.
//!
//! Each device has a default stream. A thread that [enters](Stream::enter) another one fills
//! that until the guard drops. Work in different streams has no order but the one that
//! [events](crate::Event) give it; only memory is kept safe without them, see
//! [`allocator`](crate::allocator).

use crate::allocator::{self, Block};
use crate::event::{self, Event};
use crate::launches::Log;
use crate::status::{self, AclResult};
use crate::sys::{call, loaded};
use crate::{check_device, communicator, device};
use cresset_acl::constant::stream::{COMPLETE, FAST_LAUNCH, FAST_SYNC};
use cresset_tensor::{Cause, Device, Error, Result, Tensor};
use std::cell::RefCell;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::{Arc, OnceLock};

/// An in-order queue of work on one device. A handle: clones are the same stream.
///
/// ```
/// # use cresset_npu::{Library, Stream, device, init};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let x = Tensor::ones([4], device(0))?;
/// let side = Stream::new(device(0))?;
/// side.wait_for(&Stream::current(device(0))?)?;
/// let y = {
///     let _on_side = side.enter();
///     x.add(&x)?
/// };
/// side.synchronize()?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0; 4]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream(Held);

#[derive(Clone)]
enum Held {
    /// A device's default stream, which is never given up.
    Main(&'static Inner),
    Own(Arc<Inner>),
}

struct Inner {
    device: u8,
    raw: *mut c_void,
    priority: u32,
    log: Arc<Log>,
}

// SAFETY: a stream's handle means the same on every thread that works on its device.
unsafe impl Send for Inner {}
// SAFETY: as above; the library locks its queues itself.
unsafe impl Sync for Inner {}

/// The priority of streams that are made without one.
const NORMAL: u32 = 0;

impl Inner {
    fn new(device: u8, priority: u32) -> AclResult<Inner> {
        device::bind(device)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the result has a place.
        unsafe { call!(aclrtCreateStreamWithConfig(&mut raw, priority, FAST_LAUNCH | FAST_SYNC)) }?;
        let mut id = 0;
        // SAFETY: the handle was just made, the result has a place.
        unsafe { call!(aclrtStreamGetId(raw, &mut id)) }?;
        Ok(Inner { device, raw, priority, log: Log::new(device, id as u32) })
    }
}

impl Stream {
    /// A new stream of `device`.
    ///
    /// # Errors
    /// If there is no such device, or no stream can be made.
    pub fn new(device: Device) -> Result<Stream> {
        Stream::with_priority(device, NORMAL)
    }

    /// A new stream whose work goes before that of streams with a larger number; see
    /// [`priorities`](Stream::priorities).
    ///
    /// ```
    /// # use cresset_npu::{Library, Stream, device, init};
    /// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
    /// let last = *Stream::priorities(device(0))?.end();
    /// assert_eq!(Stream::with_priority(device(0), last)?.priority(), last);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such device or no such priority.
    pub fn with_priority(device: Device, priority: u32) -> Result<Stream> {
        let known = Stream::priorities(device)?;
        if !known.contains(&priority) {
            let text = format_args!("priority {priority} is not one of {known:?}");
            return Err(Error::new(Cause::Argument, "", text));
        }
        Ok(Stream(Held::Own(Arc::new(Inner::new(device.index, priority)?))))
    }

    /// The priorities of streams, the first one before all others.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn priorities(device: Device) -> Result<RangeInclusive<u32>> {
        check_device(device)?;
        device::bind(device.index)?;
        let (mut least, mut greatest) = (0, 0);
        let Some(ask) = loaded().probed.aclrtDeviceGetStreamPriorityRange else { return Ok(0..=7) };
        // SAFETY: both results have a place.
        status::check("aclrtDeviceGetStreamPriorityRange", unsafe { ask(&mut least, &mut greatest) })?;
        Ok(greatest.max(0) as u32..=least.max(0) as u32)
    }

    /// The stream that a device has from the start.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn default_of(device: Device) -> Result<Stream> {
        check_device(device)?;
        Ok(main(device.index)?)
    }

    /// The stream that this thread fills on `device`.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn current(device: Device) -> Result<Stream> {
        check_device(device)?;
        Ok(current(device.index)?)
    }

    /// Lets this thread fill this stream until the guard drops.
    pub fn enter(&self) -> Entered {
        let before = exchange(self.device_index(), Some(self.clone()));
        Entered { device: self.device_index(), before, _this_thread: PhantomData }
    }

    /// Makes work that is queued from now on wait for what `event` stands for.
    ///
    /// # Errors
    /// If the device failed.
    pub fn wait(&self, event: &Event) -> Result<()> {
        Ok(self.hold(event)?)
    }

    /// Makes work that is queued from now on wait for all work of `other` so far.
    ///
    /// # Errors
    /// If the device failed.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let event = event::untimed(other.device_index())?;
        event.mark(other)?;
        self.hold(&event)?;
        // A wait is bound to the point that was recorded when it was queued.
        event::spare(event);
        Ok(())
    }

    pub(crate) fn hold(&self, event: &Event) -> AclResult {
        device::bind(self.device_index())?;
        // SAFETY: both handles are alive.
        unsafe { call!(aclrtStreamWaitEvent(self.raw(), event.raw())) }
    }

    /// A new event that stands for all work so far.
    ///
    /// # Errors
    /// If the device failed.
    pub fn record(&self) -> Result<Event> {
        let event = Event::create(self.device_index(), true)?;
        event.mark(self)?;
        Ok(event)
    }

    /// Lets the memory of `tensor` wait for all work of this stream so far before somebody else has it. Operators
    /// see to that themselves; this is for work that was given to the stream by other means.
    ///
    /// ```
    /// # use cresset_npu::{Library, Stream, device, init};
    /// # use cresset_tensor::Tensor;
    /// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
    /// let (x, side) = (Tensor::ones([4], device(0))?, Stream::new(device(0))?);
    /// side.keeps(&x)?;
    /// drop(x); // not before `side` is done
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor is not on the device of the stream.
    pub fn keeps(&self, tensor: &Tensor) -> Result<()> {
        let block = tensor.storage().device_memory::<Block>().filter(|_| tensor.device() == self.device());
        let Some(block) = block else {
            let text =
                format_args!("a tensor on {} was given to a stream of {}", tensor.device(), self.device());
            return Err(Error::new(Cause::Device, "", text));
        };
        block.used_on(self);
        Ok(())
    }

    /// Whether all work so far is done.
    ///
    /// # Errors
    /// If the device failed.
    pub fn query(&self) -> Result<bool> {
        device::bind(self.device_index())?;
        let mut status = 0;
        // SAFETY: the handle is alive, the result has a place.
        unsafe { call!(aclrtStreamQuery(self.raw(), &mut status)) }?;
        Ok(status == COMPLETE)
    }

    /// Waits for all work so far; fails with what failed since the last time.
    ///
    /// # Errors
    /// What failed, and which operator it was.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.finish()?)
    }

    pub(crate) fn finish(&self) -> AclResult {
        self.finish_alone()?;
        communicator::check_all(self.device_index())
    }

    /// As [`finish`](Stream::finish), whatever became of collectives on other streams.
    pub(crate) fn finish_alone(&self) -> AclResult {
        device::bind(self.device_index())?;
        // SAFETY: the handle is alive.
        unsafe { call!(aclrtSynchronizeStream(self.raw())) }?;
        self.log().clear();
        Ok(())
    }

    /// As the library counts streams.
    pub(crate) fn id(&self) -> u32 {
        self.inner().log.stream()
    }

    #[inline]
    pub(crate) fn log(&self) -> &Log {
        &self.inner().log
    }

    /// The device whose work it queues.
    pub fn device(&self) -> Device {
        device::device(self.device_index())
    }

    /// Streams of smaller numbers go first.
    pub fn priority(&self) -> u32 {
        self.inner().priority
    }

    #[inline]
    fn inner(&self) -> &Inner {
        match &self.0 {
            Held::Main(inner) => inner,
            Held::Own(inner) => inner,
        }
    }

    #[inline]
    pub(crate) fn device_index(&self) -> u8 {
        self.inner().device
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut c_void {
        self.inner().raw
    }

    /// A number that no other stream of the device has while this one lives.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.raw() as usize
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        (self.device_index(), self.number()) == (other.device_index(), other.number())
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:#x} of {})", self.number(), self.device())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if device::is_gone(self.device) {
            return;
        }
        status::keep(device::bind(self.device));
        // SAFETY: created by `new`, destroyed once; the library finishes its work first.
        status::keep(unsafe { call!(aclrtDestroyStream(self.raw)) });
        if let Ok(main) = main(self.device) {
            allocator::of(self.device).inherit(self.raw as usize, main.number());
        }
    }
}

static MAIN: [OnceLock<Inner>; 256] = [const { OnceLock::new() }; 256];

/// A device's default stream. It is made like any other, because the library treats streams
/// that nobody made in ways of their own.
#[inline]
pub(crate) fn main(device: u8) -> AclResult<Stream> {
    match MAIN[usize::from(device)].get() {
        Some(inner) => Ok(Stream(Held::Main(inner))),
        None => make_main(device),
    }
}

#[cold]
fn make_main(device: u8) -> AclResult<Stream> {
    let inner = Inner::new(device, NORMAL)?;
    // One that comes too late is destroyed again, which may ask for the one that was made first.
    Ok(Stream(Held::Main(MAIN[usize::from(device)].get_or_init(|| inner))))
}

thread_local! {
    /// The streams that this thread entered, by device.
    static ENTERED: RefCell<Vec<Option<Stream>>> = const { RefCell::new(Vec::new()) };
}

/// The stream that this thread fills on `device`.
#[inline]
pub(crate) fn current(device: u8) -> AclResult<Stream> {
    // A thread that is being torn down has left all streams.
    let entered = ENTERED.try_with(|entered| entered.borrow().get(usize::from(device)).cloned().flatten());
    match entered {
        Ok(Some(stream)) => Ok(stream),
        _ => main(device),
    }
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
