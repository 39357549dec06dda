//! From what is certain about a few storages to what all of them are for.

use super::MemoryCategory as Category;
use super::flow::{Flow, Version};
use super::storage::Id;
use cresset_dispatch::observe::Role;
use std::collections::{HashMap, HashSet};

/// What storages are for: for good, or one version of them.
pub(super) struct Categories {
    fixed: Vec<Option<Category>>,
    is_temporary: Vec<bool>,
    versions: HashMap<Version, Category>,
}

impl Categories {
    pub(super) fn get(&self, (id, version): Version) -> Category {
        self.known((id, version)).unwrap_or(Category::Unknown)
    }

    fn known(&self, (id, version): Version) -> Option<Category> {
        let temporary = || self.is_temporary[id as usize].then_some(Category::Temporary);
        self.fixed[id as usize].or_else(temporary).or_else(|| self.versions.get(&(id, version)).copied())
    }

    fn fix(&mut self, roles: &[(Role, Id)], role: Role, category: Category) {
        for &(_, id) in roles.iter().filter(|(known, _)| *known == role) {
            self.fixed[id as usize] = Some(category);
        }
    }

    fn set_default(&mut self, version: Version, category: Category) {
        self.versions.entry(version).or_insert(category);
    }
}

/// The order of the passes is torch's: what a pass may overwrite, and what it sees of earlier
/// ones, decides cases that are not clear.
pub(super) fn categories(flow: &Flow, storages: usize) -> Categories {
    let mut categories = Categories {
        fixed: vec![None; storages],
        is_temporary: vec![false; storages],
        versions: HashMap::new(),
    };
    categories.fix(&flow.roles, Role::Gradient, Category::Gradient);
    for id in flow.nodes.iter().flat_map(|node| node.temporaries()) {
        categories.is_temporary[id as usize] = true;
    }
    categories.fix(&flow.roles, Role::Parameter, Category::Parameter);
    find_inputs(flow, &mut categories);
    find_parameters(flow, &mut categories);
    find_activations(flow, &mut categories);
    categories.fix(&flow.roles, Role::State, Category::OptimizerState);
    find_details(flow, &mut categories);
    categories
}

/// Storages that depend on a gradient, or will in a later version: the model and what it
/// computes. What a model is given does not.
fn dependent(flow: &Flow, categories: &Categories) -> HashSet<Id> {
    let mut dependent = HashSet::new();
    loop {
        let before = dependent.len();
        for node in &flow.nodes {
            let learned = |version: &Version| {
                matches!(categories.known(*version), Some(Category::Gradient | Category::Parameter))
                    || dependent.contains(&version.0)
            };
            let reached: Vec<Id> = node.inputs().filter(learned).map(|(id, _)| id).collect();
            if !reached.is_empty() {
                dependent.extend(reached);
                dependent.extend(node.outputs().map(|(id, _)| id));
            }
        }
        if dependent.len() == before {
            return dependent;
        }
    }
}

/// Inputs lead to a gradient, and no gradient leads to them.
fn find_inputs(flow: &Flow, categories: &mut Categories) {
    let dependent = dependent(flow, categories);
    let mut leads: HashSet<Version> = HashSet::new();
    for node in flow.nodes.iter().rev() {
        let all: Vec<Version> = node.inputs().chain(node.outputs()).collect();
        let learned = |version: &Version| {
            matches!(categories.known(*version), Some(Category::Gradient | Category::Parameter))
                || leads.contains(version)
        };
        if all.iter().any(learned) {
            leads.extend(all);
        }
    }
    for made in flow.nodes.iter().filter(|node| node.is_derivative).flat_map(|node| node.outputs()) {
        leads.remove(&made);
    }
    for version in leads.into_iter().filter(|(id, _)| !dependent.contains(id)) {
        categories.set_default(version, Category::Input);
    }
}

/// Parameters meet an input on its way forward, lead to a gradient, and depend on one.
fn find_parameters(flow: &Flow, categories: &mut Categories) {
    let is = |version: Version, category| categories.known(version) == Some(category);
    let is_gradient = |version: Version| is(version, Category::Gradient);
    let mut forward: HashSet<Version> =
        categories.versions.keys().copied().filter(|&version| is(version, Category::Input)).collect();
    let mut candidates: HashSet<Version> = HashSet::new();
    for node in flow.nodes.iter().filter(|node| !node.is_derivative) {
        let meets = node.inputs().any(|version| forward.contains(&version));
        if meets && !node.inputs().chain(node.outputs()).any(is_gradient) {
            forward.extend(node.outputs());
            candidates.extend(node.inputs().filter(|version| !forward.contains(version)));
        }
    }
    let mut used: HashSet<Version> = HashSet::new();
    for node in flow.nodes.iter().rev() {
        if node.outputs().any(|version| is_gradient(version) || used.contains(&version)) {
            used.extend(node.inputs());
        }
    }
    let dependent = dependent(flow, categories);
    for (id, _) in candidates.intersection(&used).filter(|(id, _)| dependent.contains(id)) {
        categories.fixed[*id as usize] = Some(Category::Parameter);
    }
}

/// What comes of inputs, activations and parameters, up to the backward pass.
fn find_activations(flow: &Flow, categories: &mut Categories) {
    for node in flow.nodes.iter().filter(|node| !node.is_derivative) {
        let known: Vec<Option<Category>> = node.inputs().map(|version| categories.known(version)).collect();
        let source = |known: &Option<Category>| matches!(known, Some(Category::Input | Category::Activation));
        let beside =
            |known: &Option<Category>| matches!(known, Some(Category::Parameter | Category::Temporary));
        if known.iter().any(source) && known.iter().all(|known| source(known) || beside(known)) {
            let outputs: Vec<Version> = node.outputs().collect();
            outputs.into_iter().for_each(|version| categories.set_default(version, Category::Activation));
        }
    }
}

/// What derivatives made and nothing else claims.
fn find_details(flow: &Flow, categories: &mut Categories) {
    for node in flow.nodes.iter().filter(|node| node.is_derivative) {
        let outputs: Vec<Version> = node.outputs().collect();
        for (id, version) in outputs {
            let before = version.checked_sub(1).and_then(|before| categories.known((id, before)));
            if matches!(before, None | Some(Category::AutogradDetail)) {
                categories.set_default((id, version), Category::AutogradDetail);
            }
        }
    }
}
