//! Rows as text, laid out like torch's table.

mod columns;
pub(crate) mod format;

use crate::error::Result;
use crate::row::{Figure, Row};
use columns::Column;
use format::TimeUnit;
use std::fmt;

const SPACING: &str = "  ";

/// A table of [`Row`]s; show it with `{}`.
///
/// ```
/// use cresset_trace::{Row, Table};
/// let rows = [Row { key: "aten::add".into(), count: 3, cpu_time_total: 4_500, ..Row::default() }];
/// assert!(Table::new(&rows).to_string().contains("1.500us"));
/// ```
#[derive(Clone, Copy)]
#[must_use = "a table is for showing"]
pub struct Table<'a> {
    rows: &'a [Row],
    has_memory: bool,
    has_flops: bool,
    device: Option<&'a str>,
    sort_by: Option<Figure>,
    row_limit: Option<usize>,
    max_src_column_width: Option<usize>,
    max_name_column_width: Option<usize>,
    max_shapes_column_width: Option<usize>,
    header: Option<&'a str>,
    top_level_events_only: bool,
    time_unit: Option<TimeUnit>,
    show_copied: bool,
}

impl<'a> Table<'a> {
    /// A table of `rows`, in their order.
    pub fn new(rows: &'a [Row]) -> Table<'a> {
        Table {
            rows,
            has_memory: false,
            has_flops: false,
            device: rows.iter().find_map(|row| row.use_device.as_deref()),
            sort_by: None,
            row_limit: Some(100),
            max_src_column_width: Some(75),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(80),
            header: None,
            top_level_events_only: false,
            time_unit: None,
            show_copied: false,
        }
    }

    /// Whether there are columns for memory.
    pub fn profile_memory(mut self, on: bool) -> Table<'a> {
        self.has_memory = on;
        self
    }

    /// Whether there is a column for floating-point operations.
    pub fn with_flops(mut self, on: bool) -> Table<'a> {
        self.has_flops = on;
        self
    }

    /// What the device is called in headings; otherwise as the rows call it.
    pub fn device(mut self, name: Option<&'a str>) -> Table<'a> {
        self.device = name.or(self.device);
        self
    }

    /// Largest first by the figure called `key`, e.g. `cpu_time_total`. Otherwise rows come
    /// in the order their names were first seen.
    ///
    /// # Errors
    /// There is no such figure; the error lists those there are.
    pub fn sort_by(mut self, key: &str) -> Result<Table<'a>> {
        self.sort_by = Some(Figure::named(key)?);
        Ok(self)
    }

    /// At most so many rows; 100 by default, `None` for all.
    pub fn row_limit(mut self, rows: impl Into<Option<usize>>) -> Table<'a> {
        self.row_limit = rows.into();
        self
    }

    /// Cuts the beginning of longer source locations; 75 by default, `None` for never.
    pub fn max_src_column_width(mut self, width: impl Into<Option<usize>>) -> Table<'a> {
        self.max_src_column_width = width.into();
        self
    }

    /// Cuts longer names; 55 by default, `None` for never.
    pub fn max_name_column_width(mut self, width: impl Into<Option<usize>>) -> Table<'a> {
        self.max_name_column_width = width.into().map(|width| width.max(4));
        self
    }

    /// Cuts longer shapes; 80 by default, `None` for never.
    pub fn max_shapes_column_width(mut self, width: impl Into<Option<usize>>) -> Table<'a> {
        self.max_shapes_column_width = width.into();
        self
    }

    /// A line above the table.
    pub fn header(mut self, text: &'a str) -> Table<'a> {
        self.header = Some(text);
        self
    }

    /// Leaves out rows whose events lay in others.
    pub fn top_level_events_only(mut self, on: bool) -> Table<'a> {
        self.top_level_events_only = on;
        self
    }

    /// Shows all times in `us`, `ms` or `s`; anything else picks a unit for each.
    pub fn time_unit(mut self, unit: &str) -> Table<'a> {
        self.time_unit = TimeUnit::named(unit);
        self
    }

    /// Adds a column of what kernels copied beside their work, which torch has not; known with
    /// `profile_memory`.
    pub fn show_copied_bytes(mut self, on: bool) -> Table<'a> {
        self.show_copied = on;
        self
    }

    fn shown(&self) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        if let Some(figure) = self.sort_by {
            rows.sort_by(|a, b| figure.compare(b, a));
        }
        rows.retain(|row| !self.top_level_events_only || row.is_top_level());
        rows.truncate(self.row_limit.unwrap_or(usize::MAX));
        rows
    }

    fn heading(&self) -> String {
        self.device.unwrap_or("device").to_uppercase()
    }

    fn has_device_time(&self) -> bool {
        self.rows.iter().any(|row| row.self_device_time_total > 0)
    }

    fn has_stack(&self) -> bool {
        self.rows.iter().any(|row| !row.stack.is_empty())
    }

    fn foot(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = format::time(self_cpu_time_total(self.rows), self.time_unit);
        writeln!(f, "Self CPU time total: {total}")?;
        if self.has_device_time() {
            let total = format::time(self_device_time_total(self.rows), self.time_unit);
            writeln!(f, "Self {} time total: {total}", self.heading())?;
        }
        Ok(())
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = columns::columns(self);
        let length = columns.iter().map(|column| column.width + SPACING.len()).sum::<usize>() - SPACING.len();
        let double = "=".repeat(length);
        if let Some(header) = self.header {
            writeln!(f, "{double}\n{header}")?;
        }
        if self.top_level_events_only {
            writeln!(f, "{double}\nThis report only display top-level ops statistics")?;
        }
        rule(f, &columns)?;
        line(f, &columns, |column| column.title.clone())?;
        rule(f, &columns)?;
        for row in self.shown() {
            line(f, &columns, |column| column.cell(row, 0))?;
            if self.has_stack() {
                for frame in 1..row.stack.len() {
                    line(f, &columns, |column| column.cell(row, frame))?;
                }
                line(f, &columns, |_| String::new())?;
            }
        }
        rule(f, &columns)?;
        self.foot(f)
    }
}

/// Nanoseconds with a unit that suits.
pub(crate) fn time(nanos: u64) -> String {
    format::time(nanos, None)
}

/// Host time of all rows, counted once.
pub fn self_cpu_time_total(rows: &[Row]) -> u64 {
    rows.iter().fold(0, |sum, row| sum.saturating_add(row.self_cpu_time_total))
}

/// Device time of all work, counted once.
pub fn self_device_time_total(rows: &[Row]) -> u64 {
    let work = rows.iter().filter(|row| row.on_device && !row.is_user_annotation);
    work.fold(0, |sum, row| sum.saturating_add(row.self_device_time_total))
}

fn rule(f: &mut fmt::Formatter<'_>, columns: &[Column<'_>]) -> fmt::Result {
    columns.iter().try_for_each(|column| write!(f, "{}{SPACING}", "-".repeat(column.width)))?;
    writeln!(f)
}

fn line(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column<'_>],
    text: impl Fn(&Column<'_>) -> String,
) -> fmt::Result {
    for column in columns {
        let (text, width) = (text(column), column.width);
        if column.is_left {
            write!(f, "{text:<width$}{SPACING}")
        } else {
            write!(f, "{text:>width$}{SPACING}")
        }?;
    }
    writeln!(f)
}
