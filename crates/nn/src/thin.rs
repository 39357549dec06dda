//! Numbers that are dropped at random, inside of layers that do so by themselves.

use cresset_tensor::{Result, Tensor};

/// Which elements of a tensor like `x` are kept if each is dropped with probability `p`, as bool.
pub(crate) fn kept(x: &Tensor, p: f64) -> Result<Tensor> {
    x.rand_like(())?.ge(p)
}

/// `x` with each element dropped with probability `p`. The others grow, so that sums are expected to
/// stay.
pub(crate) fn thinned(x: &Tensor, p: f64) -> Result<Tensor> {
    if p == 0.0 {
        return Ok(x.clone());
    }
    // At 1 nothing is left, and nothing is to grow.
    let growth = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    x.mul(&kept(x, p)?.to_dtype(x.dtype())?.mul(growth)?)
}
