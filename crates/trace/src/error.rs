//! What can go wrong with a trace, by cause.

use crate::diff::Metric;
use crate::row::SORT_KEYS;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Results of reading traces.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in a trace something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the event, from 0 on; `None` outside of events.
    pub event: Option<u64>,
    /// Bytes before it, of the text without compression.
    pub byte: u64,
    /// The line, from 1 on.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(event) = self.event {
            write!(f, "event {event}, ")?;
        }
        write!(f, "line {}, byte {}", self.line, self.byte)
    }
}

/// Why a trace could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no trace, or a broken one.
    Format {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        place: Place,
        /// What was expected there, and what was found.
        message: String,
    },
    /// A file is no text.
    Utf8 {
        /// The file.
        path: PathBuf,
        /// The first byte that belongs to no letter.
        place: Place,
    },
    /// What is made of traces could not be written.
    Write {
        /// Why.
        source: io::Error,
    },
    /// A metric that traces cannot be compared by.
    Metric {
        /// The metric that was asked for.
        asked: String,
    },
    /// A key that a table cannot be sorted by.
    SortKey {
        /// The key that was asked for.
        asked: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::Format { path, place, message } => write!(f, "{}: {place}: {message}", path.display()),
            Error::Utf8 { path, place } => write!(f, "{}: {place}: not UTF-8", path.display()),
            Error::Write { source } => write!(f, "cannot write: {source}"),
            Error::Metric { asked } => {
                write!(f, "cannot compare by {asked:?}: legal metrics are {}", Metric::NAMES.join(", "))
            }
            Error::SortKey { asked } => {
                write!(f, "cannot sort by {asked:?}: legal keys are {}", SORT_KEYS.join(", "))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read { source, .. } | Error::Write { source } => Some(source),
            _ => None,
        }
    }
}
