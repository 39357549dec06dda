//! What stands before and after the events.

use super::Checker;
use crate::read::json::Json;

const FLAGS: [&str; 5] = ["record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"];

/// Which flags the head has set.
#[derive(Default)]
pub(super) struct Head {
    pub(super) has_arguments: bool,
    pub(super) has_memory: bool,
    pub(super) has_stack: bool,
    pub(super) is_object: bool,
}

impl Checker {
    pub(super) fn head(&mut self, is_object: bool, has_events: bool) -> Head {
        let head = Json::Object(std::mem::take(&mut self.head));
        let report = &mut self.report;
        if !is_object {
            report.error("top.object", || "the top level is no object, as kineto writes it".to_owned());
            return Head::default();
        };
        if !has_events {
            report.error("top.traceEvents", || "traceEvents missing or not a list".to_owned());
            return Head::default();
        }
        let mut need = |rule: &'static str, fulfilled: bool, expected: &str, key: &str| {
            if !fulfilled {
                report.error(rule, || format!("{key} must be {expected}, got {:?}", head.get(key)));
            }
        };
        let int = |key| head.get(key).and_then(Json::int);
        let words = |key| head.get(key).and_then(Json::text);
        need("top.schemaVersion", int("schemaVersion") == Some(1), "1", "schemaVersion");
        let unit = words("displayTimeUnit").is_some_and(|unit| ["ms", "ns"].contains(&unit));
        need("top.displayTimeUnit", unit, "\"ms\" or \"ns\"", "displayTimeUnit");
        let base = int("baseTimeNanoseconds").is_some_and(|base| base >= 0);
        need("top.baseTimeNanoseconds", base, "an integer that is not negative", "baseTimeNanoseconds");
        need("top.trace_id", head.get("trace_id").is_none_or(|id| id.text().is_some()), "text", "trace_id");
        for flag in FLAGS {
            let fits = head.get(flag).is_none_or(|value| value.number() == Some(1.0));
            need("top.flag", fits, "the number 1 or absent", flag);
        }
        if words("traceName").is_none() {
            self.report.warning("top.traceName", || "traceName missing".to_owned());
        }
        self.devices(head.get("deviceProperties"));
        if let Some(info) = head.get("distributedInfo").filter(|info| **info != Json::Null) {
            self.distributed(info);
        }
        let is_set = |flag| head.get(flag).is_some_and(|value| value.number() != Some(0.0));
        Head {
            has_arguments: is_set("record_shapes") || is_set("with_flops"),
            has_memory: is_set("profile_memory"),
            has_stack: is_set("with_stack"),
            is_object: true,
        }
    }

    fn devices(&mut self, devices: Option<&Json<'_>>) {
        let rule = "top.deviceProperties";
        let Some(devices) = devices.and_then(Json::list) else {
            return self.report.error(rule, || "must be a list, empty when there is no device".to_owned());
        };
        let mut ids = Vec::new();
        for device in devices {
            let id = device.get("id").and_then(Json::int);
            if id.is_none() || device.get("name").and_then(Json::text).is_none() {
                self.report.error(rule, || format!("entry without a whole id and a name: {device:?}"));
            } else if device.get("totalGlobalMem").and_then(Json::int).is_none() {
                self.report
                    .warning("top.deviceProperties.mem", || format!("device {id:?} has no totalGlobalMem"));
            }
            if ids.contains(&id) {
                self.report.error(rule, || format!("device id {id:?} occurs twice"));
            }
            ids.push(id);
        }
    }

    fn distributed(&mut self, info: &Json<'_>) {
        let world = info.get("world_size").is_none_or(|size| size.int().is_some());
        if info.get("rank").and_then(Json::int).is_none() || !world {
            let place = || format!("needs a whole rank and world_size: {info:?}");
            self.report.error("top.distributedInfo", place);
        } else if !self.shows_rank {
            let place =
                || "Holistic Trace Analysis looks for \"rank\": and white space before the number".to_owned();
            self.report.error("top.distributedInfo.rank-text", place);
        }
    }
}

/// Whether `"rank":\s+\d` is somewhere.
pub(super) fn shows_rank(text: &[u8]) -> bool {
    const KEY: &[u8] = b"\"rank\":";
    text.windows(KEY.len()).enumerate().filter(|(_, window)| *window == KEY).any(|(at, key)| {
        let rest = &text[at + key.len()..];
        let number = rest.trim_ascii_start();
        number.len() < rest.len() && number.first().is_some_and(u8::is_ascii_digit)
    })
}
