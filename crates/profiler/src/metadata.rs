//! What users add to the head of a trace.

use crate::communication::distributed_info;
use crate::error::{Error, Result};

/// Keys the format uses itself.
const RESERVED: [&str; 14] = [
    "schemaVersion",
    "deviceProperties",
    "trace_id",
    "record_shapes",
    "with_stack",
    "profile_memory",
    "with_flops",
    "with_modules",
    "host_name",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceEvents",
    "traceName",
    "labels",
];

/// Keys and values, each value a piece of JSON, in the order they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata(Vec<(String, String)>);

impl Metadata {
    /// Adds a text. The last value of a key counts.
    pub(crate) fn add(&mut self, key: &str, value: &str) -> Result<()> {
        self.set(key, serde_json::Value::from(value).to_string())
    }

    /// Adds a piece of JSON; what is none becomes a text, so that the trace always parses.
    pub(crate) fn add_json(&mut self, key: &str, raw: &str) -> Result<()> {
        match serde_json::from_str::<serde_json::Value>(raw) {
            Ok(_) => self.set(key, spaced(raw)),
            Err(_) => self.add(key, raw),
        }
    }

    /// The same, with the groups that this process is in unless something else was said of them.
    pub(crate) fn with_groups(mut self) -> Metadata {
        const KEY: &str = "distributedInfo";
        if let Some(info) = distributed_info().filter(|_| self.0.iter().all(|(key, _)| key != KEY)) {
            self.0.push((KEY.to_owned(), spaced(&info)));
        }
        self
    }

    fn set(&mut self, key: &str, value: String) -> Result<()> {
        if RESERVED.contains(&key) {
            return Err(Error::ReservedKey { key: key.to_owned() });
        }
        self.0.retain(|(known, _)| known != key);
        self.0.push((key.to_owned(), value));
        Ok(())
    }

    /// Keys and values as JSON.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// JSON with a space after each colon: Holistic Trace Analysis finds the rank by one.
fn spaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 8);
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        text.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ':' if !quoted => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_gives_valid_json() {
        let mut metadata = Metadata::default();
        metadata.add("quoted", "a \"b\"\n").unwrap();
        metadata.add_json("distributedInfo", r#"{"rank":3,"a:b":"c\":d"}"#).unwrap();
        metadata.add_json("broken", "{not json").unwrap();
        metadata.add("quoted", "last").unwrap();
        let all: Vec<_> = metadata.iter().collect();
        assert_eq!(
            all,
            [
                ("distributedInfo", r#"{"rank": 3,"a:b": "c\":d"}"#),
                ("broken", r#""{not json""#),
                ("quoted", r#""last""#)
            ]
        );
    }

    #[test]
    fn the_formats_own_keys_are_refused() {
        let error = Metadata::default().add("traceEvents", "x").unwrap_err().to_string();
        assert_eq!(error, "metadata key \"traceEvents\" is used by the trace format itself");
    }
}
