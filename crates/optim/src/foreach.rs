//! Operators over lists of tensors, under torch's names: a call for each tensor inside.

use crate::scope::{More, listed};
use crate::state::State;
use cresset_dispatch::observe::{self, Argument};
use cresset_tensor::{DType, Result, Tensor, composite, no_grad};

/// Changes each tensor of a list.
pub(crate) fn each(
    name: &'static str,
    list: &[Tensor],
    change: impl FnMut(usize, &Tensor) -> Result<()>,
) -> Result<()> {
    each_by(name, list, &[], change)
}

/// As [`each`], by an operator with other arguments.
pub(crate) fn each_by(
    name: &'static str,
    list: &[Tensor],
    more: &[More<'_>],
    mut change: impl FnMut(usize, &Tensor) -> Result<()>,
) -> Result<()> {
    let _span = listed(name, list, more);
    list.iter().enumerate().try_for_each(|(i, tensor)| change(i, tensor))
}

/// A new tensor for each of a list.
pub(crate) fn map(
    name: &'static str,
    list: &[Tensor],
    compute: impl FnMut(usize, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    map_by(name, list, &[], compute)
}

/// As [`map`], by an operator with other arguments.
pub(crate) fn map_by(
    name: &'static str,
    list: &[Tensor],
    more: &[More<'_>],
    mut compute: impl FnMut(usize, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let _span = listed(name, list, more);
    list.iter().enumerate().map(|(i, tensor)| compute(i, tensor)).collect()
}

/// Fills each tensor of a list with zeros. Unlike a step, this is not kept from being recorded.
pub(crate) fn zero(list: &[Tensor]) -> Result<()> {
    let told: Vec<_> = list.iter().map(Tensor::argument).collect();
    let none: [&Tensor; 0] = [];
    let _span = composite("aten::_foreach_zero_", none, |visit| visit(Argument::Tensors(&told)));
    let _inside = no_grad();
    list.iter().try_for_each(Tensor::zero_)
}

/// The larger of each element and that of another list, in place.
pub(crate) fn maximum(list: &[Tensor], others: &[Tensor]) -> Result<()> {
    each_by("aten::_foreach_maximum_", list, &[More::List(others)], |i, one| one.clamp_min_(&others[i]))
}

/// One of the tensors that are kept, for each parameter.
pub(crate) fn kept(states: &[&mut State], name: &'static str) -> Result<Vec<Tensor>> {
    states.iter().map(|state| state.tensor(name)).collect()
}

/// Counts the step of each parameter, and gives the counts.
pub(crate) fn count(states: &mut [&mut State]) -> Result<Vec<f64>> {
    let tensors: Vec<Tensor> =
        states.iter_mut().map(|state| state.numbers[0].tensor().cloned()).collect::<Result<_>>()?;
    // On the host torch adds a tensor of one, whatever the counts are.
    let one = if observe::is_watched() { Some(Tensor::number(1.0, DType::F32)?) } else { None };
    each_by("aten::_foreach_add_", &tensors, &[More::Tensor(one.as_ref()), More::Float(1.0)], |_, steps| {
        one.as_ref().map_or(Ok(()), |one| steps.add_scaled_(one, 1.0))
    })?;
    Ok(states.iter_mut().map(|state| state.numbers[0].count() as f64).collect())
}

/// The gradients with their sign.
pub(crate) fn turned_all(grads: Vec<Tensor>, maximize: bool) -> Result<Vec<Tensor>> {
    if maximize { map("aten::_foreach_neg", &grads, |_, grad| grad.neg()) } else { Ok(grads) }
}

/// The gradients with the pull of a decay that is not decoupled. Where they were `turned` they are the
/// step's own, and change in place.
pub(crate) fn pulled_all(
    grads: Vec<Tensor>,
    parameters: &[Tensor],
    turned: bool,
    decay: f64,
) -> Result<Vec<Tensor>> {
    if decay == 0.0 {
        return Ok(grads);
    }
    let more = [More::List(parameters), More::Float(decay)];
    if turned {
        each_by("aten::_foreach_add_", &grads, &more, |i, grad| grad.add_scaled_(&parameters[i], decay))?;
        return Ok(grads);
    }
    map_by("aten::_foreach_add", &grads, &more, |i, grad| grad.add_scaled(&parameters[i], decay))
}
