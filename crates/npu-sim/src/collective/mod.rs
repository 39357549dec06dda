//! Communication between devices, of one process or of several on one host.
//!
//! Ranks that have the same root information meet in shared memory ([`region`]). A collective runs in the stream
//! of each rank like any kernel, and waits there for the others ([`meeting`]), chunk by chunk ([`exchange`]).
//! Those of one communicator run in the order in which they were called, on whatever streams.

mod element;
mod exchange;
mod meeting;
mod region;

pub(crate) use element::{Elements, Operation};
pub(crate) use exchange::{Exchange, Transfer};

use crate::clock::Cost;
use crate::context::Context;
use crate::error::{Failure, Result, fail};
use crate::handle::Handles;
use crate::memory::{Memory, Span};
use crate::stream::Stream;
use crate::trace::{Activity, Launch};
use cresset_acl::code;
use cresset_acl::collective::result;
use meeting::Meeting;
use parking_lot::{Condvar, Mutex};
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// Communicators by handle.
pub(crate) static COMMUNICATORS: Handles<Communicator> = Handles::new(15, "communicator");

/// What ranks that meet share: sixteen bytes that nobody else has.
pub(crate) type Id = [u8; 16];

/// One rank's end of a group.
pub(crate) struct Communicator {
    pub(crate) id: Id,
    pub(crate) name: &'static CStr,
    meeting: Meeting,
    /// How many collectives were called, and whose turn it is.
    called: AtomicU64,
    turn: Mutex<u64>,
    next: Condvar,
    /// The first failure, as `HcclGetCommAsyncError` tells it.
    error: AtomicI32,
}

/// A setting in seconds.
fn seconds(variable: &str, default: u64) -> Duration {
    let given = crate::config::text(variable).and_then(|value| value.parse().ok());
    Duration::from_secs(given.unwrap_or(default))
}

/// How long ranks wait for each other before they are all there: `HCCL_CONNECT_TIMEOUT` seconds.
pub(crate) fn patience_to_connect() -> Duration {
    seconds("HCCL_CONNECT_TIMEOUT", 120)
}

/// How long a collective waits for other ranks: `HCCL_EXEC_TIMEOUT` seconds.
fn patience_to_run() -> Duration {
    seconds("HCCL_EXEC_TIMEOUT", 1836)
}

impl Communicator {
    /// Joins a group, and waits for all others unless they come from this very thread.
    pub(crate) fn join(
        id: Id,
        rank: u32,
        ranks: u32,
        name: &'static CStr,
        wait: bool,
    ) -> Result<Communicator> {
        let meeting = Meeting::join(&id, rank, ranks)?;
        if wait {
            meeting.gather(patience_to_connect())?;
        }
        Ok(Communicator {
            id,
            name,
            meeting,
            called: AtomicU64::new(0),
            turn: Mutex::new(0),
            next: Condvar::new(),
            error: AtomicI32::new(result::SUCCESS),
        })
    }

    pub(crate) fn rank(&self) -> u32 {
        self.meeting.rank()
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.meeting.ranks()
    }

    /// The first failure of a collective.
    pub(crate) fn error(&self) -> i32 {
        self.error.load(Ordering::Relaxed)
    }

    /// Fails unless a rank is one of the group.
    pub(crate) fn expect_rank(&self, rank: u32) -> Result {
        if rank >= self.ranks() {
            fail!(result::PARAMETER, "there is no rank {rank}: there are {}", self.ranks());
        }
        Ok(())
    }

    /// Waits until all collectives called before this one are done.
    fn await_turn(&self, number: u64) {
        let mut turn = self.turn.lock();
        while *turn != number {
            self.next.wait(&mut turn);
        }
    }

    fn end_turn(&self) {
        *self.turn.lock() += 1;
        self.next.notify_all();
    }
}

/// Ends a turn, also that of a task which is given up.
struct Turn {
    communicator: Arc<Communicator>,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.communicator.await_turn(self.number);
        self.communicator.end_turn();
    }
}

/// A collective: what is done, with which elements, on which stream.
pub(crate) struct Call {
    pub(crate) function: &'static CStr,
    /// As device records name it.
    pub(crate) kernel: &'static CStr,
    pub(crate) elements: Elements,
    pub(crate) count: u64,
    pub(crate) exchange: Exchange,
}

impl Call {
    /// Lets a stream run it.
    pub(crate) fn launch(self, communicator: Arc<Communicator>, stream: usize) -> Result {
        let stream = Context::current()?.stream(stream)?;
        self.exchange.spans().into_iter().try_for_each(|span| expect_memory(&stream, span))?;
        let launch = Launch::new(self.function);
        let number = communicator.called.fetch_add(1, Ordering::SeqCst);
        let turn = Turn { communicator, number };
        let (target, correlation) = (stream.clone(), launch.correlation);
        stream.push(Box::new(move || {
            turn.communicator.await_turn(turn.number);
            let result = self.run(&turn.communicator, &target, correlation);
            result.map_err(|failure| failure.of(&self.function.to_string_lossy()))
        }));
        Ok(())
    }

    fn run(&self, communicator: &Communicator, stream: &Stream, correlation: u64) -> Result {
        let bytes = self.count as usize * self.elements.size();
        let (name, group, dtype) = (self.kernel, communicator.name, self.elements.number());
        let activity = Activity::Communication { name, group, dtype, count: self.count, bytes };
        let cost = Cost { bytes: LINK * bytes, ..Cost::default() };
        let memory: &Memory = &stream.device.memory;
        let meeting = communicator.meeting.with_patience(patience_to_run());
        let result =
            activity.during(stream, correlation, cost, || self.exchange.run(self.elements, memory, &meeting));
        result.map_err(|failure| {
            communicator.error.store(failure.code, Ordering::Relaxed);
            communicator.meeting.give_up();
            // Streams tell failures by codes of the runtime.
            Failure { code: code::RT_TASK_TIMEOUT, ..failure }
        })
    }
}

/// How much slower the link between devices is than a device's memory.
const LINK: usize = 40;

/// Fails unless a buffer is memory of the stream's device.
fn expect_memory(stream: &Stream, span: Span) -> Result {
    stream.device.memory.holds(span).map_err(|failure| Failure { code: result::PARAMETER, ..failure })
}
