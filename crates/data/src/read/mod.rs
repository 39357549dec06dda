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

/// A file of bytes, and how much of it was read.
struct Source<'a> {
    reader: &'static str,
    path: &'a Path,
    file: Box<dyn Read>,
    place: usize,
}

impl<'a> Source<'a> {
    fn open(reader: &'static str, path: &'a Path) -> Result<Source<'a>> {
        Ok(Source { reader, path, file: open(reader, path)?, place: 0 })
    }

    /// The next bytes, as many as the array has.
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|error| self.fault(error))?;
        self.place += N;
        Ok(bytes)
    }

    /// The next `count` bytes, which reach up to `what`.
    fn bytes(&mut self, count: usize, what: impl Display) -> Result<Vec<u8>> {
        // Grows as bytes arrive: what the file promises is not believed beforehand.
        let mut read = Vec::new();
        self.file.by_ref().take(count as u64).read_to_end(&mut read).map_err(|error| self.fault(error))?;
        self.place += read.len();
        match count - read.len() {
            0 => Ok(read),
            missing => Err(self.fault(format_args!("ends {missing} bytes before {what}"))),
        }
    }

    fn fault(&self, what: impl Display) -> Error {
        fault(self.reader, self.path, format_args!("byte {}: {what}", self.place))
    }
}
