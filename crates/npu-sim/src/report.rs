//! Callbacks on their way from a stream to the thread of the client that runs them.

#![expect(unsafe_code, reason = "calls functions of the client")]

use crate::error::{Result, fail};
use cresset_acl::code;
use cresset_acl::types::{Callback, c_void};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A function of the client and what to call it with.
pub(crate) struct Report {
    callback: Callback,
    data: usize,
}

impl Report {
    pub(crate) fn new(callback: Callback, data: *mut c_void) -> Report {
        Report { callback, data: data as usize }
    }

    pub(crate) fn run(self) {
        // SAFETY: the client's own function and data, which it said may be used from any thread.
        unsafe { (self.callback)(self.data as *mut c_void) };
    }
}

/// What waits for one thread.
#[derive(Default)]
pub(crate) struct Inbox {
    reports: Mutex<Reports>,
    changed: Condvar,
}

#[derive(Default)]
struct Reports {
    waiting: VecDeque<Report>,
    delivered: u64,
    done: u64,
}

impl Inbox {
    /// Adds a report; if it blocks, waits until it was run.
    pub(crate) fn deliver(&self, report: Report, blocks: bool) {
        let mut reports = self.reports.lock();
        reports.waiting.push_back(report);
        reports.delivered += 1;
        let number = reports.delivered;
        self.changed.notify_all();
        while blocks && reports.done < number {
            self.changed.wait(&mut reports);
        }
    }

    fn process(&self, deadline: Option<Instant>) -> Result {
        let mut reports = self.reports.lock();
        loop {
            if let Some(report) = reports.waiting.pop_front() {
                drop(reports);
                report.run();
                self.reports.lock().done += 1;
                self.changed.notify_all();
                return Ok(());
            }
            let late = match deadline {
                Some(deadline) => self.changed.wait_until(&mut reports, deadline).timed_out(),
                None => {
                    self.changed.wait(&mut reports);
                    false
                }
            };
            if late && reports.waiting.is_empty() {
                fail!(code::RT_REPORT_TIMEOUT, "no callback came in time");
            }
        }
    }
}

/// Inboxes by thread, and the thread of each stream.
static SUBSCRIPTIONS: Mutex<Subscriptions> =
    Mutex::new(Subscriptions { inboxes: BTreeMap::new(), threads: BTreeMap::new() });

struct Subscriptions {
    inboxes: BTreeMap<u64, Arc<Inbox>>,
    threads: BTreeMap<i32, u64>,
}

/// Lets a thread run the callbacks of a stream.
pub(crate) fn subscribe(thread: u64, stream: i32) -> Result {
    let mut all = SUBSCRIPTIONS.lock();
    if all.threads.contains_key(&stream) {
        fail!(code::RT_STREAM_SUBSCRIBE, "stream {stream} has a thread for callbacks already");
    }
    all.threads.insert(stream, thread);
    all.inboxes.entry(thread).or_default();
    Ok(())
}

/// Undoes [`subscribe`].
pub(crate) fn unsubscribe(thread: u64, stream: i32) -> Result {
    let mut all = SUBSCRIPTIONS.lock();
    if all.threads.get(&stream) != Some(&thread) {
        fail!(code::RT_STREAM_SUBSCRIBE, "the thread does not run callbacks of stream {stream}");
    }
    all.threads.remove(&stream);
    if !all.threads.values().any(|other| *other == thread) {
        all.inboxes.remove(&thread);
    }
    Ok(())
}

/// Where callbacks of a stream go.
pub(crate) fn inbox(stream: i32) -> Result<Arc<Inbox>> {
    let all = SUBSCRIPTIONS.lock();
    match all.threads.get(&stream).and_then(|thread| all.inboxes.get(thread)) {
        Some(inbox) => Ok(inbox.clone()),
        None => fail!(code::RT_STREAM_NO_CB_REG, "stream {stream} has no thread for callbacks"),
    }
}

/// Runs one callback of this thread.
pub(crate) fn process(deadline: Option<Instant>) -> Result {
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::pthread_self() } as u64;
    let inbox = SUBSCRIPTIONS.lock().inboxes.get(&thread).cloned();
    match inbox {
        Some(inbox) => inbox.process(deadline),
        None => fail!(code::RT_THREAD_SUBSCRIBE, "this thread did not subscribe to callbacks"),
    }
}
