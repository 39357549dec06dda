//! Totals per operator: torch's `key_averages`.

mod sum;

use crate::error::Result;
use crate::export;
use crate::session::Recording;
use crate::trace::Trace;
use cresset_trace::{Figure, Row, Table};
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// What besides the name keeps rows apart, and whose rows there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    by_input_shape: bool,
    by_stack: usize,
    by_overload_name: bool,
    include_modules: bool,
}

impl Grouping {
    /// One row per name and shape of the arguments; needs `record_shapes`.
    #[must_use]
    pub fn by_input_shape(mut self, on: bool) -> Grouping {
        self.by_input_shape = on;
        self
    }

    /// One row per name and innermost `frames` of the stack; needs `with_stack`. With 1, rows
    /// are apart if they were called from different lines. 0 keeps nothing apart.
    #[must_use]
    pub fn by_stack(mut self, frames: usize) -> Grouping {
        self.by_stack = frames;
        self
    }

    /// One row per name and overload, e.g. `aten::add` with `Tensor` and with `Scalar`; needs
    /// `capture_overload_names`.
    #[must_use]
    pub fn by_overload_name(mut self, on: bool) -> Grouping {
        self.by_overload_name = on;
        self
    }

    /// Includes calls of modules, recorded with `with_modules`. Otherwise they have no rows, as
    /// torch's have none.
    #[must_use]
    pub fn include_modules(mut self, on: bool) -> Grouping {
        self.include_modules = on;
        self
    }
}

/// Rows in the order their names were first seen: a slice of [`Row`]s that knows how to show
/// itself.
///
/// ```
/// use cresset_profiler::{Averages, Row};
/// let rows = ["aten::mul", "aten::add"].map(|key| Row { key: key.into(), count: 1, ..Row::default() });
/// let mut averages: Averages = rows.into_iter().collect();
/// averages.sort_by(|a, b| a.key.cmp(&b.key));
/// assert_eq!(averages[0].key, "aten::add");
/// assert_eq!(averages.total_average().count, 2);
/// print!("{}", averages.table());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Averages {
    rows: Vec<Row>,
    pub(crate) has_memory: bool,
    pub(crate) has_flops: bool,
    /// What the device is called in headings.
    pub(crate) device: Option<String>,
}

impl Deref for Averages {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl DerefMut for Averages {
    fn deref_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }
}

impl<'a> IntoIterator for &'a Averages {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl IntoIterator for Averages {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

/// Rows from elsewhere: chosen, merged or made by hand.
impl FromIterator<Row> for Averages {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Averages {
        let rows: Vec<Row> = rows.into_iter().collect();
        let device = rows.iter().find_map(|row| row.use_device.clone());
        Averages { rows, device, ..Averages::default() }
    }
}

impl Averages {
    pub(crate) fn of<'a>(
        recordings: impl IntoIterator<Item = &'a Recording>,
        grouping: Grouping,
    ) -> Result<Averages> {
        sum::recordings(recordings, grouping)
    }

    pub(crate) fn of_trace(trace: &Trace, grouping: Grouping) -> Averages {
        sum::trace(trace, grouping)
    }

    /// Whether the table has columns for memory.
    #[must_use]
    pub fn profile_memory(mut self, on: bool) -> Averages {
        self.has_memory = on;
        self
    }

    /// Whether the table has a column for floating-point operations.
    #[must_use]
    pub fn with_flops(mut self, on: bool) -> Averages {
        self.has_flops = on;
        self
    }

    /// The rows as a table.
    pub fn table(&self) -> Table<'_> {
        Table::new(&self.rows)
            .profile_memory(self.has_memory)
            .with_flops(self.has_flops)
            .device(self.device.as_deref())
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
        cresset_trace::self_cpu_time_total(&self.rows)
    }

    /// Device time of all work, counted once.
    pub fn self_device_time_total(&self) -> u64 {
        cresset_trace::self_device_time_total(&self.rows)
    }

    /// All rows added up, as a row called `Total`.
    pub fn total_average(&self) -> Row {
        let mut total = Row { key: "Total".to_owned(), device_type: "CPU".to_owned(), ..Row::default() };
        self.rows.iter().for_each(|row| total.add(row));
        total
    }

    /// Writes the rows as a trace: one slice each, as long as its total, one after the other.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        export::averages::export(self, path.as_ref())
    }
}
