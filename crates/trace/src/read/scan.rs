//! Reads JSON as strictly as it is defined, from bytes that may end anywhere.

use std::borrow::Cow;

/// Why reading stopped. It is small, because every token could be the one.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The bytes ended; there may be more.
    End,
    /// What comes next is not what must come.
    Fault(Box<Fault>),
    /// What comes next, so many bytes from the beginning, is no letter.
    Utf8 { at: usize },
}

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Bytes from the beginning.
    pub(crate) at: usize,
    /// What was expected, and what was found.
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn fault(at: usize, message: String) -> Stop {
        Stop::Fault(Box::new(Fault { at, message }))
    }
}

/// What reading gives.
pub(crate) type Scan<T> = Result<T, Stop>;

/// Deeper than any trace, and shallow enough for any stack.
const DEPTH: usize = 256;

/// A text as it stands in the file, between its quotes.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
    at: usize,
}

/// A number as it stands in the file.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_whole: bool,
}

/// Walks through the bytes of a value.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether nothing comes after the bytes.
    is_last: bool,
    depth: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8], is_last: bool) -> Scanner<'a> {
        Scanner { bytes, at: 0, is_last, depth: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The bytes from an earlier position to this one.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// The next byte that is no white space, or `None` at the end of the file.
    #[inline]
    pub(crate) fn peek(&mut self) -> Scan<Option<u8>> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        if self.is_last { Ok(None) } else { Err(Stop::End) }
    }

    #[cold]
    pub(crate) fn fault<T>(&self, expected: &str) -> Scan<T> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() && !self.is_last {
            return Err(Stop::End);
        }
        let next = &rest[..rest.len().min(4)];
        if std::str::from_utf8(next).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_some()) {
            return Err(Stop::Utf8 { at: self.at });
        }
        let shown = String::from_utf8_lossy(next);
        let found = shown.chars().next().map_or("the end".to_owned(), |c| format!("{c:?}"));
        Err(Stop::fault(self.at, format!("expected {expected}, found {found}")))
    }

    /// Takes a byte that must come.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, name: &str) -> Scan<()> {
        if self.peek()? != Some(byte) {
            return self.fault(name);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a list or object has a first element, after its bracket.
    #[inline]
    pub(crate) fn has_first(&mut self, end: u8) -> Scan<bool> {
        let is_empty = self.peek()? == Some(end);
        self.at += usize::from(is_empty);
        Ok(!is_empty)
    }

    /// Whether a list or object goes on after an element.
    #[inline]
    pub(crate) fn goes_on(&mut self, end: u8) -> Scan<bool> {
        match self.peek()? {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => self.fault(if end == b']' { "',' or ']'" } else { "',' or '}'" }),
        }
    }

    /// A key and its colon.
    pub(crate) fn key(&mut self) -> Scan<Text<'a>> {
        if self.peek()? != Some(b'"') {
            return self.fault("a key");
        }
        let key = self.text()?;
        self.expect(b':', "':'")?;
        Ok(key)
    }

    /// Reads an object: `each` gets the keys, and must take their values.
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, Text<'a>) -> Scan<()>) -> Scan<()> {
        self.nested(|scanner| {
            scanner.expect(b'{', "'{'")?;
            let mut more = scanner.has_first(b'}')?;
            while more {
                let key = scanner.key()?;
                each(scanner, key)?;
                more = scanner.goes_on(b'}')?;
            }
            Ok(())
        })
    }

    /// Reads a list: `each` must take the elements.
    pub(crate) fn list(&mut self, mut each: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.nested(|scanner| {
            scanner.expect(b'[', "'['")?;
            let mut more = scanner.has_first(b']')?;
            while more {
                each(scanner)?;
                more = scanner.goes_on(b']')?;
            }
            Ok(())
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Scan<()>) -> Scan<()> {
        if self.depth == DEPTH {
            return Err(Stop::fault(self.at, format!("nested more than {DEPTH} deep")));
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// Passes over a value of any kind. Most of a trace is passed over, so this does by a loop what
    /// [`object`](Scanner::object) and [`list`](Scanner::list) do by calls.
    pub(crate) fn skip(&mut self) -> Scan<()> {
        let mut inside = Inside::default();
        'value: loop {
            match self.peek()? {
                Some(b'"') => drop(self.pass_text()?),
                Some(b'-' | b'0'..=b'9') => drop(self.digits()?),
                Some(byte @ (b'{' | b'[')) => {
                    let is_object = byte == b'{';
                    if self.depth + inside.depth == DEPTH {
                        return Err(Stop::fault(self.at, format!("nested more than {DEPTH} deep")));
                    }
                    self.at += 1;
                    if self.has_first(if is_object { b'}' } else { b']' })? {
                        inside.enter(is_object);
                        if is_object {
                            self.pass_key()?;
                        }
                        continue 'value;
                    }
                }
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return self.fault("a value"),
            }
            while inside.depth > 0 {
                if !inside.is_object() {
                    if self.goes_on(b']')? {
                        continue 'value;
                    }
                } else if self.goes_on(b'}')? {
                    self.pass_key()?;
                    continue 'value;
                }
                inside.depth -= 1;
            }
            return Ok(());
        }
    }

    fn pass_key(&mut self) -> Scan<()> {
        if self.peek()? != Some(b'"') {
            return self.fault("a key");
        }
        self.pass_text()?;
        self.expect(b':', "':'")
    }

    pub(crate) fn word(&mut self, word: &'static str) -> Scan<()> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        if rest.len() < word.len() && word.as_bytes().starts_with(rest) && !self.is_last {
            return Err(Stop::End);
        }
        self.fault(word)
    }

    /// A text, from its opening quote on.
    pub(crate) fn text(&mut self) -> Scan<Text<'a>> {
        let at = self.at + 1;
        let is_escaped = self.pass_text()?;
        Ok(Text { raw: &self.bytes[at..self.at - 1], is_escaped, at })
    }

    /// Passes over a text; whether there are escapes in it.
    #[inline]
    fn pass_text(&mut self) -> Scan<bool> {
        self.at += 1;
        let mut is_escaped = false;
        loop {
            self.at = plain_until(self.bytes, self.at);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(is_escaped);
                }
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape()?;
                }
                _ => return self.fault("a letter of a text"),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        let rest = &self.bytes[self.at..];
        let length = match rest.get(1) {
            Some(b'u') => 6,
            Some(b'n' | b't' | b'r' | b'b' | b'f' | b'"' | b'\\' | b'/') => 2,
            None if !self.is_last => return Err(Stop::End),
            _ => return self.fault("an escape"),
        };
        if rest.len() < length && !self.is_last {
            return Err(Stop::End);
        }
        if length == 6 && !rest.get(2..6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return self.fault("\\u and four hexadecimal digits");
        }
        self.at += length;
        Ok(())
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Scan<Number<'a>> {
        let start = self.at;
        let is_whole = self.digits()?;
        match std::str::from_utf8(&self.bytes[start..self.at]) {
            Ok(text) => Ok(Number { text, is_whole }),
            Err(_) => Err(Stop::Utf8 { at: start }),
        }
    }

    /// Passes over a number; whether it has neither fraction nor exponent.
    #[inline]
    fn digits(&mut self) -> Scan<bool> {
        let rest = &self.bytes[self.at..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let whole = digits(rest, sign);
        let mut at = sign + whole;
        let mut fits = whole > 0 && (whole == 1 || rest[sign] != b'0');
        if rest.get(at) == Some(&b'.') {
            let fraction = digits(rest, at + 1);
            fits &= fraction > 0;
            at += 1 + fraction;
        }
        if matches!(rest.get(at), Some(b'e' | b'E')) {
            at += 1 + usize::from(matches!(rest.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(rest, at);
            fits &= exponent > 0;
            at += exponent;
        }
        if at >= rest.len() && !self.is_last {
            return Err(Stop::End);
        }
        if !fits {
            return self.fault("a number");
        }
        self.at += at;
        Ok(at == sign + whole)
    }
}

#[inline]
fn digits(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at - from
}

/// Where the next quote, backslash or control character is, or the end.
#[inline]
fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Eight letters at once: the lowest high bit that is left marks the first that stops.
    while let Some(&eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(eight);
        let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        let quote = is_zero(word ^ (ONES * u64::from(b'"')));
        let backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = quote | backslash | control;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte != b'"' && byte != b'\\' && byte >= 0x20) {
        at += 1;
    }
    at
}

/// What a value is inside of, the innermost last: a bit for each, set for objects.
#[derive(Default)]
struct Inside {
    bits: [u64; DEPTH / 64],
    depth: usize,
}

impl Inside {
    #[inline]
    fn enter(&mut self, is_object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_object) << bit;
        self.depth += 1;
    }

    #[inline]
    fn is_object(&self) -> bool {
        let last = self.depth - 1;
        self.bits[last / 64] >> (last % 64) & 1 == 1
    }
}

impl<'a> Text<'a> {
    /// The bytes in the file, escapes and all: enough to compare with a key.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// What it says.
    pub(crate) fn decode(&self) -> Scan<Cow<'a, str>> {
        let fault = |from: std::str::Utf8Error| Stop::Utf8 { at: self.at + from.valid_up_to() };
        let text = std::str::from_utf8(self.raw).map_err(fault)?;
        Ok(if self.is_escaped { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) })
    }
}

/// A text without its escapes, which are known to be right.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut letters = escaped.chars();
        let c = match letters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let (c, length) = unicode(escaped);
                plain.push(c);
                rest = escaped.get(length..).unwrap_or_default();
                continue;
            }
            Some(c) => c,
            None => break,
        };
        plain.push(c);
        rest = letters.as_str();
    }
    plain.push_str(rest);
    plain
}

/// `u0041`, or two for what lies beyond, and how long they are; halves that stand alone are shown
/// as such.
fn unicode(text: &str) -> (char, usize) {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let first = unit(1).unwrap_or(0xfffd);
    let second = unit(7).filter(|unit| text.get(5..7) == Some("\\u") && (0xdc00..0xe000).contains(unit));
    let is_pair = (0xd800..0xdc00).contains(&first) && second.is_some();
    let units = [first, second.unwrap_or(0)];
    let mut decoded = char::decode_utf16(units[..if is_pair { 2 } else { 1 }].iter().copied());
    let c = decoded.next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER);
    (c, if is_pair { 11 } else { 5 })
}

impl Number<'_> {
    /// Microseconds as whole nanoseconds; what cannot be such is none.
    pub(crate) fn nanos(&self) -> Option<i64> {
        let (digits, sign) = self.text.strip_prefix('-').map_or((self.text, 1), |rest| (rest, -1));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // Nearly all are of this form, and a double could be a nanosecond off.
        if whole.len() <= 16 && fraction.len() <= 3 && !digits.contains(['e', 'E']) {
            let padded = [1000, 100, 10, 1][fraction.len()];
            let parse = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i64>().ok() };
            let nanos = parse(whole)?.checked_mul(1000)?.checked_add(parse(fraction)? * padded)?;
            return Some(sign * nanos);
        }
        let nanos = (self.text.parse::<f64>().ok()? * 1000.0).round();
        (nanos.abs() < 9e18).then_some(nanos as i64)
    }

    /// The number, if it is whole and not too large.
    pub(crate) fn int(&self) -> Option<i64> {
        if self.is_whole { self.text.parse().ok() } else { None }
    }
}
