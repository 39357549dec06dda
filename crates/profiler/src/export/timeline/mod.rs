//! Memory over time by what it was for, in torch's formats and as a picture.

mod picture;

use super::file;
use super::json::Json;
use crate::error::Result;
use crate::memory::{MemoryAction, MemoryCategory, MemoryChange};
use std::io::{self, Write};
use std::path::Path;

/// Writes `changes`, all of one device, in the format that the path's ending asks for.
pub(crate) fn export(changes: &[MemoryChange], device: &str, path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    file::write(path, |sink| {
        if name.ends_with(".html") {
            picture::write(&Curve::new(changes), device, sink)
        } else if name.ends_with("raw.json.gz") {
            write_raw(changes, sink)
        } else {
            write_curve(&Curve::new(changes), sink)
        }
    })
}

/// Bytes by category after each moment at which something changed.
pub(crate) struct Curve {
    /// In microseconds since 1970; what was there before has the first moment.
    pub(crate) times: Vec<u64>,
    pub(crate) bytes: Vec<[i64; MemoryCategory::ALL.len()]>,
}

impl Curve {
    pub(crate) fn new(changes: &[MemoryChange]) -> Curve {
        let mut curve = Curve { times: Vec::new(), bytes: Vec::new() };
        let mut last = None;
        let first = changes.iter().find_map(|change| change.time).unwrap_or(0) / 1000;
        for change in changes {
            let time = change.time.map(|nanos| nanos / 1000);
            if curve.times.is_empty() || time != last {
                curve.times.push(time.unwrap_or(first));
                curve.bytes.push(curve.bytes.last().copied().unwrap_or_default());
            }
            last = time;
            let bytes = curve.bytes.last_mut().expect("a moment was pushed before");
            for (category, delta) in deltas(change) {
                bytes[category as usize] += delta;
            }
        }
        curve
    }
}

/// What a change takes from and adds to categories.
pub(crate) fn deltas(change: &MemoryChange) -> impl Iterator<Item = (MemoryCategory, i64)> {
    let bytes = change.bytes as i64;
    let (first, second) = match change.action {
        MemoryAction::Preexisting | MemoryAction::Create => ((change.category, bytes), None),
        MemoryAction::IncrementVersion => ((change.category, -bytes), Some((change.becomes, bytes))),
        MemoryAction::Destroy => ((change.category, -bytes), None),
    };
    std::iter::once(first).chain(second)
}

/// torch's `[times, sizes]`: sizes have an unused first column, then one per category.
fn write_curve(curve: &Curve, sink: &mut dyn Write) -> io::Result<()> {
    let mut json = Json::new(sink);
    json.raw("[").list(&curve.times, |json, &time| {
        json.number(time);
    });
    json.raw(", [");
    for (i, bytes) in curve.bytes.iter().enumerate() {
        json.raw(if i > 0 { ", [0" } else { "[0" });
        for &bytes in bytes {
            json.raw(", ").number(bytes);
        }
        json.raw("]");
        json.flush_if_full()?;
    }
    json.raw("]]");
    json.flush()
}

/// torch's list of `[time, action, bytes, category]`.
fn write_raw(changes: &[MemoryChange], sink: &mut dyn Write) -> io::Result<()> {
    let mut json = Json::new(sink);
    json.raw("[");
    let mut is_first = true;
    for change in changes {
        for (category, delta) in deltas(change) {
            json.raw(if std::mem::take(&mut is_first) { "[" } else { ", [" });
            match change.time {
                Some(time) => json.number(time),
                None => json.raw("-1"),
            };
            json.raw(", ").number(change.action as u8).raw(", ").number(delta);
            json.raw(", ").number(category as u8).raw("]");
        }
        json.flush_if_full()?;
    }
    json.raw("]");
    json.flush()
}
