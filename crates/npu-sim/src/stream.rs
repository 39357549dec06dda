//! Streams: each a thread that runs tasks in order while the caller goes on.

use crate::config::CONFIG;
use crate::device::Device;
use crate::error::{Failure, Result, contain, fail};
use crate::handle::Handles;
use cresset_acl::code;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Work for a stream.
pub(crate) type Task = Box<dyn FnOnce() -> Result + Send>;

/// How far a stream had been filled: the task with this number is done when as many are.
pub(crate) type Ticket = u64;

/// Streams by handle.
pub(crate) static STREAMS: Handles<Stream> = Handles::new(1);

/// An in-order queue of tasks and the thread that runs them.
pub(crate) struct Stream {
    pub(crate) id: i32,
    pub(crate) device: &'static Device,
    /// The handle of the context it belongs to.
    pub(crate) context: usize,
    queue: Arc<Queue>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<State>,
    more: Condvar,
    progress: Condvar,
    submitted: AtomicU64,
    completed: AtomicU64,
    waiters: AtomicUsize,
    failure: Mutex<Option<Failure>>,
}

struct State {
    tasks: VecDeque<Task>,
    /// The worker sleeps, and must be woken.
    idle: bool,
    closing: bool,
}

impl Stream {
    pub(crate) fn new(device: &'static Device, context: usize) -> Stream {
        static NEXT: AtomicI32 = AtomicI32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(Queue::new());
        let worker = thread::Builder::new().name(format!("npu-stream-{id}")).spawn({
            let queue = queue.clone();
            move || queue.work()
        });
        let worker = worker.expect("the system has a thread for a stream");
        Stream { id, device, context, queue, worker: Mutex::new(Some(worker)) }
    }

    /// Adds a task. Never waits for it.
    pub(crate) fn push(&self, task: Task) -> Ticket {
        let mut state = self.queue.state.lock();
        state.tasks.push_back(task);
        let ticket = self.queue.submitted.fetch_add(1, Ordering::Release) + 1;
        if state.idle {
            self.queue.more.notify_one();
        }
        ticket
    }

    /// The ticket of the last task added.
    pub(crate) fn last(&self) -> Ticket {
        self.queue.submitted.load(Ordering::Acquire)
    }

    /// Whether every task is done.
    pub(crate) fn is_complete(&self) -> bool {
        self.queue.done(self.last())
    }

    /// Waits until the task with this ticket is done.
    pub(crate) fn wait(&self, ticket: Ticket, deadline: Option<Instant>) -> Result {
        self.queue.wait(ticket, deadline)
    }

    /// Waits until all tasks so far are done; fails with the first failure since last asked.
    pub(crate) fn synchronize(&self, deadline: Option<Instant>) -> Result {
        self.wait(self.last(), deadline)?;
        self.queue.failure.lock().take().map_or(Ok(()), Err)
    }

    /// Finishes all tasks and ends the thread.
    pub(crate) fn close(&self) {
        self.queue.state.lock().closing = true;
        self.queue.more.notify_one();
        if let Some(worker) = self.worker.lock().take() {
            worker.join().expect("a worker contains the panics of its tasks");
        }
    }
}

impl Queue {
    fn new() -> Queue {
        Queue {
            state: Mutex::new(State { tasks: VecDeque::new(), idle: false, closing: false }),
            more: Condvar::new(),
            progress: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            waiters: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    fn done(&self, ticket: Ticket) -> bool {
        self.completed.load(Ordering::SeqCst) >= ticket
    }

    fn work(&self) {
        let mut batch = VecDeque::new();
        while self.take(&mut batch) {
            for task in batch.drain(..) {
                if let Some(delay) = CONFIG.delay {
                    thread::sleep(delay);
                }
                if let Err(failure) = contain(code::RT_INTERNAL_ERROR, task) {
                    self.failure.lock().get_or_insert(failure);
                }
                self.complete();
            }
        }
    }

    /// Moves all waiting tasks to `batch`, sleeping until there are some; false at the end.
    fn take(&self, batch: &mut VecDeque<Task>) -> bool {
        spin(|| self.submitted.load(Ordering::Acquire) != self.completed.load(Ordering::Relaxed));
        let mut state = self.state.lock();
        while state.tasks.is_empty() {
            if state.closing {
                return false;
            }
            state.idle = true;
            self.more.wait(&mut state);
            state.idle = false;
        }
        std::mem::swap(&mut state.tasks, batch);
        true
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
