//! Optimizer steps in one pass over each parameter.

use super::check_float;
use crate::op::kernel_table;
use crate::{Cause, Error, Kernel, Key, Op, Result, Tensor, cpu};
use cresset_dispatch::key;
use cresset_kernels::optimizer;

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
        for [param, grad, first, second] in FusedAdam::groups(inputs) {
            let shared = grad.storage().same_as(param.storage());
            let grad = if shared { grad.copy()? } else { grad.contiguous()? };
            let ([mut writing, mut first_moment, mut second_moment], reading) =
                cpu::lock_all([param, first, second], &grad);
            optimizer::adam(
                self.step,
                param.elements_mut(&mut writing),
                grad.elements(&reading),
                first.elements_mut(&mut first_moment),
                second.elements_mut(&mut second_moment),
                None,
            );
        }
        Ok(())
    }
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
