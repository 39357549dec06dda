//! The tensor handle.

use crate::autograd::Tracking;
use crate::{DType, Device, Key, Layout, Result, Storage};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::TensorArgument;
use std::sync::Arc;

/// An n-dimensional array on some device. A handle: cloning it copies no elements.
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) storage: Storage,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    /// For a view of another tensor, the version of the storage when it was taken.
    pub(crate) view_of: Option<u64>,
    pub(crate) tracking: Tracking,
}

impl Tensor {
    /// A tensor over `storage`, outside any graph. The layout must lie inside the storage.
    pub(crate) fn from_parts(storage: Storage, layout: Layout, dtype: DType, is_view: bool) -> Tensor {
        debug_assert!(layout.end() * dtype.size() <= storage.len(), "{layout:?} reaches beyond its storage");
        let (device, view_of) = (storage.device(), is_view.then(|| storage.version()));
        Tensor(Arc::new(Inner { storage, layout, dtype, device, view_of, tracking: Tracking::default() }))
    }

    /// Another tensor over the same elements, outside any graph.
    pub(crate) fn alias(&self) -> Tensor {
        Tensor::from_parts(self.0.storage.clone(), self.0.layout.clone(), self.0.dtype, self.is_view())
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
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether another tensor's elements are seen through this one.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.0.view_of.is_some()
    }

    /// Where calls on this tensor go. An old view of elements that have become part of a graph
    /// since goes to autograd too, which refuses it.
    #[inline]
    pub(crate) fn keys(&self) -> KeySet {
        let backend = KeySet::of(self.0.device.key);
        let outdated = self.0.view_of.is_some_and(|version| self.0.storage.recorded_version() > version);
        if self.0.tracking.is_tracked() || outdated { backend | KeySet::AUTOGRAD } else { backend }
    }

    /// The tensor as observers see it.
    pub fn argument(&self) -> TensorArgument<'_> {
        TensorArgument { shape: self.shape(), strides: self.strides(), dtype: self.dtype().name() }
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
