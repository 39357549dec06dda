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
                Err(Stop::Fault(fault)) => return Err(self.fault(event, fault.at, fault.message)),
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
    // In pieces whose count fits a byte, of which a processor adds many at once.
    let count = |piece: &[u8]| piece.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>();
    bytes.chunks(255).map(|piece| u64::from(count(piece))).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Part, Visit, walk};

    /// Gives a few bytes at a time.
    struct Slow(io::Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 * 31 % 997 + 1;
            let length = buffer.len().min(self.1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[derive(Default)]
    struct Names(Vec<(String, u64)>);

    impl Visit for Names {
        fn visit(&mut self, part: Part<'_>, scanner: &mut Scanner<'_>) -> std::result::Result<(), Stop> {
            let mut name = String::new();
            scanner.object(|scanner, _| {
                scanner.peek()?;
                name = scanner.text()?.decode()?.into_owned();
                Ok(())
            })?;
            if let Part::Event(_, byte) = part {
                self.0.push((name, byte));
            }
            Ok(())
        }
    }

    #[test]
    fn events_that_lie_across_windows_are_read_whole() {
        // Escapes, letters of several bytes and one text that is longer than a window.
        let name = |i: usize| match i {
            500 => "long".repeat(WINDOW / 2),
            i => format!("{}\\ \" é 🎉 {}", i, "x".repeat(i * 7 % 1500)),
        };
        let mut text = String::from("[");
        let mut expected = Vec::new();
        for i in 0..1000 {
            text += if i > 0 { ", " } else { "" };
            expected.push((name(i), text.len() as u64));
            text += &serde_json::json!({"name": name(i)}).to_string();
        }
        text += "]";
        assert!(text.len() > 3 * WINDOW);
        let slow = Box::new(Slow(io::Cursor::new(text.into_bytes()), 1));
        let mut names = Names::default();
        walk(&mut Source::new(Path::new("slow"), slow), &mut names).unwrap();
        assert!(names.0 == expected);
    }

    #[test]
    fn a_value_that_never_ends_is_refused_before_memory_is_full() {
        let endless = io::Read::chain(&b"[{\"name\": \""[..], io::repeat(b'x'));
        let mut source = Source::new(Path::new("endless"), Box::new(endless));
        let error = walk(&mut source, &mut Names::default()).unwrap_err().to_string();
        assert_eq!(error, "endless: event 0, line 1, byte 1: a value is longer than 64 MiB");
    }
}
