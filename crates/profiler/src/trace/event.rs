//! Views of a trace's events.

use super::memory::MemoryUse;
use super::record::{EventKind, NONE, Phase, Record};
use super::work::DeviceWork;
use super::{Thread, Trace};
use crate::names;
use crate::pack::{Input, TensorInput, Unpacker};
use crate::stack::Frame;
use cresset_dispatch::Device;
use cresset_dispatch::activity::{Activity, Work};
use cresset_dispatch::observe::{Role, Sequence};
use std::borrow::Cow;
use std::fmt;

/// Something the host did: an operator, a scope, a step or a launch.
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
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The name as in traces, e.g. `aten::add`.
    pub fn name(&self) -> &'a str {
        self.trace.names.get(self.record().name)
    }

    /// What it is.
    pub fn kind(&self) -> EventKind {
        self.record().kind
    }

    /// Whether it is an operator, or autograd's work on one.
    pub fn is_operator(&self) -> bool {
        matches!(self.kind(), EventKind::Operator | EventKind::Evaluate | EventKind::Backward)
    }

    /// Whether a program or the profiler named it.
    pub fn is_user_annotation(&self) -> bool {
        matches!(self.kind(), EventKind::Scope | EventKind::Step)
    }

    /// Where its tensors live; the host if it has none.
    pub fn device(&self) -> Device {
        self.record().device.unwrap_or(Device::CPU)
    }

    /// The kind of its device: `CPU`, `NPU`.
    pub fn device_type(&self) -> Cow<'static, str> {
        names::device_type(self.device().key)
    }

    /// When it started, in nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        self.record().start
    }

    /// When it ended, in nanoseconds since 1970.
    pub fn end(&self) -> u64 {
        self.record().end
    }

    /// How long it took, in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.record().duration()
    }

    /// How long it took without what it called, in nanoseconds.
    pub fn self_time(&self) -> u64 {
        self.duration().saturating_sub(self.record().children)
    }

    /// False if it was still running when the session stopped or its thread ended.
    pub fn is_finished(&self) -> bool {
        self.record().finished
    }

    /// Whether it returned an error, or a panic went through it.
    pub fn is_failed(&self) -> bool {
        self.record().failed
    }

    /// The step it started in.
    pub fn step(&self) -> u32 {
        self.record().step
    }

    /// The part of training it belongs to.
    pub fn phase(&self) -> Phase {
        self.record().phase
    }

    /// The number that joins it to device work; unique, and rising per thread. Launches have
    /// that of their call, 0 if they were made in none.
    pub fn correlation_id(&self) -> u64 {
        self.record().id
    }

    /// What ran the kernel: the device library's function, or `dispatch_kernel` on the host.
    /// `None` unless it is an operator.
    pub fn runtime_name(&self) -> Option<&'a str> {
        let launch = self.children().find(|child| child.kind() == EventKind::Launch);
        self.is_operator().then(|| launch.map_or(names::HOST_RUNTIME, |launch| launch.name()))
    }

    /// The thread it ran on.
    pub fn thread(&self) -> &'a Thread {
        &self.trace.threads[self.record().thread as usize]
    }

    /// The link between forward and backward calls.
    pub fn sequence(&self) -> Option<Sequence> {
        let Record { sequence, forward_thread, .. } = *self.record();
        (sequence != u64::MAX).then_some(Sequence { number: sequence, forward_thread })
    }

    /// Floating-point operations, if they were asked for.
    pub fn flops(&self) -> u64 {
        self.record().flops
    }

    /// Bytes that kernels copied beside their work, without those of calls inside; known with
    /// `profile_memory`.
    pub fn copied_bytes(&self) -> u64 {
        self.record().copied
    }

    /// The arguments, if they were asked for.
    pub fn inputs(&self) -> Option<Vec<Input>> {
        self.unpacker().map(Iterator::collect)
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
    pub fn overload_name(&self) -> Option<&'a str> {
        let overload = Some(self.record().overload).filter(|&name| name != NONE)?;
        Some(self.trace.names.get(overload))
    }

    /// Where it was called from, innermost first: frames of the program only, without those of
    /// operators, this profiler and the standard library. For a backward call, and all it
    /// called, where its forward call was. `None` unless `with_stack` was on.
    pub fn stack(&self) -> Option<&'a [Frame]> {
        self.trace.stacks.get(self.record().stack)
    }

    /// The shapes of the tensor arguments, lists of tensors as lists, as JSON.
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
    pub fn memory(&self) -> Option<MemoryUse> {
        let wanted = self.trace.wants.memory && self.is_operator();
        wanted.then(|| self.trace.memory.used(self.device(), self.start(), self.end()))
    }

    /// Nanoseconds of device work that it launched itself.
    pub fn self_device_time(&self) -> u64 {
        self.record().device_time
    }

    /// Nanoseconds of device work that it and what it called launched.
    pub fn device_time(&self) -> u64 {
        let descendants = &self.trace.records[self.index()..self.record().next as usize];
        descendants.iter().map(|record| record.device_time).sum()
    }

    /// The event it lies in.
    pub fn parent(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.record().parent)
    }

    /// The events directly inside it, in the order they started.
    pub fn children(&self) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let (trace, end) = (self.trace, self.record().next);
        let at = move |index: u32| if index < end { Event::new(trace, index) } else { None };
        std::iter::successors(at(self.index + 1), move |child| at(child.record().next))
    }

    /// How many events it lies in.
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

/// Something a device did.
#[derive(Clone, Copy)]
pub struct DeviceEvent<'a> {
    pub(super) trace: &'a Trace,
    pub(super) work: &'a DeviceWork,
}

impl<'a> DeviceEvent<'a> {
    /// What the device said about it.
    pub fn activity(&self) -> &'a Activity {
        &self.work.activity
    }

    /// The name as in traces: a kernel's own, or torch's for copies and sets.
    pub fn name(&self) -> &'a str {
        match self.work.activity.work {
            Work::Copy { direction } => names::copy(direction),
            Work::Set => names::SET,
            Work::Kernel | Work::Launch => &self.work.activity.name,
        }
    }

    /// The kind of device, e.g. `NPU`.
    pub fn device_type(&self) -> Cow<'static, str> {
        names::device_type(self.work.activity.device.key)
    }

    /// The stream it ran on, counted from 1.
    pub fn stream(&self) -> u32 {
        self.work.stream
    }

    /// How long it took, in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.work.activity.end - self.work.activity.start
    }

    /// The call it was launched in.
    pub fn call(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.work.call)
    }

    /// The library call that launched it.
    pub fn launch(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.work.launch)
    }
}

impl fmt::Debug for DeviceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.work.activity.fmt(f)
    }
}
