//! Operators, scopes and frames of the host.

use super::event::Event;
use super::{Checker, SLACK, Spot, Track, short};
use crate::read::json::Json;
use std::collections::HashMap;

const LISTS: [&str; 4] = ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"];

/// An operator or a scope.
pub(super) fn call(event: &Event<'_>, checker: &mut Checker) {
    identity(event, checker);
    let report = &mut checker.report;
    if event.int("Record function id").is_none() {
        report.error("op.record-function-id", || format!("{}: Record function id missing", event.place()));
    }
    if event.int("Ev Idx").is_none() {
        report.error("op.ev-idx", || format!("{}: Ev Idx missing", event.place()));
    }
    let (sequence, thread) = (event.arg("Sequence number"), event.arg("Fwd thread id"));
    let natural = |value: Option<&Json<'_>>| value.is_none_or(|v| v.int().is_some_and(|number| number >= 0));
    if sequence.is_some() != thread.is_some() || !natural(sequence) || !natural(thread) {
        let place =
            || format!("{}: Sequence number and Fwd thread id come together, from 0 on", event.place());
        report.error("op.sequence", place);
    }
    for key in ["Call stack", "Module Hierarchy", "Backend", "CallFrom"] {
        if event.arg(key).is_some_and(|value| value.text().is_none()) {
            report.error("op.string-arg", || format!("{}: {key} must be text", event.place()));
        }
    }
    checker.has_shapes |= event.category == Some("cpu_op") && event.arg("Input Dims").is_some();
    inputs(event, checker);
}

fn identity(event: &Event<'_>, checker: &mut Checker) {
    match event.natural("External id").filter(|&id| id > 0) {
        None => {
            let place = || format!("{}: External id is {:?}", event.place(), event.arg("External id"));
            checker.report.error("op.external-id", place);
        }
        // The slice comes next.
        Some(id) => checker.external.push((id, checker.slices.len() as u32)),
    }
}

fn inputs(event: &Event<'_>, checker: &mut Checker) {
    let report = &mut checker.report;
    let given = LISTS.map(|key| event.arg(key));
    if given.iter().all(Option::is_none) {
        return;
    }
    let lists: Vec<&[Json<'_>]> = given.iter().flatten().filter_map(|value| value.list()).collect();
    let [dims, types, strides, concrete] = lists[..] else {
        return report.error("op.inputs", || format!("{}: all four input lists, or none", event.place()));
    };
    if [types, strides, concrete].iter().any(|list| list.len() != dims.len()) {
        return report.error("op.inputs", || format!("{}: input lists of different lengths", event.place()));
    }
    for i in 0..dims.len() {
        let (Some(kind), Some(_)) = (types[i].text(), concrete[i].text()) else {
            report.error("op.inputs.type", || {
                format!("{}: types and concrete inputs are texts", event.place())
            });
            continue;
        };
        let (dims, strides) = (dims[i].list(), strides[i].list());
        let fits = |list: Option<&[Json<'_>]>| match list {
            None => false,
            Some(list) if kind == "TensorList" => list.iter().all(|one| one.list().is_some_and(all_whole)),
            Some(list) => all_whole(list),
        };
        let length = |list: Option<&[Json<'_>]>| list.map_or(0, <[_]>::len);
        let is_plain = ["Scalar", "ScalarList", ""].contains(&kind);
        if !fits(dims)
            || !fits(strides)
            || is_plain && length(dims) + length(strides) > 0
            || kind == "TensorList" && length(dims) != length(strides)
        {
            let place = || format!("{}: dims {dims:?} and strides {strides:?} of a {kind:?}", event.place());
            report.error("op.inputs.dims", place);
        }
    }
}

fn all_whole(list: &[Json<'_>]) -> bool {
    list.iter().all(|value| value.int().is_some())
}

/// A frame of a stack, as Python has them.
pub(super) struct Frame {
    spot: Spot,
    name: u32,
    id: i64,
    parent: Option<i64>,
    track: Track,
    start: f64,
    end: f64,
}

impl Frame {
    /// What is needed of a frame, after what can be said of it alone.
    pub(super) fn new(event: &Event<'_>, checker: &mut Checker) -> Option<Frame> {
        let report = &mut checker.report;
        if event.int("Ev Idx").is_none() {
            report.error("python.ev-idx", || format!("{}: Ev Idx missing", event.place()));
        }
        if event.name == "Python GC" {
            return None;
        }
        let Some(id) = event.natural("Python id") else {
            report.error("python.id", || format!("{}: Python id missing", event.place()));
            return None;
        };
        if let Some(module) = event.name.strip_prefix("nn.Module: ") {
            let numbered = module.rsplit_once('_').is_some_and(|(class, number)| {
                !class.is_empty()
                    && !class.contains(char::is_whitespace)
                    && !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
            });
            if !numbered {
                report.error("python.module-name", || format!("{}: not nn.Module: Class_0", event.place()));
            }
            if event.int("Python module id").is_none() {
                report.error("python.module-id", || format!("{}: Python module id missing", event.place()));
            }
        }
        Some(Frame {
            spot: event.spot,
            name: checker.texts.number(event.name),
            id,
            parent: event.natural("Python parent id"),
            track: event.track,
            start: event.time,
            end: event.time + event.duration,
        })
    }
}

impl Checker {
    /// Frames have numbers of their own, and lie in their parents.
    pub(super) fn frames(&mut self) {
        let mut by_id: HashMap<i64, &Frame> = HashMap::new();
        for frame in &self.frames {
            if by_id.insert(frame.id, frame).is_some() {
                self.report.error("python.id.unique", || {
                    format!("{}: Python id {} is used twice", frame.spot, frame.id)
                });
            }
        }
        for frame in &self.frames {
            let Some(id) = frame.parent else { continue };
            let name = format!("{} {:?}", frame.spot, short(self.texts.get(frame.name)));
            match by_id.get(&id) {
                None => self.report.error("python.parent", || format!("{name}: no frame has Python id {id}")),
                Some(parent) => {
                    let outside = frame.start < parent.start - SLACK || frame.end > parent.end + SLACK;
                    if parent.track == frame.track && outside {
                        self.report
                            .error("python.parent-encloses", || format!("{name} is not inside its parent"));
                    }
                }
            }
        }
    }
}
