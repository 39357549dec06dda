//! A place in a JSON document that knows its way from the root, for messages.

use serde_json::Value as Json;
use std::fmt;

/// A value and where it stands, e.g. `body[3].args[0]`.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub(super) json: &'a Json,
    place: String,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    place: String,
    reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.reason),
            place => write!(f, "{place}: {}", self.reason),
        }
    }
}

impl std::error::Error for Fault {}

/// What reading gives.
pub(super) type Read<T> = Result<T, Fault>;

impl<'a> Cursor<'a> {
    pub(super) fn root(json: &'a Json) -> Cursor<'a> {
        Cursor { json, place: String::new() }
    }

    pub(super) fn into_place(self) -> String {
        self.place
    }

    pub(super) fn fault<T>(&self, reason: impl fmt::Display) -> Read<T> {
        Err(Fault { place: self.place.clone(), reason: reason.to_string() })
    }

    fn expected<T>(&self, what: &str) -> Read<T> {
        self.fault(format_args!("expected {what}, found {}", shortened(self.json)))
    }

    /// The member `name`, if there is one.
    pub(super) fn member(&self, name: &str) -> Option<Cursor<'a>> {
        let json = self.json.get(name)?;
        let dot = if self.place.is_empty() { "" } else { "." };
        Some(Cursor { json, place: format!("{}{dot}{name}", self.place) })
    }

    pub(super) fn need(&self, name: &str) -> Read<Cursor<'a>> {
        self.member(name).map_or_else(|| self.fault(format_args!("has no member {name:?}")), Ok)
    }

    /// The members, none if it is missing; all must be among `known`.
    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        let Some(members) = self.json.as_object() else { return self.expected("an object") };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => self.fault(format_args!("unknown member {name:?}; known are {}", known.join(", "))),
            None => Ok(()),
        }
    }

    pub(super) fn members(&self) -> Read<Vec<(&'a str, Cursor<'a>)>> {
        let Some(members) = self.json.as_object() else { return self.expected("an object") };
        Ok(members.keys().filter_map(|name| Some((name.as_str(), self.member(name)?))).collect())
    }

    pub(super) fn list(&self) -> Read<Vec<Cursor<'a>>> {
        let Some(list) = self.json.as_array() else { return self.expected("a list") };
        let element = |(i, json)| Cursor { json, place: format!("{}[{i}]", self.place) };
        Ok(list.iter().enumerate().map(element).collect())
    }

    pub(super) fn text(&self) -> Read<&'a str> {
        self.json.as_str().map_or_else(|| self.expected("a text"), Ok)
    }

    pub(super) fn truth(&self) -> Read<bool> {
        self.json.as_bool().map_or_else(|| self.expected("true or false"), Ok)
    }

    pub(super) fn number(&self) -> Read<f64> {
        self.json.as_f64().map_or_else(|| self.expected("a number"), Ok)
    }

    /// An int from 0 to `most`.
    pub(super) fn count(&self, most: u64) -> Read<u64> {
        match self.json.as_u64() {
            Some(count) if count <= most => Ok(count),
            _ => self.expected(&format!("an int from 0 to {most}")),
        }
    }
}

/// The start of a value's text.
fn shortened(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
