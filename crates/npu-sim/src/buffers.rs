//! Buffers of activity records: lent by the client, filled here, handed back.
//!
//! The client's functions are never called with a lock held, as they may call us.

#![expect(unsafe_code, reason = "fills memory of the caller")]

use cresset_acl::record::{self, kind, result};
use cresset_acl::types::{BufferCompleted, BufferRequested};
use parking_lot::Mutex;
use std::cell::Cell;

static STATE: Mutex<State> = Mutex::new(State { client: None, current: None, spare: Vec::new() });

struct State {
    client: Option<Client>,
    current: Option<Buffer>,
    /// Buffers that two threads asked for at once.
    spare: Vec<Buffer>,
}

/// How to get buffers and give them back.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) requested: BufferRequested,
    pub(crate) completed: BufferCompleted,
}

/// Memory of the client; `used` bytes of it are filled.
struct Buffer {
    start: *mut u8,
    size: usize,
    used: usize,
}

// SAFETY: the client gives up the memory until it is handed back, so whoever holds the
// `Buffer` may use it from any thread.
unsafe impl Send for Buffer {}

/// Whom to ask for buffers from now on.
pub(crate) fn register(client: Client) {
    STATE.lock().client = Some(client);
}

/// A record as it lies in a buffer: plain old data.
pub(crate) trait Record: Copy {}

impl Record for record::Kernel {}
impl Record for record::Api {}
impl Record for record::Memset {}
impl Record for record::Memcpy {}
impl Record for record::ExternalCorrelation {}
impl Record for record::Marker {}
impl Record for record::Hccl {}
impl Record for record::Memory {}
impl Record for record::Communication {}

/// Appends a record; it is dropped if the client has no buffer for it.
pub(crate) fn write<R: Record>(record: R) {
    let mut state = STATE.lock();
    let Some(client) = state.client else { return };
    if state.current.is_none() {
        state.current = state.spare.pop();
    }
    if state.current.is_none() {
        drop(state);
        let Some(buffer) = client.request() else { return };
        state = STATE.lock();
        match state.current {
            Some(_) => state.spare.push(buffer),
            None => state.current = Some(buffer),
        }
    }
    let buffer = state.current.as_mut().expect("there is one by now");
    buffer.append(record);
    if buffer.is_nearly_full() {
        let full = state.current.take().expect("it was just filled");
        drop(state);
        client.hand_back(full);
    }
}

/// Hands all buffers back, filled or not.
pub(crate) fn flush() {
    let mut state = STATE.lock();
    let Some(client) = state.client else { return };
    let mut buffers = std::mem::take(&mut state.spare);
    buffers.extend(state.current.take());
    drop(state);
    buffers.into_iter().for_each(|buffer| client.hand_back(buffer));
}

impl Client {
    fn request(self) -> Option<Buffer> {
        let (mut start, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: the client's own function, given three places to write to.
        unsafe { (self.requested)(&mut start, &mut size, &mut most) };
        (!start.is_null() && size > 0).then_some(Buffer { start, size, used: 0 })
    }

    fn hand_back(self, buffer: Buffer) {
        // SAFETY: the client's own function, given memory that came from it.
        unsafe { (self.completed)(buffer.start, buffer.size, buffer.used) };
    }
}

impl Buffer {
    fn append<R: Record>(&mut self, record: R) {
        if self.size - self.used < size_of::<R>() {
            return;
        }
        // SAFETY: the memory is ours and has room; no alignment is assumed.
        unsafe { self.start.add(self.used).cast::<R>().write_unaligned(record) };
        self.used += size_of::<R>();
    }

    fn is_nearly_full(&self) -> bool {
        self.used >= self.size / 5 * 4
    }
}

/// Where the next record of a buffer starts; `Err` with a result code if there is none.
///
/// The place is remembered per thread, whatever the caller passes for the last record.
///
/// # Safety
/// `valid` bytes at `buffer` hold records of ours.
pub(crate) unsafe fn next(buffer: *mut u8, valid: usize) -> Result<*mut u8, i32> {
    thread_local!(static CURSOR: Cell<(*mut u8, usize)> = const { Cell::new((std::ptr::null_mut(), 0)) });
    let (last, at) = CURSOR.get();
    let at = if last == buffer { at } else { 0 };
    if valid - at.min(valid) < size_of::<record::Header>() {
        CURSOR.set((std::ptr::null_mut(), 0));
        return Err(result::MAX_LIMIT_REACHED);
    }
    // SAFETY: inside the `valid` bytes by the check above.
    let start = unsafe { buffer.add(at) };
    // SAFETY: every record starts with its kind.
    let size = size_of_kind(unsafe { start.cast::<u32>().read_unaligned() }).ok_or(result::INNER)?;
    CURSOR.set((buffer, at + size));
    Ok(start)
}

fn size_of_kind(kind: u32) -> Option<usize> {
    Some(match kind {
        kind::KERNEL => size_of::<record::Kernel>(),
        kind::API | kind::ACL_API | kind::NODE_API | kind::RUNTIME_API => size_of::<record::Api>(),
        kind::MEMSET => size_of::<record::Memset>(),
        kind::MEMCPY => size_of::<record::Memcpy>(),
        kind::EXTERNAL_CORRELATION => size_of::<record::ExternalCorrelation>(),
        kind::MARKER => size_of::<record::Marker>(),
        kind::HCCL => size_of::<record::Hccl>(),
        kind::MEMORY => size_of::<record::Memory>(),
        kind::COMMUNICATION => size_of::<record::Communication>(),
        _ => return None,
    })
}
