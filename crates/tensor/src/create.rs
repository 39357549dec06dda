//! New tensors.

use crate::composite::composite;
use crate::op::{Output, bytes_of};
use crate::ops::scalar_argument;
use crate::{Cause, DType, Device, Element, Error, Options, Result, Scalar, Spec, Storage, Tensor, shown};
use cresset_dispatch::observe::{self, Argument, Span};
use cresset_kernels::{Layout, View, elementwise};

impl Tensor {
    /// New memory, contents undefined, without a trace.
    #[inline]
    pub(crate) fn uninit(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::allocate(Spec::new(shape, dtype), device)
    }

    /// New memory whose elements lie as `layout` says, contents undefined, without a trace.
    pub(crate) fn uninit_as(layout: Layout, dtype: DType, device: Device) -> Result<Tensor> {
        let Some(bytes) = bytes_of(layout.end(), dtype) else {
            let text = format_args!("{layout:?} of {dtype} has more bytes than can be addressed");
            return Err(Error::new(Cause::Memory, "", text));
        };
        Ok(Tensor::from_parts(Storage::new(device, bytes, dtype)?, layout, dtype))
    }

    /// New memory, contents undefined.
    pub fn empty(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let _made = shown::factory();
        Told::now(options).empty(shape.as_ref())
    }

    /// All zeros.
    pub fn zeros(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let (shape, told) = (shape.as_ref(), Told::now(options));
        let _made = shown::factory();
        let _span = told.sized("aten::zeros", shape, &[]);
        let out = told.empty_by(shape, told.written())?;
        out.zero_()?;
        Ok(out)
    }

    /// All ones.
    pub fn ones(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let (shape, told) = (shape.as_ref(), Told::now(options));
        let _made = shown::factory();
        let _span = told.sized("aten::ones", shape, &[]);
        let out = told.empty(shape)?;
        out.fill_(1.0)?;
        Ok(out)
    }

    /// `value` everywhere.
    pub fn full(
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        let (shape, value, told) = (shape.as_ref(), value.into(), Told::now(options));
        let _made = shown::factory();
        let _span = told.sized("aten::full", shape, &[scalar_argument(value)]);
        let out = told.empty(shape)?;
        out.fill_(value)?;
        Ok(out)
    }

    /// A number by itself: no dimensions.
    pub fn scalar_tensor(value: impl Into<Scalar>, options: impl Into<Options>) -> Result<Tensor> {
        let (value, told) = (value.into(), Told::now(options));
        let _span = composite("aten::scalar_tensor", shown::NOTHING, |visit| {
            visit(scalar_argument(value));
            told.written().into_iter().for_each(visit);
        });
        let Options { dtype, device, .. } = told.options;
        let out = Tensor::uninit(&[], dtype, device)?;
        // Torch writes a number on the host without a call.
        if device.is_cpu() {
            crate::cpu::change(&out, [], |out, []| elementwise::fill(value, out))?;
        } else {
            out.fill_(value)?;
        }
        Ok(out)
    }

    /// A number as a program writes it as a tensor: `torch.tensor(2.0)`. Without dimensions, on the host.
    pub fn number(value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
        let none = Argument::None;
        let told = [Argument::Ints(&[]), shown::dtype_code(dtype), shown::STRIDED, shown::HOST];
        let more = [told[0], told[1], told[2], told[3], Argument::Bool(false), none];
        let out =
            shown::within("aten::empty", shown::NOTHING, &more, || Tensor::uninit(&[], dtype, Device::CPU))?;
        let value = value.into();
        crate::cpu::change(&out, [], |out, []| elementwise::fill(value, out))?;
        if observe::is_watched() {
            let convert = [none, told[1], Argument::Bool(false), Argument::Bool(false), none];
            drop(shown::call("aten::to", [&out], &convert));
            drop(shown::call("aten::lift_fresh", [&out], &[]));
            let _span = shown::call("aten::detach_", [&out], &[]);
            drop(shown::call("detach_", [&out], &[]));
        }
        Ok(out)
    }

    /// A host tensor of `shape` that holds `elements` in row-major order.
    ///
    /// # Errors
    /// If there are more or fewer elements than the shape says.
    pub fn from_slice<T: Element>(elements: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let shape = shape.as_ref();
        let layout = row_major("from_slice", elements.len(), shape)?;
        let out = Tensor::uninit(shape, T::DTYPE, Device::CPU)?;
        elementwise::copy(View::of(elements, &layout), out.elements_mut(&mut out.write()));
        Ok(out)
    }

    /// A host tensor of `shape` that takes the memory of `elements`, in row-major order.
    ///
    /// ```
    /// # use cresset_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more or fewer elements than the shape says.
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let layout = row_major("from_vec", elements.len(), shape.as_ref())?;
        match Storage::from_vec(elements) {
            Ok(storage) => Ok(Tensor::from_parts(storage, layout, T::DTYPE)),
            Err(elements) => Tensor::from_slice(&elements, shape),
        }
    }
}

/// What a new tensor is to be, and who said so: programs do not name the layout, operators do not
/// name the pinning of memory, and what is called inside repeats it.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) options: Options,
    by_program: bool,
}

impl Told {
    /// What is told by the call that is about to be made.
    pub(crate) fn now(options: impl Into<Options>) -> Told {
        Told { options: options.into(), by_program: !shown::from_operator() }
    }

    /// Element type, layout, device and pinning, as observers see them inside of the call.
    pub(crate) fn arguments(self) -> [Argument<'static>; 4] {
        let dtype = shown::dtype_code(self.options.dtype);
        match self.by_program {
            true => [dtype, Argument::None, Argument::Device(self.options.device), Argument::Bool(false)],
            false => [dtype, shown::STRIDED, Argument::Device(self.options.device), Argument::None],
        }
    }

    /// The same as the program wrote it.
    pub(crate) fn written(self) -> [Argument<'static>; 4] {
        let mut arguments = self.arguments();
        if self.by_program && !self.options.names_dtype {
            arguments[0] = Argument::None;
        }
        arguments
    }

    /// New memory, contents undefined.
    pub(crate) fn empty(self, shape: &[usize]) -> Result<Tensor> {
        self.empty_by(shape, self.arguments())
    }

    /// As [`empty`](Told::empty), by a call that says this of element type, layout, device and pinning.
    fn empty_by(
        self,
        shape: &[usize],
        [dtype, layout, device, pinned]: [Argument<'static>; 4],
    ) -> Result<Tensor> {
        let make = || Tensor::uninit(shape, self.options.dtype, self.options.device);
        if !observe::is_watched() {
            return make();
        }
        let sizes = shown::ints(shape);
        let more = [Argument::Ints(&sizes), dtype, layout, device, pinned, Argument::None];
        shown::within("aten::empty", shown::NOTHING, &more, make)
    }

    fn sized(self, name: &'static str, shape: &[usize], before: &[Argument<'_>]) -> Option<Span> {
        composite(name, shown::NOTHING, |visit| {
            visit(Argument::Ints(&shown::ints(shape)));
            before.iter().for_each(|argument| visit(*argument));
            self.written().into_iter().for_each(visit);
        })
    }
}

/// The layout of `count` elements in row-major order.
fn row_major(op: &'static str, count: usize, shape: &[usize]) -> Result<Layout> {
    Layout::contiguous(shape).filter(|layout| layout.len() == count).ok_or_else(|| {
        Error::new(Cause::Shape, op, format_args!("{count} elements do not make up shape {shape:?}"))
    })
}
