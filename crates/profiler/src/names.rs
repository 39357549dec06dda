//! Names and numbers that traces and tables share with torch, all in one place.

use crate::pack::Input;
use crate::trace::EventKind;
use cresset_dispatch::activity::Direction;
use cresset_dispatch::{Device, Key};
use std::borrow::Cow;

/// Stands before the node's name while the engine works on it.
pub(crate) const EVALUATE: &str = "autograd::engine::evaluate_function: ";
/// The end of a path to a leaf: its gradient is put down.
pub(crate) const ACCUMULATE: &str = "torch::autograd::AccumulateGrad";
/// Scopes of optimizers begin like this.
pub(crate) const OPTIMIZER_STEP: &str = "Optimizer.step#";
/// Steps are named by this and their number.
pub(crate) const STEP: &str = "ProfilerStep#";
/// All steps together, in tables.
pub(crate) const STEPS: &str = "ProfilerStep*";
/// Calls of modules are named by this, the class and a number.
pub(crate) const MODULE: &str = "nn.Module: ";
/// What several processes do together.
pub(crate) const COMMUNICATION: &str = "record_param_comms";
/// Memory taken or given back.
pub(crate) const MEMORY: &str = "[memory]";
/// A request for memory that failed.
pub(crate) const OUT_OF_MEMORY: &str = "[OutOfMemory]";
/// What runs a kernel on the host.
pub(crate) const HOST_RUNTIME: &str = "dispatch_kernel";
/// Flows from forward to backward.
pub(crate) const FORWARD_BACKWARD: &str = "fwdbwd";
/// Flows from a launch to the work it launched.
pub(crate) const LAUNCH_TO_WORK: &str = "ac2g";
/// Operators that tables leave out, as torch's do.
pub(crate) const HIDDEN: [&str; 3] = ["aten::is_leaf", "aten::output_nr", "aten::_version"];

/// Process id of the track that shows the session itself.
pub(crate) const SPANS_PROCESS: u32 = 0x2000_0000;
/// Thread id of steps that could not be nested with the program's own scopes.
pub(crate) const STEPS_THREAD: u32 = 0x2000_0001;
/// Added to a host process id that equals a device's number, as small ones in containers do.
pub(crate) const PROCESS_OFFSET: u32 = 1 << 22;
/// Where devices sort among processes.
pub(crate) const DEVICE_SORT: u32 = 5_000_000;
/// Operation counts are added to this by kineto; the span's name is what readers look for.
pub(crate) const SPAN: &str = "PyTorch Profiler (0)";

/// The trace category of a host event.
pub(crate) fn category(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Operator | EventKind::Evaluate | EventKind::Backward => "cpu_op",
        EventKind::Scope | EventKind::Step => "user_annotation",
        EventKind::Module => "python_function",
        EventKind::Launch => "privateuse1_runtime",
    }
}

/// c10's number of a kind of recorded call.
pub(crate) fn scope(kind: EventKind) -> u8 {
    match kind {
        EventKind::Backward => 1,
        EventKind::Scope | EventKind::Step => 7,
        EventKind::Operator | EventKind::Evaluate | EventKind::Module | EventKind::Launch => 0,
    }
}

/// A backend's name in tables and traces.
pub(crate) fn device_type(key: Key) -> Cow<'static, str> {
    match key {
        Key::CPU => "CPU".into(),
        Key::META => "META".into(),
        key => key.name().to_uppercase().into(),
    }
}

/// c10's number of a device type: 0 is the host, 20 whatever plugs in from outside.
pub(crate) fn device_number(device: Device) -> u32 {
    match device.key {
        Key::CPU => 0,
        Key::META => 8,
        _ => 20,
    }
}

/// c10's index of a device, −1 for the host.
pub(crate) fn device_index(device: Device) -> i32 {
    if device.is_cpu() { -1 } else { i32::from(device.index) }
}

/// The C++ name of an element type.
pub(crate) fn dtype(short: &str) -> &str {
    match short {
        "f32" => "float",
        "f64" => "double",
        "f16" => "c10::Half",
        "bf16" => "c10::BFloat16",
        "i64" => "long int",
        "i32" => "int",
        "i16" => "short int",
        "i8" => "signed char",
        "u8" => "unsigned char",
        other => other,
    }
}

/// What torch calls an element type where processes exchange elements.
pub(crate) fn scalar_type(short: &str) -> &str {
    match short {
        "f32" => "Float",
        "f64" => "Double",
        "f16" => "Half",
        "bf16" => "BFloat16",
        "i64" => "Long",
        "i32" => "Int",
        "i16" => "Short",
        "i8" => "Char",
        "u8" => "Byte",
        "bool" => "Bool",
        other => other,
    }
}

/// What torch calls the type of an argument.
pub(crate) fn input_type(input: &Input) -> &str {
    match input {
        Input::Tensor(tensor) => dtype(&tensor.dtype),
        Input::Tensors(_) => "TensorList",
        Input::Int(_) | Input::Float(_) | Input::Bool(_) => "Scalar",
        Input::Ints(_) | Input::Floats(_) | Input::Bools(_) => "ScalarList",
        Input::Text(_) | Input::None => "",
    }
}

/// The name of a copy.
pub(crate) fn copy(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "Memcpy HtoD (Pageable -> Device)",
        Direction::DeviceToHost => "Memcpy DtoH (Device -> Pageable)",
        Direction::DeviceToDevice => "Memcpy DtoD (Device -> Device)",
        Direction::HostToHost => "Memcpy HtoH (Pageable -> Pageable)",
    }
}

/// The name of a set.
pub(crate) const SET: &str = "Memset (Device)";

/// The value of a scalar or of a list of scalars, as torch writes it; else nothing.
pub(crate) fn concrete(input: &Input) -> String {
    fn list<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
        format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", "))
    }
    let truth = |value: &bool| if *value { "True" } else { "False" }.to_owned();
    match input {
        Input::Int(value) => value.to_string(),
        Input::Float(value) => float(*value),
        Input::Bool(value) => truth(value),
        Input::Ints(values) => list(values, i64::to_string),
        Input::Floats(values) => list(values, |value| float(*value)),
        Input::Bools(values) => list(values, truth),
        Input::Tensor(_) | Input::Tensors(_) | Input::Text(_) | Input::None => String::new(),
    }
}

/// C's `%.17g`, and a dot after whole numbers: `1.`, `-0.01`, `1.0000000000000001e-05`.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let text = format!("{value:.16e}");
    let (digits, exponent) = text.split_once('e').expect("exponent form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if !(-4..17).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(digits), exponent.abs());
    }
    let fixed = format!("{value:.*}", usize::try_from(16 - exponent).unwrap_or(0));
    let fixed = if fixed.contains('.') { trim(&fixed) } else { fixed };
    if fixed.contains('.') { fixed } else { fixed + "." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_look_as_torch_prints_them() {
        let cases = [
            (1.0, "1."),
            (0.0, "0."),
            (-0.01, "-0.01"),
            (1e-5, "1.0000000000000001e-05"),
            (1e20, "1e+20"),
            (0.1, "0.10000000000000001"),
            (100.0, "100."),
            (1e16, "10000000000000000."),
            (0.5, "0.5"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn concrete_inputs_are_values_not_tensors() {
        assert_eq!(concrete(&Input::Ints(vec![16, 32])), "[16, 32]");
        assert_eq!(concrete(&Input::Floats(vec![2.0, 2.0])), "[2., 2.]");
        assert_eq!(concrete(&Input::Bool(false)), "False");
        assert_eq!(concrete(&Input::Text("sum".to_owned())), "");
        assert_eq!(input_type(&Input::Bools(vec![])), "ScalarList");
    }
}
