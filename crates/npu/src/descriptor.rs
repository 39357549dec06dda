//! Arguments of operators as the library wants them described.
//!
//! Each class of arguments says what Rust gives, what is kept while the call lasts, and what
//! C is passed. Descriptions are destroyed when dropped.

use crate::allocator::Block;
use crate::device;
use crate::status::{AclResult, check, keep};
use crate::stream::{self, Stream};
use crate::sys::loaded;
use cresset_acl::class::{self, Class};
use cresset_acl::code;
use cresset_acl::constant::{dtype, format};
use cresset_acl::types::{
    BoolArrayHandle, IntArrayHandle, ScalarHandle, TensorHandle, TensorListHandle, c_char, c_void,
};
use cresset_tensor::{Cause, DType, Error, Result, Scalar, Tensor};
use smallvec::SmallVec;
use std::ffi::CStr;

/// Where a call happens: the device of its tensors, and the stream this thread fills there.
#[derive(Default)]
pub struct Site(Option<Stream>);

impl Site {
    /// Joins a tensor to the call; the first one decides where it happens.
    fn join(&mut self, tensor: &Tensor) -> Result<usize> {
        let Some(block) = tensor.storage().device_memory::<Block>() else {
            let text =
                format_args!("a tensor on {} was given to the npu; move it with to()", tensor.device());
            return Err(Error::new(Cause::Device, "", text));
        };
        if self.0.is_none() {
            device::bind(tensor.device().index)?;
            self.0 = Some(stream::current(tensor.device().index)?);
        }
        block.used_on(self.stream());
        Ok(block.address())
    }

    pub(crate) fn stream(&self) -> &Stream {
        self.0.as_ref().expect("every operator has a tensor")
    }
}

/// A class of arguments from the side of Rust.
pub trait Argument: Class {
    /// What the caller gives.
    type Given<'a>;
    /// What is kept while the call lasts.
    type Kept;
    /// Describes the argument to the library.
    fn describe(given: Self::Given<'_>, site: &mut Site) -> Result<Self::Kept>;
    /// What C is passed.
    fn raw(kept: &Self::Kept) -> Self::Raw;
}

macro_rules! descriptions {
    ($($(#[$doc:meta])* $name:ident($handle:ty), $destroy:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name(*mut $handle);

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: made by the library and destroyed once.
                keep(check(stringify!($destroy), unsafe { (loaded().object.$destroy)(self.0) }));
            }
        }
    )*};
}

descriptions! {
    /// A tensor, described.
    TensorDescription(TensorHandle), aclDestroyTensor;
    /// A number, described.
    ScalarDescription(ScalarHandle), aclDestroyScalar;
    /// Integers, described.
    IntArrayDescription(IntArrayHandle), aclDestroyIntArray;
    /// Truths, described.
    BoolArrayDescription(BoolArrayHandle), aclDestroyBoolArray;
}

/// Tensors, described: the list owns them.
pub struct TensorListDescription(*mut TensorListHandle);

impl Drop for TensorListDescription {
    fn drop(&mut self) {
        // SAFETY: made by the library and destroyed once, with what is in it.
        keep(check("aclDestroyTensorList", unsafe { (loaded().object.aclDestroyTensorList)(self.0) }));
    }
}

/// The library gives null instead of a status.
fn created<T>(function: &'static str, pointer: *mut T) -> AclResult<*mut T> {
    if pointer.is_null() {
        check(function, code::NN_PARAM_INVALID)?;
    }
    Ok(pointer)
}

type Sizes = SmallVec<[i64; 8]>;

fn sizes(sizes: &[usize]) -> Sizes {
    sizes.iter().map(|&size| size as i64).collect()
}

fn describe_tensor(tensor: &Tensor, site: &mut Site) -> Result<TensorDescription> {
    let address = site.join(tensor)? as *mut c_void;
    let (shape, strides) = (sizes(tensor.shape()), sizes(tensor.strides()));
    let elements = (tensor.storage().len() / tensor.dtype().size()) as i64;
    let (rank, offset) = (shape.len() as u64, tensor.layout().offset() as i64);
    // SAFETY: `shape` and `strides` hold `rank` numbers, the storage one; all are copied.
    let raw = unsafe {
        (loaded().object.aclCreateTensor)(
            shape.as_ptr(),
            rank,
            number_of(tensor.dtype()),
            strides.as_ptr(),
            offset,
            format::ND,
            &elements,
            1,
            address,
        )
    };
    Ok(TensorDescription(created("aclCreateTensor", raw)?))
}

impl Argument for class::Tensor {
    type Given<'a> = &'a Tensor;
    type Kept = TensorDescription;

    #[inline]
    fn describe(given: &Tensor, site: &mut Site) -> Result<TensorDescription> {
        describe_tensor(given, site)
    }

    #[inline]
    fn raw(kept: &TensorDescription) -> *const TensorHandle {
        kept.0
    }
}

impl Argument for class::OptionalTensor {
    type Given<'a> = Option<&'a Tensor>;
    type Kept = Option<TensorDescription>;

    fn describe(given: Option<&Tensor>, site: &mut Site) -> Result<Option<TensorDescription>> {
        given.map(|tensor| describe_tensor(tensor, site)).transpose()
    }

    fn raw(kept: &Option<TensorDescription>) -> *const TensorHandle {
        kept.as_ref().map_or(std::ptr::null(), |tensor| tensor.0)
    }
}

impl Argument for class::Scalar {
    type Given<'a> = Scalar;
    type Kept = ScalarDescription;

    fn describe(given: Scalar, _: &mut Site) -> Result<ScalarDescription> {
        let (mut bytes, dtype) = match given {
            Scalar::Float(value) => (value.to_ne_bytes(), dtype::DOUBLE),
            Scalar::Int(value) => (value.to_ne_bytes(), dtype::INT64),
            Scalar::Bool(value) => ([u8::from(value); 8], dtype::BOOL),
        };
        // SAFETY: the value is of this type, at most eight bytes, and copied.
        let raw = unsafe { (loaded().object.aclCreateScalar)(bytes.as_mut_ptr().cast(), dtype) };
        Ok(ScalarDescription(created("aclCreateScalar", raw)?))
    }

    fn raw(kept: &ScalarDescription) -> *const ScalarHandle {
        kept.0
    }
}

impl Argument for class::IntArray {
    type Given<'a> = &'a [usize];
    type Kept = IntArrayDescription;

    fn describe(given: &[usize], _: &mut Site) -> Result<IntArrayDescription> {
        let values = sizes(given);
        // SAFETY: as many numbers as are said, and copied.
        let raw = unsafe { (loaded().object.aclCreateIntArray)(values.as_ptr(), values.len() as u64) };
        Ok(IntArrayDescription(created("aclCreateIntArray", raw)?))
    }

    fn raw(kept: &IntArrayDescription) -> *const IntArrayHandle {
        kept.0
    }
}

impl Argument for class::OptionalIntArray {
    type Given<'a> = Option<&'a [usize]>;
    type Kept = Option<IntArrayDescription>;

    fn describe(given: Option<&[usize]>, site: &mut Site) -> Result<Option<IntArrayDescription>> {
        given.map(|numbers| class::IntArray::describe(numbers, site)).transpose()
    }

    fn raw(kept: &Option<IntArrayDescription>) -> *const IntArrayHandle {
        kept.as_ref().map_or(std::ptr::null(), |array| array.0)
    }
}

impl Argument for class::BoolArray {
    type Given<'a> = &'a [bool];
    type Kept = BoolArrayDescription;

    fn describe(given: &[bool], _: &mut Site) -> Result<BoolArrayDescription> {
        // SAFETY: as many truths as are said, and copied.
        let raw = unsafe { (loaded().object.aclCreateBoolArray)(given.as_ptr(), given.len() as u64) };
        Ok(BoolArrayDescription(created("aclCreateBoolArray", raw)?))
    }

    fn raw(kept: &BoolArrayDescription) -> *const BoolArrayHandle {
        kept.0
    }
}

impl Argument for class::TensorList {
    type Given<'a> = &'a [&'a Tensor];
    type Kept = TensorListDescription;

    fn describe(given: &[&Tensor], site: &mut Site) -> Result<TensorListDescription> {
        let tensors = given.iter().map(|tensor| describe_tensor(tensor, site)).collect::<Result<Vec<_>>>()?;
        let handles: Vec<*const TensorHandle> = tensors.iter().map(|tensor| tensor.0.cast_const()).collect();
        // SAFETY: as many handles as are said; the array is copied.
        let raw = unsafe { (loaded().object.aclCreateTensorList)(handles.as_ptr(), handles.len() as u64) };
        let list = TensorListDescription(created("aclCreateTensorList", raw)?);
        tensors.into_iter().for_each(std::mem::forget);
        Ok(list)
    }

    fn raw(kept: &TensorListDescription) -> *const TensorListHandle {
        kept.0
    }
}

impl Argument for class::Text {
    type Given<'a> = &'static CStr;
    type Kept = &'static CStr;

    fn describe(given: &'static CStr, _: &mut Site) -> Result<&'static CStr> {
        Ok(given)
    }

    fn raw(kept: &&'static CStr) -> *const c_char {
        kept.as_ptr()
    }
}

impl Argument for class::DataType {
    type Given<'a> = DType;
    type Kept = i32;

    fn describe(given: DType, _: &mut Site) -> Result<i32> {
        Ok(number_of(given))
    }

    fn raw(kept: &i32) -> i32 {
        *kept
    }
}

macro_rules! plain {
    ($($ty:ident)*) => {$(
        impl Argument for class::$ty {
            type Given<'a> = $ty;
            type Kept = $ty;

            #[inline]
            fn describe(given: $ty, _: &mut Site) -> Result<$ty> {
                Ok(given)
            }

            #[inline]
            fn raw(kept: &$ty) -> $ty {
                *kept
            }
        }
    )*};
}

plain!(bool f32 f64 i8 i32 i64 u64);

/// The library's number of an element type.
fn number_of(dtype: DType) -> i32 {
    match dtype {
        DType::Bool => dtype::BOOL,
        DType::U8 => dtype::UINT8,
        DType::I8 => dtype::INT8,
        DType::I16 => dtype::INT16,
        DType::I32 => dtype::INT32,
        DType::I64 => dtype::INT64,
        DType::F16 => dtype::FLOAT16,
        DType::BF16 => dtype::BF16,
        DType::F32 => dtype::FLOAT,
        DType::F64 => dtype::DOUBLE,
    }
}
