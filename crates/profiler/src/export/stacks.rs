//! Stacks as text: in traces, and as folded lines for flame graphs.

use super::json::quoted;
use crate::stack::Frame;

/// A stack among an event's arguments, with a comma before: torch's `Call stack`, one text with
/// semicolons, and `stack`, a list. Both have the innermost frame first.
pub(super) fn arguments(stack: &[Frame]) -> String {
    let texts: Vec<String> = stack.iter().map(Frame::to_string).collect();
    let joined = texts.iter().map(|text| text.replace(';', "_")).collect::<Vec<_>>().join(";");
    let list = texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    format!(",\"Call stack\":{},\"stack\":[{list}]", quoted(&joined))
}
