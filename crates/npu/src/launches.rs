//! What was given to each stream, so that a failure that comes later can be named.
//!
//! A device fails when its stream is waited for, and says which task it was: the library counts the tasks of
//! a thread, and tells of failures by number. Where it does not, its words name the function at least.

use crate::status::AclResult;
use crate::stream::Stream;
use crate::sys::{loaded, try_loaded};
use cresset_acl::code::SUCCESS;
use cresset_acl::types::c_void;
use cresset_dispatch::site;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The call that gave a device work that failed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchedBy {
    /// The operator, or the function itself outside of any.
    pub op: &'static str,
    /// The function of the library.
    pub function: &'static str,
    /// How many later calls it may have been instead: none where the library says which task it was.
    pub or_later: usize,
}

impl fmt::Display for LaunchedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "launched by {}", self.op)?;
        match self.or_later {
            0 => Ok(()),
            1 => write!(f, ", or by the call after it"),
            more => write!(f, ", or by one of {more} calls after it"),
        }
    }
}

#[derive(Clone, Copy)]
struct Launch {
    op: &'static str,
    function: &'static str,
    /// The number of its last task; 0 if the library does not count.
    task: u32,
}

/// The launches of one stream that were not waited for yet.
pub(crate) struct Log {
    device: u8,
    /// As the library counts streams.
    stream: u32,
    launches: Mutex<VecDeque<Launch>>,
}

/// So many are remembered; a stream rarely holds more.
const MOST: usize = 4096;

static LOGS: Mutex<Vec<Weak<Log>>> = Mutex::new(Vec::new());

impl Log {
    pub(crate) fn new(device: u8, stream: u32) -> Arc<Log> {
        let log = Arc::new(Log { device, stream, launches: Mutex::default() });
        let mut logs = LOGS.lock();
        logs.retain(|log| log.strong_count() > 0);
        logs.push(Arc::downgrade(&log));
        log
    }

    pub(crate) fn stream(&self) -> u32 {
        self.stream
    }

    /// Remembers what was just given to the stream.
    #[inline]
    fn note(&self, function: &'static str) {
        let launch = Launch { op: site::current().unwrap_or(function), function, task: last_task() };
        let mut launches = self.launches.lock();
        if launches.len() == MOST {
            launches.pop_front();
        }
        launches.push_back(launch);
    }

    /// Forgets all: it was waited for, and is done.
    pub(crate) fn clear(&self) {
        self.launches.lock().clear();
    }

    /// The launch that the task with this number belongs to.
    fn of_task(&self, task: u32) -> Option<LaunchedBy> {
        let launches = self.launches.lock();
        // Numbers begin anew when they are used up.
        let reaches = |launch: &&Launch| launch.task.wrapping_sub(task) < u32::MAX / 2;
        launches.iter().find(reaches).map(|launch| launch.named(0))
    }

    /// The first launch of a function that `text` names.
    fn of_text(&self, text: &str) -> Option<LaunchedBy> {
        let launches = self.launches.lock();
        let names = |launch: &&Launch| contains_word(text, launch.function);
        let mut named = launches.iter().filter(names);
        let first = named.next()?;
        Some(first.named(named.count()))
    }
}

impl Launch {
    fn named(&self, or_later: usize) -> LaunchedBy {
        LaunchedBy { op: self.op, function: self.function, or_later }
    }
}

/// Whether `text` has `word` with nothing joined to its end: `aclnnAdds` does not name `aclnnAdd`.
fn contains_word(text: &str, word: &str) -> bool {
    let ends = |at: usize| !text[at + word.len()..].starts_with(|next: char| next.is_ascii_alphanumeric());
    text.match_indices(word).any(|(at, _)| ends(at))
}

fn last_task() -> u32 {
    let Some(ask) = loaded().probed.aclrtGetThreadLastTaskId else { return 0 };
    let mut task = 0;
    // SAFETY: the result has a place.
    if unsafe { ask(&mut task) } == SUCCESS { task } else { 0 }
}

/// Work that failed, as the library told of it.
#[derive(Clone, Copy)]
struct Failed {
    device: u32,
    stream: u32,
    task: u32,
}

static FAILED: Mutex<Vec<Failed>> = Mutex::new(Vec::new());

/// Has the library tell of failures.
pub(crate) fn watch() {
    if let Some(set) = loaded().probed.aclrtSetExceptionInfoCallback {
        // SAFETY: the function can be called from any thread, at any time.
        let _ = unsafe { set(Some(heard)) };
    }
}

/// # Safety
/// `info` is what the library gives its listeners.
unsafe extern "C" fn heard(info: *mut c_void) {
    let Some(probed) = try_loaded().map(|loaded| &loaded.probed) else { return };
    let (Some(device), Some(stream), Some(task)) = (
        probed.aclrtGetDeviceIdFromExceptionInfo,
        probed.aclrtGetStreamIdFromExceptionInfo,
        probed.aclrtGetTaskIdFromExceptionInfo,
    ) else {
        return;
    };
    // SAFETY: by the caller's promise.
    let failed = unsafe { Failed { device: device(info), stream: stream(info), task: task(info) } };
    FAILED.lock().push(failed);
}

/// Who launched what failed on `device`, and of which the library says `text`.
#[cold]
pub(crate) fn blamed(device: u8, text: &str) -> Option<LaunchedBy> {
    let logs: Vec<Arc<Log>> = LOGS.lock().iter().filter_map(Weak::upgrade).collect();
    let mut logs = logs.iter().filter(|log| log.device == device);
    let failed: Vec<Failed> = {
        let mut all = FAILED.lock();
        all.extract_if(.., |failed| failed.device == u32::from(device)).collect()
    };
    let by_task = failed.iter().find_map(|failed| {
        logs.clone().find(|log| log.stream == failed.stream).and_then(|log| log.of_task(failed.task))
    });
    by_task.or_else(|| logs.find_map(|log| log.of_text(text)))
}

/// Forgets the launches of all streams of a device: they were waited for.
pub(crate) fn clear(device: u8) {
    let logs = LOGS.lock();
    logs.iter().filter_map(Weak::upgrade).filter(|log| log.device == device).for_each(|log| log.clear());
}

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static BLOCKING: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether every launch waits until it is done, so that a failure is told by the very call that caused it; for
/// looking for one. As `CRESSET_NPU_BLOCKING=1`, or the vendor's `ASCEND_LAUNCH_BLOCKING=1`.
///
/// ```
/// cresset_npu::set_launch_blocking(true);
/// assert!(cresset_npu::launch_blocking());
/// # cresset_npu::set_launch_blocking(false);
/// ```
pub fn set_launch_blocking(on: bool) {
    BLOCKING.store(if on { ON } else { OFF }, Relaxed);
}

/// Whether every launch waits until it is done; see [`set_launch_blocking`].
pub fn launch_blocking() -> bool {
    if BLOCKING.load(Relaxed) == UNKNOWN {
        let is_on = |name| std::env::var(name).is_ok_and(|value: String| !matches!(value.as_str(), "" | "0"));
        set_launch_blocking(is_on("CRESSET_NPU_BLOCKING") || is_on("ASCEND_LAUNCH_BLOCKING"));
    }
    BLOCKING.load(Relaxed) == ON
}

/// Remembers that `function` was just given to `stream`; waits for it if that is wanted.
#[inline]
pub(crate) fn launched(function: &'static str, stream: &Stream) -> AclResult {
    stream.log().note(function);
    match BLOCKING.load(Relaxed) {
        OFF => Ok(()),
        _ => wait(stream),
    }
}

#[cold]
fn wait(stream: &Stream) -> AclResult {
    if launch_blocking() { stream.finish() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_belongs_to_the_launch_that_ends_with_it_or_later() {
        let log = Log { device: 0, stream: 1, launches: Mutex::default() };
        let launch = |op, task| Launch { op, function: "aclnnAny", task };
        // Two launches of several tasks each, and numbers that begin anew.
        log.launches.lock().extend([launch("first", u32::MAX - 2), launch("second", 1), launch("third", 4)]);
        let op_of = |task| log.of_task(task).map(|launched_by| launched_by.op);
        assert_eq!(op_of(u32::MAX - 3), Some("first"));
        assert_eq!(op_of(u32::MAX - 1), Some("second"));
        assert_eq!((op_of(2), op_of(4)), (Some("third"), Some("third")));
        assert_eq!(op_of(5), None, "it was given to the stream later");
    }

    #[test]
    fn words_that_several_launches_fit_say_how_many() {
        let log = Log { device: 0, stream: 1, launches: Mutex::default() };
        ["aclnnExp", "aclnnAdd", "aclnnExp"].iter().for_each(|function| {
            log.launches.lock().push_back(Launch { op: "aten::any", function, task: 0 });
        });
        let told = |text| log.of_text(text).map(|launched_by| launched_by.to_string());
        assert_eq!(told("aclnnExp: trap").as_deref(), Some("launched by aten::any, or by the call after it"));
        assert_eq!(told("aclnnAdd: trap").as_deref(), Some("launched by aten::any"));
        assert_eq!(told("aclnnTanh: trap"), None);
    }

    #[test]
    fn a_function_is_not_taken_for_one_with_a_longer_name() {
        assert!(contains_word("aclnnAdd: injected", "aclnnAdd"));
        assert!(!contains_word("aclnnAdds: injected", "aclnnAdd"));
        assert!(contains_word("aclnnAdds, then aclnnAdd", "aclnnAdd"));
    }
}
