//! What each outermost operator read, changed, took and gave back.

use super::storage::{Id, Storages};
use crate::pack::{Input, TensorInput};
use crate::trace::{Event, EventKind, Trace};
use cresset_dispatch::observe::Role;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A storage and how often it was changed before.
pub(super) type Version = (Id, u32);

/// What a node did with one storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edge {
    /// The version it found; `None` if it took the memory itself.
    pub(super) found: Option<u32>,
    pub(super) changed: bool,
    pub(super) destroyed: bool,
}

/// An outermost operator or derivative, or memory that moved outside of all.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: u64,
    pub(super) is_derivative: bool,
    pub(super) edges: BTreeMap<Id, Edge>,
}

impl Node {
    /// What it found there.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Version> {
        self.edges.iter().filter_map(|(&id, edge)| Some((id, edge.found?)))
    }

    /// What it left behind.
    pub(super) fn outputs(&self) -> impl Iterator<Item = Version> {
        self.edges.iter().filter_map(|(&id, edge)| match edge {
            Edge { destroyed: true, .. } => None,
            Edge { found: None, .. } => Some((id, 0)),
            Edge { found: Some(version), changed: true, .. } => Some((id, version + 1)),
            _ => None,
        })
    }

    /// What it took and gave back.
    pub(super) fn temporaries(&self) -> impl Iterator<Item = Id> {
        self.edges.iter().filter(|(_, edge)| edge.found.is_none() && edge.destroyed).map(|(&id, _)| id)
    }
}

/// The nodes in the order of time, and what is certain about storages.
pub(super) struct Flow {
    pub(super) nodes: Vec<Node>,
    pub(super) roles: Vec<(Role, Id)>,
}

/// A tensor that an operator was given.
struct Mention {
    id: Id,
    /// How often the memory had been changed, as its owner counts.
    version: u64,
    /// Whether the operator's name says that it changes this one.
    claimed: bool,
}

pub(super) fn flow(trace: &Trace, storages: &mut Storages) -> Flow {
    let mut builder =
        Builder { trace, storages, node_of: vec![None; trace.records.len()], drafts: Vec::new() };
    builder.add_operators();
    builder.add_memory();
    let roles = builder.roles();
    let mut drafts = builder.drafts;
    drafts.sort_by_key(|draft| draft.start);
    Flow { nodes: number(drafts), roles }
}

/// A node before versions are counted.
struct Draft {
    start: u64,
    is_derivative: bool,
    mentions: Vec<Mention>,
    created: Vec<Id>,
    destroyed: Vec<Id>,
}

impl Draft {
    fn new(start: u64, is_derivative: bool) -> Draft {
        Draft { start, is_derivative, mentions: Vec::new(), created: Vec::new(), destroyed: Vec::new() }
    }
}

struct Builder<'a> {
    trace: &'a Trace,
    storages: &'a mut Storages,
    /// The node that each event belongs to.
    node_of: Vec<Option<u32>>,
    drafts: Vec<Draft>,
}

impl Builder<'_> {
    /// A node per outermost operator or derivative, with everything inside it.
    fn add_operators(&mut self) {
        let mut i = 0;
        while let Some(event) = self.trace.event(i) {
            if !matches!(event.kind(), EventKind::Operator | EventKind::Backward) {
                i += 1;
                continue;
            }
            let node = self.drafts.len() as u32;
            let mut draft = Draft::new(event.start(), event.kind() == EventKind::Backward);
            let next = event.record().next as usize;
            for inner in (i..next).filter_map(|index| self.trace.event(index)) {
                self.node_of[inner.index()] = Some(node);
                self.mention(&mut draft, &inner);
            }
            self.drafts.push(draft);
            i = next.max(i + 1);
        }
    }

    fn mention(&mut self, draft: &mut Draft, event: &Event<'_>) {
        let Some(inputs) = event.inputs().filter(|_| event.is_operator()) else { return };
        // A name that ends in a line changes its first argument; if that is a list, all lists.
        let in_place = event.name().ends_with('_');
        let lists = matches!(inputs.first(), Some(Input::Tensors(_)));
        for (place, input) in inputs.iter().enumerate() {
            let (tensors, claimed) = match input {
                Input::Tensor(tensor) => (std::slice::from_ref(tensor), in_place && place == 0),
                Input::Tensors(list) => (list.as_slice(), in_place && lists),
                _ => continue,
            };
            for tensor in tensors {
                if let Some(identity) = &tensor.identity {
                    let id = self.storages.at(identity, reach(tensor), event.start());
                    draft.mentions.push(Mention { id, version: identity.version, claimed });
                }
            }
        }
    }

    /// Memory that was taken and given back, in the node it happened in or by itself.
    fn add_memory(&mut self) {
        for (event, id) in self.trace.memory.events.iter().zip(&self.storages.of_event) {
            let Some(id) = *id else { continue };
            let node = event.event.and_then(|index| self.node_of[index]).unwrap_or_else(|| {
                self.drafts.push(Draft::new(event.time, false));
                self.drafts.len() as u32 - 1
            });
            let draft = &mut self.drafts[node as usize];
            if event.report.bytes > 0 { draft.created.push(id) } else { draft.destroyed.push(id) }
        }
    }

    /// What is certain: gradients that were put down, and what optimizers and modules own.
    fn roles(&mut self) -> Vec<(Role, Id)> {
        let mut roles = Vec::new();
        for event in self.trace.events() {
            for (role, tensor) in event.owned() {
                if let Some(identity) = &tensor.identity {
                    roles.push((role, self.storages.at(identity, reach(&tensor), event.start())));
                }
            }
            if event.kind() == EventKind::Backward && event.name() == crate::names::ACCUMULATE {
                roles.extend(self.gradient(&event).map(|id| (Role::Gradient, id)));
            }
        }
        roles
    }

    /// The storage of the gradient that an accumulation leaves: the sum it added to, a copy it
    /// made, or what it was given.
    fn gradient(&mut self, event: &Event<'_>) -> Option<Id> {
        let copied = |drafts: &[Draft], node: Option<u32>| {
            let draft = &drafts[node? as usize];
            draft.created.iter().copied().find(|id| !draft.destroyed.contains(id))
        };
        let sum = event.children().find(|child| child.name() == "aten::add_");
        let given = match &sum {
            Some(sum) => sum,
            None => match copied(&self.drafts, self.node_of[event.index()]) {
                Some(copy) => return Some(copy),
                None => event,
            },
        };
        let inputs = given.inputs()?;
        let Some(Input::Tensor(tensor)) = inputs.first() else { return None };
        Some(self.storages.at(tensor.identity.as_ref()?, reach(tensor), given.start()))
    }
}

/// Bytes from the tensor's first element to the end of its last.
fn reach(tensor: &TensorInput) -> u64 {
    let spans = tensor.shape.iter().zip(&tensor.strides).map(|(&size, &stride)| size * stride);
    spans.max().unwrap_or(1).max(1) * tensor.element_bytes()
}

/// Counts versions along the nodes, which are in the order of time.
fn number(drafts: Vec<Draft>) -> Vec<Node> {
    let changed = changed(&drafts);
    let mut current: HashMap<Id, u32> = HashMap::new();
    let mut nodes = Vec::with_capacity(drafts.len());
    for (i, draft) in drafts.into_iter().enumerate() {
        let mut edges: BTreeMap<Id, Edge> = BTreeMap::new();
        for mention in &draft.mentions {
            let edge = edges.entry(mention.id).or_default();
            edge.found = Some(current.get(&mention.id).copied().unwrap_or(0));
            edge.changed = changed.contains(&(i, mention.id));
        }
        for id in draft.destroyed {
            let found = Some(current.get(&id).copied().unwrap_or(0));
            edges.insert(id, Edge { found, changed: false, destroyed: true });
        }
        for id in draft.created {
            edges.entry(id).or_default().found = None;
        }
        for (&id, edge) in edges.iter().filter(|(_, edge)| edge.changed && edge.found.is_some()) {
            *current.entry(id).or_insert(0) = edge.found.map_or(0, |version| version + 1);
        }
        nodes.push(Node { start: draft.start, is_derivative: draft.is_derivative, edges });
    }
    nodes
}

/// Which nodes changed which storages. Whoever sees a storage next knows its count; of what
/// nobody sees again, only the operator's name tells.
fn changed(drafts: &[Draft]) -> HashSet<(usize, Id)> {
    let mut changed = HashSet::new();
    let mut last: HashMap<Id, (usize, u64, bool)> = HashMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        for mention in &draft.mentions {
            let claimed = mention.claimed;
            match last.get_mut(&mention.id) {
                Some((node, _, known)) if *node == i => *known |= claimed,
                Some((node, version, _)) => {
                    if mention.version > *version {
                        changed.insert((*node, mention.id));
                    }
                    (*last.get_mut(&mention.id).expect("found above")) = (i, mention.version, claimed);
                }
                None => drop(last.insert(mention.id, (i, mention.version, claimed))),
            }
        }
    }
    changed.extend(last.into_iter().filter(|(_, (.., claimed))| *claimed).map(|(id, (node, ..))| (node, id)));
    changed
}
