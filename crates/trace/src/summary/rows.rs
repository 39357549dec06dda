//! Adds slices up to rows.

use super::Grouping;
use crate::row::Row;
use crate::shapes;
use crate::slices::{Kind, Memory, NONE, Slice, Slices};
use crate::tree::Tree;
use std::collections::HashMap;

/// What keeps two rows apart, in numbers.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Key {
    name: u32,
    on_device: bool,
    is_user_annotation: bool,
    shapes: u32,
    stack: u32,
}

/// The same in texts: name, on a device, annotation, shapes, stack.
type TextKey = (u32, bool, bool, Option<String>, Vec<String>);

pub(super) fn rows(trace: &Slices, tree: &Tree, grouping: Grouping) -> Vec<Row> {
    let mut rows = Rows {
        trace,
        grouping,
        rows: Vec::new(),
        by_key: HashMap::new(),
        by_text: HashMap::new(),
        names: trace.row_names(),
        stray: None,
    };
    let mut row_of = vec![NONE; trace.slices.len()];
    let flops: HashMap<u32, u64> = trace.flops.iter().copied().collect();
    let mut stray = tree.stray.iter().map(|&i| &trace.memory[i as usize]).peekable();
    for &i in &tree.order {
        let at = i as usize;
        let slice = &trace.slices[at];
        while let Some(report) = stray.next_if(|report| report.time < slice.start) {
            rows.add_stray(report);
        }
        if slice.kind == Kind::Python && !grouping.include_python {
            continue;
        }
        if slice.kind.is_on_device() {
            let row = rows.find(slice, NONE, tree);
            add_work(&mut rows.rows[row], slice);
            continue;
        }
        if let Some(parent) = tree.merged_into(trace, at) {
            // The parent has the time already, but not as its own.
            row_of[at] = row_of[parent as usize];
            if let Some(row) = rows.rows.get_mut(row_of[at] as usize) {
                add_own(row, trace, tree, at);
            }
            continue;
        }
        let row = rows.find(slice, i, tree);
        row_of[at] = row as u32;
        let row = &mut rows.rows[row];
        add(&mut row.count, 1);
        add(&mut row.flops, flops.get(&i).copied().unwrap_or(0));
        add_own(row, trace, tree, at);
        add(&mut row.cpu_time_total, slice.duration as u64);
        add(&mut row.device_time_total, tree.device_time.get(at).map_or(0, |&time| time as u64));
        add_bytes(&mut row.cpu_memory_usage, tree.memory.get(at).map_or(0, |sums| sums[1]));
        add_bytes(&mut row.device_memory_usage, tree.memory.get(at).map_or(0, |sums| sums[3]));
    }
    stray.for_each(|report| rows.add_stray(report));
    let mut rows = rows.rows;
    rows.iter_mut().for_each(|row| row.use_device.clone_from(&trace.device));
    rows
}

struct Rows<'a> {
    trace: &'a Slices,
    grouping: Grouping,
    rows: Vec<Row>,
    by_key: HashMap<Key, usize>,
    by_text: HashMap<TextKey, usize>,
    names: Vec<u32>,
    stray: Option<usize>,
}

impl Rows<'_> {
    /// The row of a slice; `host` is its number if it is on the host.
    fn find(&mut self, slice: &Slice, host: u32, tree: &Tree) -> usize {
        let key = Key {
            name: self.names[slice.name as usize],
            on_device: slice.kind.is_on_device(),
            is_user_annotation: matches!(slice.kind, Kind::Annotation | Kind::DeviceAnnotation),
            shapes: slice.shapes,
            stack: slice.stack,
        };
        if let Some(&row) = self.by_key.get(&key) {
            return row;
        }
        // Lists and stacks that differ where nobody looks are one row, which only their texts tell.
        let row = self.new_row(&key, host, tree);
        let text =
            (key.name, key.on_device, key.is_user_annotation, row.input_shapes.clone(), row.stack.clone());
        let rows = &mut self.rows;
        let at = *self.by_text.entry(text).or_insert_with(|| {
            rows.push(row);
            rows.len() - 1
        });
        self.by_key.insert(key, at);
        at
    }

    /// Memory that moved outside of all slices has a row of its own.
    fn add_stray(&mut self, report: &Memory) {
        let at = *self.stray.get_or_insert_with(|| {
            self.rows.push(Row {
                key: "[memory]".to_owned(),
                device_type: "CPU".to_owned(),
                input_shapes: self.grouping.by_input_shape.then(|| "[]".to_owned()),
                ..Row::default()
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        let (total, own) = if report.is_host {
            (&mut row.cpu_memory_usage, &mut row.self_cpu_memory_usage)
        } else {
            (&mut row.device_memory_usage, &mut row.self_device_memory_usage)
        };
        add_bytes(total, report.bytes);
        add_bytes(own, report.bytes);
        add(&mut row.count, 1);
    }

    fn new_row(&self, key: &Key, host: u32, tree: &Tree) -> Row {
        let trace = self.trace;
        let device = || trace.device.clone().unwrap_or_else(|| "device".to_owned());
        let parent = if host == NONE { NONE } else { tree.parent[host as usize] };
        let stack = trace.text(key.stack).split(';').filter(|frame| !frame.is_empty());
        Row {
            key: trace.row_name(key.name).to_owned(),
            device_type: if key.on_device { device() } else { "CPU".to_owned() },
            on_device: key.on_device,
            is_user_annotation: key.is_user_annotation,
            cpu_parent: (parent != NONE).then(|| trace.name(&trace.slices[parent as usize]).to_owned()),
            input_shapes: self.grouping.by_input_shape.then(|| shapes::as_python(trace.text(key.shapes))),
            stack: stack.take(self.grouping.by_stack).map(str::to_owned).collect(),
            ..Row::default()
        }
    }
}

fn add_own(row: &mut Row, trace: &Slices, tree: &Tree, at: usize) {
    add(&mut row.self_cpu_time_total, tree.self_time(trace, at) as u64);
    add(&mut row.self_device_time_total, tree.own_device_time.get(at).map_or(0, |&time| time as u64));
    add_bytes(&mut row.self_cpu_memory_usage, tree.memory.get(at).map_or(0, |sums| sums[0]));
    add_bytes(&mut row.self_device_memory_usage, tree.memory.get(at).map_or(0, |sums| sums[2]));
}

fn add_work(row: &mut Row, slice: &Slice) {
    add(&mut row.count, 1);
    add(&mut row.device_time_total, slice.duration as u64);
    add(&mut row.self_device_time_total, slice.duration as u64);
}

/// Adds where a broken file could make the sum too large.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn add_bytes(sum: &mut i64, more: i64) {
    *sum = sum.saturating_add(more);
}
