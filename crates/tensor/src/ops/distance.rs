//! How far tensors are from each other, and what is left when length is taken away.

use crate::autocast;
use crate::{Cause, Device, Error, MemoryFormat, Result, Tensor, composite, shown};
use cresset_dispatch::observe::Argument;

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
        let _span = composite(NAME, [self, other], |visit| {
            visit(Argument::Int(dim as i64));
            visit(Argument::Float(epsilon));
        });
        drop(composite("aten::result_type", [self, other], |_| {}));
        let dtype = crate::promote::result_type(self, other.into());
        if !dtype.is_float() {
            let text = format_args!("expects floats, not {} and {}", self.dtype(), other.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let float = |x: &Tensor| if x.dtype().is_float() { Ok(x.clone()) } else { x.to_dtype(dtype) };
        let (mut a, mut b) = (float(self)?, float(other)?);
        if a.shape() != b.shape() {
            let shape = super::broadcast(NAME, a.shape(), b.shape())?;
            (a, b) = (a.expand(&shape[..])?, b.expand(&shape[..])?);
        }
        let length = |x: &Tensor| x.vector_norm(2.0, &[dim], true, None)?.copy_in(MemoryFormat::Preserve);
        let lengths = [length(&a)?, length(&b)?];
        {
            // As in torch, the gradient does not see that short lengths are raised.
            let _unrecorded = crate::no_grad();
            raise(&lengths, epsilon)?;
        }
        a.div(&lengths[0])?.mul(&b.div(&lengths[1])?)?.sum_dims(&[dim], false)
    }

    /// The norm of order `p` over the last dimension of the difference to `other`, to every element of
    /// which `epsilon` is added; with `keep` the dimension stays, with size 1.
    pub fn pairwise_distance(&self, other: &Tensor, p: f64, epsilon: f64, keep: bool) -> Result<Tensor> {
        let _span = composite("aten::pairwise_distance", [self, other], |visit| {
            visit(Argument::Float(p));
            visit(Argument::Float(epsilon));
            visit(Argument::Bool(keep));
        });
        let last = self.dim().max(other.dim()) as isize - 1;
        let shifted = self.sub(other)?.add(epsilon)?;
        shifted.norm_along(p, last, keep)
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

/// Raises what is smaller to `least`, which torch makes a tensor once.
fn raise(lengths: &[Tensor; 2], least: f64) -> Result<()> {
    let [a, b] = lengths;
    if a.device() != Device::CPU || a.dtype() != b.dtype() {
        return lengths.iter().try_for_each(|length| length.clamp_min_(least));
    }
    let none = Argument::None;
    let more = [Argument::Float(least), shown::dtype_code(a.dtype()), none, shown::HOST, none];
    let least = shown::within("aten::scalar_tensor", shown::NOTHING, &more, || {
        let number = Tensor::uninit(&[], a.dtype(), Device::CPU)?;
        crate::cpu::change(&number, [], |number, []| {
            cresset_kernels::elementwise::fill(least.into(), number)
        })?;
        Ok(number)
    })?;
    lengths.iter().try_for_each(|length| length.clamp_min_(&least))
}
