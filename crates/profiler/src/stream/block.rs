//! A block of events as bytes: mostly small differences, seven bits at a time.

use super::Tables;
use crate::chunk::{Call, Chunk, End, Entry, Name, What};
use crate::varint;
use cresset_dispatch::Device;
use cresset_dispatch::memory::Report;
use cresset_dispatch::observe::{Kind, Sequence};
use std::collections::HashMap;

const KINDS: [Kind; 6] =
    [Kind::Operator, Kind::Evaluate, Kind::Backward, Kind::Scope, Kind::Module, Kind::Communication];

/// An event with all that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub(super) start: u64,
    pub(super) end: End,
    pub(super) what: Part,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Call { call: Call, name: Text, details: Option<Vec<u8>> },
    Other(What),
}

/// A name that lives as long as the program, or one of its own.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Static(&'static str),
    Own(Vec<u8>),
}

/// Writes events one after the other.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) tables: Tables,
    by_address: HashMap<(usize, usize), u64>,
    by_device: HashMap<Device, u64>,
    /// By device, when the first report came, and what had been handed out before it.
    totals: HashMap<Device, (u64, u64)>,
    bytes: Vec<u8>,
    start: u64,
    id: u64,
    pub(super) events: u32,
    pub(super) first: u64,
}

impl Encoder {
    /// Appends an event of `chunk`.
    pub(super) fn push(&mut self, chunk: &Chunk, entry: &Entry, end: End) {
        if self.events == 0 {
            self.first = entry.start;
        }
        self.events += 1;
        let (tag, start) = (tag(&entry.what), entry.start.wrapping_sub(self.start));
        self.bytes.push(tag);
        self.number(start);
        self.start = entry.start;
        match &entry.what {
            What::Call(call) => self.call(chunk, call, entry.start, end),
            What::Memory(report) => {
                let before = report.allocated.saturating_add_signed(-report.bytes);
                let first = self.totals.entry(report.device).or_insert((entry.start, before));
                *first = (*first).min((entry.start, before));
                let device = self.device(report.device);
                self.number(device);
                for field in [report.address as u64, report.bytes as u64, report.allocated, report.reserved] {
                    self.number(field);
                }
            }
            What::Copied(bytes) => self.number(*bytes),
        }
    }

    fn call(&mut self, chunk: &Chunk, call: &Call, start: u64, end: End) {
        let length = end.ticks().saturating_sub(start) << 1 | u64::from(end.failed());
        self.number(if end.ticks() == 0 { 0 } else { length + 1 });
        self.number(call.id.wrapping_sub(self.id));
        self.id = call.id;
        self.bytes.push(call.kind as u8);
        let device = call.device.map_or(0, |device| self.device(device) + 1);
        self.number(device);
        let sequence = call.sequence();
        self.number(sequence.map_or(0, |sequence| sequence.number + 1));
        if let Some(sequence) = sequence {
            self.number(sequence.forward_thread.into());
        }
        match call.name {
            Name::Static(name) => {
                let number = self.name(name);
                self.number(number << 1);
            }
            Name::Packed { at, bytes } => {
                self.number(u64::from(bytes) << 1 | 1);
                self.bytes.extend_from_slice(chunk.bytes(at).get(..bytes as usize).unwrap_or_default());
            }
        }
        let details = call.details().map(|at| chunk.packed(at));
        self.number(details.as_ref().map_or(0, |bytes| bytes.len() as u64 + 1));
        self.bytes.extend(details.unwrap_or_default());
    }

    /// What allocators had handed out before they first reported.
    pub(super) fn totals(&self) -> Vec<(Device, u64)> {
        self.totals.iter().map(|(device, (_, before))| (*device, *before)).collect()
    }

    /// What was pushed so far; the next block begins.
    pub(super) fn take(&mut self) -> Vec<u8> {
        (self.start, self.id, self.events) = (0, 0, 0);
        std::mem::take(&mut self.bytes)
    }

    fn number(&mut self, number: u64) {
        varint::write(number, |byte| self.bytes.push(byte));
    }

    fn name(&mut self, name: &'static str) -> u64 {
        let names = &mut self.tables.names;
        *self.by_address.entry((name.as_ptr() as usize, name.len())).or_insert_with(|| {
            names.push(name);
            names.len() as u64 - 1
        })
    }

    fn device(&mut self, device: Device) -> u64 {
        let devices = &mut self.tables.devices;
        *self.by_device.entry(device).or_insert_with(|| {
            devices.push(device);
            devices.len() as u64 - 1
        })
    }
}

fn tag(what: &What) -> u8 {
    match what {
        What::Call(_) => 0,
        What::Memory(_) => 1,
        What::Copied(_) => 2,
    }
}

/// Reads what an [`Encoder`] wrote; ends where the bytes are none of its own.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    tables: &'a Tables,
    start: u64,
    id: u64,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8], tables: &'a Tables) -> Decoder<'a> {
        Decoder { bytes, tables, start: 0, id: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        varint::read_byte(&mut self.bytes)
    }

    fn number(&mut self) -> Option<u64> {
        varint::read(&mut self.bytes)
    }

    fn raw(&mut self, length: u64) -> Option<Vec<u8>> {
        let (bytes, rest) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = rest;
        Some(bytes.to_vec())
    }

    fn device(&mut self) -> Option<Device> {
        let number = self.number()?;
        self.tables.devices.get(usize::try_from(number).ok()?).copied()
    }

    fn call(&mut self) -> Option<(End, Part)> {
        let end = match self.number()? {
            0 => End::OPEN,
            length => End::new(self.start + ((length - 1) >> 1), (length - 1) & 1 != 0),
        };
        self.id = self.id.wrapping_add(self.number()?);
        let kind = *KINDS.get(usize::from(self.byte()?))?;
        let device = match self.number()? {
            0 => None,
            number => Some(*self.tables.devices.get(usize::try_from(number - 1).ok()?)?),
        };
        let sequence = match self.number()? {
            0 => None,
            number => {
                Some(Sequence { number: number - 1, forward_thread: u32::try_from(self.number()?).ok()? })
            }
        };
        let name = self.number()?;
        let name = if name & 1 == 0 {
            Text::Static(self.tables.names.get(usize::try_from(name >> 1).ok()?)?)
        } else {
            Text::Own(self.raw(name >> 1)?)
        };
        let details = match self.number()? {
            0 => None,
            length => Some(self.raw(length - 1)?),
        };
        let call = Call::new(self.id, Name::Static(""), kind, device, sequence, None);
        Some((end, Part::Call { call, name, details }))
    }

    fn event(&mut self) -> Option<Whole> {
        let tag = self.byte()?;
        self.start = self.start.wrapping_add(self.number()?);
        let (end, what) = match tag {
            0 => self.call()?,
            1 => {
                let report = Report {
                    device: self.device()?,
                    address: self.number()? as usize,
                    bytes: self.number()? as i64,
                    allocated: self.number()?,
                    reserved: self.number()?,
                };
                (End::OPEN, Part::Other(What::Memory(report)))
            }
            2 => (End::OPEN, Part::Other(What::Copied(self.number()?))),
            _ => return None,
        };
        Some(Whole { start: self.start, end, what })
    }
}

impl Iterator for Decoder<'_> {
    type Item = Whole;

    fn next(&mut self) -> Option<Whole> {
        self.event()
    }
}
