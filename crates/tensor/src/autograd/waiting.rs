//! What a pass knows of the nodes it will come to.

use super::node::{Grads, Node};
use cresset_kernels::Shared;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A node's address.
pub(super) type NodeId = usize;

pub(super) fn id(node: &Shared<Node>) -> NodeId {
    Shared::address(node)
}

/// Something per node.
pub(super) type ByNode<T> = HashMap<NodeId, T, BuildHasherDefault<AddressHasher>>;

/// Some of the nodes.
pub(super) type NodeSet = HashSet<NodeId, BuildHasherDefault<AddressHasher>>;

/// Hashes addresses: they differ already, it is enough to spread them.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ (spread >> 32);
    }
}

/// A node that the pass will come to.
#[derive(Default)]
pub(super) struct Pending {
    /// How many edges still have to bring a gradient, or the news that there is none.
    pub(super) missing: usize,
    /// Gradients that wait for the rest of their sum.
    pub(super) grads: Grads,
}

/// Up to this many nodes are found by looking at all of them.
const FEW: usize = 12;

/// The nodes that a pass will come to. Small graphs are common, and looking through a few nodes
/// is quicker than a table.
#[derive(Default)]
pub(super) struct Waiting {
    nodes: SmallVec<[(NodeId, Pending); FEW]>,
    /// Where in `nodes` each one is, once they are many.
    places: ByNode<usize>,
}

impl Waiting {
    /// The place of the node `id`, which is new if the second is true.
    pub(super) fn entry(&mut self, id: NodeId) -> (usize, bool) {
        let found = self.find(id);
        (found.unwrap_or_else(|| self.add(id)), found.is_none())
    }

    /// The node at a place.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut Pending {
        &mut self.nodes[place].1
    }

    /// The place of the node `id`, if the pass will come to it.
    #[inline]
    pub(super) fn find(&self, id: NodeId) -> Option<usize> {
        if self.nodes.len() <= FEW {
            return self.nodes.iter().position(|(other, _)| *other == id);
        }
        self.places.get(&id).copied()
    }

    fn add(&mut self, id: NodeId) -> usize {
        let at = self.nodes.len();
        self.nodes.push((id, Pending::default()));
        match at.cmp(&FEW) {
            Ordering::Less => {}
            Ordering::Equal => self.places.extend(self.nodes.iter().map(|(id, _)| *id).zip(0..)),
            Ordering::Greater => drop(self.places.insert(id, at)),
        }
        at
    }
}

/// Nodes with all their gradients: the latest call comes out first.
///
/// A heap that moves its nodes as C++'s priority queue does, so that of equals, which all leaves are,
/// the same comes out first as in torch.
#[derive(Default)]
pub(super) struct ReadyNodes {
    heap: SmallVec<[Ready; 4]>,
}

/// A node, and its place among those that wait.
pub(super) struct Ready {
    pub(super) node: Shared<Node>,
    pub(super) place: usize,
}

impl ReadyNodes {
    pub(super) fn push(&mut self, node: Shared<Node>, place: usize) {
        self.heap.push(Ready { node, place });
        self.rise(self.heap.len() - 1);
    }

    /// Moves the node at `hole` up to where it belongs.
    fn rise(&mut self, mut hole: usize) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if self.heap[parent].node.sequence >= self.heap[hole].node.sequence {
                return;
            }
            self.heap.swap(parent, hole);
            hole = parent;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Ready> {
        if self.heap.len() <= 1 {
            return self.heap.pop();
        }
        let next = self.heap.swap_remove(0);
        let (mut hole, len) = (0, self.heap.len());
        // The last node sinks to the ground along the larger child, the right one of equals, then rises.
        while 2 * hole + 2 < len {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let sequence = |at: usize| self.heap[at].node.sequence;
            let child = if sequence(right) < sequence(left) { left } else { right };
            self.heap.swap(hole, child);
            hole = child;
        }
        if 2 * hole + 1 < len {
            self.heap.swap(hole, 2 * hole + 1);
            hole = 2 * hole + 1;
        }
        self.rise(hole);
        Some(next)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Shared<Node>> {
        self.heap.iter().map(|ready| &ready.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::node::Function;

    fn node(sequence: u64) -> Shared<Node> {
        Shared::new(Node::numbered(sequence, "", SmallVec::new(), Function::Nothing))
    }

    #[test]
    fn few_nodes_and_many_are_found_again() {
        let mut waiting = Waiting::default();
        for round in 0..2 {
            for id in 1..100 {
                let (place, new) = waiting.entry(id * 64);
                let pending = waiting.at(place);
                assert_eq!((new, pending.missing), (round == 0, round * id));
                pending.missing = id;
            }
        }
        assert!(waiting.find(7).is_none());
        assert_eq!(waiting.find(64 * 64).map(|place| waiting.at(place).missing), Some(64));
    }

    #[test]
    fn the_latest_call_comes_first() {
        let mut ready = ReadyNodes::default();
        [3, 9, 1].into_iter().for_each(|sequence| ready.push(node(sequence), 0));
        assert_eq!(ready.iter().count(), 3);
        let mut order = vec![];
        while let Some(Ready { node: next, .. }) = ready.pop() {
            order.push(next.sequence);
            if next.sequence == 9 {
                [4, 2].into_iter().for_each(|sequence| ready.push(node(sequence), 0));
            }
        }
        assert_eq!(order, [9, 4, 3, 2, 1]);
    }

    /// What `std::priority_queue` of libstdc++ does with equals, pushed one after the other.
    #[test]
    fn equals_come_in_the_order_of_a_priority_queue_in_cpp() {
        for (count, wanted) in [(2, &[0, 1][..]), (3, &[0, 1, 2]), (4, &[0, 2, 1, 3]), (5, &[0, 2, 4, 1, 3])]
        {
            let nodes: Vec<_> = (0..count).map(|_| node(7)).collect();
            let mut ready = ReadyNodes::default();
            nodes.iter().zip(0..).for_each(|(node, place)| ready.push(node.clone(), place));
            let order: Vec<_> = std::iter::from_fn(|| ready.pop()).map(|next| next.place).collect();
            assert_eq!(order, wanted, "{count} nodes");
        }
    }
}
