//! The columns of a table: which there are, and what they hold.

use super::format::{average, cut_end, cut_front, flops_unit, memory, share, time};
use super::{Table, self_cpu_time_total, self_device_time_total};
use crate::row::Row;

const WIDTH: usize = 12;

/// What to show in a line of a row, the first being 0.
type Cell<'a> = Box<dyn Fn(&Row, usize) -> String + 'a>;

/// One column.
pub(super) struct Column<'a> {
    pub(super) title: String,
    pub(super) width: usize,
    /// Whether texts begin at the left edge.
    pub(super) is_left: bool,
    cell: Cell<'a>,
}

impl<'a> Column<'a> {
    /// A column with one text per row.
    fn new(title: impl Into<String>, width: usize, cell: impl Fn(&Row) -> String + 'a) -> Column<'a> {
        let cell = move |row: &Row, line| if line == 0 { cell(row) } else { String::new() };
        Column { title: title.into(), width, is_left: false, cell: Box::new(cell) }
    }

    fn figure(title: impl Into<String>, cell: impl Fn(&Row) -> String + 'a) -> Column<'a> {
        Column::new(title, WIDTH, cell)
    }

    pub(super) fn cell(&self, row: &Row, line: usize) -> String {
        (self.cell)(row, line)
    }
}

/// All columns, in torch's order.
pub(super) fn columns<'a>(table: &Table<'a>) -> Vec<Column<'a>> {
    let mut columns = names(table);
    columns.extend(host_times(table));
    if table.has_device_time() {
        columns.extend(device_times(table));
    }
    if table.has_memory {
        columns.extend(memories(table));
    }
    columns.push(Column::figure("# of Calls", |row| row.count.to_string()));
    if table.rows.iter().any(|row| row.node_id.is_some()) {
        let number = |row: &Row| row.node_id.map_or("-1".to_owned(), |node| node.to_string());
        columns.push(Column::figure("Node ID", number));
    }
    columns.extend(shapes(table));
    columns.extend(source(table));
    columns.extend(flops(table));
    columns
}

/// As wide as the longest of `texts` and a little more, but not wider than `max`.
fn fitting<'t>(texts: impl Iterator<Item = &'t str>, max: Option<usize>) -> usize {
    let width = texts.map(|text| text.chars().count()).max().unwrap_or(0) + 4;
    max.map_or(width, |max| width.min(max))
}

fn names<'a>(table: &Table<'a>) -> Vec<Column<'a>> {
    let max = table.max_name_column_width;
    let width = fitting(table.rows.iter().map(|row| row.key.as_str()), max);
    let mut columns = vec![Column::new("Name", width, move |row| cut_end(&row.key, max))];
    if table.rows.iter().any(|row| !row.overload_name.is_empty()) {
        columns.push(Column::new("Overload Name", width, move |row| cut_end(&row.overload_name, max)));
    }
    columns
}

fn host_times<'a>(table: &Table<'a>) -> Vec<Column<'a>> {
    let (unit, all) = (table.time_unit, self_cpu_time_total(table.rows));
    vec![
        Column::figure("Self CPU %", move |row| share(row.self_cpu_time_total, all)),
        Column::figure("Self CPU", move |row| time(row.self_cpu_time_total, unit)),
        Column::figure("CPU total %", move |row| match row.is_async {
            true => "0".to_owned(),
            false => share(row.cpu_time_total, all),
        }),
        Column::figure("CPU total", move |row| time(row.cpu_time_total, unit)),
        Column::figure("CPU time avg", move |row| average(row.cpu_time_total, row.count, unit)),
    ]
}

fn device_times<'a>(table: &Table<'a>) -> Vec<Column<'a>> {
    let (unit, all, device) = (table.time_unit, self_device_time_total(table.rows), table.heading());
    vec![
        Column::figure(format!("Self {device}"), move |row| time(row.self_device_time_total, unit)),
        Column::figure(format!("Self {device} %"), move |row| share(row.self_device_time_total, all)),
        Column::figure(format!("{device} total"), move |row| time(row.device_time_total, unit)),
        Column::figure(format!("{device} time avg"), move |row| {
            average(row.device_time_total, row.count, unit)
        }),
    ]
}

fn memories<'a>(table: &Table<'a>) -> Vec<Column<'a>> {
    let mut columns = vec![
        Column::figure("CPU Mem", |row| memory(row.cpu_memory_usage)),
        Column::figure("Self CPU Mem", |row| memory(row.self_cpu_memory_usage)),
    ];
    if table.rows.iter().any(|row| row.self_device_memory_usage > 0) {
        let device = table.heading();
        columns.push(Column::figure(format!("{device} Mem"), |row| memory(row.device_memory_usage)));
        columns
            .push(Column::figure(format!("Self {device} Mem"), |row| memory(row.self_device_memory_usage)));
    }
    if table.show_copied && table.rows.iter().any(|row| row.copied_bytes > 0) {
        columns.push(Column::figure("Copied", |row| memory(row.copied_bytes as i64)));
    }
    columns
}

fn shapes<'a>(table: &Table<'a>) -> Option<Column<'a>> {
    let texts = || table.rows.iter().filter_map(|row| row.input_shapes.as_deref());
    texts().find(|shapes| !matches!(*shapes, "" | "[]"))?;
    let width = fitting(texts(), table.max_shapes_column_width);
    let cell =
        move |row: &Row| row.input_shapes.iter().flat_map(|shapes| shapes.chars().take(width)).collect();
    Some(Column::new("Input Shapes", width, cell))
}

/// One line per frame. torch has these to the right of the title of the next column where there
/// are FLOPs as well; here they are below their own.
fn source<'a>(table: &Table<'a>) -> Option<Column<'a>> {
    if !table.has_stack() {
        return None;
    }
    let texts = table.rows.iter().flat_map(|row| row.stack.iter().map(String::as_str));
    let width = fitting(texts, table.max_src_column_width);
    let cell =
        move |row: &Row, line: usize| row.stack.get(line).map_or(String::new(), |f| cut_front(f, width));
    Some(Column { title: "Source Location".to_owned(), width, is_left: true, cell: Box::new(cell) })
}

/// Torch's operators that torch has a formula for: with others, tables could not be compared.
const COUNTED: [&str; 7] = ["add", "mul", "mm", "addmm", "bmm", "baddbmm", "conv2d"];

/// What a row shows: operators of one's own count as they say.
fn counted(row: &Row) -> u64 {
    let shows = row.key.strip_prefix("aten::").is_none_or(|name| COUNTED.contains(&name));
    if shows { row.flops } else { 0 }
}

fn flops<'a>(table: &Table<'a>) -> Option<Column<'a>> {
    let counts = table.rows.iter().map(counted).filter(|&flops| flops > 0);
    let (unit, scale) = flops_unit(counts.min().filter(|_| table.has_flops)?);
    let cell = move |row: &Row| match counted(row) {
        0 => "--".to_owned(),
        flops => format!("{:8.3}", flops as f64 * scale),
    };
    Some(Column::figure(format!("Total {unit}"), cell))
}
