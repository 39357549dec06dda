//! Affine maps of the last dimension.

use super::{Trilinear, inner_differ};
use crate::autocast;
use crate::{Cause, Error, Op, Result, Tensor, composite, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::Dims;

impl Tensor {
    /// `self @ weight.t() + bias`, over the last dimension.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        const NAME: &str = "aten::linear";
        let _span = composite(NAME, ([self, weight], bias), |_| {});
        if let Some(cast) =
            autocast::casting(NAME, ([self, weight], bias), |([x, weight], bias)| x.linear(weight, bias))
        {
            return cast;
        }
        let features = self.shape().last();
        if features.is_none() || !matches!(weight.dim(), 1 | 2) || features != weight.shape().last() {
            let text = format_args!(
                "an input of shape {:?} takes a weight of shape [outputs, {}] or [{1}], not {:?}",
                self.shape(),
                features.map_or("inputs".to_owned(), usize::to_string),
                weight.shape()
            );
            let error = Error::new(Cause::Shape, NAME, text);
            return Err(if features.is_some() && weight.dim() == 2 {
                self.fails_inside(weight, bias, error)?
            } else {
                error
            });
        }
        match bias {
            Some(bias) if self.dim() == 2 && weight.dim() == 2 => bias.addmm(self, &weight.t()?),
            Some(bias) if weight.dim() == 2 && bias.dim() == 1 && self.is_contiguous() => {
                let (inputs, mut shape) =
                    (weight.shape()[1], Dims::from_slice(&self.shape()[..self.dim() - 1]));
                let rows = self.view([shape.iter().product(), inputs])?;
                shape.push(weight.shape()[0]);
                bias.addmm(&rows, &weight.t()?)?.unsafe_view(&shape)
            }
            Some(bias) if bias.dim() <= 1 && weight.dim() == 2 => {
                let out = self.matmul(&weight.t()?)?;
                out.add_(bias)?;
                Ok(out)
            }
            Some(bias) => self.matmul(&weight.t()?)?.add(bias),
            None => self.matmul(&weight.t()?),
        }
    }

    /// Shows how far torch comes with sizes that do not fit: it finds out in the product.
    fn fails_inside(&self, weight: &Tensor, bias: Option<&Tensor>, error: Error) -> Result<Error> {
        if !observe::is_watched() || self.dim() != 2 {
            return Ok(error);
        }
        let turned = weight.t()?;
        if let Some(bias) = bias {
            let more = [Argument::Int(1), Argument::Int(1)];
            return Ok(shown::failed("aten::addmm", [bias, self, &turned], &more, error));
        }
        let _span = composite("aten::matmul", [self, &turned], |_| {});
        Ok(shown::failed("aten::mm", [self, &turned], &[], error))
    }

    /// `x1' weight[k] x2 + bias[k]` for each `k`, over the last dimensions of this and `other`.
    pub fn bilinear(&self, other: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        const NAME: &str = "aten::bilinear";
        let _span = composite(NAME, ([self, other, weight], bias), |_| {});
        let (Some((&left, outer)), Some((&right, outer2))) =
            (self.shape().split_last(), other.shape().split_last())
        else {
            return Err(inner_differ(NAME, self, other));
        };
        let fits = weight.dim() == 3 && weight.shape()[1..] == [left, right] && outer == outer2;
        let outputs = weight.shape().first().copied().unwrap_or(0);
        if !fits || bias.is_some_and(|bias| bias.shape() != [outputs]) {
            let text = format_args!(
                "expects inputs of the same outer shape, a weight [outputs, {left}, {right}] and a bias \
                 [outputs], not shapes {:?}, {:?}, {:?} and {:?}",
                self.shape(),
                other.shape(),
                weight.shape(),
                bias.map(Tensor::shape)
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        // Torch's kernel makes no products that could be cast.
        let _uncast = autocast::below();
        let (a, b) = (self.reshape([-1, left as isize])?, other.reshape([-1, right as isize])?);
        let product = match observe::is_watched() && self.device().is_cpu() {
            true => {
                let dims = |dims: [usize; 2]| Dims::from_slice(&dims);
                let expand = [dims([1, 3]), Dims::from_slice(&[0]), dims([1, 2])];
                Trilinear { expand, sum: dims([2, 3]), unroll: 1 }.call([&a, weight, &b])?
            }
            false => {
                // First over the left dimension, for each output the matrix as it lies, then over the right.
                let half = a.unsqueeze(0)?.expand([outputs, a.shape()[0], left])?.bmm(weight)?;
                half.mul(&b.unsqueeze(0)?)?.sum_dims(&[-1], false)?.t()?
            }
        };
        let shape: Dims = outer.iter().copied().chain([outputs]).collect();
        let out = product.reshape(shape)?;
        match bias {
            Some(bias) => out.add(bias),
            None => Ok(out),
        }
    }
}
