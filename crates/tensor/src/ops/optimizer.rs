//! Optimizer steps in one pass over all parameters.

use super::check_float;
use crate::op::kernel_table;
use crate::{Cause, Error, Kernel, Key, Op, Result, Tensor};
use cresset_dispatch::key;
use cresset_kernels::optimizer::{self, AdamTensors};
use cresset_kernels::{Buffer, Reading, Writing};

pub use cresset_kernels::optimizer::AdamStep;

/// One step of Adam over many parameters.
///
/// The inputs are four lists of equal length, one after the other: parameters, gradients,
/// first and second moments.
#[derive(Clone, Debug)]
pub struct FusedAdam {
    /// The numbers of this step.
    pub step: AdamStep,
}

impl FusedAdam {
    /// Each parameter with its gradient and moments.
    pub fn groups<'a>(inputs: &'a [&'a Tensor]) -> impl Iterator<Item = [&'a Tensor; 4]> {
        let count = inputs.len() / 4;
        (0..count).map(move |i| [inputs[i], inputs[count + i], inputs[2 * count + i], inputs[3 * count + i]])
    }
}

impl Op for FusedAdam {
    const NAME: &'static str = "aten::_fused_adam_";
    type Inputs<'a> = &'a [&'a Tensor];
    type Output = ();
}

impl Kernel for FusedAdam {
    kernel_table!(FusedAdam);

    fn changed(&self, inputs: &[&Tensor]) {
        for [param, _, first, second] in FusedAdam::groups(inputs) {
            [param, first, second].iter().for_each(|tensor| tensor.storage().changed(Self::NAME));
        }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<()> {
        if !inputs.len().is_multiple_of(4) {
            let text = format_args!("expects four lists of one length, not {} tensors", inputs.len());
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        let step = self.step;
        if step.step == 0 || step.amsgrad {
            return Err(Error::new(Cause::Argument, Self::NAME, "expects steps from 1 on, and no amsgrad"));
        }
        for [param, others @ ..] in FusedAdam::groups(inputs) {
            check_float(Self::NAME, param)?;
            check_apart(param, others)?;
            for other in others {
                if other.shape() != param.shape() || other.dtype() != param.dtype() {
                    let text = format_args!(
                        "a parameter is {} {:?}, what belongs to it {} {:?}",
                        param.dtype(),
                        param.shape(),
                        other.dtype(),
                        other.shape()
                    );
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
            }
            if ![param, others[1], others[2]].iter().all(|tensor| tensor.is_contiguous()) {
                return Err(Error::new(
                    Cause::Argument,
                    Self::NAME,
                    "expects contiguous parameters and moments",
                ));
            }
        }
        Ok(())
    }

    fn cpu(&self, inputs: &[&Tensor], (): &()) -> Result<()> {
        let grads = FusedAdam::groups(inputs).map(|[param, grad, ..]| {
            let shared = grad.storage().same_as(param.storage());
            if shared { grad.copy() } else { grad.contiguous() }
        });
        let grads = grads.collect::<Result<Vec<_>>>()?;
        let groups = FusedAdam::groups(inputs).zip(&grads);
        let groups: Vec<_> =
            groups.map(|([param, _, first, second], grad)| [param, first, second, grad]).collect();
        if share_memory(&groups) {
            groups.iter().for_each(|group| step(self.step, std::slice::from_ref(group)));
        } else {
            step(self.step, &groups);
        }
        Ok(())
    }
}

/// A parameter, its moments, and its gradient.
type Group<'a> = [&'a Tensor; 4];

/// Where the memory of a tensor starts.
fn address(tensor: &Tensor) -> usize {
    tensor.storage().host().map_or(0, Buffer::address)
}

/// Whether something is changed that another parameter's step reads or changes too.
fn share_memory(groups: &[Group<'_>]) -> bool {
    let mut places: Vec<usize> = groups.iter().flatten().map(|tensor| address(tensor)).collect();
    places.sort_unstable();
    places.windows(2).any(|pair| pair[0] == pair[1])
}

/// Changes parameters and moments, all different memory. Locks are taken in the order of addresses.
fn step(step: AdamStep, groups: &[Group<'_>]) {
    let mut order: Vec<(usize, usize)> =
        groups.iter().flatten().map(|tensor| address(tensor)).zip(0..).collect();
    order.sort_unstable();
    let mut writings: Vec<[Option<Writing<'_>>; 3]> = groups.iter().map(|_| [const { None }; 3]).collect();
    let mut readings: Vec<Option<Reading<'_>>> = groups.iter().map(|_| None).collect();
    for (_, i) in order {
        let (group, member) = (i / 4, i % 4);
        let tensor = groups[group][member];
        match writings[group].get_mut(member) {
            Some(writing) => *writing = Some(tensor.write()),
            None => readings[group] = Some(tensor.read()),
        }
    }
    let all = "every tensor is in the order once";
    let locked = groups.iter().zip(&mut writings).zip(&readings);
    let tensors = locked.map(|(([param, first, second, grad], writing), reading)| {
        let [param_lock, first_lock, second_lock] = writing.each_mut().map(|lock| lock.as_mut().expect(all));
        AdamTensors {
            param: param.elements_mut(param_lock),
            grad: grad.elements(reading.as_ref().expect(all)),
            exp_avg: first.elements_mut(first_lock),
            exp_avg_sq: second.elements_mut(second_lock),
            max_exp_avg_sq: None,
        }
    });
    optimizer::adam_all(step, tensors.collect());
}

/// Refuses what one step would change twice, and tensors whose changes would go unrecorded.
fn check_apart(param: &Tensor, [grad, first, second]: [&Tensor; 3]) -> Result<()> {
    let pairs = [(param, first), (param, second), (first, second), (grad, first), (grad, second)];
    if pairs.iter().any(|(a, b)| a.storage().same_as(b.storage())) {
        let text = "a parameter, its gradient and its moments must have memory of their own";
        return Err(Error::new(Cause::Argument, FusedAdam::NAME, text));
    }
    let recording = !key::excluded().contains(Key::AUTOGRAD);
    if recording && [param, first, second].iter().any(|tensor| tensor.requires_grad()) {
        let text = "changes tensors that require grad; call it under no_grad()";
        return Err(Error::new(Cause::Graph, FusedAdam::NAME, text));
    }
    Ok(())
}
