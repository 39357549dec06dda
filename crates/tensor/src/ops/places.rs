//! What operators that pick or put elements by index share.

use super::scalar_argument;
use crate::op::Operand;
use crate::{Cause, DType, Error, Layout, NamedDim, Result, Scalar, Tensor, cpu};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index::{self, Combine, Places};
use cresset_kernels::{Element, OutOfRange, View, elementwise, with_dtype};
use std::borrow::Cow;

/// An index that leads nowhere, told by `op`.
pub(super) fn out_of_range(op: &'static str) -> impl FnOnce(OutOfRange) -> Error {
    move |error| Error::new(Cause::Index, op, error)
}

/// Refuses indices other than i64 and i32; an empty one may be anything.
pub(super) fn check_index(op: &'static str, index: &Tensor) -> Result<()> {
    if matches!(index.dtype(), DType::I64 | DType::I32) || index.numel() == 0 {
        return Ok(());
    }
    Err(Error::new(Cause::DType, op, format_args!("expects indices of i64 or i32, not {}", index.dtype())))
}

/// Refuses a source of another element type than the tensor it goes to.
pub(super) fn check_same_dtype(op: &'static str, x: &Tensor, source: &Tensor) -> Result<()> {
    if x.dtype() == source.dtype() {
        return Ok(());
    }
    let text = format_args!("expects a source of {}, as the tensor, not {}", x.dtype(), source.dtype());
    Err(Error::new(Cause::DType, op, text))
}

/// Refuses to list more places than memory holds: an expanded tensor may have any number of elements.
pub(super) fn check_room(op: &'static str, shape: &[usize]) -> Result<()> {
    const SURE: usize = 1 << 24;
    let fits =
        |layout: Layout| layout.len() <= SURE || Vec::<usize>::new().try_reserve_exact(layout.len()).is_ok();
    if Layout::contiguous(shape).is_some_and(fits) {
        return Ok(());
    }
    Err(Error::new(Cause::Memory, op, format_args!("no memory to list the places of {shape:?} elements")))
}

/// Refuses a number where only a tensor can stand.
pub(super) fn must_be_tensor(op: &'static str, operand: Operand<'_>) -> Result<()> {
    match operand {
        Operand::Tensor(_) => Ok(()),
        Operand::Scalar(number) => {
            let text = format_args!("expects a tensor in the place of {number}");
            Err(Error::new(Cause::Argument, op, text))
        }
    }
}

/// The tensor of an operand that [`must_be_tensor`].
pub(super) fn tensor<'a>(operand: Operand<'a>) -> &'a Tensor {
    operand.tensor().expect("only a source may be a number")
}

/// Visits the arguments in the order of the schema: tensor, dimension, index, source.
pub(super) fn in_order(
    dim: NamedDim,
    [x, source, index]: [Operand<'_>; 3],
    visit: &mut dyn FnMut(Argument<'_>),
) {
    visit(x.given().into_argument());
    visit(dim.argument());
    visit(index.given().into_argument());
    match source {
        Operand::Tensor(source) => visit(Argument::Tensor(source.argument())),
        Operand::Scalar(value) => visit(scalar_argument(value)),
    }
}

/// Fills `out` with the elements of `x` at `places`.
pub(super) fn pick(x: &Tensor, places: &Places, out: &Tensor) {
    let (reading, mut writing) = (x.read(), out.write());
    index::pick(x.elements(&reading), places, out.elements_mut(&mut writing));
}

/// Writes the elements of `x` into `out`, for an in-place kernel to go on from.
pub(super) fn start(x: &Tensor, out: &Tensor) -> Result<()> {
    cpu::map(x, out.dtype(), out, elementwise::copy)
}

/// Elements on their way to places.
pub(super) struct Source<'a> {
    elements: Elements<'a>,
    layout: Layout,
}

enum Elements<'a> {
    Tensor(Cow<'a, Tensor>),
    Number(Scalar),
}

impl Elements<'_> {
    fn layout(&self) -> Layout {
        match self {
            Elements::Tensor(tensor) => tensor.layout().clone(),
            Elements::Number(_) => Layout::contiguous(&[]).expect("one element can be counted"),
        }
    }
}

impl<'a> Source<'a> {
    /// The elements of `operand` as `target` holds them, repeated to fill `shape`, in other memory.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub(super) fn filling(
        op: &'static str,
        shape: &[usize],
        operand: Operand<'a>,
        target: &Tensor,
    ) -> Result<Source<'a>> {
        let elements = beside(operand, target)?;
        let Some(layout) = elements.layout().broadcast_to(shape) else {
            let text = format_args!("values of shape {:?} do not fill {shape:?}", operand.shape());
            return Err(Error::new(Cause::Shape, op, text));
        };
        Ok(Source { elements, layout })
    }

    /// The first elements of `operand` along each dimension, as many as `shape` has; repeated if it is a
    /// number.
    pub(super) fn first(shape: &[usize], operand: Operand<'a>, target: &Tensor) -> Result<Source<'a>> {
        let elements = beside(operand, target)?;
        let layout = match &elements {
            Elements::Number(_) => elements.layout().broadcast_to(shape),
            Elements::Tensor(tensor) if tensor.dim() == shape.len() => {
                Layout::strided(shape, tensor.strides(), tensor.layout().offset())
            }
            Elements::Tensor(tensor) => tensor.layout().view(shape),
        };
        Ok(Source { elements, layout: layout.expect("`infer` found that the source is large enough") })
    }

    /// All elements of `tensor`, in row-major order.
    pub(super) fn all(tensor: &'a Tensor, target: &Tensor) -> Result<Source<'a>> {
        let tensor = tensor_beside(tensor, target)?;
        let layout = tensor.layout().clone();
        Ok(Source { elements: Elements::Tensor(tensor), layout })
    }

    /// The first `count` elements of `tensor`, in row-major order.
    pub(super) fn leading(tensor: &'a Tensor, count: usize, target: &Tensor) -> Result<Source<'a>> {
        let mut tensor = tensor_beside(tensor, target)?;
        if let ([_], [stride]) = (tensor.shape(), tensor.strides()) {
            let layout = Layout::strided(&[count], &[*stride], tensor.layout().offset());
            let layout = layout.expect("some of the elements can be counted");
            return Ok(Source { elements: Elements::Tensor(tensor), layout });
        }
        if !tensor.is_contiguous() {
            tensor = Cow::Owned(tensor.apart(target.dtype())?);
        }
        let layout = Layout::strided(&[count], &[1], tensor.layout().offset());
        let layout = layout.expect("some of the elements can be counted");
        Ok(Source { elements: Elements::Tensor(tensor), layout })
    }

    /// Puts them to places of `target`.
    pub(super) fn put(&self, target: &Tensor, places: &Places, how: Combine, include: bool) {
        match &self.elements {
            Elements::Tensor(tensor) => {
                let ([mut writing], reading) = cpu::lock_all([target], tensor);
                let source = View::new(reading.bytes(), tensor.dtype(), &self.layout);
                index::put(target.elements_mut(&mut writing), places, source, how, include);
            }
            Elements::Number(number) => with_dtype!(target.dtype(), T => {
                let number = [<T as Element>::from_scalar(*number)];
                let (mut writing, source) = (target.write(), View::of(&number, &self.layout));
                index::put(target.elements_mut(&mut writing), places, source, how, include);
            }),
        }
    }
}

/// An operand as elements of `target`'s type, in memory that a change of `target` cannot touch.
fn beside<'a>(operand: Operand<'a>, target: &Tensor) -> Result<Elements<'a>> {
    match operand {
        Operand::Tensor(tensor) => tensor_beside(tensor, target).map(Elements::Tensor),
        Operand::Scalar(number) => Ok(Elements::Number(number)),
    }
}

fn tensor_beside<'a>(tensor: &'a Tensor, target: &Tensor) -> Result<Cow<'a, Tensor>> {
    match tensor.storage().same_as(target.storage()) {
        true => tensor.apart(target.dtype()).map(Cow::Owned),
        false => tensor.converted(target.dtype()),
    }
}
