//! Stacks as text: in traces, and as folded lines for flame graphs.

use super::file;
use super::json::quoted;
use crate::error::{Error, Result};
use crate::stack::Frame;
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::path::Path;

/// A stack among an event's arguments, with a comma before: torch's `Call stack`, one text with
/// semicolons, and `stack`, a list. Both have the innermost frame first.
pub(super) fn arguments(stack: &[Frame]) -> String {
    let texts: Vec<String> = stack.iter().map(Frame::to_string).collect();
    let joined = texts.iter().map(|text| text.replace(';', "_")).collect::<Vec<_>>().join(";");
    let list = texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    format!(",\"Call stack\":{},\"stack\":[{list}]", quoted(&joined))
}

/// What stacks can be weighed by; `cuda`, `xpu`, `privateuse1`, `npu` and `device` are the same.
pub(crate) const METRICS: [&str; 6] = [
    "self_cpu_time_total",
    "self_device_time_total",
    "self_npu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
];

/// Writes one line per stack: frames from the outermost on, and microseconds.
pub(crate) fn export<'a>(
    traces: impl IntoIterator<Item = &'a Trace>,
    path: &Path,
    metric: &str,
) -> Result<()> {
    if !METRICS.contains(&metric) {
        return Err(Error::StackMetric { asked: metric.to_owned() });
    }
    let on_device = metric != METRICS[0];
    let mut sums = BTreeMap::new();
    for trace in traces {
        if !trace.wants.stack {
            return Err(Error::NoStacks);
        }
        for (stack, nanos) in sum(trace, on_device) {
            *sums.entry(folded(stack)).or_insert(0) += nanos;
        }
    }
    file::write(path, |sink| {
        let weighed = sums.iter().filter(|(stack, nanos)| **nanos > 0 && !stack.is_empty());
        // Most operators take less than a microsecond: what is there must not round to nothing.
        weighed
            .map(|(stack, nanos)| (stack, (nanos + 500) / 1000))
            .try_for_each(|(stack, micros)| writeln!(sink, "{stack} {}", micros.max(1)))
    })
}

/// Nanoseconds that the events of each stack took by themselves.
fn sum(trace: &Trace, on_device: bool) -> impl Iterator<Item = (&[Frame], u64)> {
    let mut sums = vec![0; trace.stacks.all().len()];
    for event in trace.events() {
        if let Some(sum) = sums.get_mut(event.record().stack as usize) {
            *sum += if on_device { event.self_device_time() } else { event.self_time() };
        }
    }
    trace.stacks.all().iter().map(|stack| &**stack).zip(sums)
}

/// Frames from the outermost on, in one word.
fn folded(stack: &[Frame]) -> String {
    let word = |frame: &Frame| frame.to_string().replace([' ', ';', '\t', '\n'], "_");
    stack.iter().rev().map(word).collect::<Vec<_>>().join(";")
}
