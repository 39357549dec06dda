//! Plans: what the first function of an operator makes, and the second runs.

use crate::clock::Cost;
use crate::error::{Result, fail};
use crate::memory::{Memory, Source, Span, copied};
use crate::objects::Tensor;
use crate::stream::Stream;
use crate::trace::Activity;
use cresset_acl::code;
use cresset_kernels::{Buffer, DType, Layout, View, ViewMut, elementwise};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ffi::CStr;

/// A checked operator call: a kernel and all it needs, by value.
pub(crate) struct Plan {
    kernel: &'static CStr,
    unit: Unit,
    workspace: usize,
    cost: Cost,
    reads: Vec<Tensor>,
    writes: Vec<Tensor>,
    compute: Compute,
}

/// What a kernel does. One type for all of them: what surrounds a kernel is compiled once.
type Compute = Box<dyn FnOnce(&[View<'_>], Vec<ViewMut<'_>>) -> Result + Send>;

/// What an operator's function gives: a plan, or why there is none.
pub(crate) type Planned = Result<Plan>;

/// A plan on its way from one function of an operator to the other.
pub(crate) struct Executor {
    /// The operator it was made for.
    pub(crate) operator: &'static str,
    /// Tensors that must still be there when it runs.
    pub(crate) tensors: Handed,
    /// Never contended: the lock only makes a plan fit for a table that threads share.
    state: Mutex<State>,
}

/// Tensors that were handed over, by handle.
pub(crate) type Handed = SmallVec<[usize; 6]>;

/// Makes a plan from what the first function was given, and notes the tensors.
pub(crate) type Make = Box<dyn Fn(&mut Handed) -> Planned + Send>;

enum State {
    /// Good for one run.
    Once(Plan, Make),
    /// Good for any number of runs: planned anew each time, as addresses may have changed.
    Again(Make),
}

impl Executor {
    pub(crate) fn new(operator: &'static str, tensors: Handed, plan: Plan, make: Make) -> Executor {
        Executor { operator, tensors, state: Mutex::new(State::Once(plan, make)) }
    }

    /// Lets it run more than once.
    pub(crate) fn repeat(&self) {
        let mut state = self.state.lock();
        let unset: Make = Box::new(|_| fail!(code::NN_INNER, "an executor is between two states"));
        *state = match std::mem::replace(&mut *state, State::Again(unset)) {
            State::Once(_, make) | State::Again(make) => State::Again(make),
        };
    }

    pub(crate) fn repeats(&self) -> bool {
        matches!(*self.state.lock(), State::Again(_))
    }

    /// A plan to run, leaving the executor as it is.
    pub(crate) fn plan_again(&self) -> Planned {
        match &*self.state.lock() {
            State::Once(_, make) | State::Again(make) => make(&mut Handed::new()),
        }
    }

    /// The plan itself.
    pub(crate) fn into_plan(self) -> Planned {
        match self.state.into_inner() {
            State::Once(plan, _) => Ok(plan),
            State::Again(make) => make(&mut Handed::new()),
        }
    }
}

/// Which part of the device runs a kernel.
#[derive(Clone, Copy)]
enum Unit {
    Cube,
    Vector,
}

/// Device memory that matrix products and reductions ask for.
const WORKSPACE: usize = 512;

impl Plan {
    /// A kernel that reads some tensors and writes others.
    ///
    /// A tensor in both lists is read as it was before; one only written may be read too.
    pub(crate) fn new<const R: usize, const W: usize, F>(
        kernel: &'static CStr,
        reads: [Tensor; R],
        writes: [Tensor; W],
        compute: F,
    ) -> Planned
    where
        F: FnOnce([View<'_>; R], [ViewMut<'_>; W]) -> Result + Send + 'static,
    {
        Plan::listed(kernel, Vec::from(reads), writes, |reads, writes| {
            compute(take(reads.iter().copied()), writes)
        })
    }

    /// As [`new`](Plan::new), for any number of tensors to read.
    pub(crate) fn listed<const W: usize, F>(
        kernel: &'static CStr,
        reads: Vec<Tensor>,
        writes: [Tensor; W],
        compute: F,
    ) -> Planned
    where
        F: FnOnce(&[View<'_>], [ViewMut<'_>; W]) -> Result + Send + 'static,
    {
        Plan::lists(kernel, reads, Vec::from(writes), |reads, writes| {
            compute(reads, take(writes.into_iter()))
        })
    }

    /// As [`new`](Plan::new), for any number of tensors to read and to write.
    pub(crate) fn lists<F>(
        kernel: &'static CStr,
        reads: Vec<Tensor>,
        writes: Vec<Tensor>,
        compute: F,
    ) -> Planned
    where
        F: FnOnce(&[View<'_>], Vec<ViewMut<'_>>) -> Result + Send + 'static,
    {
        Plan::exact(kernel, reads, writes, Box::new(compute))
    }

    /// As [`lists`](Plan::lists), for a kernel that only moves elements, whatever their type.
    pub(crate) fn moving<F>(
        kernel: &'static CStr,
        reads: Vec<Tensor>,
        writes: Vec<Tensor>,
        compute: F,
    ) -> Planned
    where
        F: FnOnce(&[View<'_>], Vec<ViewMut<'_>>) -> Result + Send + 'static,
    {
        Plan::boxed(kernel, reads, writes, Box::new(compute))
    }

    /// Refuses element types that only moving kernels take.
    fn exact(kernel: &'static CStr, reads: Vec<Tensor>, writes: Vec<Tensor>, compute: Compute) -> Planned {
        if let Some(tensor) = reads.iter().chain(&writes).find(|tensor| !tensor.is_exact()) {
            let kernel = kernel.to_string_lossy();
            fail!(code::NN_PARAM_INVALID, "{kernel} takes no element type {}", tensor.told().dtype);
        }
        Plan::boxed(kernel, reads, writes, compute)
    }

    fn boxed(kernel: &'static CStr, reads: Vec<Tensor>, writes: Vec<Tensor>, compute: Compute) -> Planned {
        let mut cost = Cost::default();
        for tensor in reads.iter().chain(&writes) {
            cost.bytes += tensor.layout().len() * tensor.dtype().size();
            cost.width = cost.width.max(tensor.dtype().size());
        }
        for out in &writes {
            if !out.layout().is_contiguous() && out.layout().may_overlap() {
                fail!(code::NN_PARAM_INVALID, "an output has elements that share memory: {:?}", out.layout());
            }
        }
        Ok(Plan { kernel, unit: Unit::Vector, workspace: 0, cost, reads, writes, compute })
    }

    /// The same kernel on the unit for matrix products, which needs workspace.
    pub(crate) fn on_cube(self) -> Plan {
        Plan { unit: Unit::Cube, ..self }.with_workspace()
    }

    /// The same kernel, in need of workspace.
    pub(crate) fn with_workspace(self) -> Plan {
        Plan { workspace: WORKSPACE, ..self }
    }

    /// The same kernel, which multiplies and adds so often.
    pub(crate) fn with_flops(mut self, flops: u64) -> Plan {
        self.cost.flops = flops;
        self
    }

    /// How many bytes of workspace it needs.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Runs the kernel and records it.
    pub(crate) fn run(self, stream: &Stream, correlation: u64, workspace: Option<Span>) -> Result {
        let unit = match self.unit {
            Unit::Cube => c"KERNEL_AICORE",
            Unit::Vector => c"KERNEL_AIVEC",
        };
        let activity = Activity::Kernel { unit, name: self.kernel };
        activity.during(stream, correlation, self.cost, || {
            run(&stream.device.memory, workspace, &self.reads, &self.writes, self.compute)
        })
    }
}

fn run(
    memory: &Memory,
    workspace: Option<Span>,
    reads: &[Tensor],
    writes: &[Tensor],
    compute: Compute,
) -> Result {
    let read: Vec<Span> = reads.iter().map(Tensor::span).collect();
    let written: Vec<Span> = writes.iter().map(Tensor::span).chain(workspace).collect();
    let mut claim = memory.claim(&read, &written)?;
    let (mut sources, mut targets) = claim.bytes();
    if workspace.is_some() {
        // Whoever kept something there is to notice.
        targets.pop().expect("the workspace comes last").fill(0x7f);
    }
    for (source, tensor) in sources.iter_mut().zip(reads) {
        clean(source, tensor.dtype());
    }
    let leases: Vec<_> = sources.iter().map(Source::lease).collect();
    let from: Vec<View<'_>> =
        leases.iter().zip(reads).map(|(lease, x)| View::new(lease.bytes(), x.dtype(), x.layout())).collect();
    let stand_ins: Vec<Option<StandIn>> =
        targets.iter_mut().zip(writes).map(|(bytes, out)| StandIn::of(bytes, out)).collect();
    let mut locks: Vec<_> = stand_ins.iter().map(|own| own.as_ref().map(|own| own.buffer.write())).collect();
    let views = targets.iter_mut().zip(writes).zip(stand_ins.iter().zip(&mut locks));
    let views = views.map(|((bytes, out), own)| match own {
        (Some(own), Some(lock)) => ViewMut::new(lock.bytes(), DType::Bool, &own.layout),
        _ => target(bytes, out),
    });
    compute(&from, views.collect())?;
    drop(locks);
    for ((bytes, out), own) in targets.iter_mut().zip(writes).zip(&stand_ins) {
        if let Some(own) = own {
            let to = ViewMut::new(bytes, DType::U8, out.layout());
            elementwise::copy(View::new(own.buffer.read().bytes(), DType::U8, &own.layout), to);
        }
    }
    Ok(())
}

/// Truth values of an output that has gaps, in one piece: what lies in the gaps may be anything, and a Rust
/// `bool` may not.
struct StandIn {
    buffer: Buffer,
    layout: Layout,
}

impl StandIn {
    fn of(bytes: &mut [u8], out: &Tensor) -> Option<StandIn> {
        if out.dtype() != DType::Bool || out.layout().is_contiguous() {
            return None;
        }
        let layout = Layout::contiguous(out.shape()).expect("as many elements");
        let buffer = Buffer::zeroed(layout.len()).expect("the host has room for an output");
        let old = ViewMut::new(bytes, DType::U8, out.layout());
        let mut lock = buffer.write();
        let mut own = ViewMut::new(lock.bytes(), DType::U8, &layout);
        elementwise::copy(old.as_view(), own.reborrow());
        own.array::<u8>().mapv_inplace(|byte| (byte != 0) as u8);
        drop(lock);
        Some(StandIn { buffer, layout })
    }
}

fn take<T, const N: usize>(mut items: impl Iterator<Item = T>) -> [T; N] {
    std::array::from_fn(|_| items.next().expect("there is one item per tensor"))
}

/// Memory may hold anything, a Rust `bool` may not.
fn clean(source: &mut Source<'_>, dtype: DType) {
    if dtype != DType::Bool || source.lease().bytes().iter().all(|&byte| byte < 2) {
        return;
    }
    let truths: Vec<u8> = source.lease().bytes().iter().map(|&byte| (byte != 0) as u8).collect();
    *source = copied(&truths);
}

fn target<'a>(bytes: &'a mut [u8], out: &'a Tensor) -> ViewMut<'a> {
    if out.dtype() == DType::Bool {
        ViewMut::new(bytes, DType::U8, out.layout()).array::<u8>().mapv_inplace(|byte| (byte != 0) as u8);
    }
    ViewMut::new(bytes, out.dtype(), out.layout())
}
