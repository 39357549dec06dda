//! Views of a trace's events.

use super::memory::MemoryUse;
use super::record::{EventKind, NONE, Phase, Record};
use super::{Thread, Trace};
use crate::communication::Communication;
use crate::names;
use crate::pack::{Input, TensorInput, Unpacker};
use crate::stack::Frame;
use cresset_dispatch::Device;
use cresset_dispatch::observe::{Role, Sequence};
use std::borrow::Cow;
use std::fmt;

/// Something the host did: an operator, a scope, a step or a launch.
///
/// ```
/// use cresset_profiler::{Event, Profiler, record_function};
/// let (_, profiler) =
///     Profiler::builder().run(|_| record_function("outer").run(|| record_function("inner").run(|| ())))?;
/// let longest = |event: &Event<'_>| event.duration();
/// assert_eq!(profiler.events()?.max_by_key(longest).unwrap().name(), "outer");
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Event<'a> {
    trace: &'a Trace,
    index: u32,
}

impl<'a> Event<'a> {
    pub(super) fn new(trace: &'a Trace, index: u32) -> Option<Event<'a>> {
        ((index as usize) < trace.records.len()).then_some(Event { trace, index })
    }

    pub(crate) fn record(&self) -> &'a Record {
        &self.trace.records[self.index as usize]
    }

    /// Its place in [`Trace::events`].
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let trace = profiler.trace()?;
    /// let inner = trace.events().last().unwrap();
    /// assert_eq!((inner.index(), trace.event(inner.index()).unwrap().name()), (1, "inner"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The name as in traces, e.g. `aten::add`.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let names: Vec<&str> = profiler.events()?.map(|event| event.name()).collect();
    /// assert_eq!(names, ["outer", "inner"]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn name(&self) -> &'a str {
        self.trace.names.get(self.record().name)
    }

    /// What it is.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{EventKind, Profiler, record_function};
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| record_function("scope").run(|| operator("aten::add").run(|| ())))?;
    /// let kinds: Vec<EventKind> = profiler.events()?.map(|event| event.kind()).collect();
    /// assert_eq!(kinds, [EventKind::Scope, EventKind::Operator]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn kind(&self) -> EventKind {
        self.record().kind
    }

    /// Whether it is an operator, or autograd's work on one.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| record_function("scope").run(|| operator("aten::add").run(|| ())))?;
    /// let operators: Vec<_> = profiler.events()?.filter(|event| event.is_operator()).collect();
    /// assert_eq!(operators[0].name(), "aten::add");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_operator(&self) -> bool {
        matches!(self.kind(), EventKind::Operator | EventKind::Evaluate | EventKind::Backward)
    }

    /// Whether a program or the profiler named it.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert!(profiler.events()?.all(|event| event.is_user_annotation()));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_user_annotation(&self) -> bool {
        matches!(self.kind(), EventKind::Scope | EventKind::Step)
    }

    /// Where its tensors live; the host if it has none.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let device = profiler.events()?.next().unwrap().device();
    /// assert_eq!((device.to_string(), device.is_cpu()), ("npu:0".to_owned(), false));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.record().device.unwrap_or(Device::CPU)
    }

    /// The kind of its device: `CPU`, `NPU`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert_eq!(profiler.events()?.next().unwrap().device_type(), "NPU");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn device_type(&self) -> Cow<'static, str> {
        names::device_type(self.device().key)
    }

    /// When it started, in nanoseconds since 1970.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let starts: Vec<u64> = profiler.events()?.map(|event| event.start()).collect();
    /// assert!(starts.is_sorted());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn start(&self) -> u64 {
        self.record().start
    }

    /// When it ended, in nanoseconds since 1970.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let [outer, inner] = [0, 1].map(|i| profiler.trace().unwrap().event(i).unwrap());
    /// assert!(inner.end() <= outer.end());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn end(&self) -> u64 {
        self.record().end
    }

    /// How long it took, in nanoseconds.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let outer = profiler.events()?.next().unwrap();
    /// assert_eq!(outer.duration(), outer.end() - outer.start());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn duration(&self) -> u64 {
        self.record().duration()
    }

    /// How long it took without what it called, in nanoseconds.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let outer = profiler.events()?.next().unwrap();
    /// let inside: u64 = outer.children().map(|child| child.duration()).sum();
    /// assert_eq!(outer.self_time() + inside, outer.duration());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn self_time(&self) -> u64 {
        self.duration().saturating_sub(self.record().children)
    }

    /// False if it was still running when the session stopped or its thread ended.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().start()?;
    /// let _open = record_function("epoch");
    /// profiler.stop()?;
    /// assert!(!profiler.events()?.next().unwrap().is_finished());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.record().finished
    }

    /// Whether it returned an error, or a panic went through it.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .run(|_| std::panic::catch_unwind(|| operator("aten::mm").run(|| panic!("shapes do not fit"))))?;
    /// assert!(profiler.events()?.next().unwrap().is_failed());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_failed(&self) -> bool {
        self.record().failed
    }

    /// The step it started in.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|profiler| {
    ///     record_function("first").run(|| ());
    ///     profiler.step().unwrap();
    ///     record_function("second").run(|| ());
    /// })?;
    /// assert_eq!(profiler.events()?.map(|event| event.step()).collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn step(&self) -> u32 {
        self.record().step
    }

    /// The part of training it belongs to.
    ///
    /// ```
    /// # use cresset_profiler::{Phase, Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     record_function("Optimizer.step#SGD.step").run(|| record_function("inside").run(|| ()))
    /// })?;
    /// assert!(profiler.events()?.all(|event| event.phase() == Phase::Optimizer));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn phase(&self) -> Phase {
        self.record().phase
    }

    /// The number that joins it to device work; unique, and rising per thread. Launches have
    /// that of their call, 0 if they were made in none.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let ids: Vec<u64> = profiler.events()?.map(|event| event.correlation_id()).collect();
    /// assert!(0 < ids[0] && ids[0] < ids[1]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn correlation_id(&self) -> u64 {
        self.record().id
    }

    /// What ran the kernel: the device library's function, or `dispatch_kernel` on the host.
    /// `None` unless it is an operator.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     operator("aten::add").run(|| ());
    ///     operator("aten::add").on(npu()).run(|| launch("Add", 1000));
    /// })?;
    /// let names: Vec<_> = profiler.events()?.filter_map(|event| event.runtime_name()).collect();
    /// assert_eq!(names, ["dispatch_kernel", "aclnnAdd"]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn runtime_name(&self) -> Option<&'a str> {
        let launch = self.children().find(|child| child.kind() == EventKind::Launch);
        self.is_operator().then(|| launch.map_or(names::HOST_RUNTIME, |launch| launch.name()))
    }

    /// The thread it ran on.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     let worker = std::thread::Builder::new().name("worker".to_owned());
    ///     worker.spawn(|| record_function("load").run(|| ())).unwrap().join()
    /// })?;
    /// assert_eq!(profiler.events()?.next().unwrap().thread().name.as_deref(), Some("worker"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn thread(&self) -> &'a Thread {
        &self.trace.threads[self.record().thread as usize]
    }

    /// The link between forward and backward calls.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| operator("aten::mul").sequence(7, 0).run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().sequence().unwrap().number, 7);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn sequence(&self) -> Option<Sequence> {
        let Record { sequence, forward_thread, .. } = *self.record();
        (sequence != u64::MAX).then_some(Sequence { number: sequence, forward_thread })
    }

    /// Floating-point operations, if they were asked for.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().with_flops(true).run(|_| operator("aten::mm").flops(48).run(|| ()))?;
    /// assert_eq!(profiler.events()?.map(|event| event.flops()).sum::<u64>(), 48);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn flops(&self) -> u64 {
        self.record().flops
    }

    /// Bytes that kernels copied beside their work, without those of calls inside; known with
    /// `profile_memory`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .profile_memory(true)
    ///     .run(|_| operator("aten::mm").run(|| memory::copied(96)))?;
    /// assert_eq!(profiler.events()?.next().unwrap().copied_bytes(), 96);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn copied_bytes(&self) -> u64 {
        self.record().copied
    }

    /// The arguments, if they were asked for.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Input, Profiler};
    /// let (_, profiler) =
    ///     Profiler::builder().record_shapes(true).run(|_| operator("aten::t").shape(&[2, 3]).run(|| ()))?;
    /// let inputs = profiler.events()?.next().unwrap().inputs().unwrap();
    /// assert!(matches!(&inputs[0], Input::Tensor(tensor) if tensor.dtype == "f32"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn inputs(&self) -> Option<Vec<Input>> {
        let wants = self.trace.wants;
        self.unpacker().filter(|_| wants.shapes || wants.flops).map(Iterator::collect)
    }

    /// What processes exchanged, if that is what the call was for: known whatever was asked for.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().communication(), None);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn communication(&self) -> Option<Communication> {
        let mut unpacker = self.unpacker().filter(|_| self.name() == names::COMMUNICATION)?;
        unpacker.by_ref().for_each(drop);
        unpacker.communication()
    }

    fn unpacker(&self) -> Option<Unpacker<'a>> {
        let at = Some(self.record().details).filter(|&at| at != NONE)? as usize;
        let bytes = self.trace.details.get(at + 4..)?;
        let mut unpacker = Unpacker(bytes.get(..super::length_at(&self.trace.details, at))?);
        unpacker.head()?;
        Some(unpacker)
    }

    /// The tensors that the optimizer or module at work here owns, if identities were recorded.
    pub(crate) fn owned(&self) -> Vec<(Role, TensorInput)> {
        let Some(mut unpacker) = self.unpacker() else { return Vec::new() };
        unpacker.by_ref().for_each(drop);
        std::iter::from_fn(|| unpacker.owned()).collect()
    }

    /// Which of several operators with its name, e.g. `Tensor`; known with
    /// `capture_overload_names`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .capture_overload_names(true)
    ///     .run(|_| operator("aten::add").schema("aten::add.Scalar(Tensor self)").run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().overload_name(), Some("Scalar"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn overload_name(&self) -> Option<&'a str> {
        let overload = Some(self.record().overload).filter(|&name| name != NONE)?;
        Some(self.trace.names.get(overload))
    }

    /// Where it was called from, innermost first: frames of the program only, without those of
    /// operators, this profiler and the standard library. For a backward call, and all it
    /// called, where its forward call was. `None` unless `with_stack` was on.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().with_stack(true).run(|_| record_function("here").run(|| ()))?;
    /// let stack = profiler.events()?.next().unwrap().stack().unwrap();
    /// assert!(stack.iter().all(|frame| !frame.function().starts_with("cresset_profiler::recorder")));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn stack(&self) -> Option<&'a [Frame]> {
        self.trace.stacks.get(self.record().stack)
    }

    /// The shapes of the tensor arguments, lists of tensors as lists, as JSON.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .record_shapes(true)
    ///     .run(|_| operator("aten::mm").shape(&[2, 3]).shape(&[3, 4]).run(|| ()))?;
    /// let shapes = profiler.events()?.next().unwrap().input_shapes();
    /// assert_eq!(shapes.as_deref(), Some("[[2, 3], [3, 4]]"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn input_shapes(&self) -> Option<String> {
        let inputs = self.inputs().filter(|_| self.trace.wants.shapes)?;
        let shapes = inputs.iter().filter_map(|input| match input {
            Input::Tensor(tensor) => Some(format!("{:?}", tensor.shape)),
            Input::Tensors(list) => {
                Some(format!("{:?}", list.iter().map(|tensor| &tensor.shape).collect::<Vec<_>>()))
            }
            _ => None,
        });
        Some(format!("[{}]", shapes.collect::<Vec<_>>().join(", ")))
    }

    /// The shapes of all arguments, `[]` for what is no tensor, as tables show them.
    pub(crate) fn input_dims(&self) -> Option<String> {
        let dims = self.inputs()?.into_iter().map(|input| match input {
            Input::Tensor(tensor) => format!("{:?}", tensor.shape),
            Input::Tensors(list) => {
                format!("{:?}", list.iter().map(|tensor| &tensor.shape).collect::<Vec<_>>())
            }
            _ => "[]".to_owned(),
        });
        Some(format!("[{}]", dims.collect::<Vec<_>>().join(", ")))
    }

    /// What the allocator of its device had handed out before and after, if asked for.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().profile_memory(true).run(|_| operator("aten::empty").run(|| allocate(64)))?;
    /// let used = profiler.events()?.next().unwrap().memory().unwrap();
    /// assert_eq!((used.before, used.after), (0, 64));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn memory(&self) -> Option<MemoryUse> {
        let wanted = self.trace.wants.memory && self.is_operator();
        wanted.then(|| self.trace.memory.used(self.device(), self.start(), self.end()))
    }

    /// Nanoseconds of device work that it launched itself.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let add = profiler.events()?.next().unwrap();
    /// assert_eq!(add.self_device_time(), 3000);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn self_device_time(&self) -> u64 {
        self.record().device_time
    }

    /// Nanoseconds of device work that it and what it called launched.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Profiler, record_function};
    /// # npu();
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     record_function("layer").run(|| operator("aten::add").on(npu()).run(|| launch("Add", 3000)))
    /// })?;
    /// let layer = profiler.events()?.next().unwrap();
    /// assert_eq!((layer.device_time(), layer.self_device_time()), (3000, 0));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn device_time(&self) -> u64 {
        let descendants = &self.trace.records[self.index()..self.record().next as usize];
        descendants.iter().map(|record| record.device_time).sum()
    }

    /// The event it lies in.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let inner = profiler.events()?.last().unwrap();
    /// assert_eq!(inner.parent().unwrap().name(), "outer");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn parent(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.record().parent)
    }

    /// The events directly inside it, in the order they started.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let outer = profiler.events()?.next().unwrap();
    /// assert!(outer.children().map(|child| child.name()).eq(["inner"]));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn children(&self) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let (trace, end) = (self.trace, self.record().next);
        let at = move |index: u32| if index < end { Event::new(trace, index) } else { None };
        std::iter::successors(at(self.index + 1), move |child| at(child.record().next))
    }

    /// How many events it lies in.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert_eq!(profiler.events()?.map(|event| event.depth()).collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn depth(&self) -> usize {
        self.record().depth as usize
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("start", &self.start())
            .field("duration", &self.duration())
            .field("depth", &self.depth())
            .finish()
    }
}
