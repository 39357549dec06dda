//! A file's bytes, plain or compressed, in a window that moves over them.

use super::scan::{Scanner, Stop};
use crate::error::{Error, Place, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What is read at once.
const WINDOW: usize = 256 << 10;
/// No value of a trace is longer: a file that has one is not worth the memory.
const LONGEST: usize = 64 << 20;

/// A window on the text of a file.
pub(crate) struct Source {
    path: PathBuf,
    input: Box<dyn Read>,
    window: Vec<u8>,
    /// Where in the window the part begins that is not yet used, and where it ends.
    at: usize,
    filled: usize,
    /// Bytes and lines before the window.
    bytes: u64,
    lines: u64,
    is_last: bool,
}

impl Source {
    /// Opens a file; what it begins with tells whether it is compressed.
    pub(crate) fn open(path: &Path) -> Result<Source> {
        let fault = |source| Error::Read { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(fault)?;
        let mut start = [0; 2];
        let length = read_full(&mut file, &mut start).map_err(fault)?;
        let is_compressed = start == [0x1f, 0x8b];
        let whole = io::Cursor::new(start).take(length as u64).chain(file);
        let input: Box<dyn Read> =
            if is_compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Source::new(path, input))
    }

    /// A window on `input`, called `path` in messages.
    pub(crate) fn new(path: &Path, input: Box<dyn Read>) -> Source {
        Source {
            path: path.to_owned(),
            input,
            window: vec![0; WINDOW],
            at: 0,
            filled: 0,
            bytes: 0,
            lines: 0,
            is_last: false,
        }
    }

    /// Bytes of text before what comes next.
    pub(crate) fn position(&self) -> u64 {
        self.bytes + self.at as u64
    }

    /// Reads one thing. `read` is called again from the same place when the window ended in the
    /// middle of it, so it must keep nothing before it has all.
    pub(crate) fn step<T>(
        &mut self,
        event: Option<u64>,
        mut read: impl FnMut(&mut Scanner<'_>) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        loop {
            let mut scanner = Scanner::new(&self.window[self.at..self.filled], self.is_last);
            match read(&mut scanner) {
                Ok(value) => {
                    self.at += scanner.position();
                    return Ok(value);
                }
                Err(Stop::End) => self.fill(event)?,
                Err(Stop::Fault { at, message }) => return Err(self.fault(event, at, message)),
                Err(Stop::Utf8 { at }) => {
                    return Err(Error::Utf8 { path: self.path.clone(), place: self.place(event, at) });
                }
            }
        }
    }

    /// What is wrong `at` bytes into what comes next.
    pub(crate) fn fault(&self, event: Option<u64>, at: usize, message: String) -> Error {
        Error::Format { path: self.path.clone(), place: self.place(event, at), message }
    }

    fn place(&self, event: Option<u64>, at: usize) -> Place {
        let end = (self.at + at).min(self.filled);
        let line = self.lines + count_lines(&self.window[..end]) + 1;
        Place { event, byte: self.bytes + end as u64, line }
    }

    /// Moves the window to what comes next, and widens it if that fills it.
    fn fill(&mut self, event: Option<u64>) -> Result<()> {
        self.lines += count_lines(&self.window[..self.at]);
        self.bytes += self.at as u64;
        self.window.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.window.len() {
            if self.filled >= LONGEST {
                let message = format!("a value is longer than {} MiB", LONGEST >> 20);
                return Err(self.fault(event, 0, message));
            }
            self.window.resize(self.filled * 2, 0);
        } else if self.filled < WINDOW / 2 && self.window.len() > WINDOW {
            self.window.truncate(WINDOW);
            self.window.shrink_to_fit();
        }
        let read = read_full(&mut self.input, &mut self.window[self.filled..]);
        let read = read.map_err(|source| match source.kind() {
            // Compressed data that is broken: how far it could be read is all that is known.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                self.fault(event, self.filled, format!("the compressed data is broken: {source}"))
            }
            _ => Error::Read { path: self.path.clone(), source },
        })?;
        self.filled += read;
        self.is_last = self.filled < self.window.len();
        Ok(())
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Reads until `buffer` is full or there is no more.
fn read_full(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
