//! The observer behind execution traces: any number of them, each with a file of its own.

use super::WindowObserver;
use super::date::date;
use super::node::{Node, Numbers, Scope, Values};
use crate::clock;
use crate::error::{Error, Result};
use crate::export::write_file;
use crate::names;
use cresset_dispatch::observe::{self, Call, Kind, Observer, Sequence, TensorArgument};
use cresset_dispatch::thread;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Records which operators were called with which tensors, and writes it to a file in Chakra's
/// format (schema `1.1.1-chakra.0.0.4`), as torch's `ExecutionTraceObserver` does.
///
/// The file appears, whole, with [`cleanup`](WindowObserver::cleanup) or when the recorder is
/// dropped; only the former tells if that failed. Any number may record at once.
///
/// ```
/// # let path = std::env::temp_dir().join("cresset-doc-execution.json");
/// use cresset_profiler::{ExecutionTrace, Profiler, WindowObserver, record_function};
/// let mut trace = ExecutionTrace::new(&path);
/// trace.start()?;
/// record_function("work").run(|| ());
/// trace.stop()?;
/// trace.cleanup()?;
///
/// // Or with whatever a profiler records:
/// let builder = Profiler::builder().execution_trace_observer(ExecutionTrace::new(&path));
/// builder.run(|_| record_function("work").run(|| ()))?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub struct ExecutionTrace {
    path: PathBuf,
    recording: Arc<Recording>,
    is_open: bool,
}

impl ExecutionTrace {
    /// A recorder that will write to `path`, compressed if it ends in `.gz`.
    ///
    /// ```
    /// # use cresset_profiler::{ExecutionTrace, WindowObserver};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-et-new-{}.json.gz", std::process::id()));
    /// let mut trace = ExecutionTrace::new(&path);
    /// trace.start()?;
    /// trace.cleanup()?;
    /// assert!(path.exists());
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn new(path: impl Into<PathBuf>) -> ExecutionTrace {
        ExecutionTrace { path: path.into(), recording: Arc::default(), is_open: true }
    }

    /// Where the file will be.
    ///
    /// ```
    /// # use cresset_profiler::ExecutionTrace;
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-et-path-{}.json", std::process::id()));
    /// assert_eq!(ExecutionTrace::new(&path).path(), path);
    /// # std::fs::remove_file(&path).unwrap();
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether calls are recorded now.
    ///
    /// ```
    /// # use cresset_profiler::{ExecutionTrace, WindowObserver};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-et-on-{}.json", std::process::id()));
    /// let mut trace = ExecutionTrace::new(&path);
    /// trace.start()?;
    /// assert!(trace.is_recording());
    /// # drop(trace);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_recording(&self) -> bool {
        self.recording.is_active.load(Relaxed)
    }
}

impl WindowObserver for ExecutionTrace {
    fn start(&mut self) -> Result<()> {
        let slot = slot()?;
        let mut active = ACTIVE.lock();
        if !self.is_open || self.recording.is_active.swap(true, Relaxed) {
            return Err(Error::AlreadyRunning);
        }
        active.push(self.recording.clone());
        slot.set_active(true);
        slot.want_results(true);
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        if !self.recording.is_active.swap(false, Relaxed) {
            return Err(Error::NotRunning { action: "stop the execution trace" });
        }
        let mut active = ACTIVE.lock();
        active.retain(|one| !Arc::ptr_eq(one, &self.recording));
        if active.is_empty() {
            let slot = slot()?;
            slot.set_active(false);
            slot.want_results(false);
        }
        Ok(())
    }

    fn cleanup(&mut self) -> Result<()> {
        if self.is_recording() {
            self.stop()?;
        }
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let json = self.recording.state.lock().finish();
        write_file(&self.path, |sink| sink.write_all(json.as_bytes()))
    }
}

impl Drop for ExecutionTrace {
    fn drop(&mut self) {
        // Nobody is left to tell; who wants to know calls `cleanup`.
        let _ = self.cleanup();
    }
}

/// What one recorder has seen.
#[derive(Default)]
struct Recording {
    is_active: AtomicBool,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    wall: u64,
    numbers: Numbers,
    /// Nodes that are complete, as JSON with commas between.
    nodes: String,
    calls: u64,
    threads: HashMap<u32, Vec<Open>>,
}

/// A call that has not ended.
struct Open {
    call: u64,
    node: Node,
    /// The first of its results.
    first: Option<Values>,
    /// The first result of the last operator inside: a composition gives that too.
    inner: Option<Values>,
}

impl Open {
    fn new(call: u64, node: Node) -> Open {
        Open { call, node, first: None, inner: None }
    }
}

impl Default for State {
    fn default() -> State {
        let mut state = State {
            started: Instant::now(),
            wall: clock::wall_nanos(),
            numbers: Numbers::default(),
            nodes: String::new(),
            calls: 0,
            threads: HashMap::new(),
        };
        // The process is number 1.
        state.numbers.next();
        state
    }
}

impl State {
    fn enter(&mut self, id: u64, call: &dyn Call) {
        let thread = thread::number();
        if !self.threads.contains_key(&thread) {
            let root = Node::root(self.numbers.next(), "[pytorch|profiler|execution_trace|thread]", thread);
            self.complete(&root);
            self.threads.insert(thread, vec![Open::new(0, root)]);
        }
        let parent = self.top(thread);
        let kind = call.kind();
        let mut node = Node { id: self.numbers.next(), parent, thread, sequence: -1, ..Node::default() };
        self.calls += 1;
        node.call = self.calls;
        node.name = call.name().as_str().to_owned();
        node.schema = call.schema();
        node.scope = match kind {
            Kind::Operator | Kind::Evaluate | Kind::Communication => Scope::Function,
            Kind::Backward => Scope::Backward,
            Kind::Scope | Kind::Module => Scope::User,
        };
        match kind {
            Kind::Evaluate => node.name.insert_str(0, names::EVALUATE),
            Kind::Backward => {
                let Sequence { number, forward_thread } =
                    call.sequence().unwrap_or(Sequence { number: u64::MAX, forward_thread: thread });
                node.sequence = i64::try_from(number).unwrap_or(-1);
                node.forward_thread = forward_thread;
                node.forward_parent = self.top(forward_thread);
            }
            _ => node.sequence = call.sequence().map_or(-1, |sequence| sequence.number as i64),
        }
        call.arguments(&mut |argument| node.inputs.push(argument, &mut self.numbers));
        self.threads.entry(thread).or_default().push(Open::new(id, node));
    }

    /// The number of the innermost open call of a thread; 0 if it made none.
    fn top(&self, thread: u32) -> u64 {
        self.threads.get(&thread).and_then(|open| open.last()).map_or(0, |open| open.node.id)
    }

    fn gave(&mut self, id: u64, results: &[TensorArgument<'_>]) {
        let State { threads, numbers, .. } = self;
        let open = threads.get_mut(&thread::number()).and_then(|open| open.last_mut());
        if let Some(open) = open.filter(|open| open.call == id) {
            open.node.outputs = Values::of(results, numbers);
            open.first = results.first().map(|first| Values::of(&[*first], numbers));
        }
    }

    fn exit(&mut self, id: u64, failed: bool) {
        let Some(open) = self.threads.get_mut(&thread::number()) else { return };
        // Calls that were entered before the start are not known here.
        if open.last().is_none_or(|last| last.call != id) {
            return;
        }
        let Some(Open { mut node, first, inner, .. }) = open.pop() else { return };
        if node.scope == Scope::Function && !failed {
            let is_composition = node.outputs.is_empty() && !node.name.starts_with(names::EVALUATE);
            if let Some(inner) = inner.as_ref().filter(|_| is_composition) {
                node.outputs = inner.clone();
            }
            if let Some(outer) = open.last_mut() {
                outer.inner = first.or(inner);
            }
        }
        self.complete(&node);
    }

    fn complete(&mut self, node: &Node) {
        self.nodes.push_str(if self.nodes.is_empty() { "\n" } else { ",\n" });
        node.write(&mut self.nodes);
    }

    /// The whole file. Calls that have not ended are in it as far as they are known.
    fn finish(&mut self) -> String {
        let threads = std::mem::take(&mut self.threads);
        for open in threads.into_values().flat_map(|open| open.into_iter().skip(1)) {
            self.complete(&open.node);
        }
        self.complete(&Node::root(1, "[pytorch|profiler|execution_trace|process]", 0));
        let (pid, time, nodes) = (std::process::id(), date(self.wall), &self.nodes);
        let start = self.wall / 1_000_000;
        let finish = start + self.started.elapsed().as_millis() as u64;
        format!(
            "{{\"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":{pid},\"time\":\"{time}\",\"start_ts\":{start},\"nodes\":[{nodes}\n],\"finish_ts\":{finish}}}\n"
        )
    }
}

/// The recorders that are started.
static ACTIVE: Mutex<Vec<Arc<Recording>>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether a call is being asked on this thread.
    static DESCRIBING: Cell<bool> = const { Cell::new(false) };
}

struct All;

static ALL: All = All;

impl Observer for All {
    fn enter(&self, id: u64, call: &dyn Call) -> u64 {
        // Modules are no nodes in torch's traces, and readers do not expect them.
        if call.kind() == Kind::Module {
            return id;
        }
        // What a call does while it describes itself is not recorded.
        if !DESCRIBING.replace(true) {
            let active = ACTIVE.lock().clone();
            active.iter().for_each(|one| one.state.lock().enter(id, call));
            DESCRIBING.set(false);
        }
        id
    }

    fn gave(&self, token: u64, results: &[TensorArgument<'_>]) {
        let active = ACTIVE.lock().clone();
        active.iter().for_each(|one| one.state.lock().gave(token, results));
    }

    fn exit(&self, token: u64, failed: bool) {
        let active = ACTIVE.lock().clone();
        active.iter().for_each(|one| one.state.lock().exit(token, failed));
    }
}

/// The place of all recorders among observers, taken with the first start.
fn slot() -> Result<observe::Slot> {
    static SLOT: OnceLock<Option<observe::Slot>> = OnceLock::new();
    SLOT.get_or_init(|| observe::Slot::claim(&ALL)).ok_or(Error::NoObserverSlot)
}
