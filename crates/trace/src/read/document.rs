//! The walk over a trace: what is in its head, and one event after the other.

use super::scan::{Scanner, Stop, Text};
use super::source::Source;
use crate::error::Result;
use std::fmt;

/// Where the walk is.
#[derive(Clone, Copy)]
pub(crate) enum Part<'k> {
    /// At the value of a key beside the events.
    Head(&'k str),
    /// At an event: its number, and the bytes before it.
    Event(u64, u64),
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Head(key) => write!(f, "{key:?}"),
            Part::Event(event, byte) => write!(f, "event {event} at byte {byte}"),
        }
    }
}

/// Takes in what the walk comes by.
pub(crate) trait Visit {
    /// Must take the value at hand, and keep nothing of it before it is whole: the same part may
    /// come once more when the window ends within it.
    fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop>;
}

/// What a file is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// Whether the top level is an object, as kineto writes it, rather than a list of events.
    pub(crate) is_object: bool,
    /// Whether there was a list of events at all.
    pub(crate) has_events: bool,
}

/// Goes through a whole file.
pub(crate) fn walk(source: &mut Source, visitor: &mut impl Visit) -> Result<Shape> {
    let mut walk = Walk { source, visitor, events: 0 };
    let mut shape = Shape::default();
    match walk.source.step(None, |scanner| scanner.peek())? {
        Some(b'[') => {
            walk.events()?;
            shape.has_events = true;
        }
        Some(b'{') => {
            shape.is_object = true;
            shape.has_events = walk.object()?;
        }
        _ => walk.source.step(None, |scanner| scanner.fault("a trace: '{' or '['"))?,
    }
    walk.source.step(None, |scanner| match scanner.peek()? {
        None => Ok(()),
        Some(_) => scanner.fault("the end"),
    })?;
    Ok(shape)
}

struct Walk<'w, V> {
    source: &'w mut Source,
    visitor: &'w mut V,
    events: u64,
}

impl<V: Visit> Walk<'_, V> {
    fn object(&mut self) -> Result<bool> {
        let mut found = false;
        self.source.step(None, |scanner| scanner.expect(b'{', "'{'"))?;
        let mut more = self.source.step(None, |scanner| scanner.has_first(b'}'))?;
        while more {
            let key = self.source.step(None, |scanner| scanner.key().and_then(owned))?;
            let is_list = self.source.step(None, |scanner| Ok(scanner.peek()? == Some(b'[')))?;
            if key == "traceEvents" && is_list {
                self.events()?;
                found = true;
            } else {
                let visitor = &mut *self.visitor;
                self.source.step(None, |scanner| visitor.visit(Part::Head(&key), scanner))?;
            }
            more = self.source.step(None, |scanner| scanner.goes_on(b'}'))?;
        }
        Ok(found)
    }

    fn events(&mut self) -> Result<()> {
        self.source.step(None, |scanner| scanner.expect(b'[', "'['"))?;
        let mut more = self.source.step(None, |scanner| scanner.has_first(b']'))?;
        while more {
            let number = Some(self.events);
            self.source.step(number, |scanner| scanner.peek().map(drop))?;
            let part = Part::Event(self.events, self.source.position());
            let visitor = &mut *self.visitor;
            self.source.step(number, |scanner| visitor.visit(part, scanner))?;
            more = self.source.step(number, |scanner| scanner.goes_on(b']'))?;
            self.events += 1;
        }
        Ok(())
    }
}

fn owned(text: Text<'_>) -> std::result::Result<String, Stop> {
    Ok(text.decode()?.into_owned())
}
