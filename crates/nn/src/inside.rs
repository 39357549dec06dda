//! What is inside a module. Written once for all modules, not once for each type of them: a trait's
//! own functions are compiled for every type, and there are many.

use crate::{Members, Module, Parameter};
use cresset_tensor::{Result, Tensor};

/// Shows what each module owns, outer ones first, with the prefix of its names.
pub(crate) fn walk<'a>(module: &'a dyn Module, prefix: &str, visit: &mut dyn FnMut(&str, &Members<'a>)) {
    let members = Members::of(module);
    visit(prefix, &members);
    for (name, inner) in &members.modules {
        walk(*inner, &format!("{prefix}{name}."), visit);
    }
}

pub(crate) fn named_parameters(module: &dyn Module) -> Vec<(String, Tensor)> {
    let mut seen: Vec<&Parameter> = Vec::new();
    let mut named = Vec::new();
    walk(module, "", &mut |prefix, members| {
        for (name, parameter) in &members.parameters {
            if !seen.iter().any(|other| other.same_as(parameter)) {
                seen.push(parameter);
                named.push((format!("{prefix}{name}"), parameter.tensor()));
            }
        }
    });
    named
}

pub(crate) fn parameters(module: &dyn Module) -> Vec<Tensor> {
    named_parameters(module).into_iter().map(|(_, tensor)| tensor).collect()
}

pub(crate) fn own_parameters(module: &dyn Module) -> Vec<Tensor> {
    Members::of(module).parameters.iter().map(|(_, parameter)| parameter.tensor()).collect()
}

pub(crate) fn named_buffers(module: &dyn Module) -> Vec<(String, Tensor)> {
    let mut named = Vec::new();
    walk(module, "", &mut |prefix, members| {
        let all = members.buffers.iter();
        named.extend(all.map(|(name, buffer)| (format!("{prefix}{name}"), buffer.tensor())));
    });
    named
}

pub(crate) fn named_modules(module: &dyn Module) -> Vec<(String, &dyn Module)> {
    let mut named = vec![(String::new(), module)];
    let mut at = 0;
    while at < named.len() {
        let (prefix, module) = (named[at].0.clone(), named[at].1);
        let dot = if prefix.is_empty() { "" } else { "." };
        let inner = Members::of(module).modules;
        let inner = inner.into_iter().map(|(name, module)| (format!("{prefix}{dot}{name}"), module));
        at += 1;
        named.splice(at..at, inner);
    }
    named
}

pub(crate) fn apply(module: &dyn Module, visit: &mut dyn FnMut(&dyn Module) -> Result<()>) -> Result<()> {
    for (_, inner) in Members::of(module).modules {
        inner.apply(visit)?;
    }
    visit(module)
}

pub(crate) fn set_training(module: &dyn Module, training: bool) {
    walk(module, "", &mut |_, members| members.flags.iter().for_each(|flag| flag.set(training)));
}
