//! Streams: each a thread that runs tasks in order while the caller goes on.

use crate::clock::{self, Timeline};
use crate::device::Device;
use crate::error::{Failure, Result, contain, fail};
use crate::exception::{self, Exception};
use crate::handle::Handles;
use crate::pace;
use cresset_acl::{code, constant};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Work for a stream.
pub(crate) type Task = Box<dyn FnOnce() -> Result + Send>;

/// How far a stream had been filled: the task with this number is done when as many are.
pub(crate) type Ticket = u64;

/// Streams by handle.
pub(crate) static STREAMS: Handles<Stream> = Handles::new(1, "stream");

/// The most streams a device has.
pub(crate) const MOST: usize = 1984;

/// An in-order queue of tasks and the thread that runs them.
pub(crate) struct Stream {
    pub(crate) id: i32,
    pub(crate) device: &'static Device,
    /// The handle of the context it belongs to.
    pub(crate) context: usize,
    pub(crate) priority: AtomicU32,
    pub(crate) flags: u32,
    /// Whether to look for overflows: remembered, without effect.
    pub(crate) overflow_switch: AtomicU32,
    queue: Arc<Queue>,
    /// Started with the first task: most programs make more streams than they use.
    worker: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Queue {
    device: usize,
    stream: i32,
    state: Mutex<State>,
    more: Condvar,
    progress: Condvar,
    submitted: AtomicU64,
    completed: AtomicU64,
    /// How far somebody wants it to be; what is beyond may wait, see [`pace`].
    wanted: AtomicU64,
    waiters: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    /// Tasks up to this one are given up.
    aborted: AtomicU64,
    stops_at_failure: AtomicBool,
    /// Shared by all streams of a context: set when one that stops at failures has failed.
    poison: Arc<Poison>,
    pub(crate) timeline: Timeline,
}

/// Why nothing more is done in a context, if so.
#[derive(Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

struct State {
    tasks: VecDeque<Task>,
    /// Tasks that were given to the worker.
    taken: Ticket,
    /// The worker sleeps, and must be woken.
    idle: bool,
    closing: bool,
}

impl Stream {
    pub(crate) fn new(
        device: &'static Device,
        context: usize,
        poison: Arc<Poison>,
        priority: u32,
        flags: u32,
    ) -> Stream {
        static NEXT: AtomicI32 = AtomicI32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Stream {
            id,
            device,
            context,
            priority: AtomicU32::new(priority),
            flags,
            overflow_switch: AtomicU32::new(0),
            queue: Arc::new(Queue::new(device.id, id, poison)),
            worker: Mutex::new(None),
        }
    }

    /// Adds a task. Never waits for it.
    pub(crate) fn push(&self, task: Task) -> Ticket {
        if self.queue.submitted.load(Ordering::Relaxed) == 0 {
            self.start();
        }
        let mut state = self.queue.state.lock();
        state.tasks.push_back(task);
        let ticket = self.queue.submitted.fetch_add(1, Ordering::Release) + 1;
        if state.idle {
            self.queue.more.notify_one();
        }
        exception::gave(ticket as u32);
        ticket
    }

    #[cold]
    fn start(&self) {
        let mut worker = self.worker.lock();
        if worker.is_none() {
            let queue = self.queue.clone();
            let name = format!("npu-stream-{}", self.id);
            let thread = thread::Builder::new().name(name).spawn(move || queue.work());
            *worker = Some(thread.expect("the system has a thread for a stream"));
        }
    }

    /// The ticket of the last task added.
    pub(crate) fn last(&self) -> Ticket {
        self.queue.submitted.load(Ordering::Acquire)
    }

    /// Whether every task is done. Who asks wants them to be.
    pub(crate) fn is_complete(&self) -> bool {
        let complete = self.queue.done(self.last());
        self.queue.want(self.last());
        complete
    }

    /// Waits until the task with this ticket is done.
    pub(crate) fn wait(&self, ticket: Ticket, deadline: Option<Instant>) -> Result {
        self.queue.wait(ticket, deadline)
    }

    /// Waits until all tasks so far are done; fails with the first failure since last asked.
    pub(crate) fn synchronize(&self, deadline: Option<Instant>) -> Result {
        self.wait(self.last(), deadline)?;
        let failure = self.queue.failure.lock().take();
        failure.or_else(|| self.queue.poison.failure.lock().clone()).map_or(Ok(()), Err)
    }

    /// What [`Mark`](crate::event)s keep of a stream: enough to see that it goes on.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn set_failure_mode(&self, mode: u64) -> Result {
        match mode {
            constant::failure::CONTINUE | constant::failure::STOP => {
                self.queue.stops_at_failure.store(mode == constant::failure::STOP, Ordering::Relaxed);
                Ok(())
            }
            _ => fail!(code::RT_PARAM_INVALID, "there is no failure mode {mode}"),
        }
    }

    pub(crate) fn failure_mode(&self) -> u64 {
        self.queue.stops_at_failure.load(Ordering::Relaxed) as u64
    }

    /// Gives up all tasks that wait; the next who waits for the stream is told so.
    pub(crate) fn abort(&self, code: i32) {
        let last = self.last();
        self.queue.aborted.fetch_max(last, Ordering::SeqCst);
        if !self.queue.done(last) {
            let text = format!("the work of stream {} was given up", self.id);
            self.queue.failure.lock().get_or_insert(Failure::new(code, text));
        }
        self.queue.want(last);
    }

    /// Finishes all tasks and ends the thread.
    pub(crate) fn close(&self) {
        self.queue.want(self.last());
        self.queue.state.lock().closing = true;
        self.queue.more.notify_one();
        if let Some(worker) = self.worker.lock().take() {
            worker.join().expect("a worker contains the panics of its tasks");
        }
    }

    /// Ends the thread without finishing what waits, nor waiting for what runs.
    pub(crate) fn close_now(&self) {
        self.queue.aborted.fetch_max(self.last(), Ordering::SeqCst);
        self.queue.want(self.last());
        self.queue.state.lock().closing = true;
        self.queue.more.notify_one();
        drop(self.worker.lock().take());
    }
}

impl Queue {
    fn new(device: usize, stream: i32, poison: Arc<Poison>) -> Queue {
        Queue {
            device,
            stream,
            state: Mutex::new(State { tasks: VecDeque::new(), taken: 0, idle: false, closing: false }),
            more: Condvar::new(),
            progress: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            waiters: AtomicUsize::new(0),
            failure: Mutex::new(None),
            aborted: AtomicU64::new(0),
            stops_at_failure: AtomicBool::new(false),
            poison,
            timeline: Timeline::default(),
        }
    }

    fn done(&self, ticket: Ticket) -> bool {
        self.completed.load(Ordering::SeqCst) >= ticket
    }

    /// Lets tasks up to this one run even if streams are lazy.
    pub(crate) fn want(&self, ticket: Ticket) {
        if self.wanted.fetch_max(ticket, Ordering::SeqCst) < ticket && pace::is_lazy() {
            let state = self.state.lock();
            if state.idle {
                self.more.notify_one();
            }
        }
    }

    fn work(&self) {
        let mut batch = VecDeque::new();
        while self.take(&mut batch) {
            for task in batch.drain(..) {
                self.run(task);
                self.complete();
            }
        }
    }

    fn run(&self, task: Task) {
        let ticket = self.completed.load(Ordering::Relaxed) + 1;
        if ticket <= self.aborted.load(Ordering::SeqCst) || self.poison.is_set.load(Ordering::Acquire) {
            // Dropping a task lets go of those who wait for it.
            return;
        }
        pace::hold();
        if let Err(failure) = contain(code::RT_INTERNAL_ERROR, task) {
            let (device, stream) = (self.device as u32, self.stream as u32);
            Exception { device, stream, task: ticket as u32 }.tell();
            if self.stops_at_failure.load(Ordering::Relaxed) {
                self.poison.failure.lock().get_or_insert(failure.clone());
                self.poison.is_set.store(true, Ordering::Release);
            }
            self.failure.lock().get_or_insert(failure);
        }
    }

    /// Moves tasks that may run to `batch`, sleeping until there are some; false at the end.
    fn take(&self, batch: &mut VecDeque<Task>) -> bool {
        spin(|| self.submitted.load(Ordering::Acquire) != self.completed.load(Ordering::Relaxed));
        let mut state = self.state.lock();
        loop {
            let ready = self.ready(&state);
            if ready > 0 {
                state.taken += ready as Ticket;
                match ready == state.tasks.len() {
                    true => std::mem::swap(&mut state.tasks, batch),
                    false => batch.extend(state.tasks.drain(..ready)),
                }
                return true;
            }
            if state.closing && state.tasks.is_empty() {
                return false;
            }
            state.idle = true;
            self.more.wait(&mut state);
            state.idle = false;
        }
    }

    /// How many waiting tasks may run.
    fn ready(&self, state: &State) -> usize {
        if !pace::is_lazy() || state.closing {
            return state.tasks.len();
        }
        let wanted = self.wanted.load(Ordering::SeqCst).saturating_sub(state.taken);
        state.tasks.len().min(wanted as usize)
    }

    fn complete(&self) {
        self.completed.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // With the lock held no waiter is between its last look and its sleep.
            let _state = self.state.lock();
            self.progress.notify_all();
        }
    }

    fn wait(&self, ticket: Ticket, deadline: Option<Instant>) -> Result {
        self.want(ticket);
        if spin(|| self.done(ticket)) {
            return Ok(());
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.lock();
        let mut late = false;
        while !self.done(ticket) && !late {
            match deadline {
                Some(deadline) => late = self.progress.wait_until(&mut state, deadline).timed_out(),
                None => self.progress.wait(&mut state),
            }
        }
        drop(state);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if !self.done(ticket) {
            fail!(code::RT_STREAM_SYNC_TIMEOUT, "the stream was not done in time");
        }
        clock::pass(self.timeline.end());
        Ok(())
    }
}

/// Looks for a short while whether `done`: going to sleep and being woken takes longer than
/// most kernels do.
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    /// Looks without a pause, for a kernel that runs on another core.
    const EAGER: usize = 16;
    /// How long to look in between others' turns, in case the kernel needs this very core.
    const PATIENCE: Duration = Duration::from_micros(20);
    for _ in 0..EAGER {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        thread::yield_now();
        if done() {
            return true;
        }
    }
    false
}
