//! What every module can do.

use crate::Parameter;
use crate::call::InCall;
use cresset_dispatch::observe;
use cresset_tensor::{Cause, Device, Error, Result, Tensor, no_grad};

/// A layer, or something made of layers.
pub trait Module: Send + Sync {
    /// Computes the output. Callers use [`call`](Module::call).
    fn forward(&self, input: &Tensor) -> Result<Tensor>;

    /// Computes the output, and lets profiles `with_modules` see it: as `nn.Module: Linear_0`,
    /// with what the module calls inside. Costs one branch when nobody watches.
    fn call(&self, input: &Tensor) -> Result<Tensor> {
        let _span = observe::span(&InCall::of(self));
        self.forward(input)
    }

    /// Names the parameters and modules that this one owns, in the order it uses them.
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        let _ = members;
    }

    /// All parameters with their full names, e.g. `0.weight`.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut members = Members::default();
        self.members(&mut members);
        members.parameters.into_iter().map(|(name, parameter)| (name, parameter.tensor())).collect()
    }

    /// All parameters, in the order of their names' first appearance.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// Forgets all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|parameter| parameter.clear_grad());
    }

    /// Moves all parameters to `device`. Make optimizers afterwards.
    fn to(&self, device: Device) -> Result<()> {
        let mut members = Members::default();
        self.members(&mut members);
        members.parameters.iter().try_for_each(|(_, parameter)| parameter.to(device))
    }

    /// Overwrites the parameters with `state`, tensors by full name.
    ///
    /// # Errors
    /// One error that lists all names that are missing or unknown and all shapes that differ;
    /// nothing is changed then.
    fn load_state(&self, state: &[(String, Tensor)]) -> Result<()> {
        let own = self.named_parameters();
        let faults = faults(&own, state);
        if !faults.is_empty() {
            return Err(Error::new(Cause::Argument, "load_state", faults.join("; ")));
        }
        let _guard = no_grad();
        for (name, to) in &own {
            if let Some((_, from)) = state.iter().find(|(other, _)| other == name) {
                to.copy_(from)?;
            }
        }
        Ok(())
    }
}

fn faults(own: &[(String, Tensor)], state: &[(String, Tensor)]) -> Vec<String> {
    let find = |list: &[(String, Tensor)], name: &str| {
        list.iter().find(|(other, _)| other == name).map(|(_, t)| t.clone())
    };
    let mut faults = Vec::new();
    for (name, tensor) in own {
        match find(state, name) {
            None => faults.push(format!("{name} is missing")),
            Some(other) if other.shape() != tensor.shape() => {
                faults.push(format!("{name} has shape {:?}, expected {:?}", other.shape(), tensor.shape()));
            }
            Some(_) => {}
        }
    }
    faults.extend(
        state
            .iter()
            .filter(|(name, _)| find(own, name).is_none())
            .map(|(name, _)| format!("{name} is unknown")),
    );
    faults
}

/// Collects what a module owns, under full names.
#[derive(Default)]
pub struct Members<'a> {
    prefix: String,
    parameters: Vec<(String, &'a Parameter)>,
}

impl<'a> Members<'a> {
    /// Names a parameter.
    pub fn parameter(&mut self, name: &str, parameter: &'a Parameter) -> &mut Self {
        self.parameters.push((format!("{}{name}", self.prefix), parameter));
        self
    }

    /// Names a module, and thereby all that it owns.
    pub fn module(&mut self, name: &str, module: &'a dyn Module) -> &mut Self {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        module.members(self);
        self.prefix.truncate(outer);
        self
    }
}
