//! JSON as it comes: a window on the file, a scanner on the window, a walk over the document.
//!
//! A trace is read front to back and never as a whole. The walk hands the scanner over at every
//! event; who takes an event in keeps what it needs and skips the rest, which allocates nothing.

mod document;
pub(crate) mod json;
mod scan;
mod source;

pub(crate) use document::{Part, Visit, walk};
pub(crate) use scan::{Number, Scanner, Stop, Text};
pub(crate) use source::Source;
