//! Reads JSON as strictly as it is defined, one event at a time, and tells keys that repeat.

use std::borrow::Cow;

/// A value. Keys and texts without escapes are the file's own bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The value of a key, the last if it repeats; `None` if this is no object or has none.
    pub(super) fn get(&self, key: &str) -> Option<&Json<'a>> {
        let Json::Object(pairs) = self else { return None };
        pairs.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(super) fn int(&self) -> Option<i128> {
        if let Json::Int(value) = self { Some(*value) } else { None }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Json::Int(value) => Some(*value as f64),
            Json::Float(value) => Some(*value).filter(|value| value.is_finite()),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn list(&self) -> Option<&[Json<'a>]> {
        if let Json::List(list) = self { Some(list) } else { None }
    }
}

/// A file without its events.
pub(super) struct Document<'a> {
    /// `Null` in place of the events, if they were a list; a list if the file is one.
    pub(super) head: Json<'a>,
    pub(super) repeated: Vec<String>,
}

/// Reads a file, handing over the events as they come.
pub(super) fn document<'a>(text: &'a str, mut event: impl FnMut(Json<'a>)) -> Result<Document<'a>, String> {
    let mut reader = Reader { text, at: 0, depth: 0, repeated: Vec::new() };
    let head = match reader.peek() {
        Some(b'[') => {
            reader.events(&mut event)?;
            Json::List(Vec::new())
        }
        Some(b'{') => reader.object(Some(&mut event))?,
        _ => reader.value()?,
    };
    if reader.peek().is_some() {
        return Err(reader.fault("the end"));
    }
    Ok(Document { head, repeated: reader.repeated })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    repeated: Vec<String>,
}

/// Deeper than any trace, and shallow enough for any stack.
const DEPTH: usize = 512;

type Events<'e, 'a> = Option<&'e mut dyn FnMut(Json<'a>)>;

impl<'a> Reader<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, expected: &str) -> String {
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = found.map_or("the end".to_owned(), |c| format!("{c:?}"));
        format!("at byte {}: expected {expected}, found {found}", self.at)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(self.fault(&format!("{:?}", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a list or object goes on after an element.
    fn goes_on(&mut self, end: u8) -> Result<bool, String> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.fault(&format!("',' or {:?}", end as char))),
        }
    }

    fn value(&mut self) -> Result<Json<'a>, String> {
        match self.peek() {
            Some(b'{') => self.nested(|reader| reader.object(None)),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.fault("a value")),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Json<'a>, String>,
    ) -> Result<Json<'a>, String> {
        if self.depth == DEPTH {
            return Err(format!("at byte {}: nested more than {DEPTH} deep", self.at));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, String> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.fault(word));
        }
        self.at += word.len();
        Ok(value)
    }

    /// An object; a list of events in it is handed over.
    fn object(&mut self, mut events: Events<'_, 'a>) -> Result<Json<'a>, String> {
        self.expect(b'{')?;
        let mut pairs: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(pairs));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fault("a key"));
            }
            let key = self.string()?;
            self.expect(b':')?;
            let value = match &mut events {
                Some(event) if key == "traceEvents" && self.peek() == Some(b'[') => {
                    self.events(*event)?;
                    Json::Null
                }
                _ => self.value()?,
            };
            if pairs.iter().any(|(known, _)| *known == key) {
                self.repeated.push(key.clone().into_owned());
            }
            pairs.push((key, value));
            if !self.goes_on(b'}')? {
                return Ok(Json::Object(pairs));
            }
        }
    }

    fn events(&mut self, event: &mut dyn FnMut(Json<'a>)) -> Result<(), String> {
        self.elements(|reader| {
            event(reader.value()?);
            Ok(())
        })
    }

    fn list(&mut self) -> Result<Json<'a>, String> {
        let mut values = Vec::new();
        self.elements(|reader| {
            values.push(reader.value()?);
            Ok(())
        })?;
        Ok(Json::List(values))
    }

    fn elements(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.expect(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            read(self)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<Json<'a>, String> {
        let rest = &self.text.as_bytes()[self.at..];
        let length =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let text = &self.text[self.at..self.at + length.count()];
        let digits = text.strip_prefix('-').unwrap_or(text);
        let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (head, tail) = digits.split_at(whole);
        let dangles = tail.starts_with('.') && !tail[1..].starts_with(|c: char| c.is_ascii_digit());
        if head.is_empty() || head.len() > 1 && head.starts_with('0') || dangles {
            return Err(self.fault("a number"));
        }
        let int = if tail.is_empty() { text.parse().ok().map(Json::Int) } else { None };
        let value =
            int.or_else(|| text.parse().ok().map(Json::Float)).ok_or_else(|| self.fault("a number"))?;
        self.at += text.len();
        Ok(value)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped(start).map(Cow::Owned),
                Some(32..) => self.at += 1,
                _ => return Err(self.fault("a letter of a text")),
            }
        }
    }

    /// The rest of a text from its first escape on.
    fn escaped(&mut self, start: usize) -> Result<String, String> {
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err(self.fault("a closing quote"));
            };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' => text.push(self.escape()?),
                ..' ' => return Err(self.fault("a letter of a text")),
                c => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(letter @ (b'"' | b'\\' | b'/')) => letter as char,
            Some(b'u') => return self.unicode(),
            _ => return Err(self.fault("an escape")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// `\u0041`, or two of them for what lies beyond; halves that stand alone are shown as such.
    fn unicode(&mut self) -> Result<char, String> {
        let unit = |text: &str, at: usize| {
            let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
            if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                u16::from_str_radix(digits, 16).ok()
            } else {
                None
            }
        };
        let first = unit(self.text, self.at).ok_or_else(|| self.fault("four hexadecimal digits"))?;
        self.at += 6;
        let second = unit(self.text, self.at).filter(|unit| (0xdc00..0xe000).contains(unit));
        let units = [first, second.unwrap_or(0)];
        let is_pair = (0xd800..0xdc00).contains(&first) && second.is_some();
        self.at += if is_pair { 6 } else { 0 };
        let mut decoded = char::decode_utf16(units[..if is_pair { 2 } else { 1 }].iter().copied());
        Ok(decoded.next().and_then(|c| c.ok()).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Json<'_>, String> {
        document(text, |_| ()).map(|document| document.head)
    }

    #[test]
    fn what_serde_json_reads_is_read_alike_and_what_it_refuses_is_refused() {
        let good =
            ["{}", "{\"a\": [1, -2.5e3, true, null, \"x\\u00fc\\n\\ud83c\\udf89\"]}", " 7 ", "0.5", "\"🎉\""];
        let bad =
            ["", "{", "[1,]", "{\"a\":1,}", "NaN", "01", "1.", "\"\u{1}\"", "\"\\x\"", "{} {}", "-", "[1 2]"];
        for text in good {
            assert!(
                parsed(text).is_ok() && serde_json::from_str::<serde_json::Value>(text).is_ok(),
                "{text}"
            );
        }
        for text in bad {
            assert!(
                parsed(text).is_err() && serde_json::from_str::<serde_json::Value>(text).is_err(),
                "{text}"
            );
        }
        let list = parsed(good[1]).unwrap();
        let list = list.get("a").unwrap().list().unwrap();
        assert_eq!((list[1].number(), list[4].text()), (Some(-2500.0), Some("xü\n🎉")));
    }

    #[test]
    fn events_are_handed_over_and_repeated_keys_are_told() {
        let mut events = Vec::new();
        let text = r#"{"a": 1, "traceEvents": [{"x": 1, "x": 2}, 3], "z": {}}"#;
        let document = document(text, |event| events.push(event)).unwrap();
        assert_eq!(events[0].get("x"), Some(&Json::Int(2)));
        assert_eq!((events.len(), document.repeated), (2, vec!["x".to_owned()]));
        assert!(parsed(&"[".repeat(100_000)).is_err());
    }
}
