//! What allocators reported.

use super::event::Event;
use super::{Checker, Report as Findings, Spot};
use std::collections::HashMap;

/// One report, complete.
pub(super) struct Report {
    spot: Spot,
    time: f64,
    device: (i128, i128),
    address: i128,
    bytes: i128,
    total: i128,
}

impl Report {
    pub(super) fn new(event: &Event<'_>, findings: &mut Findings) -> Option<Report> {
        if event.json.get("s").and_then(|scope| scope.text()) != Some("t") {
            findings.error("memory.scope", || format!("{}: s must be \"t\"", event.place()));
        }
        let keys =
            ["Bytes", "Addr", "Device Type", "Device Id", "Total Allocated", "Total Reserved", "Ev Idx"];
        let Some(values) = keys.iter().map(|key| event.int(key)).collect::<Option<Vec<i128>>>() else {
            findings.error("memory.args", || format!("{}: {keys:?} must all be integers", event.place()));
            return None;
        };
        let report = Report {
            spot: event.spot,
            time: event.time,
            device: (values[2], values[3]),
            address: values[1],
            bytes: values[0],
            total: values[4],
        };
        Some(report)
    }
}

impl Checker {
    /// Totals go on from each other, and what is given back was taken.
    pub(super) fn memory(&mut self) {
        let mut totals = HashMap::new();
        let mut live = HashMap::new();
        self.reports.sort_by(|a, b| a.time.total_cmp(&b.time));
        for report in &self.reports {
            let Report { spot, device, address, bytes, total, .. } = *report;
            let findings = &mut self.report;
            if total < 0 {
                findings.error("memory.total", || format!("{spot}: negative Total Allocated"));
            }
            if let Some(expected) = totals.insert(device, total).map(|before: i128| before + bytes)
                && expected != total
            {
                let place = || format!("{spot}: Total Allocated {total}, expected {expected}");
                findings.warning("memory.running-total", place);
            }
            if bytes > 0 {
                if live.insert((device, address), bytes).is_some() {
                    let place = || format!("{spot}: address {address} is taken already");
                    findings.warning("memory.double-alloc", place);
                }
            } else if bytes < 0
                && let Some(taken) = live.remove(&(device, address))
                && taken != -bytes
            {
                let place = || format!("{spot}: gives back {} bytes of {taken}", -bytes);
                findings.error("memory.free-size", place);
            }
        }
    }
}
