//! Which slices lie in which, thread by thread, and what that makes of their times.

use crate::slices::{Kind, NONE, Slice, Slices};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Calls that tables leave out, as torch's do: they are made by looking at a tensor.
const HIDDEN: [&str; 6] = [
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
];

/// The tree of a trace. All lists but `order` and `stray` are by slice.
pub struct Tree {
    /// Slices that count, by when they begin; of two that begin together, the longer comes first.
    pub order: Vec<u32>,
    /// The slice that a slice lies in, or [`NONE`].
    pub parent: Vec<u32>,
    /// How many slices lie directly in it.
    pub children: Vec<u32>,
    /// How long those take.
    pub inside: Vec<i64>,
    /// How long the device worked for it, for all in it too; empty where there is no device.
    pub device_time: Vec<i64>,
    /// The same without what lies in it.
    pub own_device_time: Vec<i64>,
    /// Host memory and device memory that it took, own and with all in it; empty without reports.
    pub memory: Vec<[i64; 4]>,
    /// Memory reports that lie in no slice.
    pub stray: Vec<u32>,
}

impl Tree {
    /// Sorts out which slice lies in which. As in torch's tables, one that crosses the end of
    /// another lies beside it.
    pub fn of(trace: &Slices) -> Tree {
        let slices = &trace.slices;
        let hidden = hidden(trace);
        let counts = |slice: &Slice| slice.kind != Kind::Span && !hidden.contains(&slice.name);
        let mut order: Vec<u32> = (0..slices.len() as u32).filter(|&i| counts(&slices[i as usize])).collect();
        order.sort_by_key(|&i| (slices[i as usize].start, Reverse(slices[i as usize].end())));
        let mut tree = Tree {
            order,
            parent: vec![NONE; slices.len()],
            children: vec![0; slices.len()],
            inside: vec![0; slices.len()],
            device_time: Vec::new(),
            own_device_time: Vec::new(),
            memory: Vec::new(),
            stray: Vec::new(),
        };
        tree.nest(trace);
        tree.add_device_time(trace);
        tree.add_memory(trace);
        tree
    }

    /// Host time of a slice without what lies in it. Slices that run on other threads cannot make
    /// it negative, but those of a broken trace could.
    pub fn self_time(&self, trace: &Slices, slice: usize) -> i64 {
        (trace.slices[slice].duration - self.inside[slice]).max(0)
    }

    fn nest(&mut self, trace: &Slices) {
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); trace.tracks.len()];
        for &i in &self.order {
            let slice = &trace.slices[i as usize];
            if slice.kind.is_on_device() {
                continue;
            }
            let open = &mut open[slice.track as usize];
            while open.pop_if(|top| !holds(&trace.slices[*top as usize], slice)).is_some() {}
            if let Some(&parent) = open.last() {
                self.parent[i as usize] = parent;
                self.children[parent as usize] += 1;
                add(&mut self.inside[parent as usize], slice.duration);
            }
            open.push(i);
        }
    }

    fn add_device_time(&mut self, trace: &Slices) {
        let slices = &trace.slices;
        if !slices.iter().any(|slice| slice.kind == Kind::Work) {
            return;
        }
        let ids: HashMap<u64, u32> = (slices.iter().zip(0..))
            .filter(|(slice, _)| slice.id > 0 && matches!(slice.kind, Kind::Operator | Kind::Annotation))
            .map(|(slice, i)| (slice.id, i))
            .collect();
        let mut launches = HashMap::new();
        let mut launched = HashMap::new();
        for &(i, correlation) in &trace.correlations {
            if slices[i as usize].kind == Kind::Runtime {
                launches.insert(correlation, i);
            } else {
                launched.insert(i, correlation);
            }
        }
        let mut own = vec![0; slices.len()];
        for (i, slice) in slices.iter().enumerate().filter(|(_, slice)| slice.kind == Kind::Work) {
            // Work knows the call it was launched in; if not, the launch lies in one.
            let launch = || launched.get(&(i as u32)).and_then(|correlation| launches.get(correlation));
            if let Some(&host) = ids.get(&slice.id).or_else(launch) {
                add(&mut own[host as usize], slice.duration);
            }
        }
        let mut all = own.clone();
        self.add_up(|parent, child| {
            let time = all[child];
            add(&mut all[parent], time);
        });
        (self.own_device_time, self.device_time) = (own, all);
    }

    fn add_memory(&mut self, trace: &Slices) {
        if trace.memory.is_empty() {
            return;
        }
        let mut memory = vec![[0; 4]; trace.slices.len()];
        let mut reports: Vec<u32> = (0..trace.memory.len() as u32).collect();
        reports.sort_by_key(|&i| trace.memory[i as usize].time);
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); trace.tracks.len()];
        let mut next = self.order.iter().peekable();
        for report in reports {
            let memory_report = &trace.memory[report as usize];
            // All that begin by then are opened, and those that end before are closed.
            while let Some(&i) = next.next_if(|&&i| trace.slices[i as usize].start <= memory_report.time) {
                let slice = &trace.slices[i as usize];
                if !slice.kind.is_on_device() {
                    let open = &mut open[slice.track as usize];
                    while open.pop_if(|top| !holds(&trace.slices[*top as usize], slice)).is_some() {}
                    open.push(i);
                }
            }
            let open = &mut open[memory_report.track as usize];
            while open.pop_if(|top| trace.slices[*top as usize].end() < memory_report.time).is_some() {}
            match open.last() {
                Some(&i) => {
                    let place = if memory_report.is_host { 0 } else { 2 };
                    add(&mut memory[i as usize][place], memory_report.bytes);
                    add(&mut memory[i as usize][place + 1], memory_report.bytes);
                }
                None => self.stray.push(report),
            }
        }
        self.add_up(|parent, child| {
            let [_, host, _, device] = memory[child];
            add(&mut memory[parent][1], host);
            add(&mut memory[parent][3], device);
        });
        self.memory = memory;
    }

    /// Calls `add` with every parent and child, children's children before.
    fn add_up(&self, mut add: impl FnMut(usize, usize)) {
        for &i in self.order.iter().rev() {
            let parent = self.parent[i as usize];
            if parent != NONE {
                add(parent as usize, i as usize);
            }
        }
    }

    /// The parent, if a slice is all that lies in it and has its name: to torch, both are one call.
    pub fn merged_into(&self, trace: &Slices, slice: usize) -> Option<u32> {
        let parent = self.parent[slice];
        let is_one = parent != NONE
            && self.children[parent as usize] == 1
            && trace.slices[parent as usize].name == trace.slices[slice].name;
        is_one.then_some(parent)
    }
}

/// Adds where a broken file could make the sum too large.
fn add(sum: &mut i64, more: i64) {
    *sum = sum.saturating_add(more);
}

fn holds(outer: &Slice, inner: &Slice) -> bool {
    inner.start < outer.end() && inner.end() <= outer.end()
}

fn hidden(trace: &Slices) -> Vec<u32> {
    HIDDEN.iter().filter_map(|name| trace.texts.find(name)).collect()
}
