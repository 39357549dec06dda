//! The operator mechanism: what an operator declares, and the path of one call.
//!
//! An operator is a small value, its attributes, with one `impl Op`. Calling it takes four
//! steps, the same for all:
//!
//! 1. observers are told: one load and a branch when nobody watches;
//! 2. the keys of all tensors are joined, and this thread's exclusions removed; where autocast is
//!    on and knows the operator, its inputs are cast and it is called again; where anomalies are looked for
//!    in results, they are after the call;
//! 3. if autograd is among them, `autograd::record` makes a node, and the call goes on below;
//! 4. [`Forward::forward`] computes: operators with a [`Kernel`] infer shapes, allocate the output and
//!    run the kernel of its device; views and compositions call other operators.

mod fallback;
mod inputs;
mod order;
mod output;
pub(crate) mod schema;

pub use crate::autocast::casting;
pub use crate::shown::Shown;
pub use inputs::{Given, Inputs, Operand, Swap};
pub(crate) use output::bytes_of;
pub use output::{Output, Spec};

use crate::autocast;
use crate::autograd::results::{self, Looked};
use crate::autograd::{self, Backward, Grads, How, Needless, Saves};
use crate::ops;
use crate::{Cause, Device, Error, Key, Result, Tensor};
pub use cresset_dispatch::Table;
use cresset_dispatch::observe::{self, Argument, Call, Name, Sequence, Span};
use cresset_dispatch::{KeySet, key, memory, site};

/// An operator: what it is called, takes, gives, and how it is differentiated.
pub trait Op: Clone + Send + Sync + Sized + 'static {
    /// The public name, e.g. `aten::add`.
    const NAME: &'static str;
    /// What its node in the backward graph is called, e.g. `AddBackward0`; empty if the
    /// operator has no derivative.
    const BACKWARD: &'static str = "";
    /// What the derivative needs to see again.
    const SAVES: Saves = Saves::Nothing;
    /// What of that it can do without, depending on who gets a gradient.
    const NEEDLESS: Needless = Needless::No;
    /// Of how many outputs observers of its node are told, where torch gives more of them gradients.
    const TOLD: usize = 0;
    /// Whether the output only shows elements of the first input, and the derivative is no more
    /// than that of looking. Changes in place are then traced through it; without this they
    /// are refused while gradients are recorded.
    const VIEW: bool = false;
    /// How many of the outputs, from the first on, have gradients. With 0, only a change in place
    /// is recorded, for what the target held before has no influence any more.
    const DIFFERENTIABLE: usize = usize::MAX;
    /// Whether the derivative knows what to do where no gradient came to an output, and asks by
    /// [`Backward::grad_if_any`]. Others are given zeros.
    const TAKES_MISSING: bool = false;
    /// The tensors it takes.
    type Inputs<'a>: for<'b> Inputs<For<'b> = Self::Inputs<'b>>;
    /// The tensors it gives.
    type Output: Output;

    /// Gradients of the inputs, given the gradients of the outputs. Written with tensor
    /// operators, so that it runs on every device and can be differentiated itself.
    fn backward(&self, _ctx: &Backward<'_>) -> Result<Grads> {
        Err(Error::new(Cause::Graph, Self::NAME, "has no derivative"))
    }

    /// What the node of this call is named, for operators that are several in torch.
    fn backward_name(&self, _inputs: Self::Inputs<'_>) -> &'static str {
        Self::BACKWARD
    }

    /// Visits the arguments in the order of the schema: tensors and attributes.
    fn arguments(&self, inputs: Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
    }

    /// Floating-point operations of one call.
    fn flops(&self, _inputs: Self::Inputs<'_>) -> u64 {
        0
    }

    /// Calls the operator.
    #[inline]
    fn call(self, inputs: Self::Inputs<'_>) -> Result<Self::Output>
    where
        Self: Forward,
    {
        let span = observe::span(&InFlight { op: &self, inputs, name: Self::NAME });
        let keys = (inputs.keys() | KeySet::RESULTS).here();
        let looked =
            if keys.contains(Key::RESULTS) { results::look(&self, Self::NAME, inputs)? } else { None };
        let outcome = if const { autocast::is_listed(Self::NAME) } && autocast::is_on() {
            autocast::call(self, inputs)
        } else if keys.contains(Key::AUTOGRAD) && !Self::BACKWARD.is_empty() && Self::DIFFERENTIABLE > 0 {
            self.recorded(inputs)
        } else {
            // What an operator calls lies below autograd, recorded or not.
            let _below = span.is_some().then(below);
            match Self::VIEW && Self::Output::SEVERAL {
                true => Ok(self.forward(inputs)?.map(|_, tensor| tensor.made(How::OneOfSeveral))),
                false => self.forward(inputs),
            }
        };
        let outcome = match looked {
            None => outcome,
            Some(looked) => looked_at(&looked, outcome),
        };
        if let Some(span) = &span
            && span.wants_results()
        {
            tell_results(span, &outcome);
        }
        Span::end(span, &outcome);
        outcome
    }
}

/// How an operator computes, below autograd. Those with a [`Kernel`] run it; views and
/// compositions say it themselves, in terms of other operators.
pub trait Forward: Op {
    /// Computes the output.
    fn forward(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output>;

    /// Computes the output and attaches the recipe for its gradient.
    fn recorded(self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        autograd::record(self, inputs)
    }
}

impl<K: Kernel> Forward for K {
    #[inline]
    fn forward(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        self.launch(inputs)
    }

    #[inline]
    fn recorded(self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        self.record(inputs)
    }
}

/// A kernel of one device: fills `output` from `inputs`.
pub type KernelFn<O> = for<'a> fn(&O, <O as Op>::Inputs<'a>, &<O as Op>::Output) -> Result<()>;

/// An operator whose output is new memory, filled by a kernel.
pub trait Kernel: Op {
    /// Shapes and types of the output, from those of the inputs alone. All complaints about
    /// arguments are made here, before anything is allocated.
    fn infer(&self, inputs: Self::Inputs<'_>) -> Result<<Self::Output as Output>::Spec>;

    /// Whether each element of the output is a function of those at its place: the output of host tensors
    /// then lies in the order of these.
    const ELEMENTWISE: bool = false;

    /// The host kernel. Defines what the operator means.
    ///
    /// # Panics
    /// Those of the operators here, if called by hand with tensors of a device: [`fill`](Kernel::fill) takes
    /// the kernel of the device that they are on.
    fn cpu(&self, inputs: Self::Inputs<'_>, output: &Self::Output) -> Result<()>;

    /// Kernels plugged in by devices. Written by [`kernel_table!`].
    fn table() -> &'static Table<KernelFn<Self>>;

    /// The output where host tensors lie just as the kernel reads them, found without the steps that
    /// others need; `None` for all others. Small tensors notice.
    #[inline]
    fn quick(&self, _inputs: Self::Inputs<'_>) -> Result<Option<Self::Output>> {
        Ok(None)
    }

    /// The output, found with the calls that torch's kernel makes on its way, where it makes any, so
    /// that a trace has them. Asked for host tensors, and only while someone watches; gives what the
    /// host kernel gives, bit for bit.
    fn shown(&self, _inputs: Self::Inputs<'_>) -> Result<Option<Self::Output>> {
        Ok(None)
    }

    /// Memory for the output on the host.
    fn room(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        make_room::<Self>(self.infer(inputs)?, inputs, Device::CPU)
    }

    /// The output, found without any other call.
    fn computed(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        let output = self.room(inputs)?;
        self.fill(inputs, &output, Device::CPU)?;
        Ok(output)
    }

    /// Counts the changes that a kernel made to its inputs, if it makes any.
    fn changed(&self, _inputs: Self::Inputs<'_>) {}

    /// Allocates the output and fills it. [`kernel_table!`] gives each operator its own, compiled where
    /// the operator is and not again in every crate that calls it.
    fn launch(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        self.launch_here(inputs)
    }

    /// As [`launch`](Kernel::launch), for a call that is recorded.
    fn record(self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        autograd::record(self, inputs)
    }

    /// As [`launch`](Kernel::launch), compiled where it is called.
    #[inline(always)]
    fn launch_here(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        if observe::is_watched()
            && inputs.keys().backend() == Ok(Key::CPU)
            && let Some(output) = {
                let _below = below();
                self.shown(inputs)?
            }
        {
            return Ok(output);
        }
        if let Some(output) = self.quick(inputs)? {
            return Ok(output);
        }
        let device = device_of(Self::NAME, inputs)?;
        let output = make_room::<Self>(self.infer(inputs)?, inputs, device)?;
        self.fill(inputs, &output, device)?;
        self.changed(inputs);
        Ok(output)
    }

    /// Runs the kernel of the device that the output is on.
    #[inline]
    fn fill(&self, inputs: Self::Inputs<'_>, output: &Self::Output, device: Device) -> Result<()> {
        match device.key {
            Key::CPU => watching_copies(|| self.cpu(inputs, output)),
            Key::META => Ok(()),
            key => {
                let _site = site::enter(Self::NAME);
                let kernel = device_kernel(Self::table(), Self::NAME, key);
                match kernel.and_then(|kernel| kernel(self, inputs, output)) {
                    Err(error) if error.cause() == Cause::NoKernel => {
                        fallback::fill(self, inputs, output, device, error)
                    }
                    outcome => outcome.map_err(|error| error.in_op(Self::NAME)),
                }
            }
        }
    }
}

/// New memory for the output of an operator.
#[inline]
fn make_room<K: Kernel>(
    spec: <K::Output as Output>::Spec,
    inputs: K::Inputs<'_>,
    device: Device,
) -> Result<K::Output> {
    let room = if K::ELEMENTWISE && device.key == Key::CPU {
        K::Output::allocate_in(spec, |shape| order::kept(inputs, shape), device)
    } else {
        K::Output::allocate(spec, device)
    };
    room.map_err(|error| error.in_op(K::NAME))
}

/// A kernel that changes its first input, for operators with an in-place form.
pub type InPlaceFn<O> = for<'a> fn(&O, <O as Op>::Inputs<'a>) -> Result<()>;

/// An operator that can also write its result over its first input.
pub trait InPlace: Kernel + Op<Output = Tensor> {
    /// The name of the in-place form, e.g. `aten::add_`.
    const IN_PLACE: &'static str;
    /// Whether the gradient of the first input needs the elements that the change overwrites: a copy
    /// of them is then kept. Sums and products do without.
    const NEEDS_OVERWRITTEN: bool = true;

    /// What the gradient of the in-place form needs.
    fn saves_in_place(&self) -> Saves {
        Self::SAVES
    }

    /// The gradient of the in-place form.
    fn backward_in_place(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.backward(ctx)
    }

    /// The host kernel of the in-place form, where it can do without a second copy.
    fn cpu_in_place(&self, inputs: Self::Inputs<'_>) -> Result<()> {
        self.write_copy(inputs)
    }

    /// What the node of a change in place is named, where torch has another one for it.
    fn backward_name_in_place(&self, inputs: Self::Inputs<'_>) -> &'static str {
        self.backward_name(inputs)
    }

    /// As [`shown`](Kernel::shown), for the form in place: calls what torch's kernel calls before the
    /// change is made. What it gives is kept until then.
    fn shown_in_place(&self, _inputs: Self::Inputs<'_>) -> Result<Shown> {
        Ok(Shown::default())
    }

    /// In-place kernels plugged in by devices. Written by [`kernel_table!`].
    fn in_place_table() -> &'static Table<InPlaceFn<Self>>;

    /// Calls the in-place form: the first input is changed. As [`launch`](Kernel::launch), compiled where
    /// the operator is.
    fn call_in_place(self, inputs: Self::Inputs<'_>) -> Result<()> {
        self.call_in_place_here(inputs)
    }

    /// As [`call_in_place`](InPlace::call_in_place), compiled where it is called.
    #[inline(always)]
    fn call_in_place_here(self, inputs: Self::Inputs<'_>) -> Result<()> {
        let span = observe::span(&InFlight { op: &self, inputs, name: Self::IN_PLACE });
        let span = span.map(Span::failing_on_fault);
        let Some(target) = first(inputs) else {
            let text = "the first operand is to be changed, and a number cannot be";
            return Err(Error::new(Cause::Argument, Self::IN_PLACE, text));
        };
        let spec = self.infer(inputs)?;
        check_target(Self::IN_PLACE, &target, &spec)?;
        check_overlap(Self::IN_PLACE, &target, inputs)?;
        autograd::check_inference(Self::IN_PLACE, &target)?;
        let looked =
            if results::are_looked_at() { results::look(&self, Self::IN_PLACE, inputs)? } else { None };
        if autograd::records_change(inputs.keys(), &target) {
            autograd::record_in_place(self, inputs, &target)?;
        } else {
            let _below = span.is_some().then(below);
            self.change(inputs, &target)?;
        }
        if let Some(looked) = looked {
            looked.check(|_| ())?;
        }
        if let Some(span) = span.filter(Span::wants_results) {
            span.gave(&[target.argument()]);
        }
        Ok(())
    }

    /// Runs the in-place kernel and counts the change.
    fn change(&self, inputs: Self::Inputs<'_>, target: &Tensor) -> Result<()> {
        self.write(inputs)?;
        target.storage().changed(Self::IN_PLACE);
        Ok(())
    }

    /// Runs the in-place kernel, or where a device has none, the other and a copy.
    fn write(&self, inputs: Self::Inputs<'_>) -> Result<()> {
        match device_of(Self::IN_PLACE, inputs)?.key {
            Key::CPU => {
                let _shown =
                    if observe::is_watched() { self.shown_in_place(inputs)? } else { Shown::default() };
                watching_copies(|| self.cpu_in_place(inputs))
            }
            Key::META => Ok(()),
            key => {
                let _site = site::enter(Self::IN_PLACE);
                match Self::in_place_table().get(key).map(|kernel| kernel(self, inputs)) {
                    Some(Err(error)) if error.cause() != Cause::NoKernel => Err(error.in_op(Self::IN_PLACE)),
                    Some(Ok(())) => Ok(()),
                    _ => self.write_copy(inputs),
                }
            }
        }
    }

    /// Computes the result in memory of its own, then copies it over the first input.
    fn write_copy(&self, inputs: Self::Inputs<'_>) -> Result<()> {
        let target = first(inputs).expect("an in-place operator has a first input");
        let result = self.launch(inputs)?;
        let copy = [&target, &result];
        match target.device().key {
            Key::CPU => ops::Copy.cpu_in_place(copy),
            Key::META => Ok(()),
            key => device_kernel(ops::Copy::in_place_table(), ops::Copy::IN_PLACE, key)?(&ops::Copy, copy),
        }
    }
}

/// What a call gave, unless it is an anomaly.
#[cold]
fn looked_at<O: Output>(looked: &Looked, outcome: Result<O>) -> Result<O> {
    let output = outcome?;
    looked.check(|visit| output.each(visit))?;
    Ok(output)
}

/// Tells observers what a call gives.
#[cold]
pub(crate) fn tell_results<O: Output>(span: &Span, output: &Result<O>) {
    let Ok(output) = output else { return };
    let mut tensors = Vec::new();
    output.each(|tensor| tensors.push(tensor.clone()));
    let results: Vec<_> = tensors.iter().map(Tensor::argument).collect();
    span.gave(&results);
}

/// Runs a host kernel; who listens learns how much it copied beside its work.
#[inline]
fn watching_copies<R>(run: impl FnOnce() -> R) -> R {
    if !memory::is_heard() {
        return run();
    }
    cresset_kernels::take_copied();
    let result = run();
    memory::copied(cresset_kernels::take_copied());
    result
}

/// The first input, if it is a tensor.
fn first<I: Inputs>(inputs: I) -> Option<Tensor> {
    let mut first = None;
    inputs.each(|given| {
        first.get_or_insert_with(|| given.tensor().cloned());
    });
    first.flatten()
}

fn check_target(op: &'static str, target: &Tensor, result: &Spec) -> Result<()> {
    if target.shape() != &result.shape[..] {
        let text = format_args!(
            "the result has shape {:?}, which does not fit into {:?}",
            &result.shape[..],
            target.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    }
    if !crate::promote::can_cast(result.dtype, target.dtype()) {
        let text =
            format_args!("the result has dtype {}, which cannot be kept as {}", result.dtype, target.dtype());
        return Err(Error::new(Cause::DType, op, text));
    }
    if target.layout().may_overlap() {
        let text = format_args!(
            "cannot write to a tensor of shape {:?} and strides {:?}: several elements share memory; call contiguous() first",
            target.shape(),
            target.strides()
        );
        return Err(Error::new(Cause::Argument, op, text));
    }
    Ok(())
}

/// Refuses inputs that share some of the memory about to be written, but do not lie in it exactly
/// as the target does: what they hold would change while it is read.
fn check_overlap<I: Inputs>(op: &'static str, target: &Tensor, inputs: I) -> Result<()> {
    let mut crossing = false;
    inputs.each(|given| {
        if let Some(tensor) = given.tensor().filter(|tensor| tensor.storage().same_as(target.storage())) {
            crossing |= tensor.layout().crosses(target.layout());
        }
    });
    if !crossing {
        return Ok(());
    }
    let text = format_args!(
        "an input shares memory with the tensor of shape {:?} that is written, in another order or in part; pass a copy of it",
        target.shape()
    );
    Err(Error::new(Cause::Argument, op, text))
}

fn device_kernel<F: Copy>(table: &Table<F>, op: &'static str, key: Key) -> Result<F> {
    table.get(key).ok_or_else(|| {
        let text =
            format_args!("no kernel for {key}; move the tensors with to(Device::CPU) to compute on the host");
        Error::new(Cause::NoKernel, op, text)
    })
}

/// Whether an operator has a kernel for `device`. Where it has none, it may be made of others.
pub(crate) fn is_served<K: Kernel>(device: Device) -> bool {
    matches!(device.key, Key::CPU | Key::META) || K::table().get(device.key).is_some()
}

/// The one device of all tensors; the host if there are none.
#[inline]
pub(crate) fn device_of<I: Inputs>(op: &'static str, inputs: I) -> Result<Device> {
    if inputs.keys().backend() == Ok(Key::CPU) {
        return Ok(Device::CPU);
    }
    let (mut found, mut other): (Option<Device>, Option<Device>) = (None, None);
    inputs.each(|tensor| {
        if let Given::Tensor(tensor) = tensor {
            let device = *found.get_or_insert(tensor.device());
            if tensor.device() != device {
                other.get_or_insert(tensor.device());
            }
        }
    });
    match (found, other) {
        (Some(one), Some(two)) => Err(do_not_meet(op, inputs, [one, two])),
        (found, _) => Ok(found.unwrap_or(Device::CPU)),
    }
}

/// The error of tensors on two devices: the first on each is described.
#[cold]
fn do_not_meet<I: Inputs>(op: &'static str, inputs: I, [one, two]: [Device; 2]) -> Error {
    let shape_on = |device| {
        let mut shape = None;
        inputs.each(|given| {
            if let Some(tensor) = given.tensor().filter(|tensor| tensor.device() == device) {
                shape.get_or_insert_with(|| tensor.shape().to_vec());
            }
        });
        shape.unwrap_or_default()
    };
    let text = format_args!(
        "tensors are on {one} and {two}, of shapes {:?} and {:?}; move them to one device with to()",
        shape_on(one),
        shape_on(two)
    );
    Error::new(Cause::Device, op, text)
}

/// A call as observers see it.
pub(crate) struct InFlight<'o, 'i, O: Op> {
    pub(crate) op: &'o O,
    pub(crate) inputs: O::Inputs<'i>,
    pub(crate) name: &'static str,
}

impl<O: Op> Call for InFlight<'_, '_, O> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn schema(&self) -> &'static str {
        schema::of(self)
    }

    fn device(&self) -> Option<Device> {
        self.inputs.device()
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        self.op.arguments(self.inputs, visit);
    }

    /// Torch counts none for forms in place.
    fn flops(&self) -> u64 {
        if self.name == O::NAME { self.op.flops(self.inputs) } else { 0 }
    }

    fn sequence(&self) -> Option<Sequence> {
        sequence_here()
    }
}

/// Until the guard drops, calls are those of an operator that has a derivative itself, as observers see
/// them.
pub(crate) fn below() -> key::ThreadKeys {
    key::exclude(KeySet::LINKS)
}

/// The number that the next node will get, where calls are being recorded.
pub(crate) fn sequence_here() -> Option<Sequence> {
    let excluded = key::excluded();
    let recording = !excluded.contains(Key::AUTOGRAD) && !excluded.contains(Key::LINKS);
    recording.then(|| Sequence { number: autograd::next_sequence(), forward_thread: 0 })
}

/// Gives an operator its kernel tables: a static cannot be generic.
///
/// `kernel_table!(Add)` inside `impl Kernel for Add`, and `kernel_table!(in place Add)` inside
/// `impl InPlace for Add`.
#[macro_export]
macro_rules! kernel_table {
    (in place $op:ty) => {
        fn call_in_place(self, inputs: <$op as $crate::Op>::Inputs<'_>) -> $crate::Result<()> {
            $crate::op::InPlace::call_in_place_here(self, inputs)
        }

        fn in_place_table() -> &'static $crate::op::Table<$crate::op::InPlaceFn<$op>> {
            static TABLE: $crate::op::Table<$crate::op::InPlaceFn<$op>> = $crate::op::Table::new();
            &TABLE
        }
    };
    ($op:ty) => {
        fn launch(
            &self,
            inputs: <$op as $crate::Op>::Inputs<'_>,
        ) -> $crate::Result<<$op as $crate::Op>::Output> {
            $crate::Kernel::launch_here(self, inputs)
        }

        fn record(
            self,
            inputs: <$op as $crate::Op>::Inputs<'_>,
        ) -> $crate::Result<<$op as $crate::Op>::Output> {
            $crate::autograd::record(self, inputs)
        }

        fn table() -> &'static $crate::op::Table<$crate::op::KernelFn<$op>> {
            static TABLE: $crate::op::Table<$crate::op::KernelFn<$op>> = $crate::op::Table::new();
            &TABLE
        }
    };
}
pub use kernel_table;
