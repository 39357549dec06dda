//! Where elements are, as numbers, and numbers as rows of zeros and a one.

use super::places::check_room;
use crate::{Cause, DType, Error, Forward, Op, Result, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index;

/// Refuses tensors whose elements a host kernel cannot see: the shape of its result depends on them.
pub(super) fn host_only<'a>(op: &'static str, x: &'a Tensor) -> Result<&'a Tensor> {
    if x.device().is_cpu() {
        return Ok(x);
    }
    let text = format_args!(
        "the shape of the result depends on elements, which are on {}; move them with to(Device::CPU) first",
        x.device()
    );
    Err(Error::new(Cause::NoKernel, op, text))
}

/// The coordinates of all elements that are not zero, a row for each.
#[derive(Clone, Debug)]
pub struct Nonzero;

impl Op for Nonzero {
    const NAME: &'static str = "aten::nonzero";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Forward for Nonzero {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = host_only(Self::NAME, x)?;
        check_room(Self::NAME, x.shape())?;
        if x.dim() == 0 {
            // A coordinate of a single number has no parts, so the rows cannot be counted by them.
            let found = !index::nonzero(x.reshape([1])?.elements(&x.read())).is_empty();
            return Tensor::uninit(&[usize::from(found), 0], DType::I64, x.device());
        }
        let coordinates = index::nonzero(x.elements(&x.read()));
        Tensor::from_slice(&coordinates, [coordinates.len() / x.dim(), x.dim()])
    }
}

impl Tensor {
    /// The coordinates of all elements that are not zero, a row for each.
    pub fn nonzero(&self) -> Result<Tensor> {
        Nonzero.call([self])
    }

    /// The coordinates of all elements that are not zero, a tensor for each dimension: an index that
    /// picks them.
    pub fn nonzero_tuple(&self) -> Result<Vec<Tensor>> {
        let _span = composite("aten::nonzero_numpy", [self], |_| {});
        let x = if self.dim() == 0 { self.reshape([1])? } else { self.clone() };
        x.nonzero()?.unbind(1)
    }

    /// As [`nonzero`](Tensor::nonzero).
    pub fn argwhere(&self) -> Result<Tensor> {
        let _span = composite("aten::argwhere", [self], |_| {});
        self.nonzero()
    }

    /// A row of `classes` zeros with a one in it for each number; as many classes as there are numbers
    /// if it is `None`.
    ///
    /// # Errors
    /// If the numbers are not of i64, negative, or not below `classes`; if there are none and `classes`
    /// is `None`.
    pub fn one_hot(&self, classes: Option<usize>) -> Result<Tensor> {
        const NAME: &str = "aten::one_hot";
        let given = classes.map_or(-1, |classes| classes as i64);
        let _span = composite(NAME, [self], |visit| visit(Argument::Int(given)));
        if self.dtype() != DType::I64 {
            let text = format_args!("expects numbers of i64, not {}; convert with to_dtype()", self.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let classes = match classes {
            Some(classes) if classes > 0 => classes,
            None if self.numel() > 0 => largest(self)?,
            _ => {
                let text = format_args!(
                    "cannot tell how many classes {} numbers have; expects a number of classes above 0",
                    self.numel()
                );
                return Err(Error::new(Cause::Argument, NAME, text));
            }
        };
        let mut shape = self.shape().to_vec();
        shape.push(classes);
        let rows = Tensor::zeros(shape, (DType::I64, self.device()))?;
        rows.scatter_(-1, &self.unsqueeze(-1)?, 1).map_err(|error| error.because(Cause::Index))?;
        Ok(rows)
    }
}

/// One more than the largest number, or 1.
fn largest(x: &Tensor) -> Result<usize> {
    let largest = x.to_vec::<i64>()?.into_iter().max().unwrap_or(0);
    Ok(usize::try_from(largest).unwrap_or(0).saturating_add(1))
}
