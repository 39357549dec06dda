//! The tensor handle.

use crate::autograd::{Tracking, ViewOf};
use crate::{DType, Device, Key, Layout, Result, Storage};
use cresset_dispatch::observe::{Identified, Identity, TensorArgument};
use cresset_dispatch::{KeySet, key};
use cresset_kernels::Shared;

/// An n-dimensional array on some device. A handle: cloning it copies no elements.
#[derive(Clone)]
pub struct Tensor(pub(crate) Shared<Inner>);

pub(crate) struct Inner {
    pub(crate) storage: Storage,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    /// What a view looks into, and how it came about.
    pub(crate) view: Option<ViewOf>,
    /// Whether it was made in inference mode, and must stay outside every graph.
    pub(crate) inference: bool,
    /// Whether it is a number that a program wrote in the place of a tensor.
    pub(crate) number: bool,
    pub(crate) tracking: Tracking,
}

impl Inner {
    #[inline]
    fn new(storage: Storage, layout: Layout, dtype: DType, view: Option<ViewOf>, inference: bool) -> Inner {
        let (device, tracking) = (storage.device(), Tracking::default());
        Inner { storage, layout, dtype, device, view, inference, number: false, tracking }
    }
}

impl Tensor {
    /// A tensor over new `storage`, outside any graph. The layout must lie inside the storage.
    #[inline]
    pub(crate) fn from_parts(storage: Storage, layout: Layout, dtype: DType) -> Tensor {
        let inference = key::excluded().contains(Key::CHANGES);
        Tensor::build(storage, layout, dtype, None, inference)
    }

    #[inline]
    fn build(
        storage: Storage,
        layout: Layout,
        dtype: DType,
        view: Option<ViewOf>,
        inference: bool,
    ) -> Tensor {
        debug_assert!(layout.end() * dtype.size() <= storage.len(), "{layout:?} reaches beyond its storage");
        Tensor(Shared::with(|| Inner::new(storage, layout, dtype, view, inference)))
    }

    /// A view: other elements of the same storage, or the same in another order. The layout must
    /// lie inside the storage.
    pub(crate) fn with_layout(&self, layout: Layout) -> Tensor {
        self.reinterpreted(layout, self.0.dtype)
    }

    /// A view that takes the bytes for elements of `dtype`.
    pub(crate) fn reinterpreted(&self, layout: Layout, dtype: DType) -> Tensor {
        let view = Some(ViewOf::new(self));
        Tensor::build(self.0.storage.clone(), layout, dtype, view, self.0.inference)
    }

    /// A tensor that lies as this one does, nowhere.
    pub(crate) fn without_memory(&self) -> Tensor {
        Tensor::from_parts(Storage::nowhere(self.0.storage.len()), self.0.layout.clone(), self.0.dtype)
    }

    /// Another tensor over the same elements, outside any graph and not followed as a view.
    pub(crate) fn alias(&self) -> Tensor {
        let inner = &self.0;
        let mut alias =
            Inner::new(inner.storage.clone(), inner.layout.clone(), inner.dtype, None, inner.inference);
        alias.number = inner.number;
        Tensor(Shared::new(alias))
    }

    /// This tensor as a number that a program wrote, which gives way to the types of tensors.
    pub(crate) fn into_number(self) -> Tensor {
        let inner = &self.0;
        let (storage, layout) = (inner.storage.clone(), inner.layout.clone());
        let mut number = Inner::new(storage, layout, inner.dtype, None, inner.inference);
        number.number = true;
        Tensor(Shared::new(number))
    }

    /// Whether it is a number that a program wrote in the place of a tensor.
    pub(crate) fn is_number(&self) -> bool {
        self.0.number
    }

    /// Size of each dimension.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.0.layout.shape()
    }

    /// Elements from one index to the next, per dimension.
    pub fn strides(&self) -> &[usize] {
        self.0.layout.strides()
    }

    /// How the elements lie in the storage.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The memory that holds the elements.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where the elements are.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// How many dimensions there are.
    pub fn dim(&self) -> usize {
        self.0.layout.rank()
    }

    /// How many elements there are.
    #[inline]
    pub fn numel(&self) -> usize {
        self.0.layout.len()
    }

    /// Whether elements lie one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// How often the elements were changed in place, through this handle or any alias.
    pub fn version(&self) -> u64 {
        self.0.storage.version()
    }

    /// Whether both handles are the same tensor.
    pub fn same_as(&self, other: &Tensor) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Whether another tensor's elements are seen through this one.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.0.view.is_some()
    }

    /// Whether the tensor was made in [inference mode](crate::autograd::inference_mode).
    #[inline]
    pub fn is_inference(&self) -> bool {
        self.0.inference
    }

    /// Where calls on this tensor go.
    #[inline]
    pub(crate) fn keys(&self) -> KeySet {
        let backend = KeySet::of(self.0.device.key);
        if self.needs_autograd() { backend | KeySet::AUTOGRAD } else { backend }
    }

    /// The tensor as observers see it.
    pub fn argument(&self) -> TensorArgument<'_> {
        let (shape, strides, dtype) = (self.shape(), self.strides(), self.dtype().name());
        TensorArgument { shape, strides, dtype, source: Some(self) }
    }

    /// `dim` counted from the front; negative ones count from the back.
    pub(crate) fn dim_index(&self, op: &'static str, dim: isize) -> Result<usize> {
        crate::ops::dim_index(op, dim, self.dim())
    }

    /// Whether the tensor holds data at all.
    pub(crate) fn is_meta(&self) -> bool {
        self.0.device.key == Key::META
    }
}

impl Identified for Tensor {
    fn identity(&self) -> Option<Identity> {
        let storage = self.storage();
        Some(Identity {
            tensor: Shared::address(&self.0),
            storage: storage.address()?,
            offset: self.layout().offset(),
            version: storage.version(),
            device: self.device(),
        })
    }
}
