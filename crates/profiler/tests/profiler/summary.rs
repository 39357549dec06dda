//! A session's averages and a summary of its trace say the same.

use crate::export::training;
use crate::fake::{alone, directory};
use cresset_profiler::Row;
use cresset_trace::{Grouping, Summary};

/// What a row counts, and what it is of.
fn figures(row: &Row) -> (String, bool, [u64; 5], [i64; 4], u64) {
    let times = [
        row.count,
        row.cpu_time_total,
        row.self_cpu_time_total,
        row.device_time_total,
        row.self_device_time_total,
    ];
    let memory = [
        row.cpu_memory_usage,
        row.self_cpu_memory_usage,
        row.device_memory_usage,
        row.self_device_memory_usage,
    ];
    (row.key.clone(), row.on_device, times, memory, row.flops)
}

#[test]
fn a_summary_of_the_trace_has_the_figures_of_the_session() {
    let _alone = alone();
    let path = directory("summary").join("trace.json.gz");
    let profiler = training();
    profiler.export_chrome_trace(&path).unwrap();
    let summary = Summary::read(&path, Grouping::default()).unwrap();
    // Named ranges as the device saw them are in traces only.
    let mut read: Vec<_> =
        summary.rows.iter().filter(|row| !(row.on_device && row.is_user_annotation)).map(figures).collect();
    let mut recorded: Vec<_> = profiler.key_averages().unwrap().iter().map(figures).collect();
    read.sort();
    recorded.sort();
    assert_eq!(read.len(), recorded.len());
    for (read, recorded) in read.iter().zip(&recorded) {
        assert_eq!(read, recorded);
    }
    assert_eq!(summary.device.as_deref(), Some("NPU"));
    assert_eq!(summary.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [2, 3]);
}
