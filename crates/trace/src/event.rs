//! One event as it comes by: what readers want of it, still in the file's own bytes.

use crate::read::{Number, Scanner, Stop, Text};

/// What reading gives.
type Scan<T> = Result<T, Stop>;

/// A process or thread: a number in most traces, a text in some.
#[derive(Clone, Copy)]
pub(crate) enum Id<'a> {
    Number(i64),
    Text(Text<'a>),
}

/// An event; what it lacks or has wrongly is absent.
pub(crate) struct Event<'a> {
    pub(crate) phase: u8,
    pub(crate) name: Option<Text<'a>>,
    pub(crate) category: &'a [u8],
    pub(crate) pid: Id<'a>,
    pub(crate) tid: Id<'a>,
    /// Nanoseconds.
    pub(crate) time: Option<i64>,
    pub(crate) duration: Option<i64>,
    /// Which flow it is an end of.
    pub(crate) flow: Option<i64>,
    pub(crate) args: Args<'a>,
}

/// Arguments of an event.
#[derive(Default)]
pub(crate) struct Args<'a> {
    pub(crate) external: Option<i64>,
    pub(crate) correlation: Option<i64>,
    pub(crate) sequence: Option<i64>,
    pub(crate) forward_thread: Option<i64>,
    pub(crate) flops: Option<i64>,
    pub(crate) bytes: Option<i64>,
    /// c10's number of a kind of device.
    pub(crate) device_number: Option<i64>,
    pub(crate) device_type: Option<Text<'a>>,
    pub(crate) stack: Option<Text<'a>>,
    /// A thread's or process's name.
    pub(crate) name: Option<Text<'a>>,
    /// Lists as they stand in the file.
    pub(crate) dims: Option<&'a [u8]>,
    pub(crate) types: Option<&'a [u8]>,
    pub(crate) concrete: Option<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// Reads an event; a value that is no object is none.
    pub(crate) fn read(scanner: &mut Scanner<'a>) -> Scan<Option<Event<'a>>> {
        if scanner.peek()? != Some(b'{') {
            scanner.skip()?;
            return Ok(None);
        }
        let mut event = Event {
            phase: 0,
            name: None,
            category: b"",
            pid: Id::Number(0),
            tid: Id::Number(0),
            time: None,
            duration: None,
            flow: None,
            args: Args::default(),
        };
        scanner.object(|scanner, key| {
            match key.raw() {
                b"ph" => event.phase = text(scanner)?.map_or(0, |text| *text.raw().first().unwrap_or(&0)),
                b"name" => event.name = text(scanner)?,
                b"cat" => event.category = text(scanner)?.map_or(b"", |text| text.raw()),
                b"pid" => event.pid = id(scanner)?,
                b"tid" => event.tid = id(scanner)?,
                b"ts" => event.time = nanos(scanner)?,
                b"dur" => event.duration = nanos(scanner)?.filter(|&nanos| nanos >= 0),
                b"id" => event.flow = int(scanner)?,
                b"args" if scanner.peek()? == Some(b'{') => event.args = Args::read(scanner)?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(Some(event))
    }
}

impl<'a> Args<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Scan<Args<'a>> {
        let mut args = Args::default();
        scanner.object(|scanner, key| {
            match key.raw() {
                b"External id" => args.external = int(scanner)?,
                b"correlation" => args.correlation = int(scanner)?,
                b"Sequence number" => args.sequence = int(scanner)?,
                b"Fwd thread id" => args.forward_thread = int(scanner)?,
                b"flops" => args.flops = int(scanner)?,
                b"Bytes" => args.bytes = int(scanner)?,
                b"Device Type" => args.device_number = int(scanner)?,
                b"device_type" => args.device_type = text(scanner)?,
                b"Call stack" => args.stack = text(scanner)?,
                b"name" => args.name = text(scanner)?,
                b"Input Dims" => args.dims = list(scanner)?,
                b"Input type" => args.types = list(scanner)?,
                b"Concrete Inputs" => args.concrete = list(scanner)?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(args)
    }
}

fn text<'a>(scanner: &mut Scanner<'a>) -> Scan<Option<Text<'a>>> {
    if scanner.peek()? == Some(b'"') {
        return scanner.text().map(Some);
    }
    scanner.skip()?;
    Ok(None)
}

fn number<'a>(scanner: &mut Scanner<'a>) -> Scan<Option<Number<'a>>> {
    if matches!(scanner.peek()?, Some(b'-' | b'0'..=b'9')) {
        return scanner.number().map(Some);
    }
    scanner.skip()?;
    Ok(None)
}

fn int(scanner: &mut Scanner<'_>) -> Scan<Option<i64>> {
    Ok(number(scanner)?.and_then(|number| number.int()))
}

fn list<'a>(scanner: &mut Scanner<'a>) -> Scan<Option<&'a [u8]>> {
    let is_list = scanner.peek()? == Some(b'[');
    let start = scanner.position();
    scanner.skip()?;
    Ok(is_list.then(|| scanner.since(start)))
}

/// Microseconds as nanoseconds; torch_npu writes them as a text.
fn nanos(scanner: &mut Scanner<'_>) -> Scan<Option<i64>> {
    if scanner.peek()? != Some(b'"') {
        return Ok(number(scanner)?.and_then(|number| number.nanos()));
    }
    let text = scanner.text()?.decode()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Ok(Number { text: &text, is_whole: false }.nanos().filter(|_| is_number && !text.is_empty()))
}

fn id<'a>(scanner: &mut Scanner<'a>) -> Scan<Id<'a>> {
    match scanner.peek()? {
        Some(b'"') => scanner.text().map(Id::Text),
        _ => Ok(Id::Number(int(scanner)?.unwrap_or(0))),
    }
}
