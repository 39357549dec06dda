//! Derivatives of the gradients of layer and batch normalization, call by call as torch finds them.

use crate::autograd::is_grad_enabled;
use crate::{Result, Tensor};

/// Elements beside the mean and scale of their group.
pub(super) struct Grouped<'a> {
    /// Elements without the mean.
    pub(super) centred: Tensor,
    pub(super) scale: Tensor,
    squared: Tensor,
    cubed: Tensor,
    /// Elements without the mean, times the cube of the scale.
    pub(super) tilted: Tensor,
    /// Elements in a group.
    count: i64,
    /// Adds up each group; its dimensions stay.
    pub(super) sum: &'a dyn Fn(&Tensor) -> Result<Tensor>,
}

/// The sums over groups of a gradient: along the elements, and by itself.
pub(super) struct Sums {
    pub(super) along: Tensor,
    pub(super) total: Tensor,
}

impl<'a> Grouped<'a> {
    /// Elements of groups of `count`; mean and scale are shaped so that they meet the elements.
    pub(super) fn new(
        x: &Tensor,
        mean: impl FnOnce() -> Result<Tensor>,
        scale: impl FnOnce() -> Result<Tensor>,
        count: usize,
        sum: &'a dyn Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Grouped<'a>> {
        let centred = x.sub(&mean()?)?;
        let scale = scale()?;
        let (squared, cubed) = (scale.pow(2)?, scale.pow(3)?);
        let tilted = centred.mul(&cubed)?;
        Ok(Grouped { centred, scale, squared, cubed, tilted, count: count as i64, sum })
    }

    pub(super) fn sums(&self, grad: &Tensor) -> Result<Sums> {
        let along = (self.sum)(&grad.mul(&self.centred)?)?;
        Ok(Sums { along, total: (self.sum)(grad)? })
    }

    /// The gradient of elements that were normalized and then multiplied by `factor`.
    pub(super) fn gradient(&self, grad: &Tensor, factor: &Tensor) -> Result<Tensor> {
        let share = factor.mul(&self.scale)?;
        share.div_(self.count)?;
        let inner = grad.mul(self.count)?;
        inner.sub_(&(self.sum)(grad)?)?;
        let along = (self.sum)(&grad.mul(&self.centred)?)?;
        inner.sub_(&self.centred.mul(&self.squared)?.mul(&along)?)?;
        share.mul(&inner)
    }

    /// What elements get of `again`, the gradient of their gradient, where that was made of `grad`.
    pub(super) fn bend(&self, grad: &Tensor, of_grad: &Sums, again: &Tensor) -> Result<Tensor> {
        let total = (self.sum)(again)?;
        let along = (self.sum)(&again.mul(&self.centred)?)?;
        let tilt = total.mul(&of_grad.total)?;
        tilt.div_(self.count)?;
        tilt.sub_(&(self.sum)(&again.mul(grad)?)?)?;
        let both = self.squared.mul(&of_grad.along)?.mul(&along)?;
        both.mul_(3.0 / self.count as f64)?;
        tilt.add_(&both)?;
        let bend = self.tilted.mul(&tilt)?;
        bend.div_(self.count)?;
        let of_grad_rest = self.rest(&of_grad.total, grad, &along)?;
        let of_again_rest = self.rest(&total, again, &of_grad.along)?;
        bend.add_(&of_grad_rest)?;
        bend.add_(&of_again_rest)?;
        Ok(bend)
    }

    /// `(mean - grad) * along / count`, scaled.
    fn rest(&self, total: &Tensor, grad: &Tensor, along: &Tensor) -> Result<Tensor> {
        let centred = total.div(self.count)?.sub(grad)?;
        let share = along.mul(&self.cubed)?;
        share.div_(self.count)?;
        share.mul(&centred)
    }

    /// `direct`, already scaled, less what reaches elements through the scale and mean of their group:
    /// `total` and `along` are the sums of what was scaled.
    pub(super) fn less_shifts(
        &self,
        direct: Tensor,
        total: &Tensor,
        along: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        let through_mean = self.scale.mul(total)?;
        through_mean.div_(-self.count)?;
        let through_scale = self.tilted.mul(&along()?)?;
        through_scale.div_(-self.count)?;
        direct.add_(&through_mean)?;
        direct.add_(&through_scale)?;
        Ok(direct)
    }
}

/// Mean and scale found again from the elements, so that they have derivatives themselves; none where no further
/// derivative can be asked for, and what was kept will do.
pub(super) fn statistics(x: &Tensor, epsilon: f64, along: &[isize]) -> Result<Option<[Tensor; 2]>> {
    if !is_grad_enabled() {
        return Ok(None);
    }
    let mean = x.mean_dims(along, true)?;
    let centred = x.sub(&mean)?;
    let variance = centred.mul(&centred)?.mean_dims(along, true)?;
    Ok(Some([mean, variance.add(epsilon)?.sqrt()?.reciprocal()?]))
}

/// The sum of what there is of two tensors; the first one is nobody else's.
pub(super) fn joined(first: Option<Tensor>, second: Option<Tensor>) -> Result<Option<Tensor>> {
    match (first, second) {
        (Some(first), Some(second)) => first.add_(&second).map(|()| Some(first)),
        (first, second) => Ok(first.or(second)),
    }
}
