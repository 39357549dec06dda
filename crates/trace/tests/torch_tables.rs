//! Tables, byte for byte as torch prints them for the same rows.
//!
//! `tests/tables/cases.json` was written by `tests/tables/record.py` with torch 2.15: rows and
//! options, and the text that torch made of them. Stacks together with FLOPs are not among
//! them, because torch prints each below the other's title.

use cresset_trace::{Row, Table};
use serde_json::Value;

fn row(given: &Value) -> Row {
    let number = |key: &str| given[key].as_i64().unwrap_or(0);
    let text = |key: &str| given[key].as_str().map(str::to_owned);
    Row {
        key: text("key").unwrap(),
        overload_name: text("overload_name").unwrap_or_default(),
        use_device: text("use_device"),
        on_device: given["on_device"] == true,
        is_user_annotation: given["is_user_annotation"] == true,
        is_async: given["is_async"] == true,
        node_id: given["node_id"].as_u64().map(|node| node as u32),
        cpu_parent: text("cpu_parent"),
        input_shapes: text("input_shapes"),
        stack: given["stack"].as_array().into_iter().flatten().map(|f| f.as_str().unwrap().into()).collect(),
        count: given["count"].as_u64().unwrap_or(1),
        cpu_time_total: number("cpu_time_total") as u64,
        self_cpu_time_total: number("self_cpu_time_total") as u64,
        device_time_total: number("device_time_total") as u64,
        self_device_time_total: number("self_device_time_total") as u64,
        cpu_memory_usage: number("cpu_memory_usage"),
        self_cpu_memory_usage: number("self_cpu_memory_usage"),
        device_memory_usage: number("device_memory_usage"),
        self_device_memory_usage: number("self_device_memory_usage"),
        flops: number("flops") as u64,
        ..Row::default()
    }
}

fn printed(case: &Value) -> String {
    let (flags, options) = (&case["flags"], &case["options"]);
    let rows: Vec<Row> = case["rows"].as_array().unwrap().iter().map(row).collect();
    let mut table = Table::new(&rows)
        .profile_memory(flags["profile_memory"] == true)
        .with_flops(flags["with_flops"] == true)
        .top_level_events_only(options["top_level_events_only"] == true);
    // Absent leaves the default, null takes the limit away.
    let width = |key: &str| options.get(key).map(|width| width.as_u64().map(|width| width as usize));
    if let Some(key) = options["sort_by"].as_str() {
        table = table.sort_by(key).unwrap();
    }
    if let Some(limit) = options["row_limit"].as_i64() {
        table = table.row_limit(usize::try_from(limit).ok());
    }
    if let Some(width) = width("max_name_column_width") {
        table = table.max_name_column_width(width);
    }
    if let Some(width) = width("max_shapes_column_width") {
        table = table.max_shapes_column_width(width);
    }
    if let Some(width) = width("max_src_column_width") {
        table = table.max_src_column_width(width);
    }
    if let Some(header) = options["header"].as_str() {
        table = table.header(header);
    }
    if let Some(unit) = options["time_unit"].as_str() {
        table = table.time_unit(unit);
    }
    table.to_string()
}

#[test]
fn tables_equal_torchs_to_the_byte() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("tables/cases.json")).unwrap();
    assert!(cases.len() > 40, "{}", cases.len());
    for case in &cases {
        let (ours, torchs) = (printed(case), case["text"].as_str().unwrap());
        assert!(ours == torchs, "{}:\n{ours}\ntorch:\n{torchs}", case["name"]);
    }
}
