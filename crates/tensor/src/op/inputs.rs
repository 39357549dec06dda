//! What operators take: tensors, lists of them, and numbers in their place.

use crate::{DType, Device, Scalar, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::{Argument, TensorArgument};

/// One argument that is, or stands for, a tensor.
#[derive(Clone, Copy)]
pub enum Given<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number in the place of a tensor.
    Scalar(Scalar),
    /// An optional tensor that was not given.
    Nothing,
}

impl<'a> Given<'a> {
    /// The argument as observers see it.
    pub fn into_argument(self) -> Argument<'a> {
        match self {
            Given::Tensor(tensor) => Argument::Tensor(tensor.argument()),
            // A program's number is a tensor to torch; one that an operator brings stays a number.
            Given::Scalar(scalar) if crate::shown::from_operator() => crate::shown::plain(scalar),
            Given::Scalar(scalar) => Argument::Tensor(scalar_argument(scalar)),
            Given::Nothing => Argument::None,
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(self) -> Option<&'a Tensor> {
        match self {
            Given::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

fn scalar_argument(scalar: Scalar) -> TensorArgument<'static> {
    let dtype = match scalar {
        Scalar::Float(_) => DType::F64,
        Scalar::Int(_) => DType::I64,
        Scalar::Bool(_) => DType::Bool,
    };
    TensorArgument { shape: &[], strides: &[], dtype: dtype.name(), source: None }
}

/// An operand that may be a number.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number; its element type is decided by the tensors it meets.
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    /// Size of each dimension; none for a number.
    pub fn shape(self) -> &'a [usize] {
        match self {
            Operand::Tensor(tensor) => tensor.shape(),
            Operand::Scalar(_) => &[],
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(self) -> Option<&'a Tensor> {
        match self {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Scalar(_) => None,
        }
    }

    pub(crate) fn given(self) -> Given<'a> {
        match self {
            Operand::Tensor(tensor) => Given::Tensor(tensor),
            Operand::Scalar(scalar) => Given::Scalar(scalar),
        }
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Operand::Tensor(tensor)
    }
}

macro_rules! operands {
    ($($number:ty)*) => {$(
        impl From<$number> for Operand<'_> {
            fn from(number: $number) -> Self {
                Operand::Scalar(number.into())
            }
        }
    )*};
}

operands!(Scalar f64 f32 i64 i32 bool);

/// Tensor arguments: an array or a list of tensors, of operands or of tensors that may be missing,
/// or one of these followed by more.
pub trait Inputs: Copy {
    /// Visits every argument in order.
    fn each(self, visit: impl FnMut(Given<'_>));

    /// Where the first tensor is; `None` if there is none.
    fn device(self) -> Option<Device> {
        let mut device = None;
        self.each(|given| device = device.or(given.tensor().map(Tensor::device)));
        device
    }

    /// The keys of all the tensors together.
    #[inline]
    fn keys(self) -> KeySet {
        let mut keys = KeySet::EMPTY;
        self.each(|tensor| {
            if let Given::Tensor(tensor) = tensor {
                keys = keys | tensor.keys();
            }
        });
        keys
    }
}

impl<const N: usize> Inputs for [&Tensor; N] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.into_iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }
}

impl Inputs for &[&Tensor] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }
}

impl<const N: usize> Inputs for [Operand<'_>; N] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.into_iter().for_each(|operand| visit(operand.given()));
    }
}

impl<const N: usize> Inputs for [Option<&Tensor>; N] {
    #[inline]
    fn each(self, visit: impl FnMut(Given<'_>)) {
        self.as_slice().each(visit);
    }
}

impl Inputs for &[Option<&Tensor>] {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.iter().for_each(|tensor| visit(tensor.map_or(Given::Nothing, Given::Tensor)));
    }
}

impl<T: Inputs> Inputs for (T, &[Option<&Tensor>]) {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.0.each(&mut visit);
        self.1.each(visit);
    }
}

impl<T: Inputs> Inputs for (T, Option<&Tensor>) {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.0.each(&mut visit);
        visit(self.1.map_or(Given::Nothing, Given::Tensor));
    }
}

impl Inputs for (&Tensor, Operand<'_>) {
    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        visit(Given::Tensor(self.0));
        visit(self.1.given());
    }
}
