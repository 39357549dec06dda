//! What operators take: tensors, lists of them, and numbers in their place.

use crate::{Device, Result, Scalar, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::Argument;
use smallvec::SmallVec;

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
            Given::Scalar(scalar) => crate::shown::plain(scalar),
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

    /// The operand, as a number if it stands for one.
    pub(crate) fn plain(self) -> Operand<'a> {
        match self {
            Operand::Tensor(number) if number.is_number() => {
                crate::shown::only(number).map_or(self, Operand::Scalar)
            }
            operand => operand,
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

/// What is to stand in the place of a tensor; `None` leaves it.
pub type Swap<'s> = dyn FnMut(&Tensor) -> Result<Option<Tensor>> + 's;

/// Tensor arguments: an array or a list of tensors, of operands or of tensors that may be missing,
/// or an array followed by more.
pub trait Inputs: Copy {
    /// The same form with tensors that live otherwise long.
    type For<'b>: Inputs;

    /// Visits every argument in order.
    fn each(self, visit: impl FnMut(Given<'_>));

    /// What `then` gives for the same arguments, each tensor swapped. The last is asked first, as torch
    /// does; those of a list in their order.
    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R>;

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

/// What stands in the place of each of some tensors.
type Swapped = SmallVec<[Option<Tensor>; 4]>;

fn swap_list<'t>(tensors: impl Iterator<Item = Option<&'t Tensor>>, swap: &mut Swap<'_>) -> Result<Swapped> {
    tensors.map(|tensor| swap_one(tensor, swap)).collect()
}

fn swap_from_last<'t>(
    tensors: impl DoubleEndedIterator<Item = Option<&'t Tensor>>,
    swap: &mut Swap<'_>,
) -> Result<Swapped> {
    let mut swapped = swap_list(tensors.rev(), swap)?;
    swapped.reverse();
    Ok(swapped)
}

fn swap_one(tensor: Option<&Tensor>, swap: &mut Swap<'_>) -> Result<Option<Tensor>> {
    Ok(tensor.map(swap).transpose()?.flatten())
}

impl<const N: usize> Inputs for [&Tensor; N] {
    type For<'b> = [&'b Tensor; N];

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.into_iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_from_last(self.into_iter().map(Some), swap)?;
        then(std::array::from_fn(|i| new[i].as_ref().unwrap_or(self[i])))
    }
}

impl Inputs for &[&Tensor] {
    type For<'b> = &'b [&'b Tensor];

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_list(self.iter().copied().map(Some), swap)?;
        let tensors: Vec<&Tensor> =
            new.iter().zip(self).map(|(new, old)| new.as_ref().unwrap_or(old)).collect();
        then(&tensors)
    }
}

impl<const N: usize> Inputs for [Operand<'_>; N] {
    type For<'b> = [Operand<'b>; N];

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.into_iter().for_each(|operand| visit(operand.given()));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_from_last(self.into_iter().map(Operand::tensor), swap)?;
        then(std::array::from_fn(|i| new[i].as_ref().map_or(self[i], Operand::Tensor)))
    }
}

impl<const N: usize> Inputs for [Option<&Tensor>; N] {
    type For<'b> = [Option<&'b Tensor>; N];

    #[inline]
    fn each(self, visit: impl FnMut(Given<'_>)) {
        self.as_slice().each(visit);
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_from_last(self.into_iter(), swap)?;
        then(std::array::from_fn(|i| new[i].as_ref().or(self[i])))
    }
}

impl Inputs for &[Option<&Tensor>] {
    type For<'b> = &'b [Option<&'b Tensor>];

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.iter().for_each(|tensor| visit(tensor.map_or(Given::Nothing, Given::Tensor)));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_list(self.iter().copied(), swap)?;
        let tensors: Vec<_> = new.iter().zip(self).map(|(new, old)| new.as_ref().or(*old)).collect();
        then(&tensors)
    }
}

impl<const N: usize> Inputs for ([&Tensor; N], &[Option<&Tensor>]) {
    type For<'b> = ([&'b Tensor; N], &'b [Option<&'b Tensor>]);

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.0.each(&mut visit);
        self.1.each(visit);
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_list(self.1.iter().copied(), swap)?;
        let list: Vec<_> = new.iter().zip(self.1).map(|(new, old)| new.as_ref().or(*old)).collect();
        let new = swap_from_last(self.0.into_iter().map(Some), swap)?;
        then((std::array::from_fn(|i| new[i].as_ref().unwrap_or(self.0[i])), &list))
    }
}

impl<const N: usize> Inputs for ([&Tensor; N], Option<&Tensor>) {
    type For<'b> = ([&'b Tensor; N], Option<&'b Tensor>);

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.0.each(&mut visit);
        visit(self.1.map_or(Given::Nothing, Given::Tensor));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let last = swap_one(self.1, swap)?;
        let new = swap_from_last(self.0.into_iter().map(Some), swap)?;
        then((std::array::from_fn(|i| new[i].as_ref().unwrap_or(self.0[i])), last.as_ref().or(self.1)))
    }
}

impl<const N: usize> Inputs for (&Tensor, [Option<Operand<'_>>; N]) {
    type For<'b> = (&'b Tensor, [Option<Operand<'b>>; N]);

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        visit(Given::Tensor(self.0));
        self.1.into_iter().for_each(|operand| visit(operand.map_or(Given::Nothing, Operand::given)));
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let new = swap_from_last(self.1.into_iter().map(|operand| operand.and_then(Operand::tensor)), swap)?;
        let first = swap_one(Some(self.0), swap)?;
        let rest = std::array::from_fn(|i| new[i].as_ref().map(Operand::Tensor).or(self.1[i]));
        then((first.as_ref().unwrap_or(self.0), rest))
    }
}

impl Inputs for (&Tensor, Operand<'_>) {
    type For<'b> = (&'b Tensor, Operand<'b>);

    #[inline]
    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        visit(Given::Tensor(self.0));
        visit(self.1.given());
    }

    fn swapped<R>(self, swap: &mut Swap<'_>, then: impl FnOnce(Self::For<'_>) -> Result<R>) -> Result<R> {
        let last = swap_one(self.1.tensor(), swap)?;
        let first = swap_one(Some(self.0), swap)?;
        then((first.as_ref().unwrap_or(self.0), last.as_ref().map_or(self.1, Operand::Tensor)))
    }
}
