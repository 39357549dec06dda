//! Files of samples, read into tensors. A name that ends in `.gz` is unpacked on the way.
//!
//! Whatever is wrong with a file is an error that names the file and the place. No reader takes more
//! memory than what the file really holds calls for, however much its first bytes promise.

mod csv;
mod idx;
mod npy;

pub use csv::{Csv, Table};
pub use idx::read_idx;
pub use npy::read_npy;

use cresset_tensor::{Cause, Error, Result};
use flate2::read::MultiGzDecoder;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Opens `path` for `reader`, which is named in errors.
fn open(reader: &'static str, path: &Path) -> Result<Box<dyn Read>> {
    let file = File::open(path).map_err(|error| fault(reader, path, error))?;
    let is_packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let file = BufReader::new(file);
    Ok(if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

fn fault(reader: &'static str, path: &Path, what: impl Display) -> Error {
    Error::new(Cause::Argument, reader, format_args!("{}: {what}", path.display()))
}
