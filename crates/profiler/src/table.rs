//! Averages as text, laid out like torch's table.

use crate::averages::{Averages, Figure, Row};
use crate::error::Result;
use std::fmt;

/// How a column is wide and what it holds.
const WIDTH: usize = 12;
const SPACING: &str = "  ";

/// A table of [`Averages`]; show it with `{}`.
#[derive(Clone, Copy)]
#[must_use = "a table is for showing"]
pub struct Table<'a> {
    averages: &'a Averages,
    sort_by: Option<Figure>,
    row_limit: Option<usize>,
    max_name_column_width: usize,
    max_shapes_column_width: usize,
    header: Option<&'a str>,
    top_level_events_only: bool,
    time_unit: Option<TimeUnit>,
}

#[derive(Clone, Copy)]
enum TimeUnit {
    Microseconds,
    Milliseconds,
    Seconds,
}

struct Column {
    title: String,
    width: usize,
    cell: Box<dyn Fn(&Row) -> String>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(averages: &'a Averages) -> Table<'a> {
        Table {
            averages,
            sort_by: None,
            row_limit: Some(100),
            max_name_column_width: 55,
            max_shapes_column_width: 80,
            header: None,
            top_level_events_only: false,
            time_unit: None,
        }
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

    /// Cuts longer names; 55 by default.
    pub fn max_name_column_width(mut self, width: usize) -> Table<'a> {
        self.max_name_column_width = width.max(4);
        self
    }

    /// Cuts longer shapes; 80 by default.
    pub fn max_shapes_column_width(mut self, width: usize) -> Table<'a> {
        self.max_shapes_column_width = width;
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
        self.time_unit = match unit {
            "us" => Some(TimeUnit::Microseconds),
            "ms" => Some(TimeUnit::Milliseconds),
            "s" => Some(TimeUnit::Seconds),
            _ => None,
        };
        self
    }

    fn sorted(&self) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = self.averages.iter().collect();
        if let Some(figure) = self.sort_by {
            rows.sort_by(|a, b| figure.compare(b, a));
        }
        rows
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![self.name_column()];
        let unit = self.time_unit;
        let all = self.averages.self_cpu_time_total();
        let column = |title: &str, cell: Box<dyn Fn(&Row) -> String>| Column {
            title: title.to_owned(),
            width: WIDTH,
            cell,
        };
        columns.push(column("Self CPU %", Box::new(move |row| share(row.self_cpu_time_total, all))));
        columns.push(column("Self CPU", Box::new(move |row| time(row.self_cpu_time_total as f64, unit))));
        columns.push(column("CPU total %", Box::new(move |row| share(row.cpu_time_total, all))));
        columns.push(column("CPU total", Box::new(move |row| time(row.cpu_time_total as f64, unit))));
        columns.push(column("CPU time avg", Box::new(move |row| time(row.cpu_time(), unit))));
        let device = &self.averages.device;
        if self.has_device_time() {
            let all = self.averages.self_device_time_total();
            let own = |row: &Row| row.self_device_time_total;
            columns.push(column(&format!("Self {device}"), Box::new(move |row| time(own(row) as f64, unit))));
            columns.push(column(&format!("Self {device} %"), Box::new(move |row| share(own(row), all))));
            columns.push(column(
                &format!("{device} total"),
                Box::new(move |row| time(row.device_time_total as f64, unit)),
            ));
            columns.push(column(
                &format!("{device} time avg"),
                Box::new(move |row| time(row.device_time(), unit)),
            ));
        }
        if self.averages.has_memory {
            columns.push(column("CPU Mem", Box::new(|row| memory(row.cpu_memory_usage))));
            columns.push(column("Self CPU Mem", Box::new(|row| memory(row.self_cpu_memory_usage))));
            if self.averages.iter().any(|row| row.self_device_memory_usage > 0) {
                columns
                    .push(column(&format!("{device} Mem"), Box::new(|row| memory(row.device_memory_usage))));
                columns.push(column(
                    &format!("Self {device} Mem"),
                    Box::new(|row| memory(row.self_device_memory_usage)),
                ));
            }
        }
        if self.averages.iter().any(|row| row.copied_bytes > 0) {
            columns.push(column("Copied", Box::new(|row| memory(row.copied_bytes as i64))));
        }
        columns.push(column("# of Calls", Box::new(|row| row.count.to_string())));
        columns.extend(self.shapes_column());
        columns.extend(self.flops_column());
        columns
    }

    fn name_column(&self) -> Column {
        let longest = self.averages.iter().map(|row| row.key.chars().count()).max().unwrap_or(0);
        let max = self.max_name_column_width;
        let cell = move |row: &Row| {
            if row.key.chars().count() + 3 < max {
                return row.key.clone();
            }
            row.key.chars().take(max - 3).chain("...".chars()).collect()
        };
        Column { title: "Name".to_owned(), width: (longest + 4).min(max), cell: Box::new(cell) }
    }

    fn shapes_column(&self) -> Option<Column> {
        let shapes = |row: &Row| row.input_shapes.clone().unwrap_or_default();
        let longest = self.averages.iter().map(|row| shapes(row).chars().count()).max().filter(|&n| n > 0)?;
        let width = (longest + 4).min(self.max_shapes_column_width);
        let cell = move |row: &Row| shapes(row).chars().take(width).collect();
        Some(Column { title: "Input Shapes".to_owned(), width, cell: Box::new(cell) })
    }

    fn flops_column(&self) -> Option<Column> {
        const UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];
        let smallest = self.averages.iter().map(|row| row.flops).filter(|&flops| flops > 0).min()?;
        let thousands = (smallest.ilog10() as usize / 3).min(UNITS.len() - 1);
        let scale = 1000f64.powi(thousands as i32);
        let cell = move |row: &Row| match row.flops {
            0 => "--".to_owned(),
            flops => format!("{:8.3}", flops as f64 / scale),
        };
        let title = format!("Total {}", UNITS[thousands]);
        self.averages.has_flops.then_some(Column { title, width: WIDTH, cell: Box::new(cell) })
    }

    fn has_device_time(&self) -> bool {
        self.averages.iter().any(|row| row.self_device_time_total > 0)
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.averages.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        let length = columns.iter().map(|column| column.width + SPACING.len()).sum::<usize>() - SPACING.len();
        let rule = |f: &mut fmt::Formatter<'_>| {
            columns.iter().try_for_each(|column| write!(f, "{}{SPACING}", "-".repeat(column.width)))?;
            writeln!(f)
        };
        let line = |f: &mut fmt::Formatter<'_>, cell: &dyn Fn(&Column) -> String| {
            columns.iter().try_for_each(|column| write!(f, "{:>1$}{SPACING}", cell(column), column.width))?;
            writeln!(f)
        };
        let double = "=".repeat(length);
        if let Some(header) = self.header {
            writeln!(f, "{double}\n{header}")?;
        }
        if self.top_level_events_only {
            writeln!(f, "{double}\nThis report only display top-level ops statistics")?;
        }
        rule(f)?;
        line(f, &|column| column.title.clone())?;
        rule(f)?;
        let shown = self.sorted().into_iter().filter(|row| !self.top_level_events_only || row.is_top_level);
        for row in shown.take(self.row_limit.unwrap_or(usize::MAX)) {
            line(f, &|column| (column.cell)(row))?;
        }
        rule(f)?;
        let total = time(self.averages.self_cpu_time_total() as f64, self.time_unit);
        writeln!(f, "Self CPU time total: {total}")?;
        if self.has_device_time() {
            let total = time(self.averages.self_device_time_total() as f64, self.time_unit);
            writeln!(f, "Self {} time total: {total}", self.averages.device)?;
        }
        Ok(())
    }
}

fn time(nanos: f64, unit: Option<TimeUnit>) -> String {
    let automatic = if nanos >= 1e9 {
        TimeUnit::Seconds
    } else if nanos >= 1e6 {
        TimeUnit::Milliseconds
    } else {
        TimeUnit::Microseconds
    };
    match unit.unwrap_or(automatic) {
        TimeUnit::Microseconds => format!("{:.3}us", nanos / 1e3),
        TimeUnit::Milliseconds => format!("{:.3}ms", nanos / 1e6),
        TimeUnit::Seconds => format!("{:.3}s", nanos / 1e9),
    }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "NaN".to_owned() } else { format!("{:.2}%", part as f64 * 100.0 / whole as f64) }
}

fn memory(bytes: i64) -> String {
    let size = bytes as f64;
    match bytes.unsigned_abs() {
        n if n >= 1 << 30 => format!("{:.2} GB", size / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.2} MB", size / (1u64 << 20) as f64),
        n if n >= 1 << 10 => format!("{:.2} KB", size / (1u64 << 10) as f64),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_torchs_units() {
        assert_eq!(time(1_234.0, None), "1.234us");
        assert_eq!(time(1_234_567.0, None), "1.235ms");
        assert_eq!(time(2e9, None), "2.000s");
        assert_eq!(time(2e9, Some(TimeUnit::Milliseconds)), "2000.000ms");
        assert_eq!(memory(-1536), "-1.50 KB");
        assert_eq!(memory(512), "512 B");
        assert_eq!(share(1, 3), "33.33%");
        assert_eq!(share(0, 0), "NaN");
    }
}
