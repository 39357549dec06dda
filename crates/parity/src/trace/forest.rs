//! A trace as trees of calls, one list of roots per thread.

use cresset_trace::{Kind, Memory, NONE, Slice, Slices};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashMap;

/// A call and what it called.
pub(super) struct Node<'a> {
    /// Its name; all steps have one.
    pub(super) name: &'a str,
    /// Its number among the events of the file.
    pub(super) event: u32,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) dims: Option<Value>,
    pub(super) types: Option<Value>,
    pub(super) concrete: Option<Value>,
    /// The number of its derivative's node, and whether it is the derivative.
    pub(super) sequence: Option<(i64, bool)>,
    pub(super) flops: Option<u64>,
    /// Bytes that it and all it called took and gave back.
    pub(super) taken: i64,
    pub(super) given_back: i64,
}

/// All calls of a trace.
pub(super) struct Forest<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// The calls that lie in no other, thread by thread, in the order that threads begin.
    pub(super) threads: Vec<Vec<usize>>,
    /// Arrows from forward to backward, as pairs of calls.
    pub(super) arrows: Vec<(usize, usize)>,
    pub(super) has_memory: bool,
}

impl<'a> Forest<'a> {
    /// Operators and named ranges. Calls of Python are left out: they depend on the language a
    /// program is written in, and torch's cross its named ranges.
    pub(super) fn of(trace: &'a Slices) -> Forest<'a> {
        let flops: HashMap<u32, u64> = trace.flops.iter().copied().collect();
        let is_call = |slice: &Slice| matches!(slice.kind, Kind::Operator | Kind::Annotation);
        let mut order: Vec<u32> =
            (0..trace.slices.len() as u32).filter(|&i| is_call(&trace.slices[i as usize])).collect();
        order.sort_by_key(|&i| (trace.slices[i as usize].start, Reverse(trace.slices[i as usize].end())));
        let mut forest = Forest {
            nodes: Vec::new(),
            threads: Vec::new(),
            arrows: Vec::new(),
            has_memory: trace.has_memory,
        };
        let mut threads: HashMap<u32, usize> = HashMap::new();
        let mut open: Vec<Vec<usize>> = vec![Vec::new(); trace.tracks.len()];
        let mut tracks: Vec<Vec<usize>> = vec![Vec::new(); trace.tracks.len()];
        for i in order {
            let slice = &trace.slices[i as usize];
            let open = &mut open[slice.track as usize];
            let nodes = &forest.nodes;
            while open.pop_if(|top| slice.start >= nodes[*top].end || slice.end() > nodes[*top].end).is_some()
            {
            }
            let (number, parent) = (forest.nodes.len(), open.last().copied());
            let mut node = node(trace, i, flops.get(&i).copied());
            node.parent = parent;
            forest.nodes.push(node);
            match parent {
                Some(parent) => forest.nodes[parent].children.push(number),
                None => {
                    let count = threads.len();
                    let thread = *threads.entry(slice.track).or_insert(count);
                    forest.threads.resize_with(threads.len(), Vec::new);
                    forest.threads[thread].push(number);
                }
            }
            open.push(number);
            tracks[slice.track as usize].push(number);
        }
        forest.add_memory(trace, &tracks);
        forest.add_arrows(trace, &tracks);
        forest
    }

    /// How many calls lie in a call, itself included.
    pub(super) fn size(&self, node: usize) -> usize {
        let mut size = 0;
        let mut next = vec![node];
        while let Some(node) = next.pop() {
            size += 1;
            next.extend(&self.nodes[node].children);
        }
        size
    }

    /// The calls that a call lies in, the outermost first.
    pub(super) fn path(&self, node: usize) -> Vec<&'a str> {
        let mut path = Vec::new();
        let mut at = self.nodes[node].parent;
        while let Some(parent) = at {
            path.push(self.nodes[parent].name);
            at = self.nodes[parent].parent;
        }
        path.reverse();
        path
    }

    /// The innermost call of a thread at a time; of those that begin then, the last.
    fn at(&self, track: &[usize], time: i64) -> Option<usize> {
        let begun = track.partition_point(|&node| self.nodes[node].start <= time);
        let mut at = track[..begun].last().copied();
        while let Some(node) = at.filter(|&node| self.nodes[node].end < time) {
            at = self.nodes[node].parent;
        }
        at
    }

    fn add_memory(&mut self, trace: &Slices, tracks: &[Vec<usize>]) {
        for &Memory { time, bytes, track, .. } in &trace.memory {
            if let Some(node) = self.at(&tracks[track as usize], time) {
                let node = &mut self.nodes[node];
                let sum = if bytes > 0 { &mut node.taken } else { &mut node.given_back };
                *sum = sum.saturating_add(bytes.saturating_abs());
            }
        }
        // Calls come after those they lie in.
        for i in (0..self.nodes.len()).rev() {
            let Node { parent, taken, given_back, .. } = self.nodes[i];
            if let Some(parent) = parent {
                let parent = &mut self.nodes[parent];
                parent.taken = parent.taken.saturating_add(taken);
                parent.given_back = parent.given_back.saturating_add(given_back);
            }
        }
    }

    fn add_arrows(&mut self, trace: &Slices, tracks: &[Vec<usize>]) {
        let mut starts = HashMap::new();
        let flows = || trace.flows.iter().filter(|flow| flow.is_backward);
        for flow in flows().filter(|flow| flow.is_start) {
            starts.insert(flow.id, self.at(&tracks[flow.track as usize], flow.time));
        }
        for flow in flows().filter(|flow| !flow.is_start) {
            let to = self.at(&tracks[flow.track as usize], flow.time);
            if let (Some(&Some(from)), Some(to)) = (starts.get(&flow.id), to) {
                self.arrows.push((from, to));
            }
        }
    }
}

fn node<'a>(trace: &'a Slices, i: u32, flops: Option<u64>) -> Node<'a> {
    let slice = &trace.slices[i as usize];
    let name = trace.name(slice);
    let list = |number: u32| {
        if number == NONE { None } else { serde_json::from_str(trace.text(number)).ok() }
    };
    let detail = trace.details.get(i as usize);
    Node {
        name: known_name(name),
        event: slice.event,
        parent: None,
        children: Vec::new(),
        start: slice.start,
        end: slice.end(),
        dims: list(slice.shapes),
        types: detail.and_then(|detail| list(detail.types)),
        concrete: detail.and_then(|detail| list(detail.concrete)),
        sequence: detail
            .filter(|detail| detail.sequence >= 0)
            .map(|detail| (detail.sequence, detail.forward_thread > 0)),
        flops,
        taken: 0,
        given_back: 0,
    }
}

/// A name without what differs from run to run, or by how a trace was recorded: the number of a
/// step, and which variant of an operator it is.
fn known_name(name: &str) -> &str {
    if name.starts_with("ProfilerStep#") {
        return "ProfilerStep*";
    }
    match name.split_once('.') {
        Some((operator, _)) if operator.starts_with("aten::") => operator,
        _ => name,
    }
}
