//! Tensors to and from other things: other element types, other devices, plain Rust values.

use crate::composite::composite;
use crate::ops::{Detach, ToCopy};
use crate::{
    Cause, DType, Device, Element, Error, Layout, MemoryFormat, Op, Options, Result, Scalar, Tensor, To,
    shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, with_dtype};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dimension};

impl Tensor {
    /// This tensor with another element type, on another device or in another order of memory;
    /// itself if nothing of that differs.
    ///
    /// ```
    /// # use cresset_tensor::{DType, Device, Result, Tensor};
    /// let x = Tensor::new([1.5f32])?.to(DType::F64)?.to(Device::CPU)?;
    /// let same = Tensor::new([1i64])?.to(&x)?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn to(&self, to: impl Into<To>) -> Result<Tensor> {
        let to = to.into();
        let _span = composite("aten::to", [self], |visit| to.arguments(visit));
        let Options { dtype, device, .. } = to.options(self);
        let same = (dtype, device) == (self.dtype(), self.device());
        if same && !to.copy && to.memory_format.suits(self.layout()) {
            return Ok(self.clone());
        }
        let To { memory_format, non_blocking, .. } = to;
        ToCopy { dtype, device, memory_format, names_layout: false, non_blocking }.call([self])
    }

    /// A gradient of this tensor as `like` says, which takes all of it where torch names everything.
    pub(crate) fn to_options(&self, like: Options) -> Result<Tensor> {
        let _span = composite("aten::to", [self], |visit| {
            let rest = [
                shown::dtype_code(like.dtype),
                shown::STRIDED,
                Argument::Device(like.device),
                Argument::None,
                Argument::Bool(false),
                Argument::Bool(false),
                Argument::None,
            ];
            rest.into_iter().for_each(visit);
        });
        if (like.dtype, like.device) == (self.dtype(), self.device()) {
            return Ok(self.clone());
        }
        let Options { dtype, device, .. } = like;
        let memory_format = MemoryFormat::Preserve;
        ToCopy { dtype, device, memory_format, names_layout: true, non_blocking: false }.call([self])
    }

    /// This tensor with the element type and on the device of `like`.
    pub fn type_as(&self, like: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::type_as", [self, like], |_| {});
        self.to_options((like.dtype(), like.device()).into())
    }

    /// This tensor with elements of `dtype`; itself if they are already.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        self.to(dtype)
    }

    /// The same elements outside the graph. Changes in place are seen by both.
    pub fn detach(&self) -> Result<Tensor> {
        Detach.call([self])
    }

    /// The one element, as a number.
    ///
    /// # Errors
    /// If there is not exactly one, or the tensor has no data.
    pub fn item(&self) -> Result<Scalar> {
        let _span = composite("aten::item", [self], |_| {});
        if self.numel() != 1 {
            let text = format_args!("a tensor of shape {:?} is not a single number", self.shape());
            return Err(Error::new(Cause::Shape, "aten::item", text));
        }
        let _span = composite("aten::_local_scalar_dense", [self], |_| {});
        let host = self.on_host("aten::item")?;
        let reading = host.read();
        let view = host.elements(&reading);
        Ok(with_dtype!(host.dtype(), T => view.only::<T>().scalar()))
    }

    /// A copy of the elements in row-major order.
    ///
    /// # Errors
    /// If `T` is not the element type, or the tensor has no data.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.expect_dtype::<T>("to_vec")?;
        let host = self.on_host("to_vec")?;
        let reading = host.read();
        let view = host.elements(&reading);
        let mut elements = Vec::new();
        elements.try_reserve_exact(view.layout().len()).map_err(|_| {
            let text = format_args!("cannot allocate {} elements of {}", view.layout().len(), self.dtype());
            Error::new(Cause::Memory, "to_vec", text)
        })?;
        match view.slice::<T>() {
            Some(slice) => elements.extend_from_slice(slice),
            None => elements.extend(view.array::<T>().iter().copied()),
        }
        Ok(elements)
    }

    /// A copy of the elements as an `ndarray` array.
    ///
    /// # Errors
    /// As [`to_vec`](Tensor::to_vec).
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        self.with_ndarray(|view: ArrayViewD<'_, T>| view.to_owned())
    }

    /// Looks at the elements as an `ndarray` view; on the host nothing is copied.
    ///
    /// The elements are locked meanwhile: changing them in place inside `look` would wait forever.
    ///
    /// # Errors
    /// As [`to_vec`](Tensor::to_vec).
    pub fn with_ndarray<T: Element, R>(&self, look: impl FnOnce(ArrayViewD<'_, T>) -> R) -> Result<R> {
        self.expect_dtype::<T>("with_ndarray")?;
        let host = self.on_host("with_ndarray")?;
        let reading = host.read();
        Ok(look(host.elements(&reading).array::<T>()))
    }

    fn expect_dtype<T: Element>(&self, op: &'static str) -> Result<()> {
        if self.dtype() == T::DTYPE {
            return Ok(());
        }
        let text =
            format_args!("elements are {}, not {}; convert with to_dtype() first", self.dtype(), T::DTYPE);
        Err(Error::new(Cause::DType, op, text))
    }

    /// The elements on the host, without a trace.
    pub(crate) fn on_host(&self, op: &'static str) -> Result<Tensor> {
        if self.is_meta() {
            return Err(Error::new(Cause::Device, op, "a meta tensor has no elements"));
        }
        if self.device().is_cpu() {
            return Ok(self.alias());
        }
        let _quiet = crate::no_grad();
        self.contiguous()?.moved(Device::CPU, false)
    }
}

macro_rules! casts {
    ($($method:ident, $dtype:ident;)*) => {$(
        impl Tensor {
            #[doc = concat!("This tensor with elements of `", stringify!($dtype), "`; itself if they are already.")]
            pub fn $method(&self) -> Result<Tensor> {
                self.to(DType::$dtype)
            }
        }
    )*};
}

casts! {
    bool, Bool;
    int, I32;
    long, I64;
    half, F16;
    bfloat16, BF16;
    float, F32;
    double, F64;
}

/// Copies the elements.
impl<T: Element, D: Dimension> TryFrom<ArrayView<'_, T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: ArrayView<'_, T, D>) -> Result<Tensor> {
        match array.as_slice() {
            Some(elements) => Tensor::from_slice(elements, array.shape()),
            None => Tensor::from_vec(array.iter().copied().collect(), array.shape()),
        }
    }
}

/// Takes the memory of the array, in whatever order it lies; only arrays that run backwards along
/// a dimension are copied.
///
/// ```
/// use cresset_tensor::Tensor;
/// let array = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]].reversed_axes();
/// let x = Tensor::try_from(array)?;
/// assert_eq!((x.strides(), x.to_vec::<f32>()?), (&[1, 2][..], vec![1.0, 3.0, 2.0, 4.0]));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: Array<T, D>) -> Result<Tensor> {
        let strides: Option<Dims> =
            array.strides().iter().map(|&stride| usize::try_from(stride).ok()).collect();
        let Some(strides) = strides.filter(|_| !array.is_empty()) else {
            return Tensor::try_from(array.view());
        };
        let shape = Dims::from_slice(array.shape());
        let (elements, offset) = array.into_raw_vec_and_offset();
        let layout = Layout::strided(&shape, &strides, offset.unwrap_or(0));
        let layout = layout.filter(|layout| layout.end() <= elements.len()).expect("the array was valid");
        let count = elements.len();
        Ok(Tensor::from_vec(elements, [count])?.with_layout(layout))
    }
}
