//! What operators give: one tensor, several, or none.

use crate::{Cause, DType, Device, Error, Layout, Result, Storage, Tensor};
use cresset_kernels::Dims;
use smallvec::SmallVec;

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

/// The bytes of so many elements; `None` if they cannot be addressed, on any device or on none.
#[inline]
pub(crate) fn bytes_of(elements: usize, dtype: DType) -> Option<usize> {
    elements.checked_mul(dtype.size()).filter(|bytes| isize::try_from(*bytes).is_ok())
}

/// What an operator returns.
pub trait Output: Sized {
    /// What is known of it beforehand.
    type Spec;
    /// Whether it is made of several tensors.
    const SEVERAL: bool = true;

    /// New memory for it.
    fn allocate(spec: Self::Spec, device: Device) -> Result<Self>;

    /// As [`allocate`](Output::allocate), where `order` says that it is not to be row-major.
    #[inline]
    fn allocate_in(
        spec: Self::Spec,
        order: impl FnOnce(&[usize]) -> Option<Layout>,
        device: Device,
    ) -> Result<Self> {
        let _ = order;
        Self::allocate(spec, device)
    }

    /// Visits each of its tensors.
    fn each(&self, visit: impl FnMut(&Tensor));

    /// As [`each`](Output::each), with `None` in the place of a tensor that was not asked for.
    #[inline]
    fn each_place(&self, mut visit: impl FnMut(Option<&Tensor>)) {
        self.each(|tensor| visit(Some(tensor)));
    }

    /// Rebuilds it from each of its tensors and their index.
    fn map(self, f: impl FnMut(usize, Tensor) -> Tensor) -> Self;
}

impl Output for Tensor {
    type Spec = Spec;
    const SEVERAL: bool = false;

    #[inline]
    fn allocate(spec: Spec, device: Device) -> Result<Self> {
        let layout = Layout::contiguous(&spec.shape);
        let bytes = layout.as_ref().and_then(|layout| bytes_of(layout.len(), spec.dtype));
        let (Some(layout), Some(bytes)) = (layout, bytes) else {
            let text = format_args!(
                "shape {:?} of {} has more bytes than can be addressed",
                &spec.shape[..],
                spec.dtype
            );
            return Err(Error::new(Cause::Memory, "", text));
        };
        Ok(Tensor::from_parts(Storage::new(device, bytes, spec.dtype)?, layout, spec.dtype))
    }

    #[inline]
    fn allocate_in(
        spec: Spec,
        order: impl FnOnce(&[usize]) -> Option<Layout>,
        device: Device,
    ) -> Result<Self> {
        match order(&spec.shape) {
            Some(layout) => Tensor::uninit_as(layout, spec.dtype, device),
            None => Tensor::allocate(spec, device),
        }
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

impl<const N: usize> Output for [Tensor; N] {
    type Spec = [Spec; N];

    fn allocate(specs: [Spec; N], device: Device) -> Result<Self> {
        let mut tensors = SmallVec::<[Tensor; N]>::new();
        for spec in specs {
            tensors.push(Tensor::allocate(spec, device)?);
        }
        Ok(tensors.into_inner().unwrap_or_else(|_| unreachable!("there is a tensor per spec")))
    }

    fn each(&self, visit: impl FnMut(&Tensor)) {
        self.iter().for_each(visit);
    }

    fn map(self, mut f: impl FnMut(usize, Tensor) -> Tensor) -> Self {
        let mut number = 0..;
        self.map(|tensor| f(number.next().unwrap_or(N), tensor))
    }
}

/// Those that the arguments ask for, each in its place.
impl<const N: usize> Output for [Option<Tensor>; N] {
    type Spec = [Option<Spec>; N];

    fn allocate(specs: Self::Spec, device: Device) -> Result<Self> {
        let mut tensors = [const { None }; N];
        for (tensor, spec) in tensors.iter_mut().zip(specs) {
            *tensor = spec.map(|spec| Tensor::allocate(spec, device)).transpose()?;
        }
        Ok(tensors)
    }

    fn each(&self, visit: impl FnMut(&Tensor)) {
        self.iter().flatten().for_each(visit);
    }

    fn each_place(&self, visit: impl FnMut(Option<&Tensor>)) {
        self.iter().map(Option::as_ref).for_each(visit);
    }

    fn map(self, mut f: impl FnMut(usize, Tensor) -> Tensor) -> Self {
        let mut number = 0..;
        self.map(|tensor| {
            let number = number.next().unwrap_or(N);
            tensor.map(|tensor| f(number, tensor))
        })
    }
}

/// As many tensors as the arguments ask for.
impl Output for Vec<Tensor> {
    type Spec = Vec<Spec>;

    fn allocate(specs: Vec<Spec>, device: Device) -> Result<Self> {
        specs.into_iter().map(|spec| Tensor::allocate(spec, device)).collect()
    }

    fn each(&self, visit: impl FnMut(&Tensor)) {
        self.iter().for_each(visit);
    }

    fn map(self, mut f: impl FnMut(usize, Tensor) -> Tensor) -> Self {
        self.into_iter().enumerate().map(|(number, tensor)| f(number, tensor)).collect()
    }
}

/// An operator that only changes its inputs.
impl Output for () {
    type Spec = ();
    const SEVERAL: bool = false;

    fn allocate((): (), _device: Device) -> Result<Self> {
        Ok(())
    }

    fn each(&self, _visit: impl FnMut(&Tensor)) {}

    fn map(self, _f: impl FnMut(usize, Tensor) -> Tensor) -> Self {}
}
