//! Adds events up to rows.

use super::{Averages, Grouping};
use crate::error::Result;
use crate::names;
use crate::session::Recording;
use crate::trace::{Event, EventKind, MemoryEvent, NONE, Trace};
use cresset_trace::Row;
use std::collections::HashMap;

/// Rows of all that was recorded, a piece at a time where it is in a file.
pub(super) fn recordings<'a>(
    recordings: impl IntoIterator<Item = &'a Recording>,
    grouping: Grouping,
) -> Result<Averages> {
    let mut sum = Sum::default();
    for recording in recordings {
        match recording {
            Recording::Memory(trace) => sum.add(trace, grouping),
            Recording::File(streamed) => {
                for piece in streamed.pieces()? {
                    sum.add(&piece?, grouping);
                }
            }
        }
    }
    Ok(sum.averages())
}

/// Rows of one trace.
pub(super) fn trace(trace: &Trace, grouping: Grouping) -> Averages {
    let mut sum = Sum::default();
    sum.add(trace, grouping);
    sum.averages()
}

#[derive(Default)]
struct Sum {
    averages: Averages,
    rows: Rows,
}

impl Sum {
    fn add(&mut self, trace: &Trace, grouping: Grouping) {
        let averages = &mut self.averages;
        averages.has_memory |= trace.wants.memory;
        averages.has_flops |= trace.wants.flops;
        let worked = trace.work.first().map(|work| work.activity.device.key);
        let device = worked.or_else(|| trace.devices.first().map(|known| known.device.key));
        averages.device = device.map(|key| names::device_type(key).into_owned()).or(averages.device.take());
        add_events(&mut self.rows, trace, grouping);
        add_device_work(&mut self.rows, trace);
        add_stray_memory(&mut self.rows, trace);
    }

    fn averages(self) -> Averages {
        let Sum { mut averages, rows } = self;
        averages.rows = rows.rows;
        averages.rows.iter_mut().for_each(|row| row.use_device.clone_from(&averages.device));
        averages
    }
}

/// What keeps two rows apart.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: String,
    device_type: String,
    on_device: bool,
    is_user_annotation: bool,
    input_shapes: Option<String>,
    overload_name: String,
    stack: Vec<String>,
}

/// Rows while they grow.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    by_key: HashMap<Key, usize>,
}

impl Rows {
    fn find(&mut self, row: Row) -> usize {
        let key = Key {
            name: row.key.clone(),
            device_type: row.device_type.clone(),
            on_device: row.on_device,
            is_user_annotation: row.is_user_annotation,
            input_shapes: row.input_shapes.clone(),
            overload_name: row.overload_name.clone(),
            stack: row.stack.clone(),
        };
        *self.by_key.entry(key).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() - 1
        })
    }
}

fn new_row(event: &Event<'_>, grouping: Grouping) -> Row {
    let key = if event.kind() == EventKind::Step { names::STEPS } else { event.name() };
    let frames = event.stack().unwrap_or_default().iter().take(grouping.by_stack);
    let overload = event.overload_name().filter(|_| grouping.by_overload_name);
    Row {
        key: key.to_owned(),
        overload_name: overload.unwrap_or_default().to_owned(),
        device_type: event.device_type().into_owned(),
        is_user_annotation: event.is_user_annotation(),
        scope: names::scope(event.kind()),
        cpu_parent: event.parent().map(|parent| parent.name().to_owned()),
        cpu_children: event.children().map(|child| child.name().to_owned()).collect(),
        input_shapes: if grouping.by_input_shape { event.input_dims() } else { None },
        stack: frames.map(ToString::to_string).collect(),
        ..Row::default()
    }
}

fn is_left_out(event: &Event<'_>, grouping: Grouping) -> bool {
    names::HIDDEN.contains(&event.name()) || event.kind() == EventKind::Module && !grouping.include_modules
}

fn add_events(rows: &mut Rows, trace: &Trace, grouping: Grouping) {
    let sums = Sums::of(trace);
    // A row is found by numbers where possible: texts are compared once per name.
    let mut known = HashMap::new();
    let mut row_of = vec![NONE; trace.records.len()];
    let mut stray = stray_memory(trace).next().map(|event| event.time);
    for event in trace.events() {
        if is_left_out(&event, grouping) {
            continue;
        }
        // Rows stand in the order of time, and so does that of memory.
        if stray.take_if(|time| *time < event.start()).is_some() {
            rows.find(memory_row());
        }
        let i = event.index();
        if event.record().before {
            let row = rows.find(new_row(&event, grouping));
            row_of[i] = row as u32;
            sums.add_later(&mut rows.rows[row], &event);
            continue;
        }
        if let Some(parent) = merged_into(&event) {
            // The parent's row is this one's, too; it has the time already, but not as its own.
            row_of[i] = row_of[parent.index()];
            if let Some(row) = rows.rows.get_mut(row_of[i] as usize) {
                sums.add_own(row, &event);
            }
            continue;
        }
        let mut find = || rows.find(new_row(&event, grouping));
        let row = if grouping.by_input_shape {
            find()
        } else {
            let record = event.record();
            let stack = if grouping.by_stack > 0 { record.stack } else { NONE };
            let overload = if grouping.by_overload_name { record.overload } else { NONE };
            *known
                .entry((record.name, event.device().key, event.kind(), stack, overload))
                .or_insert_with(find)
        };
        row_of[i] = row as u32;
        let row = &mut rows.rows[row];
        row.count += 1;
        row.flops += event.flops();
        row.copied_bytes += event.copied_bytes();
        sums.add_own(row, &event);
        sums.add_total(row, &event);
    }
}

/// The parent, if it does nothing but call an operator of its own name.
fn merged_into<'a>(event: &Event<'a>) -> Option<Event<'a>> {
    let same = |parent: &Event<'_>| parent.record().name == event.record().name && !parent.record().before;
    let parent = event.parent().filter(same)?;
    let is_only = event.index() == parent.index() + 1 && event.record().next == parent.record().next;
    is_only.then_some(parent)
}

/// Figures per event that come from elsewhere than the event: own, and with descendants.
struct Sums {
    device_time: Vec<u64>,
    cpu_memory: Vec<[i64; 2]>,
    device_memory: Vec<[i64; 2]>,
}

impl Sums {
    fn of(trace: &Trace) -> Sums {
        let count = trace.records.len();
        let mut device_time: Vec<u64> = trace.records.iter().map(|record| record.device_time).collect();
        let with_memory = if trace.memory.events.is_empty() { 0 } else { count };
        let mut cpu_memory = vec![[0; 2]; with_memory];
        let mut device_memory = vec![[0; 2]; with_memory];
        for event in &trace.memory.events {
            let Some(i) = event.event else { continue };
            let sums = if event.report.device.is_cpu() { &mut cpu_memory } else { &mut device_memory };
            sums[i] = sums[i].map(|sum| sum + event.report.bytes);
        }
        // Children come after their parents, so that backwards each is complete when added.
        for i in (0..count).rev() {
            let parent = trace.records[i].parent as usize;
            if parent < count {
                device_time[parent] += device_time[i];
                if with_memory > 0 {
                    cpu_memory[parent][1] += cpu_memory[i][1];
                    device_memory[parent][1] += device_memory[i][1];
                }
            }
        }
        Sums { device_time, cpu_memory, device_memory }
    }

    fn add_own(&self, row: &mut Row, event: &Event<'_>) {
        row.self_cpu_time_total += event.self_time();
        row.self_device_time_total += event.self_device_time();
        row.self_cpu_memory_usage += self.cpu_memory.get(event.index()).map_or(0, |sums| sums[0]);
        row.self_device_memory_usage += self.device_memory.get(event.index()).map_or(0, |sums| sums[0]);
    }

    /// What an event of an earlier piece did in this one.
    fn add_later(&self, row: &mut Row, event: &Event<'_>) {
        let inside = event.record().children;
        row.self_cpu_time_total = row.self_cpu_time_total.saturating_sub(inside);
        row.copied_bytes += event.copied_bytes();
        row.self_device_time_total += event.self_device_time();
        row.device_time_total += self.device_time[event.index()];
        let of = |sums: &[[i64; 2]]| sums.get(event.index()).copied().unwrap_or_default();
        let ([own, all], [own_device, all_device]) = (of(&self.cpu_memory), of(&self.device_memory));
        row.self_cpu_memory_usage += own;
        row.cpu_memory_usage += all;
        row.self_device_memory_usage += own_device;
        row.device_memory_usage += all_device;
    }

    fn add_total(&self, row: &mut Row, event: &Event<'_>) {
        row.cpu_time_total += event.duration();
        row.device_time_total += self.device_time[event.index()];
        row.cpu_memory_usage += self.cpu_memory.get(event.index()).map_or(0, |sums| sums[1]);
        row.device_memory_usage += self.device_memory.get(event.index()).map_or(0, |sums| sums[1]);
    }
}

fn add_device_work(rows: &mut Rows, trace: &Trace) {
    for event in trace.device_events() {
        let row = rows.find(Row {
            key: event.name().to_owned(),
            device_type: event.device_type().into_owned(),
            on_device: true,
            ..Row::default()
        });
        let row = &mut rows.rows[row];
        row.count += 1;
        row.device_time_total += event.duration();
        row.self_device_time_total += event.duration();
    }
}

fn stray_memory(trace: &Trace) -> impl Iterator<Item = &MemoryEvent> {
    trace.memory.events.iter().filter(|event| event.event.is_none())
}

fn memory_row() -> Row {
    Row { key: names::MEMORY.to_owned(), device_type: "CPU".to_owned(), ..Row::default() }
}

/// Memory that moved outside all events has a row of its own.
fn add_stray_memory(rows: &mut Rows, trace: &Trace) {
    for event in stray_memory(trace) {
        let row = rows.find(memory_row());
        let row = &mut rows.rows[row];
        let bytes = event.report.bytes;
        let (total, own) = if event.report.device.is_cpu() {
            (&mut row.cpu_memory_usage, &mut row.self_cpu_memory_usage)
        } else {
            (&mut row.device_memory_usage, &mut row.self_device_memory_usage)
        };
        *total += bytes;
        *own += bytes;
        row.count += 1;
    }
}
