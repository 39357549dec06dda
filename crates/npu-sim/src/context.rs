//! Contexts: which device a thread works on.

use crate::device::Device;
use crate::error::{Failure, Result, fail};
use crate::handle::Handles;
use crate::process;
use crate::stream::{self, Poison, STREAMS, Stream};
use cresset_acl::code;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Contexts by handle.
static CONTEXTS: Handles<Context> = Handles::new(3, "context");

thread_local! {
    /// A handle, so that a context which ends is gone for every thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A device, and the streams made for it here.
pub(crate) struct Context {
    pub(crate) device: &'static Device,
    handle: usize,
    /// What the null stream stands for.
    default: usize,
    streams: Mutex<Vec<usize>>,
    poison: Arc<Poison>,
    /// What `aclrtCtxSetSysParamOpt` was told.
    pub(crate) parameters: Mutex<BTreeMap<i32, i64>>,
}

impl Context {
    /// Makes a context with its default stream; gives its handle.
    pub(crate) fn create(device: &'static Device) -> usize {
        let handle = CONTEXTS.insert_with(|handle| {
            let poison = Arc::<Poison>::default();
            let default = STREAMS.insert(Stream::new(device, handle, poison.clone(), 0, 0));
            let streams = Mutex::new(vec![default]);
            Context { device, handle, default, streams, poison, parameters: Mutex::default() }
        });
        let context = CONTEXTS.get(handle).expect("it was just made");
        device.watch(&STREAMS.get(context.default).expect("it was just made"));
        handle
    }

    /// Finishes the work of all its streams, and ends them and the context.
    pub(crate) fn destroy(handle: usize) -> Result {
        let context = CONTEXTS.remove(handle).ok_or_else(unknown)?;
        let streams: Vec<usize> = context.streams.lock().drain(..).collect();
        for stream in streams.into_iter().filter_map(|stream| STREAMS.remove(stream)) {
            stream.close();
        }
        Ok(())
    }

    pub(crate) fn by_handle(handle: usize) -> Result<Arc<Context>> {
        CONTEXTS.get(handle).ok_or_else(unknown)
    }

    /// What this thread works on.
    pub(crate) fn current() -> Result<Arc<Context>> {
        process::expect_no_fork()?;
        CONTEXTS.get(CURRENT.get()).ok_or_else(|| {
            Failure::new(code::RT_CONTEXT_NULL, "this thread has no context: call aclrtSetDevice on it first")
        })
    }

    /// The handle of what this thread works on.
    pub(crate) fn current_handle() -> Result<usize> {
        Context::current().map(|context| context.handle)
    }

    /// Lets this thread work on another context.
    pub(crate) fn enter(handle: usize) {
        CURRENT.set(handle);
    }

    pub(crate) fn new_stream(&self, priority: u32, flags: u32) -> Result<usize> {
        if self.device.stream_count() >= stream::MOST {
            fail!(code::RT_NO_STREAM_RESOURCE, "a device has {} streams, and no more", stream::MOST);
        }
        let stream = Stream::new(self.device, self.handle, self.poison.clone(), priority, flags);
        let handle = STREAMS.insert(stream);
        self.streams.lock().push(handle);
        self.device.watch(&STREAMS.get(handle).expect("it was just made"));
        Ok(handle)
    }

    /// Ends a stream: finishes its work, or gives it up at once.
    pub(crate) fn end_stream(&self, handle: usize, finish: bool) -> Result {
        self.stream(handle)?;
        if handle == 0 || handle == self.default {
            fail!(code::RT_PARAM_INVALID, "the default stream cannot be destroyed");
        }
        self.streams.lock().retain(|&stream| stream != handle);
        match STREAMS.remove(handle) {
            Some(stream) if finish => stream.close(),
            Some(stream) => stream.close_now(),
            None => {}
        }
        Ok(())
    }

    /// The handle that the null stream stands for.
    pub(crate) fn default_stream(&self) -> usize {
        self.default
    }

    /// The stream of a handle of this context; null is the default stream.
    pub(crate) fn stream(&self, handle: usize) -> Result<Arc<Stream>> {
        let handle = if handle == 0 { self.default } else { handle };
        let Some(stream) = STREAMS.get(handle) else {
            fail!(code::RT_INVALID_HANDLE, "{handle:#x} is not a stream in use");
        };
        if stream.context != self.handle {
            fail!(
                code::RT_STREAM_CONTEXT,
                "stream {} belongs to another context than this thread's",
                stream.id
            );
        }
        Ok(stream)
    }
}

fn unknown() -> Failure {
    Failure::new(code::RT_CONTEXT_NULL, "not a context in use")
}
