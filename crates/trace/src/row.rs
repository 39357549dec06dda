//! One row of averages: what torch calls a `FunctionEventAvg`.

use crate::error::{Error, Result};
use crate::table::format;
use std::cmp::Ordering;
use std::ops::AddAssign;

/// The totals of all events with one name. Times are in nanoseconds, memory in bytes.
///
/// What describes rather than counts (parent, stack, scope) is that of the first event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The name; all steps are `ProfilerStep*`.
    pub key: String,
    /// Which variant of the operator, e.g. `Tensor`; empty unless grouped by it.
    pub overload_name: String,
    /// The kind of device: of its tensors for an operator, where it ran for a kernel.
    pub device_type: String,
    /// The kind of device whose time is counted besides the host's, if there is one.
    pub use_device: Option<String>,
    /// Whether this is work that ran on a device rather than a call on the host.
    pub on_device: bool,
    /// Whether a program or the profiler named it.
    pub is_user_annotation: bool,
    /// Whether it ended on another thread than it began on. Spans here never do.
    pub is_async: bool,
    /// Whether it ran on another machine. Nothing that is recorded here does.
    pub is_remote: bool,
    /// Whether device time is counted where it was launched. It never is.
    pub is_legacy: bool,
    /// The machine it ran on, where there are several.
    pub node_id: Option<u32>,
    /// torch's number of its kind: 0 for operators, 1 for derivatives, 7 for named ranges.
    pub scope: u8,
    /// The name of the event that the first one lay in.
    pub cpu_parent: Option<String>,
    /// The names of the events directly in the first one.
    pub cpu_children: Vec<String>,
    /// Shapes of the arguments, if grouped by them.
    pub input_shapes: Option<String>,
    /// Where they were called from, innermost first: as many frames as they are grouped by.
    pub stack: Vec<String>,
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

    /// Whether the first of the events lay in no other.
    pub fn is_top_level(&self) -> bool {
        self.cpu_parent.is_none()
    }

    /// Host time per event, with a unit.
    pub fn cpu_time_str(&self) -> String {
        format::average(self.cpu_time_total, self.count, None)
    }

    /// Device time per event, with a unit.
    pub fn device_time_str(&self) -> String {
        format::average(self.device_time_total, self.count, None)
    }

    /// [`cpu_time_total`](Row::cpu_time_total) with a unit.
    pub fn cpu_time_total_str(&self) -> String {
        format::time(self.cpu_time_total, None)
    }

    /// [`self_cpu_time_total`](Row::self_cpu_time_total) with a unit.
    pub fn self_cpu_time_total_str(&self) -> String {
        format::time(self.self_cpu_time_total, None)
    }

    /// [`device_time_total`](Row::device_time_total) with a unit.
    pub fn device_time_total_str(&self) -> String {
        format::time(self.device_time_total, None)
    }

    /// [`self_device_time_total`](Row::self_device_time_total) with a unit.
    pub fn self_device_time_total_str(&self) -> String {
        format::time(self.self_device_time_total, None)
    }

    /// Adds another row's figures to this one's. A row that has neither name nor events yet
    /// becomes the other one.
    ///
    /// ```
    /// use cresset_trace::Row;
    /// let mut sum = Row::default();
    /// for nanos in [10, 20] {
    ///     sum.add(&Row { key: "aten::add".into(), count: 1, cpu_time_total: nanos, ..Row::default() });
    /// }
    /// assert_eq!((sum.key.as_str(), sum.count, sum.cpu_time()), ("aten::add", 2, 15.0));
    /// ```
    pub fn add(&mut self, other: &Row) {
        if self.key.is_empty() && self.count == 0 {
            *self = other.clone();
            return;
        }
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

impl AddAssign<&Row> for Row {
    fn add_assign(&mut self, other: &Row) {
        self.add(other);
    }
}

/// What rows can be sorted by. `cuda`, `xpu`, `privateuse1` and `npu` mean `device`.
pub(crate) const SORT_KEYS: [&str; 14] = [
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
    "node_id",
];

/// A key with every name of a device replaced by `device`.
fn of_device(key: &str) -> String {
    let aliases = ["cuda", "xpu", "privateuse1", "npu"];
    aliases.iter().fold(key.to_owned(), |key, alias| key.replace(alias, "device"))
}

/// A figure that rows can be sorted by.
#[derive(Clone, Copy, Debug)]
pub struct Figure(usize);

impl Figure {
    /// The figure called `asked`.
    ///
    /// # Errors
    /// There is none; the error lists those there are.
    pub fn named(asked: &str) -> Result<Figure> {
        let key = of_device(asked);
        let found = SORT_KEYS.iter().position(|known| *known == key);
        found.map(Figure).ok_or_else(|| Error::SortKey { asked: asked.to_owned() })
    }

    /// How two rows compare by it, the smaller first.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
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
            12 => row.flops as f64,
            _ => row.node_id.map_or(-1.0, f64::from),
        };
        if self.0 == 0 { a.key.cmp(&b.key) } else { value(a).total_cmp(&value(b)) }
    }
}
