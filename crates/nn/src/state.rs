//! The state of a module: saving it, and loading it whole or not at all.

use crate::inside::walk;
use crate::{Incompatible, Module};
use cresset_tensor::{Cause, Error, Result, Tensor, To, no_grad};
use std::collections::{HashMap, HashSet};

/// Everything that is saved, by full name.
pub(crate) fn entries(module: &dyn Module) -> Vec<(String, Tensor)> {
    let mut entries = Vec::new();
    walk(module, "", &mut |prefix, members| {
        let parameters = members.parameters.iter().map(|(name, parameter)| (name, parameter.tensor()));
        let saved = members.buffers.iter().filter(|(_, buffer)| buffer.is_persistent());
        let buffers = saved.map(|(name, buffer)| (name, buffer.tensor()));
        entries.extend(parameters.chain(buffers).map(|(name, tensor)| (format!("{prefix}{name}"), tensor)));
    });
    entries
}

pub(crate) fn load(module: &dyn Module, state: &[(String, Tensor)], strict: bool) -> Result<Incompatible> {
    let own = entries(module);
    let given: HashMap<&str, &Tensor> = state.iter().map(|(name, tensor)| (&**name, tensor)).collect();
    let known: HashSet<&str> = own.iter().map(|(name, _)| &**name).collect();
    let mut faults = Vec::new();
    let mut incompatible = Incompatible::default();
    for (name, tensor) in &own {
        match given.get(&**name) {
            None => incompatible.missing.push(name.clone()),
            Some(other) if other.shape() != tensor.shape() => {
                faults.push(format!("{name} has shape {:?}, expected {:?}", other.shape(), tensor.shape()));
            }
            Some(_) => {}
        }
    }
    let unknown = state.iter().map(|(name, _)| name).filter(|name| !known.contains(&***name));
    incompatible.unexpected.extend(unknown.cloned());
    if strict {
        let missing = incompatible.missing.iter().map(|name| format!("{name} is missing"));
        let unknown = incompatible.unexpected.iter().map(|name| format!("{name} is unknown"));
        faults = missing.chain(faults).chain(unknown).collect();
    }
    if !faults.is_empty() {
        return Err(Error::new(Cause::Argument, "load_state_dict", faults.join("; ")));
    }
    let _guard = no_grad();
    // All of it is brought here first: what fails on the way changes nothing.
    let mut arrived = Vec::new();
    for (name, to) in &own {
        if let Some(from) = given.get(&**name) {
            arrived.push((to, from.to(To::from(to))?));
        }
    }
    arrived.iter().try_for_each(|(to, from)| to.copy_(from))?;
    Ok(incompatible)
}
