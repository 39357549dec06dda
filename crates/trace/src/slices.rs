//! What is kept of a trace: slices, tracks, memory and links, each in a few bytes.

use crate::error::Result;
use crate::event::{Event, Id};
use crate::read::{Part, Scanner, Source, Stop, Visit, walk};
use crate::texts::Texts;
use std::collections::HashMap;
use std::path::Path;

/// Stands for no number, no text, no slice.
pub const NONE: u32 = u32::MAX;

/// What a slice is, by its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An operator, forward or backward.
    Operator,
    /// A range that the program or the profiler named.
    Annotation,
    /// A call of Python, or of a module.
    Python,
    /// A call into a device's library.
    Runtime,
    /// Work on a device.
    Work,
    /// A named range, as a device's stream saw it.
    DeviceAnnotation,
    /// The profiler's own span.
    Span,
    /// Anything else on the host.
    Other,
}

impl Kind {
    fn of(category: &[u8]) -> Kind {
        match category {
            b"cpu_op" => Kind::Operator,
            b"user_annotation" => Kind::Annotation,
            b"python_function" => Kind::Python,
            b"kernel" | b"gpu_memcpy" | b"gpu_memset" | b"mtia_ccp_events" | b"collective_comm" => Kind::Work,
            b"gpu_user_annotation" => Kind::DeviceAnnotation,
            b"Trace" => Kind::Span,
            name if name.ends_with(b"_runtime") || name.ends_with(b"_driver") => Kind::Runtime,
            _ => Kind::Other,
        }
    }

    /// Whether it is shown on a device's track.
    pub fn is_on_device(self) -> bool {
        matches!(self, Kind::Work | Kind::DeviceAnnotation)
    }
}

/// One slice. Texts are numbers, see [`Slices::text`]; times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// When it began.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// Its `External id`, or 0.
    pub id: u64,
    /// Its name.
    pub name: u32,
    /// Which of [`Slices::tracks`] it is on.
    pub track: u32,
    /// Shapes of its arguments, or [`NONE`].
    pub shapes: u32,
    /// Where it was called from, or [`NONE`].
    pub stack: u32,
    /// Its number among all events of the file.
    pub event: u32,
    /// What it is.
    pub kind: Kind,
}

impl Slice {
    /// When it ended.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }
}

/// A row of a timeline: a thread, or a device's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// The process or device, as the file has it.
    pub process: String,
    /// The thread or stream, as the file has it.
    pub thread: String,
    /// The thread's name, or nothing.
    pub name: String,
}

impl Track {
    /// What it is called: its name if it has one, else by process and thread.
    pub fn label(&self) -> String {
        match self.name.trim() {
            "" => format!("pid {} tid {}", self.process, self.thread),
            name => name.to_owned(),
        }
    }
}

/// Memory that was taken, or given back if negative.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// When.
    pub time: i64,
    /// How much.
    pub bytes: i64,
    /// By whom.
    pub track: u32,
    /// Whether it is the host's.
    pub is_host: bool,
}

/// What only a few need of a slice. Texts are numbers, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// The number of the derivative's node, or -1.
    pub sequence: i64,
    /// torch's number of the thread that its forward call ran on.
    pub forward_thread: i64,
    /// Types of its arguments, as the file has them.
    pub types: u32,
    /// Values of its arguments, as the file has them.
    pub concrete: u32,
}

/// One end of an arrow between slices.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Which arrow.
    pub id: i64,
    /// Where it is shown.
    pub track: u32,
    /// When.
    pub time: i64,
    /// Whether it leads from forward to backward, rather than from a launch to its work.
    pub is_backward: bool,
    /// Whether the arrow starts here.
    pub is_start: bool,
}

/// What is to be kept beside names and times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// Shapes of arguments.
    pub shapes: bool,
    /// Where slices were called from.
    pub stacks: bool,
    /// [`Detail`]s and [`Flow`]s.
    pub details: bool,
    /// Values beside the events, by their keys.
    pub heads: &'static [&'static str],
}

/// A trace, as far as tables, stacks and comparisons need it: some 50 bytes per slice.
#[derive(Default)]
pub struct Slices {
    pub(crate) texts: Texts,
    /// All slices, in the order of the file.
    pub slices: Vec<Slice>,
    /// What slices are on.
    pub tracks: Vec<Track>,
    /// What allocators reported, in the order of the file.
    pub memory: Vec<Memory>,
    /// By slice, if they were kept.
    pub details: Vec<Detail>,
    /// All arrows, if they were kept.
    pub flows: Vec<Flow>,
    /// Slices of [`Kind::Runtime`] and [`Kind::Work`], and what joins them.
    pub correlations: Vec<(u32, i64)>,
    /// Slices that count floating-point operations.
    pub flops: Vec<(u32, u64)>,
    /// Events of all kinds.
    pub events: u64,
    /// Slices that have no name or times, and cannot be used.
    pub left_out: u64,
    /// What the device is called, if there is one.
    pub device: Option<String>,
    /// Whether memory was asked for when the trace was recorded.
    pub has_memory: bool,
    /// Keys beside the events, and their values as the file has them, if they were kept.
    pub heads: Vec<(String, String)>,
}

impl Slices {
    /// Reads a trace, compressed or not.
    ///
    /// # Errors
    /// The file cannot be read, or it is no trace; the error says where it breaks.
    pub fn read(path: impl AsRef<Path>, keep: Keep) -> Result<Slices> {
        Slices::from_source(Source::open(path.as_ref())?, keep)
    }

    pub(crate) fn from_source(mut source: Source, keep: Keep) -> Result<Slices> {
        let mut reader = Reader { slices: Slices::default(), keep, known: HashMap::new(), last: None };
        let shape = walk(&mut source, &mut reader)?;
        if !shape.has_events {
            return Err(source.fault(None, 0, "no list of traceEvents: this is no trace".to_owned()));
        }
        Ok(reader.slices)
    }

    /// The text of a number; nothing for [`NONE`].
    pub fn text(&self, number: u32) -> &str {
        if number == NONE { "" } else { self.texts.get(number) }
    }

    /// A name as rows and stacks show it: all steps are one.
    pub(crate) fn row_name(&self, number: u32) -> &str {
        let name = self.text(number);
        if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name }
    }

    /// The texts that stand for each text in rows; the first step stands for all.
    pub(crate) fn row_names(&self) -> Vec<u32> {
        let mut steps = NONE;
        let name = |number: u32| {
            if !self.text(number).starts_with("ProfilerStep#") {
                return number;
            }
            steps = steps.min(number);
            steps
        };
        (0..self.texts.len() as u32).map(name).collect()
    }

    /// The name of a slice.
    pub fn name(&self, slice: &Slice) -> &str {
        self.texts.get(slice.name)
    }
}

/// A process and a thread; negative numbers below all others stand for texts.
type Ids = (i64, i64);

struct Reader {
    slices: Slices,
    keep: Keep,
    known: HashMap<Ids, u32>,
    /// Events of one thread mostly follow each other.
    last: Option<(Ids, u32)>,
}

impl Visit for Reader {
    fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop> {
        match part {
            Part::Head(key) => {
                let is_on = matches!(scanner.peek()?, Some(b'1'..=b'9'));
                let start = scanner.position();
                scanner.skip()?;
                if self.keep.heads.contains(&key) {
                    let text = std::str::from_utf8(scanner.since(start));
                    let text = text.map_err(|error| Stop::Utf8 { at: start + error.valid_up_to() })?;
                    self.slices.heads.push((key.to_owned(), text.to_owned()));
                }
                self.slices.has_memory |= key == "profile_memory" && is_on;
            }
            Part::Event(number, _) => {
                let event = Event::read(scanner)?;
                self.slices.events += 1;
                if let Some(event) = event {
                    self.take(u32::try_from(number).unwrap_or(NONE), &event)?;
                }
            }
        }
        Ok(())
    }
}

impl Reader {
    fn take(&mut self, number: u32, event: &Event<'_>) -> std::result::Result<(), Stop> {
        match event.phase {
            b'X' => self.slice(number, event),
            b'M' => self.metadata(event),
            b'i' | b'I' if event.name.is_some_and(|name| name.raw() == b"[memory]") => self.memory(event),
            b's' | b'f' if self.keep.details => self.flow(event),
            b'B' | b'E' => {
                self.slices.left_out += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn slice(&mut self, event_number: u32, event: &Event<'_>) -> std::result::Result<(), Stop> {
        let (Some(name), Some(start), Some(duration)) = (event.name, event.time, event.duration) else {
            self.slices.left_out += 1;
            return Ok(());
        };
        let kind = Kind::of(event.category);
        let name = self.slices.texts.number(&name.decode()?);
        let track = self.track(event)?;
        let args = &event.args;
        let number = self.slices.slices.len() as u32;
        let shapes = self.span(args.dims.filter(|_| self.keep.shapes))?;
        let stack = match args.stack.filter(|_| self.keep.stacks) {
            Some(stack) => self.slices.texts.number(&stack.decode()?),
            None => NONE,
        };
        if self.keep.details {
            let detail = Detail {
                sequence: args.sequence.unwrap_or(-1),
                forward_thread: args.forward_thread.unwrap_or(0),
                types: self.span(args.types)?,
                concrete: self.span(args.concrete)?,
            };
            self.slices.details.push(detail);
        }
        if let (Kind::Runtime | Kind::Work, Some(correlation)) = (kind, args.correlation) {
            self.slices.correlations.push((number, correlation));
        }
        if let Some(flops) = args.flops.and_then(|flops| u64::try_from(flops).ok()).filter(|&flops| flops > 0)
        {
            self.slices.flops.push((number, flops));
        }
        if kind == Kind::Work && self.slices.device.is_none() {
            self.slices.device = args.device_type.map(|name| name.decode()).transpose()?.map(Into::into);
        } else if kind == Kind::Runtime && self.slices.device.is_none() && args.device_type.is_none() {
            self.slices.device = device_of(event.category).map(Into::into);
        }
        let id = args.external.and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
        self.slices.slices.push(Slice {
            start,
            duration,
            id,
            name,
            track,
            shapes,
            stack,
            event: event_number,
            kind,
        });
        Ok(())
    }

    /// A list as it stands in the file, as a text.
    fn span(&mut self, list: Option<&[u8]>) -> std::result::Result<u32, Stop> {
        let Some(list) = list else { return Ok(NONE) };
        let text = std::str::from_utf8(list).map_err(|_| Stop::Utf8 { at: 0 })?;
        Ok(self.slices.texts.number(text))
    }

    fn memory(&mut self, event: &Event<'_>) -> std::result::Result<(), Stop> {
        let (Some(time), Some(bytes)) = (event.time, event.args.bytes) else { return Ok(()) };
        let track = self.track(event)?;
        // torch's numbers of the host's memory: plain, MKLDNN's and IDEEP's.
        let is_host = matches!(event.args.device_number, None | Some(0 | 5 | 7));
        self.slices.has_memory = true;
        self.slices.memory.push(Memory { time, bytes, track, is_host });
        Ok(())
    }

    fn flow(&mut self, event: &Event<'_>) -> std::result::Result<(), Stop> {
        let (Some(time), Some(id)) = (event.time, event.flow) else { return Ok(()) };
        let track = self.track(event)?;
        let (is_backward, is_start) = (event.category == b"fwdbwd", event.phase == b's');
        self.slices.flows.push(Flow { id, track, time, is_backward, is_start });
        Ok(())
    }

    fn metadata(&mut self, event: &Event<'_>) -> std::result::Result<(), Stop> {
        if event.name.is_some_and(|name| name.raw() == b"thread_name")
            && let Some(name) = event.args.name
        {
            let name = name.decode()?.into_owned();
            let track = self.track(event)? as usize;
            self.slices.tracks[track].name = name;
        }
        Ok(())
    }

    fn track(&mut self, event: &Event<'_>) -> std::result::Result<u32, Stop> {
        let ids = (self.id(event.pid)?, self.id(event.tid)?);
        if let Some((_, track)) = self.last.filter(|(known, _)| *known == ids) {
            return Ok(track);
        }
        let track = match self.known.get(&ids) {
            Some(&track) => track,
            None => {
                let track = self.slices.tracks.len() as u32;
                let [process, thread] = [ids.0, ids.1].map(|id| match id.checked_sub(i64::MIN) {
                    Some(text) if id < i64::MIN + (1 << 40) => self.slices.text(text as u32).to_owned(),
                    _ => id.to_string(),
                });
                self.slices.tracks.push(Track { process, thread, name: String::new() });
                self.known.insert(ids, track);
                track
            }
        };
        self.last = Some((ids, track));
        Ok(track)
    }

    fn id(&mut self, id: Id<'_>) -> std::result::Result<i64, Stop> {
        Ok(match id {
            Id::Number(number) => number.max(i64::MIN + (1 << 40)),
            Id::Text(text) => i64::MIN + i64::from(self.slices.texts.number(&text.decode()?)),
        })
    }
}

/// What torch calls the device that a runtime is of.
fn device_of(category: &[u8]) -> Option<&'static str> {
    match category {
        b"cuda_runtime" | b"cuda_driver" => Some("CUDA"),
        b"xpu_runtime" | b"xpu_driver" => Some("XPU"),
        b"mtia_runtime" => Some("MTIA"),
        b"privateuse1_runtime" | b"privateuse1_driver" => Some("PrivateUse1"),
        _ => None,
    }
}
