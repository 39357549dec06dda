//! Plans: what the first function of an operator makes, and the second runs.

use crate::error::{Result, fail};
use crate::memory::{Memory, Source, Span, copied};
use crate::objects::Tensor;
use crate::stream::Stream;
use crate::trace::Activity;
use cresset_acl::code;
use cresset_kernels::{DType, View, ViewMut};
use parking_lot::Mutex;
use std::ffi::CStr;

/// A checked operator call: a kernel and all it needs, by value.
pub(crate) struct Plan {
    kernel: &'static CStr,
    unit: Unit,
    workspace: usize,
    body: Body,
}

type Body = Box<dyn FnOnce(&Memory, Option<Span>) -> Result + Send>;

/// What an operator's function gives: a plan, or why there is none.
pub(crate) type Planned = Result<Plan>;

/// A plan on its way from one function of an operator to the other; good for one run.
pub(crate) struct Executor {
    /// The operator it was made for.
    operator: &'static str,
    /// Never contended: the lock only makes a plan fit for a table that threads share.
    plan: Mutex<Plan>,
}

impl Executor {
    pub(crate) fn new(operator: &'static str, plan: Plan) -> Executor {
        Executor { operator, plan: Mutex::new(plan) }
    }

    /// The plan, if it was made for `operator`.
    pub(crate) fn into_plan(self, operator: &str) -> Planned {
        if self.operator != operator {
            fail!(code::NN_PARAM_INVALID, "the executor was made for {}", self.operator);
        }
        Ok(self.plan.into_inner())
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
        for out in &writes {
            if !out.layout().is_contiguous() && out.layout().may_overlap() {
                fail!(code::NN_PARAM_INVALID, "an output has elements that share memory: {:?}", out.layout());
            }
        }
        let body: Body = Box::new(move |memory, workspace| run(memory, workspace, &reads, &writes, compute));
        Ok(Plan { kernel, unit: Unit::Vector, workspace: 0, body })
    }

    /// The same kernel on the unit for matrix products, which needs workspace.
    pub(crate) fn on_cube(self) -> Plan {
        Plan { unit: Unit::Cube, ..self }.with_workspace()
    }

    /// The same kernel, in need of workspace.
    pub(crate) fn with_workspace(self) -> Plan {
        Plan { workspace: WORKSPACE, ..self }
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
        activity.during(stream, correlation, || (self.body)(&stream.device.memory, workspace))
    }
}

fn run<const W: usize, F>(
    memory: &Memory,
    workspace: Option<Span>,
    reads: &[Tensor],
    writes: &[Tensor; W],
    compute: F,
) -> Result
where
    F: FnOnce(&[View<'_>], [ViewMut<'_>; W]) -> Result,
{
    let read: Vec<Span> = reads.iter().map(Tensor::span).collect();
    let written: Vec<Span> = writes.iter().map(Tensor::span).chain(workspace).collect();
    let mut claim = memory.claim(&read, &written)?;
    let (mut sources, targets) = claim.bytes();
    for (source, tensor) in sources.iter_mut().zip(reads) {
        clean(source, tensor.dtype());
    }
    let leases: Vec<_> = sources.iter().map(Source::lease).collect();
    let from: Vec<View<'_>> =
        leases.iter().zip(reads).map(|(lease, x)| View::new(lease.bytes(), x.dtype(), x.layout())).collect();
    let to = take(targets.into_iter().zip(writes).map(|(bytes, out)| target(bytes, out)));
    compute(&from, to)
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
