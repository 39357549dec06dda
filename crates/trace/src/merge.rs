//! Traces of several ranks as one, in which each rank has processes of its own.
//!
//! Events are copied as they come, and nothing but what tells ranks apart is changed: process numbers, names and
//! order of processes, numbers of flows, and times if files count from different starts.

use crate::error::{Error, Result};
use crate::read::json::{self, Json};
use crate::read::{Part, Scanner, Source, Stop, Visit, walk};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the traces of several ranks to `out` as one trace. Unless all files say which rank they are of, and none
/// twice, they count by their place.
///
/// # Errors
/// If a file cannot be read or is no trace, or `out` cannot be written to.
pub fn merge_traces(paths: &[PathBuf], out: &mut dyn Write) -> Result<()> {
    let heads = paths.iter().map(|path| Head::read(path)).collect::<Result<Vec<Head>>>()?;
    let base = heads.iter().map(|head| head.base).min().unwrap_or(0);
    let are_told_apart = heads
        .iter()
        .enumerate()
        .all(|(i, head)| head.rank.is_some() && heads[..i].iter().all(|other| other.rank != head.rank));
    let written = |source| Error::Write { source };
    let start = format!(
        "{{\"schemaVersion\":1,\"deviceProperties\":[],\"displayTimeUnit\":\"ms\",\
         \"baseTimeNanoseconds\":{base},\"traceEvents\":["
    );
    out.write_all(start.as_bytes()).map_err(written)?;
    let mut is_first = true;
    for (place, (path, head)) in paths.iter().zip(&heads).enumerate() {
        let mut copy = Copy {
            rank: head.rank.filter(|_| are_told_apart).unwrap_or(place as u64),
            place: place as u64,
            files: paths.len() as u64,
            later: head.base - base,
            processes: Vec::new(),
            is_first,
            out,
            failure: None,
        };
        walk(&mut Source::open(path)?, &mut copy)?;
        is_first = copy.is_first;
        copy.failure.map_or(Ok(()), |source| Err(Error::Write { source }))?;
    }
    out.write_all(b"\n]}\n").and_then(|()| out.flush()).map_err(written)
}

/// What the head of a trace says of when and where.
#[derive(Default)]
struct Head {
    rank: Option<u64>,
    base: i64,
}

impl Head {
    fn read(path: &Path) -> Result<Head> {
        let mut head = Head::default();
        walk(&mut Source::open(path)?, &mut head)?;
        Ok(head)
    }
}

impl Visit for Head {
    fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop> {
        let whole = |value: &Json<'_>| value.int().and_then(|number| u64::try_from(number).ok());
        match part {
            Part::Head("distributedInfo") => {
                self.rank = json::value(scanner)?.0.get("rank").and_then(whole);
            }
            Part::Head("baseTimeNanoseconds") => {
                self.base = whole(&json::value(scanner)?.0).map_or(0, |base| base as i64);
            }
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

/// Processes of one rank have numbers from this times the rank on.
const APART: u64 = 1000;

/// Copies the events of one file.
struct Copy<'o> {
    rank: u64,
    /// Which file it is, and of how many.
    place: u64,
    files: u64,
    /// Nanoseconds by which its times count from a later start.
    later: i64,
    /// Process numbers as the file has them, in the order they come.
    processes: Vec<Vec<u8>>,
    is_first: bool,
    out: &'o mut dyn Write,
    failure: Option<io::Error>,
}

impl Visit for Copy<'_> {
    fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop> {
        if matches!(part, Part::Head(_)) || self.failure.is_some() {
            return scanner.skip();
        }
        let mut fields: Vec<(&[u8], &[u8])> = Vec::new();
        scanner.object(|scanner, key| {
            scanner.peek()?;
            let start = scanner.position();
            scanner.skip()?;
            fields.push((key.raw(), scanner.since(start)));
            Ok(())
        })?;
        let event = self.changed(&fields)?;
        if let Err(error) = self.out.write_all(&event) {
            self.failure = Some(error);
        }
        Ok(())
    }
}

impl Copy<'_> {
    /// An event as it is written.
    fn changed(&mut self, fields: &[(&[u8], &[u8])]) -> std::result::Result<Vec<u8>, Stop> {
        let field = |name: &[u8]| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let (name, process) = (field(b"name").unwrap_or_default(), field(b"pid").unwrap_or(b"0"));
        let process = self.process(process);
        let mut event: Vec<u8> = if self.is_first { b"\n{".to_vec() } else { b",\n{".to_vec() };
        self.is_first = false;
        for (i, (key, value)) in fields.iter().enumerate() {
            event.extend_from_slice(if i == 0 { b"\"" } else { b",\"" });
            event.extend_from_slice(key);
            event.extend_from_slice(b"\":");
            let other = match *key {
                b"pid" => Some(process.to_string()),
                b"id" => self.flow(value),
                b"ts" => self.time(value),
                b"args" if name == b"\"process_name\"" => self.named(value)?,
                b"args" if name == b"\"process_sort_index\"" => Some(format!("{{\"sort_index\":{process}}}")),
                _ => None,
            };
            event.extend_from_slice(other.as_ref().map_or(value, |other| other.as_bytes()));
        }
        event.push(b'}');
        Ok(event)
    }

    /// The number of a process, which no other rank has.
    fn process(&mut self, process: &[u8]) -> u64 {
        let known = self.processes.iter().position(|known| known == process);
        let at = known.unwrap_or_else(|| {
            self.processes.push(process.to_owned());
            self.processes.len() - 1
        });
        self.rank * APART + at as u64
    }

    /// The number of a flow, which no other file has.
    fn flow(&self, value: &[u8]) -> Option<String> {
        let number: u64 = std::str::from_utf8(value).ok()?.parse().ok()?;
        Some(number.checked_mul(self.files)?.checked_add(self.place)?.to_string())
    }

    /// A time that counts from the start of all.
    fn time(&self, value: &[u8]) -> Option<String> {
        if self.later == 0 {
            return None;
        }
        let nanos = Scanner::new(value, true).number().ok()?.nanos()?.checked_add(self.later)?;
        Some(format!("{}.{:03}", nanos / 1000, nanos % 1000))
    }

    /// The name of a process, with its rank.
    fn named(&self, arguments: &[u8]) -> std::result::Result<Option<String>, Stop> {
        let mut name = None;
        Scanner::new(arguments, true).object(|scanner, key| {
            if key.raw() == b"name" {
                name = Some(String::from_utf8_lossy(scanner.text()?.raw()).into_owned());
                return Ok(());
            }
            scanner.skip()
        })?;
        Ok(name.map(|name| format!("{{\"name\":\"rank {}: {name}\"}}", self.rank)))
    }
}
