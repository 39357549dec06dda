//! New tensors.

use crate::composite::composite;
use crate::op::Output;
use crate::{Cause, DType, Device, Element, Error, Result, Scalar, Spec, Tensor, backend};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, Layout, View, elementwise};

/// The element type and the device of a new tensor; `f32` on the host unless said otherwise.
///
/// Made from a [`DType`], a [`Device`], both, or `()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The type of the elements.
    pub dtype: DType,
    /// Where the elements are.
    pub device: Device,
}

impl Default for Options {
    fn default() -> Options {
        Options { dtype: DType::F32, device: Device::CPU }
    }
}

impl From<()> for Options {
    fn from((): ()) -> Options {
        Options::default()
    }
}

impl From<DType> for Options {
    fn from(dtype: DType) -> Options {
        Options { dtype, ..Options::default() }
    }
}

impl From<Device> for Options {
    fn from(device: Device) -> Options {
        Options { device, ..Options::default() }
    }
}

impl From<(DType, Device)> for Options {
    fn from((dtype, device): (DType, Device)) -> Options {
        Options { dtype, device }
    }
}

impl Tensor {
    /// New memory, contents undefined, without a trace.
    #[inline]
    pub(crate) fn uninit(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::allocate(Spec::new(shape, dtype), device)
    }

    /// New memory, contents undefined.
    pub fn empty(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let (shape, options) = (shape.as_ref(), options.into());
        let _span = sized("aten::empty", shape, &[]);
        Tensor::uninit(shape, options.dtype, options.device)
    }

    /// All zeros.
    pub fn zeros(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let shape = shape.as_ref();
        let _span = sized("aten::zeros", shape, &[]);
        let out = Tensor::empty(shape, options)?;
        out.zero_()?;
        Ok(out)
    }

    /// All ones.
    pub fn ones(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let shape = shape.as_ref();
        let _span = sized("aten::ones", shape, &[]);
        let out = Tensor::empty(shape, options)?;
        out.fill_(1)?;
        Ok(out)
    }

    /// `value` everywhere.
    pub fn full(
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        let (shape, value) = (shape.as_ref(), value.into());
        let _span = sized("aten::full", shape, &[crate::ops::scalar_argument(value)]);
        let out = Tensor::empty(shape, options)?;
        out.fill_(value)?;
        Ok(out)
    }

    /// Zeros with the shape, element type and device of this tensor.
    pub fn zeros_like(&self) -> Result<Tensor> {
        let _span = composite("aten::zeros_like", [self], |_| {});
        let out = self.empty_like()?;
        out.zero_()?;
        Ok(out)
    }

    /// Ones with the shape, element type and device of this tensor.
    pub fn ones_like(&self) -> Result<Tensor> {
        let _span = composite("aten::ones_like", [self], |_| {});
        let out = self.empty_like()?;
        out.fill_(1)?;
        Ok(out)
    }

    /// New memory with the shape, element type and device of this tensor, contents undefined.
    pub fn empty_like(&self) -> Result<Tensor> {
        let _span = composite("aten::empty_like", [self], |_| {});
        Tensor::uninit(self.shape(), self.dtype(), self.device())
    }

    /// A host tensor of `shape` that holds `elements` in row-major order.
    ///
    /// # Errors
    /// If there are more or fewer elements than the shape says.
    pub fn from_slice<T: Element>(elements: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let shape = shape.as_ref();
        let layout = Layout::contiguous(shape).filter(|layout| layout.len() == elements.len());
        let Some(layout) = layout else {
            let text = format_args!("{} elements do not make up shape {shape:?}", elements.len());
            return Err(Error::new(Cause::Shape, "from_slice", text));
        };
        let out = Tensor::uninit(shape, T::DTYPE, Device::CPU)?;
        elementwise::copy(View::of(elements, &layout), out.elements_mut(&mut out.write()));
        Ok(out)
    }

    /// A host tensor from a literal: a number, or arrays, slices and vectors of them.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.shape(), [2, 2]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If vectors of different lengths stand side by side.
    pub fn new<N: Nested>(literal: N) -> Result<Tensor> {
        let mut shape = Dims::new();
        literal.shape(&mut shape);
        let mut elements = Vec::with_capacity(shape.iter().product());
        if !literal.collect(&shape, &mut elements) {
            let text =
                format_args!("rows of different lengths, the first ones make up shape {:?}", &shape[..]);
            return Err(Error::new(Cause::Shape, "new", text));
        }
        Tensor::from_slice(&elements, shape)
    }

    /// `0, 1, … end - 1` as `i64`.
    pub fn arange(end: usize) -> Result<Tensor> {
        let out = Tensor::uninit(&[end], DType::I64, Device::CPU)?;
        {
            let mut writing = out.write();
            let mut elements = out.elements_mut(&mut writing);
            let elements = elements.slice::<i64>().expect("a fresh tensor is contiguous");
            elements.iter_mut().zip(0..).for_each(|(element, number)| *element = number);
        }
        Ok(out)
    }

    /// Host bytes on their way to a device.
    pub(crate) fn upload(&self, device: Device) -> Result<Tensor> {
        let out = Tensor::uninit(self.shape(), self.dtype(), device)?;
        if self.numel() > 0 {
            let start = self.layout().offset() * self.dtype().size();
            let bytes = start..start + self.numel() * self.dtype().size();
            backend::of(device)?.upload(&self.read().bytes()[bytes], out.storage(), 0)?;
        }
        Ok(out)
    }

    /// Device bytes on their way to the host.
    pub(crate) fn download(&self) -> Result<Tensor> {
        let out = Tensor::uninit(self.shape(), self.dtype(), Device::CPU)?;
        if self.numel() > 0 {
            let start = self.layout().offset() * self.dtype().size();
            let mut writing = out.write();
            backend::of(self.device())?.download(self.storage(), start, writing.bytes())?;
            if self.dtype() == DType::Bool {
                // A device may write any byte for true.
                writing.bytes().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            }
        }
        Ok(out)
    }
}

fn sized(
    name: &'static str,
    shape: &[usize],
    more: &[Argument<'_>],
) -> Option<cresset_dispatch::observe::Span> {
    let none: [&Tensor; 0] = [];
    composite(name, none, |visit| {
        let sizes: Dims = shape.into();
        let sizes: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
        visit(Argument::Ints(&sizes));
        more.iter().for_each(|argument| visit(*argument));
    })
}

/// Numbers, and arrays of arrays of them.
pub trait Nested {
    /// The type of the numbers.
    type Element: Element;
    /// Appends the sizes of this and all inner arrays, as the first ones are.
    fn shape(&self, sizes: &mut Dims);
    /// Appends all numbers; false if an array is not of the size it should be.
    fn collect(&self, sizes: &[usize], to: &mut Vec<Self::Element>) -> bool;
}

macro_rules! nested_numbers {
    ($($ty:ty)*) => {$(
        impl Nested for $ty {
            type Element = $ty;

            fn shape(&self, _: &mut Dims) {}

            fn collect(&self, _: &[usize], to: &mut Vec<$ty>) -> bool {
                to.push(*self);
                true
            }
        }
    )*};
}

nested_numbers!(bool u8 i8 i16 i32 i64 f32 f64 crate::f16 crate::bf16);

impl<N: Nested> Nested for &[N] {
    type Element = N::Element;

    fn shape(&self, sizes: &mut Dims) {
        sizes.push(self.len());
        if let Some(first) = self.first() {
            first.shape(sizes);
        }
    }

    fn collect(&self, sizes: &[usize], to: &mut Vec<N::Element>) -> bool {
        let Some((size, inner)) = sizes.split_first() else { return false };
        self.len() == *size && self.iter().all(|row| row.collect(inner, to))
    }
}

impl<N: Nested, const LEN: usize> Nested for [N; LEN] {
    type Element = N::Element;

    fn shape(&self, sizes: &mut Dims) {
        self.as_slice().shape(sizes);
    }

    fn collect(&self, sizes: &[usize], to: &mut Vec<N::Element>) -> bool {
        self.as_slice().collect(sizes, to)
    }
}

impl<N: Nested> Nested for Vec<N> {
    type Element = N::Element;

    fn shape(&self, sizes: &mut Dims) {
        self.as_slice().shape(sizes);
    }

    fn collect(&self, sizes: &[usize], to: &mut Vec<N::Element>) -> bool {
        self.as_slice().collect(sizes, to)
    }
}
