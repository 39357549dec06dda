//! What devices did, in the file: batches of activities, found again by time and by the number that
//! joins work to its launch.

use super::Tables;
use crate::varint;
use cresset_dispatch::Device;
use cresset_dispatch::activity::{Activity, Direction, Work};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// Activities of a kind that are written at once.
pub(super) const BATCH: usize = 4096;

const KINDS: [Work; 7] = [
    Work::Launch,
    Work::Kernel,
    Work::Set,
    Work::Copy { direction: Direction::HostToDevice },
    Work::Copy { direction: Direction::DeviceToHost },
    Work::Copy { direction: Direction::DeviceToDevice },
    Work::Copy { direction: Direction::HostToHost },
];

/// One batch in the file, of launches or of work.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) offset: u64,
    pub(super) bytes: u32,
    pub(super) count: u32,
    /// The first and the last start, in nanoseconds since 1970.
    pub(super) starts: RangeInclusive<u64>,
    /// The lowest and the highest correlation.
    pub(super) correlations: RangeInclusive<u64>,
}

impl Batch {
    /// Whether it may have a correlation of this range.
    pub(super) fn may_have(&self, wanted: &RangeInclusive<u64>) -> bool {
        self.correlations.start() <= wanted.end() && self.correlations.end() >= wanted.start()
    }
}

/// The least range with all `numbers`; empty if there are none.
pub(super) fn range(numbers: impl IntoIterator<Item = u64>) -> RangeInclusive<u64> {
    let (low, high) = numbers.into_iter().fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    low..=high
}

/// Activities that are yet to be written, and what is known of all.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) launches: Vec<Activity>,
    pub(super) work: Vec<Activity>,
    /// Devices whose streams count from zero.
    pub(super) from_zero: HashSet<Device>,
    texts: HashMap<String, u64>,
    devices: HashMap<Device, u64>,
}

impl Pending {
    pub(super) fn add(&mut self, activities: Vec<Activity>) {
        for activity in activities {
            if activity.work == Work::Launch {
                self.launches.push(activity);
            } else {
                if activity.lane == 0 {
                    self.from_zero.insert(activity.device);
                }
                self.work.push(activity);
            }
        }
    }

    /// Activities as bytes.
    pub(super) fn encode(&mut self, activities: &[Activity], tables: &mut Tables) -> Vec<u8> {
        let mut bytes = Vec::new();
        for activity in activities {
            let name = number_of(&mut self.texts, &mut tables.texts, &activity.name);
            let unit = number_of(&mut self.texts, &mut tables.texts, &activity.unit);
            let device = *self.devices.entry(activity.device).or_insert_with(|| {
                tables.devices.push(activity.device);
                tables.devices.len() as u64 - 1
            });
            let kind = KINDS.iter().position(|kind| *kind == activity.work).unwrap_or(0) as u64;
            let length = activity.end.saturating_sub(activity.start);
            let numbers = [kind, name, unit, device, activity.lane.into(), activity.start, length];
            for number in numbers.into_iter().chain([activity.correlation, activity.call, activity.bytes]) {
                varint::write(number, |byte| bytes.push(byte));
            }
        }
        bytes
    }
}

fn number_of(known: &mut HashMap<String, u64>, texts: &mut Vec<String>, text: &str) -> u64 {
    if let Some(&number) = known.get(text) {
        return number;
    }
    texts.push(text.to_owned());
    let number = texts.len() as u64 - 1;
    known.insert(text.to_owned(), number);
    number
}

/// Reads what [`Pending::encode`] wrote; ends where the bytes are none of its own.
pub(super) fn decode<'a>(mut bytes: &'a [u8], tables: &'a Tables) -> impl Iterator<Item = Activity> + 'a {
    let next = move || {
        let mut number = || varint::read(&mut bytes);
        let work = *KINDS.get(usize::try_from(number()?).ok()?)?;
        let mut text = || tables.texts.get(usize::try_from(number()?).ok()?).cloned();
        let (name, unit) = (text()?, text()?);
        let device = *tables.devices.get(usize::try_from(number()?).ok()?)?;
        let (lane, start, length) = (u32::try_from(number()?).ok()?, number()?, number()?);
        let (correlation, call, bytes) = (number()?, number()?, number()?);
        Some(Activity {
            work,
            name,
            unit,
            device,
            lane,
            start,
            end: start + length,
            correlation,
            call,
            bytes,
        })
    };
    std::iter::from_fn(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_come_back_as_they_were() {
        let activity = |work, name: &str, start: u64| Activity {
            work,
            name: name.to_owned(),
            unit: if work == Work::Kernel { "AI_CORE".to_owned() } else { String::new() },
            device: Device { key: Device::META.key, index: 3 },
            lane: 7,
            start,
            end: start + 40,
            correlation: start / 2,
            call: u64::MAX,
            bytes: 12,
        };
        let all: Vec<Activity> =
            KINDS.into_iter().zip(100..).map(|(work, start)| activity(work, "é", start)).collect();
        let (mut pending, mut tables) = (Pending::default(), Tables::default());
        let bytes = pending.encode(&all, &mut tables);
        assert!(decode(&bytes, &tables).eq(all.iter().cloned()));
        assert_eq!(decode(&bytes[..bytes.len() - 1], &tables).count(), all.len() - 1);
        assert_eq!(tables.texts, ["é", "", "AI_CORE"]);
    }
}
