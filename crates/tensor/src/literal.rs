//! Tensors from literals.

use crate::promote::DEFAULT_FLOAT;
use crate::{Cause, DType, Element, Error, Result, Tensor};
use cresset_kernels::Dims;

/// A host tensor from numbers as they are written: `tensor![1, 2]`, `tensor![[1.0, 2.0], [3.0, 4.0]]`.
///
/// As in Python, plain numbers become `i64` and `f32`; another element type is written behind:
/// `tensor![1.0, 2.0; DType::F64]`. Gives a `Result`, for vectors may differ in length.
///
/// ```
/// use cresset_tensor::{DType, tensor};
/// let x = tensor![[1.0, 2.0], [3.0, 4.0]]?;
/// assert_eq!((x.shape(), x.dtype()), (&[2, 2][..], DType::F32));
/// assert_eq!(tensor![1, 2; DType::U8]?.to_vec::<u8>()?, [1, 2]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! tensor {
    ($($row:expr),+ $(,)?) => {
        $crate::Tensor::literal([$($row),+], None)
    };
    ($($row:expr),+ ; $dtype:expr) => {
        $crate::Tensor::literal([$($row),+], Some($dtype))
    };
}

impl Tensor {
    /// A host tensor from a literal: a number, or arrays, slices and vectors of them. Elements are
    /// of the type that they are written in.
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
        Tensor::from_vec(elements, shape)
    }

    #[doc(hidden)]
    pub fn literal<N: Nested>(literal: N, dtype: Option<DType>) -> Result<Tensor> {
        let x = Tensor::new(literal)?;
        let dtype = dtype.unwrap_or(match x.dtype() {
            // What the compiler makes of a number that says nothing else.
            DType::F64 => DEFAULT_FLOAT,
            DType::I32 => DType::I64,
            written => written,
        });
        x.to_dtype(dtype)
    }
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
