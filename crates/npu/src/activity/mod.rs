//! What the device did, in its own time: the tracing library's records as activities, or where there is no such
//! library, events around every launch ([`timed`]).
//!
//! While someone collects, every launch is made under one lock with the number of the call
//! it belongs to pushed, because the library has one stack of such numbers for the whole
//! process. When nobody collects, a launch pays one relaxed load.

mod buffers;
mod join;
mod records;
mod timed;

use crate::status;
use crate::stream::Stream;
use crate::sys::{self, Tracing};
use crate::{allocator, device};
use cresset_acl::record::{external, kind, result};
use cresset_dispatch::activity::{self, Activity, Failure, Properties, Source, Work};
use cresset_dispatch::observe;
use join::Join;
use parking_lot::{Mutex, MutexGuard};
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

/// Makes the devices' activities known, once.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        activity::register(&Devices);
    });
}

/// How activities are collected now.
static COLLECTING: AtomicU8 = AtomicU8::new(OFF);
const OFF: u8 = 0;
/// The tracing library tells.
const TRACED: u8 = 1;
/// Events tell.
const TIMED: u8 = 2;

/// Makes a call that gives `work` to a stream; while someone collects, tied to the current call.
#[inline]
pub(crate) fn launching<R>(
    function: &'static str,
    work: Work,
    bytes: usize,
    stream: &Stream,
    launch: impl FnOnce() -> R,
) -> R {
    match COLLECTING.load(Relaxed) {
        OFF => launch(),
        TRACED => {
            let _tied = Launching::new();
            launch()
        }
        _ => {
            let mut timed = timed::Launching::new(function, work, bytes as u64, stream);
            let result = launch();
            timed.finish(stream);
            result
        }
    }
}

/// Ties the launches that are made while it lives to the current call.
struct Launching {
    tracing: &'static Tracing,
    is_pushed: bool,
    /// Others wait, also if nothing is pushed: their number must not cover this launch.
    _alone: MutexGuard<'static, ()>,
}

impl Launching {
    #[cold]
    fn new() -> Option<Launching> {
        static ALONE: Mutex<()> = Mutex::new(());
        let tracing = sys::loaded().tracing.as_ref().ok()?;
        let (alone, call) = (ALONE.lock(), observe::current());
        // SAFETY: has no preconditions.
        let push = || unsafe { (tracing.msptiActivityPushExternalCorrelationId)(external::CUSTOM0, call) };
        Some(Launching { tracing, is_pushed: call != 0 && push() == result::SUCCESS, _alone: alone })
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut last = 0;
            // SAFETY: the result has a place. A failure would leave a number that the next push covers.
            let _ =
                unsafe { (self.tracing.msptiActivityPopExternalCorrelationId)(external::CUSTOM0, &mut last) };
        }
    }
}

/// What is collected. Copies and sets are seen only if the tracing library was preloaded.
const KINDS: [(u32, &str); 6] = [
    (kind::KERNEL, "kernels"),
    (kind::COMMUNICATION, "collectives"),
    (kind::API, "launches"),
    (kind::EXTERNAL_CORRELATION, "which call launched what"),
    (kind::MEMCPY, "copies"),
    (kind::MEMSET, "sets"),
];

#[derive(Default)]
struct State {
    is_collecting: bool,
    /// Kept while someone collects; and if it could not be ended, for the next who does.
    subscriber: Option<Subscriber>,
    join: Join,
    untraced: Vec<String>,
}

struct Subscriber(*mut c_void);

// SAFETY: a handle that is only passed back to the library, from one thread at a time.
unsafe impl Send for Subscriber {}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// What could not be collected when that was last tried.
pub(crate) fn untraced() -> Vec<String> {
    STATE.lock().as_ref().map_or_else(Vec::new, |state| state.untraced.clone())
}

/// All NPUs as a source of activities.
struct Devices;

impl Source for Devices {
    fn start(&self) -> Result<(), Failure> {
        let Some(tracing) = tracing()? else {
            timed::clear();
            COLLECTING.store(TIMED, Relaxed);
            return Ok(());
        };
        let mut slot = STATE.lock();
        let state = slot.get_or_insert_default();
        if state.is_collecting {
            return Err("device activities are being collected already; stop that first".into());
        }
        if state.subscriber.is_none() {
            state.subscriber = Some(subscribe(tracing)?);
        }
        state.untraced = match enable(tracing) {
            Ok(untraced) => untraced,
            Err(error) => {
                // What failed first is the news; that undoing it may fail too is not.
                let _ = disable(tracing, &mut state.subscriber);
                return Err(error.into());
            }
        };
        state.is_collecting = true;
        state.join = Join::default();
        COLLECTING.store(TRACED, Relaxed);
        Ok(())
    }

    fn drain(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        let Some(tracing) = tracing()? else {
            timed::take(true, sink);
            return Ok(());
        };
        // A kernel that failed is not the profiler's news; the next call that waits tells it.
        allocator::in_use().for_each(|index| status::keep(device::synchronize(index)));
        let mut slot = STATE.lock();
        let state = slot.get_or_insert_default();
        collect(tracing, &mut state.join)?;
        state.join.emit(sink);
        Ok(())
    }

    fn poll(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        let Some(tracing) = tracing()? else {
            timed::take(false, sink);
            return Ok(());
        };
        let mut slot = STATE.lock();
        let state = slot.get_or_insert_default();
        flush(tracing)?;
        take(tracing, &mut state.join);
        state.join.emit_joined(sink);
        Ok(())
    }

    fn stop(&self) -> Result<(), Failure> {
        COLLECTING.store(OFF, Relaxed);
        let Some(tracing) = tracing()? else {
            timed::clear();
            return Ok(());
        };
        let mut slot = STATE.lock();
        let state = slot.get_or_insert_default();
        if !std::mem::take(&mut state.is_collecting) {
            return Ok(());
        }
        let disabled = disable(tracing, &mut state.subscriber);
        let flushed = flush(tracing);
        buffers::discard();
        state.join = Join::default();
        Ok(disabled.and(flushed)?)
    }

    fn devices(&self, visit: &mut dyn FnMut(Properties)) {
        for index in allocator::in_use() {
            let memory = device::memory(index).map_or(0, |(_, total)| total as u64);
            visit(Properties { device: device::device(index), name: device::name(), memory });
        }
    }
}

/// The tracing library, if there is one.
fn tracing() -> Result<Option<&'static Tracing>, Failure> {
    let loaded = sys::try_loaded().ok_or("call npu::init first")?;
    Ok(loaded.tracing.as_ref().ok())
}

/// Becomes the one who is told.
fn subscribe(tracing: &Tracing) -> Result<Subscriber, TracingError> {
    let mut subscriber = ptr::null_mut();
    // SAFETY: the result has a place; a null callback is never called.
    let code = unsafe { (tracing.msptiSubscribe)(&mut subscriber, ptr::null(), ptr::null_mut()) };
    check("msptiSubscribe", code)?;
    Ok(Subscriber(subscriber))
}

/// Starts to collect; returns what cannot be collected, and why.
fn enable(tracing: &Tracing) -> Result<Vec<String>, TracingError> {
    // SAFETY: the functions give and take memory as the library asks, from any thread.
    let code = unsafe { (tracing.msptiActivityRegisterCallbacks)(buffers::requested, buffers::completed) };
    check("msptiActivityRegisterCallbacks", code)?;
    let mut untraced = Vec::new();
    for (number, what) in KINDS {
        // SAFETY: has no preconditions.
        match unsafe { (tracing.msptiActivityEnable)(number) } {
            result::WITHOUT_LD_PRELOAD => {
                untraced.push(format!("{what}: start the program with LD_PRELOAD=libmspti.so"));
            }
            // Came with a later release than the others.
            code if number == kind::COMMUNICATION && code != result::SUCCESS => {
                untraced.push(format!("{what}: this release of the library cannot tell (code {code})"));
            }
            code => check("msptiActivityEnable", code)?,
        }
    }
    Ok(untraced)
}

/// Ends collecting. A subscriber that the library keeps is kept.
fn disable(tracing: &Tracing, subscriber: &mut Option<Subscriber>) -> Result<(), TracingError> {
    for (kind, _) in KINDS {
        // SAFETY: has no preconditions. Kinds that were not enabled are refused, which is fine.
        let _ = unsafe { (tracing.msptiActivityDisable)(kind) };
    }
    let Some(Subscriber(handle)) = subscriber else { return Ok(()) };
    // SAFETY: the handle is alive.
    check("msptiUnsubscribe", unsafe { (tracing.msptiUnsubscribe)(*handle) })?;
    *subscriber = None;
    Ok(())
}

fn flush(tracing: &Tracing) -> Result<(), TracingError> {
    // SAFETY: has no preconditions.
    check("msptiActivityFlushAll", unsafe { (tracing.msptiActivityFlushAll)(0) })
}

/// Records reach the host some time after the device is done: ask until all launches have
/// theirs, or nothing comes any more.
fn collect(tracing: &Tracing, join: &mut Join) -> Result<(), TracingError> {
    const PAUSE: Duration = Duration::from_millis(25);
    let (mut quiet, mut rounds) = (0, 0);
    loop {
        flush(tracing)?;
        let count = take(tracing, join);
        quiet = if count == 0 { quiet + 1 } else { 0 };
        rounds += 1;
        if join.is_complete() || quiet == 3 || rounds == 40 {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Takes the records that have come; returns how many.
fn take(tracing: &Tracing, join: &mut Join) -> usize {
    let mut count = 0;
    for buffer in buffers::take() {
        records::each(tracing, buffer, |record| {
            count += 1;
            join.add(record);
        });
    }
    count
}

/// A function of the tracing library that did not succeed.
#[derive(Debug)]
struct TracingError {
    function: &'static str,
    code: i32,
}

impl fmt::Display for TracingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}", self.function, self.code)?;
        match self.code {
            result::MULTIPLE_SUBSCRIBERS => f.write_str(": another profiler is at work in this process"),
            result::WITHOUT_LD_PRELOAD => f.write_str(": start the program with LD_PRELOAD=libmspti.so"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for TracingError {}

fn check(function: &'static str, code: i32) -> Result<(), TracingError> {
    if code == result::SUCCESS { Ok(()) } else { Err(TracingError { function, code }) }
}
