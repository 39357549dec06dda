//! Totals per operator: torch's `key_averages`.

use crate::error::{Error, Result};
use crate::names;
use crate::table::Table;
use crate::trace::{Event, EventKind, NONE, Trace};
use std::collections::HashMap;
use std::ops::Deref;

/// What besides the name keeps rows apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    by_input_shape: bool,
}

impl Grouping {
    /// One row per name and shape of the arguments.
    #[must_use]
    pub fn by_input_shape(mut self, on: bool) -> Grouping {
        self.by_input_shape = on;
        self
    }
}

/// The totals of all events with one name. Times are in nanoseconds, memory in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The name; all steps are `ProfilerStep*`.
    pub key: String,
    /// The kind of device: of its tensors for an operator, where it ran for a kernel.
    pub device_type: String,
    /// Whether this is work that ran on a device rather than a call on the host.
    pub on_device: bool,
    /// Whether a program or the profiler named it.
    pub is_user_annotation: bool,
    /// Whether the first of the events lay in no other.
    pub is_top_level: bool,
    /// Shapes of the arguments, if grouped by them.
    pub input_shapes: Option<String>,
    /// How many events.
    pub count: u64,
    /// Host time, of all they called too.
    pub cpu_time_total: u64,
    /// Host time, without what they called.
    pub self_cpu_time_total: u64,
    /// Device time of the work they and all they called launched.
    pub device_time_total: u64,
    /// Device time of the work they launched themselves.
    pub self_device_time_total: u64,
    /// Host memory taken and not given back, by all they called too.
    pub cpu_memory_usage: i64,
    /// The same without what they called.
    pub self_cpu_memory_usage: i64,
    /// Device memory taken and not given back, by all they called too.
    pub device_memory_usage: i64,
    /// The same without what they called.
    pub self_device_memory_usage: i64,
    /// Bytes that kernels copied beside their work: operands that lay apart, or were of another type
    /// than the kernel computes in. Known with `profile_memory`.
    pub copied_bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
}

impl Row {
    /// Host time per event.
    pub fn cpu_time(&self) -> f64 {
        self.cpu_time_total as f64 / self.count.max(1) as f64
    }

    /// Device time per event.
    pub fn device_time(&self) -> f64 {
        self.device_time_total as f64 / self.count.max(1) as f64
    }

    /// Adds another row's figures to this one's.
    pub fn add(&mut self, other: &Row) {
        self.count += other.count;
        self.cpu_time_total += other.cpu_time_total;
        self.self_cpu_time_total += other.self_cpu_time_total;
        self.device_time_total += other.device_time_total;
        self.self_device_time_total += other.self_device_time_total;
        self.cpu_memory_usage += other.cpu_memory_usage;
        self.self_cpu_memory_usage += other.self_cpu_memory_usage;
        self.device_memory_usage += other.device_memory_usage;
        self.self_device_memory_usage += other.self_device_memory_usage;
        self.copied_bytes += other.copied_bytes;
        self.flops += other.flops;
    }
}

/// What a table can be sorted by. `cuda`, `xpu`, `privateuse1` and `npu` mean `device`.
pub(crate) const SORT_KEYS: [&str; 13] = [
    "key",
    "count",
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
];

/// Rows in the order their names were first seen. A slice of [`Row`]s.
#[derive(Clone, Debug, Default)]
pub struct Averages {
    rows: Vec<Row>,
    pub(crate) has_memory: bool,
    pub(crate) has_flops: bool,
    /// What the device is called in headings.
    pub(crate) device: String,
}

impl Deref for Averages {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl<'a> IntoIterator for &'a Averages {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl Averages {
    pub(crate) fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>, grouping: Grouping) -> Averages {
        let mut averages = Averages { device: "DEVICE".to_owned(), ..Averages::default() };
        let mut rows = Rows::default();
        for trace in traces {
            averages.has_memory |= trace.wants.memory;
            averages.has_flops |= trace.wants.flops;
            if let Some(work) = trace.work.first() {
                averages.device = names::device_type(work.activity.device.key).into_owned();
            } else if let Some(device) = trace.devices.first() {
                averages.device = names::device_type(device.device.key).into_owned();
            }
            add_events(&mut rows, trace, grouping);
            add_device_work(&mut rows, trace);
            add_stray_memory(&mut rows, trace);
        }
        averages.rows = rows.rows;
        averages
    }

    /// The rows as a table.
    pub fn table(&self) -> Table<'_> {
        Table::new(self)
    }

    /// Sorts the rows by the figure called `key`, the largest first.
    ///
    /// # Errors
    /// There is no such figure.
    pub fn sort_by_key_name(&mut self, key: &str) -> Result<()> {
        let figure = Figure::named(key)?;
        self.rows.sort_by(|a, b| figure.compare(b, a));
        Ok(())
    }

    /// Host time of all rows, counted once.
    pub fn self_cpu_time_total(&self) -> u64 {
        self.rows.iter().map(|row| row.self_cpu_time_total).sum()
    }

    /// Device time of all work, counted once.
    pub fn self_device_time_total(&self) -> u64 {
        self.rows.iter().filter(|row| row.on_device).map(|row| row.self_device_time_total).sum()
    }

    /// All rows added up.
    pub fn total_average(&self) -> Row {
        let mut total = Row { key: "Total".to_owned(), device_type: "CPU".to_owned(), ..Row::default() };
        self.rows.iter().for_each(|row| total.add(row));
        total
    }
}

/// A figure that rows can be sorted by.
#[derive(Clone, Copy)]
pub(crate) struct Figure(usize);

impl Figure {
    pub(crate) fn named(asked: &str) -> Result<Figure> {
        let aliases = ["cuda", "xpu", "privateuse1", "npu"];
        let key = aliases.iter().fold(asked.to_owned(), |key, alias| key.replace(alias, "device"));
        let found = SORT_KEYS.iter().position(|known| *known == key);
        found.map(Figure).ok_or_else(|| Error::SortKey { asked: asked.to_owned() })
    }

    pub(crate) fn compare(self, a: &Row, b: &Row) -> std::cmp::Ordering {
        let value = |row: &Row| match self.0 {
            1 => row.count as f64,
            2 => row.cpu_time(),
            3 => row.cpu_time_total as f64,
            4 => row.self_cpu_time_total as f64,
            5 => row.device_time(),
            6 => row.device_time_total as f64,
            7 => row.self_device_time_total as f64,
            8 => row.cpu_memory_usage as f64,
            9 => row.self_cpu_memory_usage as f64,
            10 => row.device_memory_usage as f64,
            11 => row.self_device_memory_usage as f64,
            _ => row.flops as f64,
        };
        if self.0 == 0 { a.key.cmp(&b.key) } else { value(a).total_cmp(&value(b)) }
    }
}

/// Rows while they grow.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    by_key: HashMap<(String, String, bool, bool, Option<String>), usize>,
}

impl Rows {
    fn find(&mut self, row: Row) -> usize {
        let key = (
            row.key.clone(),
            row.device_type.clone(),
            row.on_device,
            row.is_user_annotation,
            row.input_shapes.clone(),
        );
        *self.by_key.entry(key).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() - 1
        })
    }
}

fn new_row(event: &Event<'_>, grouping: Grouping) -> Row {
    let key = if event.kind() == EventKind::Step { names::STEPS } else { event.name() };
    Row {
        key: key.to_owned(),
        device_type: event.device_type().into_owned(),
        is_user_annotation: event.is_user_annotation(),
        is_top_level: event.parent().is_none(),
        input_shapes: if grouping.by_input_shape { event.input_dims() } else { None },
        ..Row::default()
    }
}

fn add_events(rows: &mut Rows, trace: &Trace, grouping: Grouping) {
    let sums = Sums::of(trace);
    // A row is found by numbers where possible: texts are compared once per name.
    let mut known = HashMap::new();
    let mut row_of = vec![NONE; trace.records.len()];
    for event in trace.events() {
        if names::HIDDEN.contains(&event.name()) {
            continue;
        }
        let i = event.index();
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
            *known.entry((event.record().name, event.device().key, event.kind())).or_insert_with(find)
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
    let parent = event.parent().filter(|parent| parent.record().name == event.record().name)?;
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
            is_top_level: true,
            ..Row::default()
        });
        let row = &mut rows.rows[row];
        row.count += 1;
        row.device_time_total += event.duration();
        row.self_device_time_total += event.duration();
    }
}

/// Memory that moved outside all events has a row of its own.
fn add_stray_memory(rows: &mut Rows, trace: &Trace) {
    for event in trace.memory.events.iter().filter(|event| event.event.is_none()) {
        let row = rows.find(Row {
            key: names::MEMORY.to_owned(),
            device_type: "CPU".to_owned(),
            is_top_level: true,
            ..Row::default()
        });
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
