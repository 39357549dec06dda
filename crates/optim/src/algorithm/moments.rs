//! Running means of gradients and of their squares, as Adam and its kin keep them.

use crate::foreach::{each, kept};
use crate::state::State;
use cresset_tensor::{Result, Tensor};

pub(super) const MEAN: &str = "exp_avg";
pub(super) const SQUARE: &str = "exp_avg_sq";

/// What a running mean of `count` numbers lacks of its limit.
pub(super) fn correction(beta: f64, count: f64) -> f64 {
    1.0 - beta.powf(count)
}

/// Both means with one more gradient.
pub(super) fn update(state: &State, grad: &Tensor, (beta1, beta2): (f64, f64)) -> Result<[Tensor; 2]> {
    let [mean, square] = [state.tensor(MEAN)?, state.tensor(SQUARE)?];
    mean.lerp_(grad, 1.0 - beta1)?;
    square.mul_(beta2)?;
    square.addcmul_(grad, grad, 1.0 - beta2)?;
    Ok([mean, square])
}

/// Both means of all parameters with one more gradient each.
pub(super) fn update_all(
    states: &[&mut State],
    grads: &[Tensor],
    (beta1, beta2): (f64, f64),
) -> Result<[Vec<Tensor>; 2]> {
    let [means, squares] = [kept(states, MEAN)?, kept(states, SQUARE)?];
    each("aten::_foreach_lerp_", &means, |i, mean| mean.lerp_(&grads[i], 1.0 - beta1))?;
    each("aten::_foreach_mul_", &squares, |_, square| square.mul_(beta2))?;
    each("aten::_foreach_addcmul_", &squares, |i, square| {
        square.addcmul_(&grads[i], &grads[i], 1.0 - beta2)
    })?;
    Ok([means, squares])
}

/// Takes a share of each parameter, if the decay is apart from the gradient.
pub(super) fn shrink_all(parameters: &[Tensor], lr: f64, decay: f64) -> Result<()> {
    if decay == 0.0 {
        return Ok(());
    }
    each("aten::_foreach_mul_", parameters, |_, parameter| parameter.mul_(1.0 - lr * decay))
}
