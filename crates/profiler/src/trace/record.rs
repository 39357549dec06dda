//! One host event as a trace keeps it, and the table of names.

use cresset_dispatch::Device;
use std::collections::HashMap;

/// What a host event is.
///
/// ```
/// # use cresset_profiler::{Profiler, record_function};
/// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
/// let (_, profiler) = Profiler::builder().run(|_| body())?;
/// use cresset_profiler::EventKind;
/// assert!(profiler.events()?.all(|event| event.kind() == EventKind::Scope));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An operator.
    Operator,
    /// The autograd engine at work on one node.
    Evaluate,
    /// The derivative of a node.
    Backward,
    /// A range that a program or an optimizer named.
    Scope,
    /// A module's forward call.
    Module,
    /// One step of a schedule.
    Step,
    /// A call into a device's library.
    Launch,
}

/// The part of training an event belongs to, by where it lies in the tree.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::{Phase, Profiler};
/// let (_, profiler) = Profiler::builder().run(|_| {
///     operator("aten::mul").run(|| ());
///     operator("MulBackward0").kind(Kind::Evaluate).run(|| operator("aten::mul").run(|| ()));
/// })?;
/// let phases: Vec<Phase> = profiler.events()?.map(|event| event.phase()).collect();
/// assert_eq!(phases, [Phase::Forward, Phase::Backward, Phase::Backward]);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Neither of the others.
    Forward,
    /// Inside the autograd engine.
    Backward,
    /// Inside an optimizer's step.
    Optimizer,
}

impl Phase {
    /// The phase in lower case.
    ///
    /// ```
    /// assert_eq!(cresset_profiler::Phase::Optimizer.as_str(), "optimizer");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Optimizer => "optimizer",
        }
    }
}

/// Stands for "no such event".
pub(crate) const NONE: u32 = u32::MAX;

/// A host event. Times are ticks until the tree is built, then nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The call's id; for a launch, of the call it was made in (0 if none).
    pub(crate) id: u64,
    /// `u64::MAX` if there is none.
    pub(crate) sequence: u64,
    pub(crate) flops: u64,
    /// Bytes that kernels copied beside their work.
    pub(crate) copied: u64,
    /// Nanoseconds spent in direct children.
    pub(crate) children: u64,
    /// Nanoseconds of device work launched by this very event.
    pub(crate) device_time: u64,
    pub(crate) forward_thread: u32,
    pub(crate) name: u32,
    pub(crate) thread: u32,
    pub(crate) parent: u32,
    /// The first event after this one's descendants.
    pub(crate) next: u32,
    pub(crate) depth: u32,
    pub(crate) step: u32,
    /// Where the trace's bytes hold the arguments.
    pub(crate) details: u32,
    /// The name of the overload.
    pub(crate) overload: u32,
    /// Which of the trace's stacks it was called from.
    pub(crate) stack: u32,
    /// For a module's call, the module's number in the trace, and the call it lies in.
    pub(crate) module: u32,
    pub(crate) outer_module: u32,
    /// For a launch, its activity.
    pub(crate) launch: u32,
    pub(crate) kind: EventKind,
    pub(crate) phase: Phase,
    pub(crate) device: Option<Device>,
    pub(crate) finished: bool,
    pub(crate) failed: bool,
    /// It began before the piece of the recording that this trace is, and is told there.
    pub(crate) before: bool,
}

impl Record {
    /// An event with nothing known but when and what it was.
    pub(crate) fn new(kind: EventKind, name: u32, id: u64, start: u64, end: u64) -> Record {
        Record {
            start,
            end,
            id,
            sequence: u64::MAX,
            flops: 0,
            copied: 0,
            children: 0,
            device_time: 0,
            forward_thread: 0,
            name,
            thread: 0,
            parent: NONE,
            next: NONE,
            depth: 0,
            step: 0,
            details: NONE,
            overload: NONE,
            stack: NONE,
            module: NONE,
            outer_module: NONE,
            launch: NONE,
            kind,
            phase: Phase::Forward,
            device: None,
            finished: true,
            failed: false,
            before: false,
        }
    }

    pub(crate) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Each name once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    by_text: HashMap<Box<str>, u32>,
    /// Static names are found by address, which is quicker than by text.
    by_address: HashMap<(usize, usize, bool), u32>,
}

impl Names {
    /// The number of a static name, with the engine's prefix if `evaluate`.
    pub(crate) fn fixed(&mut self, name: &'static str, evaluate: bool) -> u32 {
        let address = (name.as_ptr() as usize, name.len(), evaluate);
        if let Some(&number) = self.by_address.get(&address) {
            return number;
        }
        let number = self.text(name, evaluate);
        self.by_address.insert(address, number);
        number
    }

    /// The number of a name, with the engine's prefix if `evaluate`.
    pub(crate) fn text(&mut self, name: &str, evaluate: bool) -> u32 {
        if evaluate {
            return self.text(&[crate::names::EVALUATE, name].concat(), false);
        }
        if let Some(&number) = self.by_text.get(name) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(name.into());
        self.by_text.insert(name.into(), number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |name| name)
    }

    pub(crate) fn all(&self) -> &[Box<str>] {
        &self.texts
    }
}
