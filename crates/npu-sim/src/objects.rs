//! Descriptors: tensors, numbers and lists as operators are given them.

use crate::error::{Result, fail};
use crate::handle::Handles;
use crate::memory::Span;
use crate::plan::Executor;
use cresset_acl::code;
use cresset_acl::constant::dtype;
use cresset_kernels::{DType, Layout, Scalar};

pub(crate) static TENSORS: Handles<Tensor> = Handles::new(4);
pub(crate) static SCALARS: Handles<Scalar> = Handles::new(5);
pub(crate) static INT_ARRAYS: Handles<Vec<i64>> = Handles::new(6);
pub(crate) static BOOL_ARRAYS: Handles<Vec<bool>> = Handles::new(7);
/// Lists own their tensors, by handle.
pub(crate) static TENSOR_LISTS: Handles<Vec<usize>> = Handles::new(8);
pub(crate) static EXECUTORS: Handles<Executor> = Handles::new(9);

/// A view of device memory. Never changes, so an operator keeps a copy and no reference.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// Of the first element.
    address: usize,
    dtype: DType,
    /// With no offset, as the address has it.
    layout: Layout,
}

/// What `aclCreateTensor` is given.
pub(crate) struct Description<'a> {
    pub(crate) shape: &'a [i64],
    pub(crate) strides: Option<&'a [i64]>,
    pub(crate) offset: i64,
    pub(crate) dtype: i32,
    pub(crate) storage: &'a [i64],
    pub(crate) address: usize,
}

/// The most dimensions that operators take.
const MOST_DIMS: usize = 8;

impl Tensor {
    pub(crate) fn new(description: &Description<'_>) -> Result<Tensor> {
        let &Description { shape, strides, offset, storage, address, .. } = description;
        let dtype = dtype_of(description.dtype)?;
        let dims = sizes(shape, "shape")?;
        if dims.len() > MOST_DIMS {
            fail!(code::NN_PARAM_INVALID, "{} dimensions are more than {MOST_DIMS}", dims.len());
        }
        let layout = match strides {
            Some(strides) => Layout::strided(&dims, &sizes(strides, "strides")?, 0),
            None => Layout::contiguous(&dims),
        };
        let Some((layout, offset)) = layout.zip(usize::try_from(offset).ok()) else {
            fail!(
                code::NN_PARAM_INVALID,
                "shape {shape:?}, strides {strides:?}, offset {offset} make no view"
            );
        };
        let room =
            sizes(storage, "storage shape")?.iter().try_fold(1usize, |room, &size| room.checked_mul(size));
        if !layout.is_empty()
            && offset.checked_add(layout.end()).is_none_or(|end| room.is_none_or(|room| end > room))
        {
            fail!(
                code::NN_PARAM_INVALID,
                "{layout:?} from element {offset} reaches beyond storage {storage:?}"
            );
        }
        if address % dtype.size() != 0 {
            fail!(code::NN_PARAM_INVALID, "address {address:#x} is not aligned for {dtype}");
        }
        Ok(Tensor { address: address.wrapping_add(offset * dtype.size()), dtype, layout })
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bytes from the first element to the last.
    pub(crate) fn span(&self) -> Span {
        Span { start: self.address, bytes: self.layout.end() * self.dtype.size() }
    }

    /// The same memory seen through another layout that reaches no further.
    pub(crate) fn with_layout(&self, layout: Layout) -> Tensor {
        assert!(layout.offset() == 0 && layout.end() <= self.layout.end(), "a view stays inside its tensor");
        Tensor { layout, ..self.clone() }
    }
}

/// The element type of a number of `aclDataType`.
pub(crate) fn dtype_of(number: i32) -> Result<DType> {
    Ok(match number {
        dtype::FLOAT => DType::F32,
        dtype::FLOAT16 => DType::F16,
        dtype::INT8 => DType::I8,
        dtype::INT32 => DType::I32,
        dtype::UINT8 => DType::U8,
        dtype::INT16 => DType::I16,
        dtype::INT64 => DType::I64,
        dtype::DOUBLE => DType::F64,
        dtype::BOOL => DType::Bool,
        dtype::BF16 => DType::BF16,
        _ => fail!(code::NN_PARAM_INVALID, "element type {number} is not simulated"),
    })
}

fn sizes(numbers: &[i64], what: &str) -> Result<Vec<usize>> {
    let sizes: Option<Vec<usize>> = numbers.iter().map(|&size| usize::try_from(size).ok()).collect();
    match sizes {
        Some(sizes) => Ok(sizes),
        None => fail!(code::NN_PARAM_INVALID, "{what} {numbers:?} has a negative number"),
    }
}
