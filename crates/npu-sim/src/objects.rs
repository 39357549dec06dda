//! Descriptors: tensors, numbers and lists as operators are given them.

use crate::config::CONFIG;
use crate::error::{Result, fail};
use crate::event::EVENTS;
use crate::handle::Handles;
use crate::memory::Span;
use crate::plan::Executor;
use cresset_acl::code;
use cresset_acl::constant::dtype;
use cresset_kernels::{DType, Dims, Layout, Scalar};
use std::collections::BTreeSet;

pub(crate) static TENSORS: Handles<Tensor> = Handles::new(4, "tensor");
pub(crate) static SCALARS: Handles<Scalar> = Handles::new(5, "scalar");
pub(crate) static INT_ARRAYS: Handles<Vec<i64>> = Handles::new(6, "array of integers");
pub(crate) static BOOL_ARRAYS: Handles<Vec<bool>> = Handles::new(7, "array of truth values");
/// Lists own their tensors, by handle.
pub(crate) static TENSOR_LISTS: Handles<Vec<usize>> = Handles::new(8, "list of tensors");
pub(crate) static EXECUTORS: Handles<Executor> = Handles::new(9, "executor");
pub(crate) static FLOAT_ARRAYS: Handles<Vec<f32>> = Handles::new(10, "array of floats");
/// Lists own their scalars, by handle.
pub(crate) static SCALAR_LISTS: Handles<Vec<usize>> = Handles::new(11, "list of scalars");

/// A line per kind of object of which some were never destroyed.
pub(crate) fn leaks() -> String {
    let kinds = [
        TENSORS.alive(),
        SCALARS.alive(),
        INT_ARRAYS.alive(),
        BOOL_ARRAYS.alive(),
        TENSOR_LISTS.alive(),
        EXECUTORS.alive(),
        FLOAT_ARRAYS.alive(),
        SCALAR_LISTS.alive(),
        EVENTS.alive(),
    ];
    let left = kinds.into_iter().filter(|(_, count)| *count > 0);
    let mut text: String = left.map(|(name, count)| format!("{count} of kind {name}\n")).collect();
    let planned: BTreeSet<&str> = EXECUTORS.values().iter().map(|executor| executor.operator).collect();
    if !planned.is_empty() {
        text +=
            &format!("executors were planned for {}\n", planned.into_iter().collect::<Vec<_>>().join(", "));
    }
    text
}

/// Says on the terminal what was never destroyed, if that was asked for.
pub(crate) fn tell_leaks(when: &str) {
    let leaks = leaks();
    if CONFIG.leaks && !leaks.is_empty() {
        eprintln!("cresset-npu-sim: never destroyed, {when}:");
        leaks.lines().for_each(|line| eprintln!("  {line}"));
    }
}

/// A view of device memory. An operator keeps a copy of it, and no reference.
#[derive(Clone)]
pub(crate) struct Tensor {
    /// Of the first element.
    address: usize,
    dtype: DType,
    /// Whether elements are what `dtype` says, or only as wide and to be moved.
    exact: bool,
    /// With no offset, as the address has it.
    layout: Layout,
    told: Told,
    /// What the client knows it by; 0 while nobody asked an operator.
    handle: usize,
}

/// What a client said about a tensor, and may ask for again.
#[derive(Clone)]
pub(crate) struct Told {
    /// Where the storage starts.
    pub(crate) base: usize,
    /// The first element, counted from there.
    pub(crate) offset: usize,
    /// The element type by its number.
    pub(crate) dtype: i32,
    pub(crate) format: i32,
    pub(crate) storage: Dims,
}

/// What `aclCreateTensor` is given.
pub(crate) struct Description<'a> {
    pub(crate) shape: &'a [i64],
    pub(crate) strides: Option<&'a [i64]>,
    pub(crate) offset: i64,
    pub(crate) dtype: i32,
    pub(crate) format: i32,
    pub(crate) storage: &'a [i64],
    pub(crate) address: usize,
}

/// The most dimensions that operators take.
const MOST_DIMS: usize = 8;

/// Equal if they are the same elements, whatever was told besides.
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.address == other.address && self.dtype == other.dtype && self.layout == other.layout
    }
}

impl Tensor {
    pub(crate) fn new(description: &Description<'_>) -> Result<Tensor> {
        let &Description { shape, strides, offset, storage, address, format, .. } = description;
        let (dtype, exact) = stored_as(description.dtype)?;
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
        let storage = sizes(storage, "storage shape")?;
        let room = storage.iter().try_fold(1usize, |room, &size| room.checked_mul(size));
        if !layout.is_empty()
            && offset.checked_add(layout.end()).is_none_or(|end| room.is_none_or(|room| end > room))
        {
            fail!(
                code::NN_PARAM_INVALID,
                "{layout:?} from element {offset} reaches beyond storage {storage:?}"
            );
        }
        let told = Told { base: 0, offset, dtype: description.dtype, format, storage };
        Tensor { address: 0, dtype, exact, layout, told, handle: 0 }.at(address)
    }

    /// The same tensor with its storage at another address.
    pub(crate) fn at(mut self, base: usize) -> Result<Tensor> {
        let dtype = self.dtype;
        if !base.is_multiple_of(dtype.size()) {
            fail!(code::NN_PARAM_INVALID, "address {base:#x} is not aligned for {dtype}");
        }
        self.address = base.wrapping_add(self.told.offset * dtype.size());
        self.told.base = base;
        Ok(self)
    }

    /// The same tensor, which the client knows by a handle.
    pub(crate) fn known_as(self, handle: usize) -> Tensor {
        Tensor { handle, ..self }
    }

    /// Lets the client see a shape that is only known now: that of its first elements. What it has destroyed
    /// meanwhile stays so.
    pub(crate) fn resize(&self, shape: &[usize]) {
        let Some(layout) = Layout::contiguous(shape) else { return };
        assert!(layout.end() <= self.layout.end().max(1), "a result takes no more room than it was given");
        TENSORS.replace(self.handle, Tensor { layout, ..self.clone() });
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether its elements are of a type that kernels compute with.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// What the client said.
    pub(crate) fn told(&self) -> &Told {
        &self.told
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
    match stored_as(number)? {
        (dtype, true) => Ok(dtype),
        _ => fail!(code::NN_PARAM_INVALID, "no kernel here computes with element type {number}"),
    }
}

/// How elements of a number of `aclDataType` lie in memory, and whether that is what they are.
fn stored_as(number: i32) -> Result<(DType, bool)> {
    Ok(match number {
        dtype::FLOAT => (DType::F32, true),
        dtype::FLOAT16 => (DType::F16, true),
        dtype::INT8 => (DType::I8, true),
        dtype::INT32 => (DType::I32, true),
        dtype::UINT8 => (DType::U8, true),
        dtype::INT16 => (DType::I16, true),
        dtype::INT64 => (DType::I64, true),
        dtype::DOUBLE => (DType::F64, true),
        dtype::BOOL => (DType::Bool, true),
        dtype::BF16 => (DType::BF16, true),
        dtype::UINT16 => (DType::I16, false),
        dtype::UINT32 => (DType::I32, false),
        dtype::UINT64 | dtype::COMPLEX64 => (DType::I64, false),
        _ => fail!(code::NN_PARAM_INVALID, "element type {number} is not simulated"),
    })
}

/// Bytes of an element of a number of `aclDataType`; 0 for one that is not known.
pub(crate) fn bytes_of(number: i32) -> usize {
    match number {
        dtype::COMPLEX128 => 16,
        _ => stored_as(number).map_or(0, |(dtype, _)| dtype.size()),
    }
}

fn sizes(numbers: &[i64], what: &str) -> Result<Dims> {
    let sizes: Option<Dims> = numbers.iter().map(|&size| usize::try_from(size).ok()).collect();
    match sizes {
        Some(sizes) => Ok(sizes),
        None => fail!(code::NN_PARAM_INVALID, "{what} {numbers:?} has a negative number"),
    }
}
