//! Functions of a program that bring their own derivative.

use super::Derived;
use super::run::{Machine, Own, fault};
use cresset_tensor::autograd::{Context, Function};
use cresset_tensor::{Backward, Grads, Result, Tensor};
use std::sync::Arc;

/// A function of a program, with the tensors that it was called among.
struct Custom {
    machine: Machine,
    function: Arc<Derived>,
}

impl Function for Custom {
    const NAME: &'static str = "Custom";
    const BACKWARD: &'static str = "CustomBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut machine = self.machine.clone();
        let numbers = self.function.inputs.iter().copied();
        machine.tensors.extend(numbers.zip(inputs.iter().map(|&input| input.clone())));
        machine.block(&self.function.body, &mut Own::nothing()).map_err(fault)?;
        for number in &self.function.saves {
            ctx.save_for_backward(&[&machine.get(*number)?]);
        }
        self.function.gives.iter().map(|number| machine.get(*number)).collect()
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mut machine = self.machine.clone();
        for (i, number) in self.function.saves.iter().enumerate() {
            machine.tensors.extend(ctx.optional(i).map(|tensor| (*number, tensor.clone())));
        }
        for (i, number) in self.function.gradients.iter().enumerate() {
            machine.tensors.insert(*number, ctx.grad_of(i).clone());
        }
        machine.block(&self.function.backward, &mut Own::nothing()).map_err(fault)?;
        let slope = |(i, number): (usize, &Option<usize>)| match number {
            Some(number) if ctx.needs(i) => machine.get(*number).map(Some),
            _ => Ok(None),
        };
        self.function.slopes.iter().enumerate().map(slope).collect()
    }
}

impl Machine {
    pub(super) fn function(&self, inputs: &[usize], function: &Arc<Derived>) -> Result<Vec<Tensor>> {
        let given = inputs.iter().map(|number| self.get(*number)).collect::<Result<Vec<_>>>()?;
        let mut machine = self.clone();
        // It sees what it is given, what it saves and the gradients: others would be kept alive by the
        // graph, and need not be there any more when it runs.
        machine.tensors.clear();
        let inputs: Vec<&Tensor> = given.iter().collect();
        Custom { machine, function: function.clone() }.apply(&inputs)
    }
}
