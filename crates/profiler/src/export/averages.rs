//! Averages as a trace: rows one after the other, each as long as its total.

use super::file;
use super::json::Json;
use crate::averages::Averages;
use crate::error::Result;
use cresset_trace::Row;
use std::io;
use std::path::Path;

pub(crate) fn export(averages: &Averages, path: &Path) -> Result<()> {
    file::write(path, |sink| {
        let mut json = Json::new(sink);
        json.raw("{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        names(&mut json);
        // The host's rows and the device's, each on a track of its own.
        let mut free = [0; 2];
        for row in averages {
            let track = usize::from(row.on_device);
            let length = if row.on_device { row.device_time_total } else { row.cpu_time_total };
            slice(&mut json, row, track, (free[track], length))?;
            free[track] += length;
        }
        json.raw("\n]}\n");
        json.flush()
    })
}

fn names(json: &mut Json<'_>) {
    let pid = std::process::id();
    json.raw("\n{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":0.000,\"pid\":").number(pid);
    json.raw(",\"tid\":0,\"args\":{\"name\":\"averages\"}}");
    for (tid, name) in ["host", "device"].into_iter().enumerate() {
        json.raw(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0.000,\"pid\":").number(pid);
        json.raw(",\"tid\":").number(tid).raw(",\"args\":{\"name\":\"").raw(name).raw("\"}}");
    }
}

fn slice(json: &mut Json<'_>, row: &Row, track: usize, (start, length): (u64, u64)) -> io::Result<()> {
    let category = match row {
        Row { on_device: true, .. } => "kernel",
        Row { is_user_annotation: true, .. } => "user_annotation",
        _ => "cpu_op",
    };
    json.raw(",\n{\"ph\":\"X\",\"cat\":\"").raw(category).raw("\",\"name\":").text(&row.key);
    json.raw(",\"pid\":").number(std::process::id()).raw(",\"tid\":").number(track);
    json.raw(",\"ts\":").micros(start).raw(",\"dur\":").micros(length);
    json.raw(",\"args\":{\"count\":").number(row.count);
    let times = [
        ("cpu_time_total", row.cpu_time_total),
        ("self_cpu_time_total", row.self_cpu_time_total),
        ("device_time_total", row.device_time_total),
        ("self_device_time_total", row.self_device_time_total),
    ];
    for (name, nanos) in times {
        json.raw(",\"").raw(name).raw("\":").micros(nanos);
    }
    let sizes = [
        ("cpu_memory_usage", row.cpu_memory_usage),
        ("self_cpu_memory_usage", row.self_cpu_memory_usage),
        ("device_memory_usage", row.device_memory_usage),
        ("self_device_memory_usage", row.self_device_memory_usage),
    ];
    for (name, bytes) in sizes {
        json.raw(",\"").raw(name).raw("\":").number(bytes);
    }
    json.raw(",\"flops\":").number(row.flops).raw(",\"device_type\":").text(&row.device_type);
    if let Some(shapes) = &row.input_shapes {
        json.raw(",\"input_shapes\":").text(shapes);
    }
    if !row.stack.is_empty() {
        json.raw(",\"stack\":").list(&row.stack, |json, frame| {
            json.text(frame);
        });
    }
    json.raw("}}");
    json.flush_if_full()
}
