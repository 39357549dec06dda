//! How fast traces are summed up and checked: `cargo bench -p cresset-trace -- [TRACE...]`.
//!
//! Without a trace, one of 100 000 operators is made up in torch's layout.

use cresset_trace::{Grouping, Summary, check_trace};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn main() {
    let given: Vec<PathBuf> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).map(PathBuf::from).collect();
    if !given.is_empty() {
        return given.iter().for_each(|path| measure(path));
    }
    let path = std::env::temp_dir().join(format!("cresset-bench-{}.json", std::process::id()));
    std::fs::write(&path, made_up(100_000)).unwrap();
    measure(&path);
    std::fs::remove_file(path).unwrap();
}

fn measure(path: &Path) {
    let size = std::fs::metadata(path).unwrap().len();
    let show = |what: &str, time: Duration| {
        let speed = size as f64 / 1e6 / time.as_secs_f64();
        println!("{:<28} {:>9.1} ms {speed:>7.0} MB/s  {}", what, time.as_secs_f64() * 1e3, peak());
    };
    println!("{} ({:.1} MB)", path.display(), size as f64 / 1e6);
    for (what, by_input_shape) in [("summary", false), ("summary by shape", true)] {
        let grouping = Grouping { by_input_shape, ..Grouping::default() };
        show(what, best(|| drop(Summary::read(path, grouping).unwrap())));
    }
    show("check", best(|| drop(check_trace(path).unwrap())));
}

/// The least of three runs.
fn best(mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let start = (Instant::now(), on_cpu());
        work();
        let elapsed = start.0.elapsed();
        on_cpu().zip(start.1).map_or(elapsed, |(end, start)| end - start)
    };
    (0..3).map(once).min().unwrap()
}

/// How long this thread has been running, where the system tells: others may be busy, too.
fn on_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// The most memory that was ever in use, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or(String::new(), |value| format!("peak {}", value.trim()))
}

fn made_up(operators: u64) -> String {
    let mut text = String::from("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n");
    for i in 0..operators {
        let (start, name) = (i * 2, ["linear", "t", "transpose", "as_strided", "addmm"][i as usize % 5]);
        let _ = write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::{name}\", \"pid\": 7, \"tid\": 7,\n    \
             \"ts\": {start}.250, \"dur\": 1.500,\n    \"args\": {{\n      \"External id\": {i},\"Record function \
             id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": [\"float\", \"float\", \"float\"], \
             \"Input Strides\": [[4, 1], [4, 1], [1]], \"Input Dims\": [[4, 4], [4, 4], [4]], \"Ev Idx\": {i}\n    \
             }}\n  }},\n"
        );
    }
    text + "  {\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": 0, \"tid\": 0, \"ts\": 1e6}\n]}\n"
}
