//! How far tensors are from each other, and what is left when length is taken away.

use crate::autocast;
use crate::{Cause, Error, Result, Tensor, composite};

impl Tensor {
    /// The norm of order `p` of the difference to `other`; both broadcast.
    pub fn dist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        let _span = composite("aten::dist", [self, other], |_| {});
        self.sub(other)?.vector_norm(p, &[], false, None)
    }

    /// Vectors along `dim` divided by their norm of order `p`, or by `epsilon` where that is smaller.
    pub fn normalize(&self, p: f64, dim: isize, epsilon: f64) -> Result<Tensor> {
        let length = self.vector_norm(p, &[dim], true, None)?;
        self.div(&length.clamp_min(epsilon)?.expand_as(self)?)
    }

    /// The cosine of the angle to vectors of `other` along `dim`; both broadcast. Lengths count as
    /// `epsilon` where they are smaller.
    pub fn cosine_similarity(&self, other: &Tensor, dim: isize, epsilon: f64) -> Result<Tensor> {
        const NAME: &str = "aten::cosine_similarity";
        let _span = composite(NAME, [self, other], |_| {});
        let dtype = crate::promote::result_type(self, other.into());
        if !dtype.is_float() {
            let text = format_args!("expects floats, not {} and {}", self.dtype(), other.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let both = Tensor::broadcast_tensors(&[&self.to_dtype(dtype)?, &other.to_dtype(dtype)?])?;
        let direction = |x: &Tensor| {
            let length = x.vector_norm(2.0, &[dim], true, None)?;
            // As in torch, the gradient does not see that short lengths were raised.
            let raised = length.detach()?.clamp_min(epsilon)?.sub(&length.detach()?)?;
            x.div(&length.add(&raised)?)
        };
        direction(&both[0])?.mul(&direction(&both[1])?)?.sum_dims(&[dim], false)
    }

    /// The norm of order `p` over the last dimension of the difference to `other`, to every element of
    /// which `epsilon` is added; with `keep` the dimension stays, with size 1.
    pub fn pairwise_distance(&self, other: &Tensor, p: f64, epsilon: f64, keep: bool) -> Result<Tensor> {
        let _span = composite("aten::pairwise_distance", [self, other], |_| {});
        self.sub(other)?.add(epsilon)?.vector_norm(p, &[-1], keep, None)
    }

    /// The norm of order `p` of the difference between each row of this and each of the other's
    /// matrices, which are stacked alike by broadcasting.
    pub fn cdist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        const NAME: &str = "aten::cdist";
        let _span = composite(NAME, [self, other], |_| {});
        if let Some(cast) = autocast::casting(NAME, [self, other], |[a, b]| a.cdist(b, p)) {
            return cast;
        }
        let refused = |cause: Cause, text: std::fmt::Arguments<'_>| Err(Error::new(cause, NAME, text));
        if self.dim() < 2 || other.dim() < 2 || self.shape().last() != other.shape().last() {
            let text = format_args!(
                "expects matrices with rows of one length, not {:?} and {:?}",
                self.shape(),
                other.shape()
            );
            return refused(Cause::Shape, text);
        }
        if p.is_nan() || p < 0.0 {
            return refused(Cause::Argument, format_args!("expects an order from 0 on, not {p}"));
        }
        self.unsqueeze(-2)?.sub(&other.unsqueeze(-3)?)?.vector_norm(p, &[-1], false, None)
    }
}
