//! The logarithm of a sum of exponentials, without overflow.

use super::{Sum, check_reduced, with_reduced};
use crate::autograd::Saves;
use crate::promote::float_type;
use crate::{Backward, Forward, Grads, NamedDims, Op, Result, Tensor, grads, shown};
use cresset_dispatch::observe::{self, Argument};
use std::borrow::Cow;

/// `log(sum(exp(x)))` over some dimensions.
#[derive(Clone, Debug)]
pub struct Logsumexp {
    /// Which dimensions.
    pub dims: NamedDims,
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
        let rank = ctx.shape(0).len();
        let whole = |x: &Tensor| if self.keep { Ok(x.clone()) } else { with_reduced(x, rank, &self.dims) };
        let (grad, result) = (whole(ctx.grad())?, whole(ctx.saved(1))?);
        grads!(ctx; grad.mul(&ctx.saved(0).sub(&result)?.exp()?)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&self.dims.told()));
        visit(Argument::Bool(self.keep));
    }
}

impl Forward for Logsumexp {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        check_reduced(Self::NAME, &self.dims, x)?;
        if !observe::is_watched() || !x.device().is_cpu() {
            return self.compute(x);
        }
        let dtype = float_type(x.dtype());
        let out = shown::empty_output(dtype)?;
        let more =
            [Argument::Ints(&self.dims.told()), Argument::Bool(self.keep), Argument::Tensor(out.argument())];
        shown::within(Self::NAME, [x], &more, || self.compute(x))
    }
}

impl Logsumexp {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let dtype = float_type(x.dtype());
        let x = if x.dtype() == dtype { x.clone() } else { x.to_dtype(dtype)? };
        let sum = |x: &Tensor| -> Result<Tensor> {
            Sum { dims: self.dims.clone(), keep: self.keep, dtype: None }.grown(x)
        };
        if x.numel() == 0 {
            let sum = sum(&x.exp()?)?;
            sum.log_()?;
            return Ok(sum);
        }
        drop(shown::call("aten::real", [&x], &[]));
        let largest = x.amax(self.dims.named(), true)?;
        let flat = if self.keep { largest.clone() } else { largest.squeeze_dims(&self.named_or_all())? };
        // An infinite largest is left out: the difference to itself would be NaN.
        flat.masked_fill_(&flat.abs()?.eq(f64::INFINITY)?, 0)?;
        let powers = x.sub(&largest)?;
        powers.exp_()?;
        let sum = sum(&powers)?;
        sum.log_()?;
        sum.add_(&flat)?;
        Ok(sum)
    }

    fn named_or_all(&self) -> Cow<'_, [isize]> {
        match self.dims.named() {
            [] => (0..self.dims.len() as isize).collect(),
            named => Cow::Borrowed(named),
        }
    }
}

impl Tensor {
    /// `log(sum(exp(x)))` over `dims`, or all if none are named; with `keep` they stay, with size 1.
    pub fn logsumexp(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        Logsumexp { dims: self.dims_or_all(Logsumexp::NAME, dims)?, keep }.call([self])
    }
}
