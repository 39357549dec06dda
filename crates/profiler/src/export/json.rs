//! JSON laid out by hand: no tree, no intermediate values, one buffer.

use std::io::{self, Write};

/// Bytes on their way to a file.
pub(super) struct Json<'a> {
    sink: &'a mut dyn Write,
    bytes: Vec<u8>,
    numbers: itoa::Buffer,
}

const FULL: usize = 1 << 16;

impl<'a> Json<'a> {
    pub(super) fn new(sink: &'a mut dyn Write) -> Json<'a> {
        Json { sink, bytes: Vec::with_capacity(FULL + 4096), numbers: itoa::Buffer::new() }
    }

    /// Lets the file have what is there, if it is enough to be worth it.
    pub(super) fn flush_if_full(&mut self) -> io::Result<()> {
        if self.bytes.len() >= FULL { self.flush() } else { Ok(()) }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Text that is JSON already.
    #[inline]
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.bytes.extend_from_slice(json.as_bytes());
        self
    }

    #[inline]
    pub(super) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.bytes.extend_from_slice(self.numbers.format(number).as_bytes());
        self
    }

    /// Nanoseconds as microseconds with three decimals: a double holds them exactly enough.
    #[inline]
    pub(super) fn micros(&mut self, nanos: u64) -> &mut Self {
        let rest = (nanos % 1000) as u32;
        self.number(nanos / 1000);
        let digits = [b'.', digit(rest / 100), digit(rest / 10 % 10), digit(rest % 10)];
        self.bytes.extend_from_slice(&digits);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        quote(text, &mut self.bytes);
        self
    }

    /// A list, given how to write one element.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.raw("[");
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self.raw("]")
    }
}

fn digit(value: u32) -> u8 {
    b'0' + value as u8
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    quote(text, &mut bytes);
    String::from_utf8(bytes).expect("quoting keeps UTF-8 whole")
}

fn quote(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => bytes.extend_from_slice(b"\\\""),
            b'\\' => bytes.extend_from_slice(b"\\\\"),
            0..=31 | 127 => bytes.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => bytes.push(byte),
        }
    }
    bytes.push(b'"');
}

/// A name as consumers can show it. Most refuse control characters in names, so each is
/// shown by its picture (`␊` for a line feed); the exact name then stands in the arguments.
pub(super) fn visible(name: &str) -> String {
    let picture = |c: char| match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + c as u32).unwrap_or(c),
        c => c,
    };
    name.chars().map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_valid_string() {
        for text in ["plain", "a\"b\\c", "tab\t\u{1}\u{7f}", "ünïcödé 🎉", ""] {
            let back: String = serde_json::from_str(&quoted(text)).unwrap();
            assert_eq!(back, text);
        }
        assert_eq!(visible("a\nb\0"), "a␊b␀");
    }

    #[test]
    fn microseconds_keep_their_nanoseconds() {
        let mut file = Vec::new();
        let mut json = Json::new(&mut file);
        json.micros(1_234_567).raw(" ").micros(7).raw(" ").micros(1_000);
        json.flush().unwrap();
        assert_eq!(String::from_utf8(file).unwrap(), "1234.567 0.007 1.000");
    }
}
