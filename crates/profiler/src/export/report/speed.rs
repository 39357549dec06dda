//! How fast operators were: what they computed and moved, and how long that took.

use crate::pack::{Input, TensorInput};
use crate::trace::{Event, Trace};
use cresset_dispatch::Device;
use std::collections::HashMap;

/// One operator on one device, all its calls together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Speed {
    pub(super) name: String,
    pub(super) device: String,
    pub(super) count: u64,
    /// Nanoseconds: of kernels on a device, of the call itself on the host.
    pub(super) time: u64,
    pub(super) flops: u64,
    /// Bytes of the tensors it was given, and of memory it took. Results are known with
    /// `profile_memory` only, so this is what was moved at least.
    pub(super) bytes: u64,
}

/// Operators that only look at memory in another way, or take it without touching it.
const WITHOUT_WORK: [&str; 15] = [
    "aten::as_strided",
    "aten::view",
    "aten::_reshape_alias",
    "aten::_unsafe_view",
    "aten::expand",
    "aten::detach",
    "aten::detach_",
    "aten::alias",
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::select",
    "aten::slice",
    "aten::to",
    "aten::unsqueeze",
];

/// Operators that read as many elements of the first tensor as they give, not all of it.
const READS_PART: [&str; 4] = ["aten::index_select", "aten::index", "aten::gather", "aten::embedding"];

/// The operators that did work of their own, the longest first.
pub(super) fn speeds(trace: &Trace) -> Vec<Speed> {
    let mut taken: HashMap<usize, u64> = HashMap::new();
    for event in &trace.memory.events {
        if let (Some(at), Ok(bytes)) = (event.event, u64::try_from(event.report.bytes)) {
            *taken.entry(at).or_default() += bytes;
        }
    }
    let mut known: HashMap<(&str, Device), usize> = HashMap::new();
    let mut speeds: Vec<Speed> = Vec::new();
    for event in trace.events().filter(does_work) {
        let at = *known.entry((event.name(), event.device())).or_insert_with(|| {
            let device = event.device().to_string();
            speeds.push(Speed { name: event.name().to_owned(), device, ..Speed::default() });
            speeds.len() - 1
        });
        let speed = &mut speeds[at];
        speed.count += 1;
        speed.flops += event.flops();
        let taken = taken.get(&event.index()).copied().unwrap_or(0);
        speed.bytes += taken + if READS_PART.contains(&event.name()) { taken } else { given(&event) };
        speed.time += if event.device().is_cpu() { event.self_time() } else { event.self_device_time() };
    }
    speeds.retain(|speed| speed.time > 0 && (speed.flops > 0 || speed.bytes > 0));
    speeds.sort_by_key(|speed| std::cmp::Reverse(speed.time));
    speeds
}

fn does_work(event: &Event<'_>) -> bool {
    event.name().starts_with("aten::")
        && !WITHOUT_WORK.contains(&event.name())
        && (event.flops() > 0 || event.children().all(|child| !child.is_operator()))
}

/// Bytes of the tensors an operator was given.
fn given(event: &Event<'_>) -> u64 {
    let bytes = |input: &Input| match input {
        Input::Tensor(tensor) => bytes_of(tensor),
        Input::Tensors(list) => list.iter().map(bytes_of).sum(),
        _ => 0,
    };
    event.inputs().map_or(0, |inputs| inputs.iter().map(bytes).sum())
}

/// Bytes a tensor really has: an expanded dimension shows the same ones again.
fn bytes_of(tensor: &TensorInput) -> u64 {
    let distinct = |(&size, &stride): (&u64, &u64)| if stride == 0 { size.min(1) } else { size };
    let elements: u64 = tensor.shape.iter().zip(&tensor.strides).map(distinct).product();
    elements.saturating_mul(tensor.element_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expanded_tensor_is_as_large_as_its_memory() {
        let tensor = |shape: &[u64], strides: &[u64], dtype: &str| {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            bytes_of(&TensorInput { shape, strides, dtype: dtype.to_owned(), identity: None })
        };
        assert_eq!(tensor(&[2, 3], &[3, 1], "f32"), 24);
        assert_eq!(tensor(&[100, 3], &[0, 1], "f16"), 6);
        assert_eq!(tensor(&[], &[], "f64"), 8);
        assert_eq!(tensor(&[0, 3], &[3, 1], "i64"), 0);
    }
}
