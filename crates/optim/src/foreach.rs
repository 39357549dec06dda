//! Operators over lists of tensors, under torch's names: a call for each tensor inside.

use crate::scope::listed;
use crate::state::{Number, State};
use cresset_tensor::{Result, Tensor};

/// Changes each tensor of a list.
pub(crate) fn each(
    name: &'static str,
    list: &[Tensor],
    mut change: impl FnMut(usize, &Tensor) -> Result<()>,
) -> Result<()> {
    let _span = listed(name, list);
    list.iter().enumerate().try_for_each(|(i, tensor)| change(i, tensor))
}

/// A new tensor for each of a list.
pub(crate) fn map(
    name: &'static str,
    list: &[Tensor],
    mut compute: impl FnMut(usize, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let _span = listed(name, list);
    list.iter().enumerate().map(|(i, tensor)| compute(i, tensor)).collect()
}

/// One of the tensors that are kept, for each parameter.
pub(crate) fn kept(states: &[&mut State], name: &'static str) -> Result<Vec<Tensor>> {
    states.iter().map(|state| state.tensor(name)).collect()
}

/// Counts the step of each parameter, and gives the counts.
pub(crate) fn count(states: &mut [&mut State]) -> Result<Vec<f64>> {
    let tensors: Vec<Tensor> =
        states.iter_mut().map(|state| state.numbers[0].tensor().cloned()).collect::<Result<_>>()?;
    let _span = listed("aten::_foreach_add_", &tensors);
    states
        .iter_mut()
        .map(|state| Number::count_traced(&mut state.numbers[0]).map(|()| state.numbers[0].get()))
        .collect()
}

/// The gradients with their sign, and with the pull of a decay that is not decoupled.
pub(crate) fn towards(
    grads: Vec<Tensor>,
    parameters: &[Tensor],
    maximize: bool,
    decay: f64,
) -> Result<Vec<Tensor>> {
    let grads = if maximize { map("aten::_foreach_neg", &grads, |_, grad| grad.neg())? } else { grads };
    if decay == 0.0 {
        return Ok(grads);
    }
    // Gradients that were turned are our own already.
    if maximize {
        each("aten::_foreach_add_", &grads, |i, grad| grad.add_scaled_(&parameters[i], decay))?;
        return Ok(grads);
    }
    map("aten::_foreach_add", &grads, |i, grad| grad.add_scaled(&parameters[i], decay))
}
