//! The operator mechanism: what an operator declares, and the path of one call.
//!
//! An operator is a small value, its attributes, with one `impl Op`. Calling it takes four
//! steps, the same for all:
//!
//! 1. observers are told: one load and a branch when nobody watches;
//! 2. the keys of all tensors are joined, and this thread's exclusions removed;
//! 3. if autograd is among them, `autograd::record` makes a node, and the call goes on below;
//! 4. [`Forward::forward`] computes: operators with a [`Kernel`] infer shapes, allocate the output and
//!    run the kernel of its device; views and compositions call other operators.

use crate::autograd::{self, Backward, Grads, Saves};
use crate::{Cause, DType, Device, Error, Key, Layout, Result, Scalar, Storage, Tensor};
pub use cresset_dispatch::Table;
use cresset_dispatch::observe::{self, Argument, Call, Name, Sequence, TensorArgument};
use cresset_dispatch::{KeySet, key};
use cresset_kernels::Dims;

/// An operator: what it is called, takes, gives, and how it is differentiated.
pub trait Op: Clone + Send + Sync + Sized + 'static {
    /// The public name, e.g. `aten::add`.
    const NAME: &'static str;
    /// What its node in the backward graph is called, e.g. `AddBackward0`; empty if the
    /// operator has no derivative.
    const BACKWARD: &'static str = "";
    /// What the derivative needs to see again.
    const SAVES: Saves = Saves::Nothing;
    /// How many of the outputs, from the first on, have gradients.
    const DIFFERENTIABLE: usize = usize::MAX;
    /// The tensors it takes.
    type Inputs<'a>: Inputs;
    /// The tensors it gives.
    type Output: Output;

    /// Gradients of the inputs, given the gradients of the outputs. Written with tensor
    /// operators, so that it runs on every device and can be differentiated itself.
    fn backward(&self, _ctx: &Backward<'_>) -> Result<Grads> {
        Err(Error::new(Cause::Graph, Self::NAME, "has no derivative"))
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
        let _span = observe::span(&InFlight { op: &self, inputs, name: Self::NAME });
        let keys = inputs.keys().here();
        if keys.contains(Key::AUTOGRAD) && !Self::BACKWARD.is_empty() {
            autograd::record(self, inputs)
        } else {
            self.forward(inputs)
        }
    }
}

/// How an operator computes, below autograd. Those with a [`Kernel`] run it; views and
/// compositions say it themselves, in terms of other operators.
pub trait Forward: Op {
    /// Computes the output.
    fn forward(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output>;
}

impl<K: Kernel> Forward for K {
    #[inline]
    fn forward(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        self.launch(inputs)
    }
}

/// The shape and element type of an output that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Size of each dimension.
    pub shape: Dims,
    /// The type of the elements.
    pub dtype: DType,
}

impl Spec {
    /// A spec of `shape` and `dtype`.
    pub fn new(shape: impl AsRef<[usize]>, dtype: DType) -> Spec {
        Spec { shape: Dims::from_slice(shape.as_ref()), dtype }
    }

    /// The shape and type of `tensor`.
    pub fn like(tensor: &Tensor) -> Spec {
        Spec::new(tensor.shape(), tensor.dtype())
    }
}

/// A kernel of one device: fills `output` from `inputs`.
pub type KernelFn<O> = for<'a> fn(&O, <O as Op>::Inputs<'a>, &<O as Op>::Output) -> Result<()>;

/// An operator whose output is new memory, filled by a kernel.
pub trait Kernel: Op {
    /// Shapes and types of the output, from those of the inputs alone. All complaints about
    /// arguments are made here, before anything is allocated.
    fn infer(&self, inputs: Self::Inputs<'_>) -> Result<<Self::Output as Output>::Spec>;

    /// The host kernel. Defines what the operator means.
    fn cpu(&self, inputs: Self::Inputs<'_>, output: &Self::Output) -> Result<()>;

    /// Kernels plugged in by devices. Written by [`kernel_table!`].
    fn table() -> &'static Table<KernelFn<Self>>;

    /// Counts the changes that a kernel made to its inputs, if it makes any.
    fn changed(&self, _inputs: Self::Inputs<'_>) {}

    /// Allocates the output and fills it.
    #[inline]
    fn launch(&self, inputs: Self::Inputs<'_>) -> Result<Self::Output> {
        let device = device_of(Self::NAME, inputs)?;
        let told = |error: Error| error.in_op(Self::NAME);
        let output = Self::Output::allocate(self.infer(inputs)?, device).map_err(told)?;
        match device.key {
            Key::CPU => self.cpu(inputs, &output)?,
            Key::META => {}
            key => device_kernel(Self::table(), Self::NAME, key)?(self, inputs, &output).map_err(told)?,
        }
        self.changed(inputs);
        Ok(output)
    }
}

/// A kernel that changes its first input, for operators with an in-place form.
pub type InPlaceFn<O> = for<'a> fn(&O, <O as Op>::Inputs<'a>) -> Result<()>;

/// An operator that can also write its result over its first input.
pub trait InPlace: Kernel {
    /// The name of the in-place form, e.g. `aten::add_`.
    const IN_PLACE: &'static str;

    /// The host kernel of the in-place form.
    fn cpu_in_place(&self, inputs: Self::Inputs<'_>) -> Result<()>;

    /// In-place kernels plugged in by devices. Written by [`kernel_table!`].
    fn in_place_table() -> &'static Table<InPlaceFn<Self>>;

    /// Calls the in-place form: the first input is changed.
    fn call_in_place(self, inputs: Self::Inputs<'_>) -> Result<()>
    where
        Self: Op<Output = Tensor>,
    {
        let _span = observe::span(&InFlight { op: &self, inputs, name: Self::IN_PLACE });
        let target = first(inputs).expect("an in-place operator has a first input");
        let spec = self.infer(inputs)?;
        check_target(Self::IN_PLACE, &target, &spec)?;
        // A view that is not tracked itself may still look into a tensor that is.
        let looks_into_graph = target.is_view() && target.storage().is_tracked();
        let recording = !key::excluded().contains(Key::AUTOGRAD);
        if inputs.keys().here().contains(Key::AUTOGRAD) || (recording && looks_into_graph) {
            autograd::record_in_place(self, inputs, &target)
        } else {
            self.change(inputs, &target)
        }
    }

    /// Runs the in-place kernel and counts the change.
    fn change(&self, inputs: Self::Inputs<'_>, target: &Tensor) -> Result<()> {
        match device_of(Self::IN_PLACE, inputs)?.key {
            Key::CPU => self.cpu_in_place(inputs)?,
            Key::META => {}
            key => {
                let kernel = device_kernel(Self::in_place_table(), Self::IN_PLACE, key)?;
                kernel(self, inputs).map_err(|error| error.in_op(Self::IN_PLACE))?;
            }
        }
        target.storage().changed(Self::IN_PLACE);
        Ok(())
    }
}

fn first<I: Inputs>(inputs: I) -> Option<Tensor> {
    let mut first = None;
    inputs.each(|tensor| {
        if let (Given::Tensor(tensor), None) = (tensor, &first) {
            first = Some(tensor.clone());
        }
    });
    first
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

fn device_kernel<F: Copy>(table: &Table<F>, op: &'static str, key: Key) -> Result<F> {
    table.get(key).ok_or_else(|| {
        let text =
            format_args!("no kernel for {key}; move the tensors with to(Device::CPU) to compute on the host");
        Error::new(Cause::NoKernel, op, text)
    })
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
        (Some(one), Some(two)) => {
            let text = format_args!("tensors are on {one} and {two}; move them to one device with to()");
            Err(Error::new(Cause::Device, op, text))
        }
        (found, _) => Ok(found.unwrap_or(Device::CPU)),
    }
}

/// One argument that is, or stands for, a tensor.
#[derive(Clone, Copy)]
pub enum Given<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number in the place of a tensor.
    Scalar(Scalar),
    /// An optional tensor that was not given.
    Nothing,
}

impl<'a> Given<'a> {
    /// The argument as observers see it.
    pub fn into_argument(self) -> Argument<'a> {
        match self {
            Given::Tensor(tensor) => Argument::Tensor(tensor.argument()),
            Given::Scalar(scalar) => Argument::Tensor(scalar_argument(scalar)),
            Given::Nothing => Argument::None,
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(self) -> Option<&'a Tensor> {
        match self {
            Given::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

fn scalar_argument(scalar: Scalar) -> TensorArgument<'static> {
    let dtype = match scalar {
        Scalar::Float(_) => DType::F64,
        Scalar::Int(_) => DType::I64,
        Scalar::Bool(_) => DType::Bool,
    };
    TensorArgument { shape: &[], strides: &[], dtype: dtype.name() }
}

/// An operand that may be a number.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number; its element type is decided by the tensors it meets.
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    /// Size of each dimension; none for a number.
    pub fn shape(self) -> &'a [usize] {
        match self {
            Operand::Tensor(tensor) => tensor.shape(),
            Operand::Scalar(_) => &[],
        }
    }

    fn given(self) -> Given<'a> {
        match self {
            Operand::Tensor(tensor) => Given::Tensor(tensor),
            Operand::Scalar(scalar) => Given::Scalar(scalar),
        }
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Operand::Tensor(tensor)
    }
}

macro_rules! operands {
    ($($number:ty)*) => {$(
        impl From<$number> for Operand<'_> {
            fn from(number: $number) -> Self {
                Operand::Scalar(number.into())
            }
        }
    )*};
}

operands!(Scalar f64 f32 i64 i32 bool);

/// Tensor arguments: an array, a list, or either followed by one that may be missing or a number.
pub trait Inputs: Copy {
    /// Visits every argument in order.
    fn each(self, visit: impl FnMut(Given<'_>));

    /// Where the first tensor is; `None` if there is none.
    fn device(self) -> Option<Device> {
        let mut device = None;
        self.each(|given| device = device.or(given.tensor().map(Tensor::device)));
        device
    }

    /// The keys of all the tensors together.
    #[inline]
    fn keys(self) -> KeySet {
        let mut keys = KeySet::EMPTY;
        self.each(|tensor| {
            if let Given::Tensor(tensor) = tensor {
                keys = keys | tensor.keys();
            }
        });
        keys
    }
}

impl<const N: usize> Inputs for [&Tensor; N] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.into_iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }
}

impl Inputs for &[&Tensor] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }
}

impl<T: Inputs> Inputs for (T, Option<&Tensor>) {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.0.each(&mut visit);
        visit(self.1.map_or(Given::Nothing, Given::Tensor));
    }
}

impl Inputs for (&Tensor, Operand<'_>) {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        visit(Given::Tensor(self.0));
        visit(self.1.given());
    }
}

/// What an operator returns.
pub trait Output: Sized {
    /// What is known of it beforehand.
    type Spec;

    /// New memory for it.
    fn allocate(spec: Self::Spec, device: Device) -> Result<Self>;

    /// Visits each of its tensors.
    fn each(&self, visit: impl FnMut(&Tensor));

    /// Rebuilds it from each of its tensors and their index.
    fn map(self, f: impl FnMut(usize, Tensor) -> Tensor) -> Self;
}

impl Output for Tensor {
    type Spec = Spec;

    #[inline]
    fn allocate(spec: Spec, device: Device) -> Result<Self> {
        let layout = Layout::contiguous(&spec.shape);
        let bytes = layout.as_ref().and_then(|layout| layout.len().checked_mul(spec.dtype.size()));
        let (Some(layout), Some(bytes)) = (layout, bytes) else {
            let text = format_args!(
                "shape {:?} of {} has more bytes than can be addressed",
                &spec.shape[..],
                spec.dtype
            );
            return Err(Error::new(Cause::Memory, "", text));
        };
        Ok(Tensor::from_parts(Storage::new(device, bytes)?, layout, spec.dtype, false))
    }

    #[inline]
    fn each(&self, mut visit: impl FnMut(&Tensor)) {
        visit(self);
    }

    #[inline]
    fn map(self, mut f: impl FnMut(usize, Tensor) -> Tensor) -> Self {
        f(0, self)
    }
}

impl Output for [Tensor; 2] {
    type Spec = [Spec; 2];

    fn allocate([a, b]: [Spec; 2], device: Device) -> Result<Self> {
        Ok([Tensor::allocate(a, device)?, Tensor::allocate(b, device)?])
    }

    fn each(&self, visit: impl FnMut(&Tensor)) {
        self.iter().for_each(visit);
    }

    fn map(self, mut f: impl FnMut(usize, Tensor) -> Tensor) -> Self {
        let [a, b] = self;
        [f(0, a), f(1, b)]
    }
}

/// An operator that only changes its inputs.
impl Output for () {
    type Spec = ();

    fn allocate((): (), _device: Device) -> Result<Self> {
        Ok(())
    }

    fn each(&self, _visit: impl FnMut(&Tensor)) {}

    fn map(self, _f: impl FnMut(usize, Tensor) -> Tensor) -> Self {}
}

/// A call as observers see it.
struct InFlight<'o, 'i, O: Op> {
    op: &'o O,
    inputs: O::Inputs<'i>,
    name: &'static str,
}

impl<O: Op> Call for InFlight<'_, '_, O> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn device(&self) -> Option<Device> {
        self.inputs.device()
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        self.op.arguments(self.inputs, visit);
    }

    fn flops(&self) -> u64 {
        self.op.flops(self.inputs)
    }

    fn sequence(&self) -> Option<Sequence> {
        sequence_here()
    }
}

/// The number that the next node will get, where calls are being recorded.
pub(crate) fn sequence_here() -> Option<Sequence> {
    let recording = !key::excluded().contains(Key::AUTOGRAD);
    recording.then(|| Sequence { number: autograd::next_sequence(), forward_thread: 0 })
}

/// Gives an operator its kernel tables: a static cannot be generic.
///
/// `kernel_table!(Add)` inside `impl Kernel for Add`, and `kernel_table!(in place Add)` inside
/// `impl InPlace for Add`.
#[macro_export]
macro_rules! kernel_table {
    (in place $op:ty) => {
        fn in_place_table() -> &'static $crate::op::Table<$crate::op::InPlaceFn<$op>> {
            static TABLE: $crate::op::Table<$crate::op::InPlaceFn<$op>> = $crate::op::Table::new();
            &TABLE
        }
    };
    ($op:ty) => {
        fn table() -> &'static $crate::op::Table<$crate::op::KernelFn<$op>> {
            static TABLE: $crate::op::Table<$crate::op::KernelFn<$op>> = $crate::op::Table::new();
            &TABLE
        }
    };
}
pub use kernel_table;
