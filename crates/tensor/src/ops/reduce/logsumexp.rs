//! The logarithm of a sum of exponentials, without overflow.

use super::{check_reduced, kept, reduced, sizes};
use crate::autograd::Saves;
use crate::promote::float_type;
use crate::{Backward, Forward, Grads, Op, Result, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// `log(sum(exp(x)))` over some dimensions.
#[derive(Clone, Debug)]
pub struct Logsumexp {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
}

impl Op for Logsumexp {
    const NAME: &'static str = "aten::logsumexp";
    const BACKWARD: &'static str = "LogsumexpBackward0";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let shape = kept(ctx.shape(0), &self.dims);
        let (grad, result) = (ctx.grad().reshape(&shape)?, ctx.saved(1).reshape(&shape)?);
        grads!(ctx; ctx.saved(0).sub(&result)?.exp()?.mul(&grad)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.dims)));
        visit(Argument::Bool(self.keep));
    }
}

impl Forward for Logsumexp {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        check_reduced(Self::NAME, &self.dims, x)?;
        let x = x.to_dtype(float_type(x.dtype()))?;
        let shape = reduced(x.shape(), &self.dims, self.keep);
        let kept = kept(x.shape(), &self.dims);
        if x.numel() == 0 {
            return x.exp()?.sum_to(&kept)?.log()?.reshape(shape);
        }
        let named: Vec<isize> = self.dims.iter().map(|&dim| dim as isize).collect();
        let largest = if named.is_empty() { x.copy()? } else { x.amax(&named, true)? };
        // An infinite largest is left as it is: the difference to itself is NaN.
        let finite = largest.sub(&largest)?.eq(0)?;
        let largest = largest.where_(&finite, &largest.zeros_like()?)?;
        x.sub(&largest)?.exp()?.sum_to(&kept)?.log()?.add(&largest)?.reshape(shape)
    }
}

impl Tensor {
    /// `log(sum(exp(x)))` over `dims`, or all if none are named; with `keep` they stay, with size 1.
    pub fn logsumexp(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        Logsumexp { dims: self.dims_or_all(Logsumexp::NAME, dims)?, keep }.call([self])
    }
}
