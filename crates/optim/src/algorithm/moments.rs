//! Running means of gradients and of their squares, as Adam and its kin keep them.

use crate::foreach::{each_by, kept};
use crate::scope::More;
use crate::state::State;
use cresset_tensor::{Result, Tensor};

pub(super) const MEAN: &str = "exp_avg";
pub(super) const SQUARE: &str = "exp_avg_sq";

/// The decay of parameters and that of gradients: a decay is one or the other.
pub(super) fn decays(decay: f64, decoupled: bool) -> (f64, f64) {
    if decoupled { (decay, 0.0) } else { (0.0, decay) }
}

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
    each_by("aten::_foreach_lerp_", &means, &[More::List(grads), More::Float(1.0 - beta1)], |i, mean| {
        mean.lerp_(&grads[i], 1.0 - beta1)
    })?;
    each_by("aten::_foreach_mul_", &squares, &[More::Float(beta2)], |_, square| square.mul_(beta2))?;
    let more = [More::List(grads), More::List(grads), More::Float(1.0 - beta2)];
    each_by("aten::_foreach_addcmul_", &squares, &more, |i, square| {
        square.addcmul_(&grads[i], &grads[i], 1.0 - beta2)
    })?;
    Ok([means, squares])
}

/// Takes a share of each parameter, if the decay is apart from the gradient.
pub(super) fn shrink_all(parameters: &[Tensor], lr: f64, decay: f64) -> Result<()> {
    if decay == 0.0 {
        return Ok(());
    }
    let rest = 1.0 - lr * decay;
    each_by("aten::_foreach_mul_", parameters, &[More::Float(rest)], |_, parameter| parameter.mul_(rest))
}
