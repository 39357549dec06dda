//! What two runs of one program computed.

use super::report::{Column, Group, What};
use cresset_trace::Slices;
use serde_json::{Map, Value};

/// Numbers that are this close are the same, and as close for their size.
const TOLERANCE: f64 = 1e-5;

/// The results of both traces, one by one.
pub(super) fn compare(theirs: &Slices, ours: &Slices) -> (Column, Vec<Group>) {
    let (theirs, ours) = (results(theirs), results(ours));
    let mut groups = Vec::new();
    let mut same = 0;
    let only_ours = ours.iter().filter(|(name, _)| !theirs.contains_key(*name));
    for (name, _) in theirs.iter().chain(only_ours) {
        match difference(theirs.get(name), ours.get(name)) {
            None => same += 1,
            Some(example) => groups.push(Group {
                what: What::Result,
                name: name.clone(),
                within: String::new(),
                count: 1,
                example,
            }),
        }
    }
    (Column { name: "results", same, of: same + groups.len() }, groups)
}

fn results(trace: &Slices) -> Map<String, Value> {
    let text = trace.heads.iter().find(|(key, _)| key == "results");
    text.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn difference(theirs: Option<&Value>, ours: Option<&Value>) -> Option<String> {
    let (Some(theirs), Some(ours)) = (theirs, ours) else {
        return Some(format!("only {} it", if theirs.is_some() { "theirs has" } else { "ours has" }));
    };
    for what in ["shape", "dtype"] {
        let (left, right) = (&theirs[what], &ours[what]);
        if left != right {
            return Some(format!("theirs has the {what} {left}, ours {right}"));
        }
    }
    let none = Vec::new();
    let [left, right] = [theirs, ours].map(|result| result["values"].as_array().unwrap_or(&none));
    if left.len() != right.len() {
        return Some(format!("theirs has {} values, ours {}", left.len(), right.len()));
    }
    let apart = left.iter().zip(right).position(|(left, right)| !is_close(left, right))?;
    Some(format!("theirs is {} at element {apart}, ours {}", left[apart], right[apart]))
}

/// Texts stand for what is no number.
fn is_close(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => (left - right).abs() <= TOLERANCE + TOLERANCE * left.abs(),
        _ => left == right,
    }
}
