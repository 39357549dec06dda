//! Functions of analysis that the standard library lacks, or has only one element at a time.

mod error;
mod gamma;
pub(crate) mod single;

pub(crate) use error::erfinv;
pub(crate) use gamma::{digamma, polygamma};
