//! A value as a tree, for those who must look at all of it.

use super::scan::{Scanner, Stop};
use std::borrow::Cow;
use std::collections::HashSet;

/// A value. Keys and texts without escapes are the file's own bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
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
    pub(crate) fn get(&self, key: &str) -> Option<&Json<'a>> {
        let Json::Object(pairs) = self else { return None };
        pairs.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn int(&self) -> Option<i128> {
        if let Json::Int(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Json::Int(value) => Some(*value as f64),
            Json::Float(value) => Some(*value).filter(|value| value.is_finite()),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn list(&self) -> Option<&[Json<'a>]> {
        if let Json::List(list) = self { Some(list) } else { None }
    }

    /// The same, without the file.
    pub(crate) fn into_owned(self) -> Json<'static> {
        match self {
            Json::Null => Json::Null,
            Json::Bool(value) => Json::Bool(value),
            Json::Int(value) => Json::Int(value),
            Json::Float(value) => Json::Float(value),
            Json::Text(text) => Json::Text(Cow::Owned(text.into_owned())),
            Json::List(list) => Json::List(list.into_iter().map(Json::into_owned).collect()),
            Json::Object(pairs) => {
                let pair = |(key, value): (Cow<'_, str>, Json<'_>)| {
                    (Cow::Owned(key.into_owned()), value.into_owned())
                };
                Json::Object(pairs.into_iter().map(pair).collect())
            }
        }
    }
}

/// More than any event of a trace has; a tree of this many takes some 50 MB.
const MOST: usize = 1 << 20;

/// A value, and the keys that occur twice in one object of it.
pub(crate) fn value<'a>(scanner: &mut Scanner<'a>) -> Result<(Json<'a>, Vec<String>), Stop> {
    let mut reader = Reader { left: MOST, repeated: Vec::new() };
    let value = reader.value(scanner)?;
    Ok((value, reader.repeated))
}

struct Reader {
    left: usize,
    repeated: Vec<String>,
}

impl Reader {
    fn value<'a>(&mut self, scanner: &mut Scanner<'a>) -> Result<Json<'a>, Stop> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(Stop::fault(scanner.position(), format!("more than {MOST} values in one event")));
        };
        self.left = left;
        match scanner.peek()? {
            Some(b'"') => Ok(Json::Text(scanner.text()?.decode()?)),
            Some(b'-' | b'0'..=b'9') => number(scanner),
            Some(b'{') => self.object(scanner),
            Some(b'[') => {
                let mut list = Vec::new();
                scanner.list(|scanner| {
                    list.push(self.value(scanner)?);
                    Ok(())
                })?;
                Ok(Json::List(list))
            }
            Some(b't') => scanner.word("true").map(|()| Json::Bool(true)),
            Some(b'f') => scanner.word("false").map(|()| Json::Bool(false)),
            Some(b'n') => scanner.word("null").map(|()| Json::Null),
            _ => scanner.fault("a value"),
        }
    }

    fn object<'a>(&mut self, scanner: &mut Scanner<'a>) -> Result<Json<'a>, Stop> {
        let mut pairs: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        scanner.object(|scanner, key| {
            pairs.push((key.decode()?, self.value(scanner)?));
            Ok(())
        })?;
        repeated(&pairs, &mut self.repeated);
        Ok(Json::Object(pairs))
    }
}

fn number<'a>(scanner: &mut Scanner<'a>) -> Result<Json<'a>, Stop> {
    let number = scanner.number()?;
    let whole = if number.is_whole { number.text.parse().ok().filter(is_usual).map(Json::Int) } else { None };
    // Too large for a whole number, it is still one for a double.
    whole.or_else(|| number.text.parse().ok().map(Json::Float)).map_or_else(|| scanner.fault("a number"), Ok)
}

/// Whether a number is one of 64 bits, so that sums of a few cannot overflow.
fn is_usual(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}

fn repeated(pairs: &[(Cow<'_, str>, Json<'_>)], found: &mut Vec<String>) {
    let is_short = pairs.len() <= 24;
    let mut seen = HashSet::new();
    for (i, (key, _)) in pairs.iter().enumerate() {
        let again =
            if is_short { pairs[..i].iter().any(|(known, _)| known == key) } else { !seen.insert(key) };
        if again {
            found.push(key.clone().into_owned());
        }
    }
}
