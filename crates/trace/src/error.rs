//! What can go wrong with a trace, by cause.

use crate::row::SORT_KEYS;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Results of reading traces.
pub type Result<T> = std::result::Result<T, Error>;

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
            Error::SortKey { asked } => {
                write!(f, "cannot sort by {asked:?}: legal keys are {}", SORT_KEYS.join(", "))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read { source, .. } => Some(source),
            Error::SortKey { .. } => None,
        }
    }
}
