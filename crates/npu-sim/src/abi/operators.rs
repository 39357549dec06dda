//! Operators: both C functions of every line of the table, each led to one function of `ops`.

use super::put;
use crate::context::Context;
use crate::error::{Result, call_or, fail};
use crate::memory::{Memory, Span};
use crate::objects::{BOOL_ARRAYS, EXECUTORS, INT_ARRAYS, SCALARS, TENSOR_LISTS, TENSORS, Tensor};
use crate::ops;
use crate::plan::{self, Plan, Planned};
use crate::trace::Launch;
use crate::{fault, handle::Handles};
use cresset_acl::class::{self, Class};
use cresset_acl::types::{Executor, Status, Stream, c_char, c_void};
use cresset_acl::{code, operators};
use cresset_kernels::Scalar;
use std::ffi::CStr;

/// How a C argument becomes a value that the operators' functions take.
trait Argument: Class {
    type Value;

    /// # Safety
    /// A text is null or ended by a zero byte; all else is checked.
    unsafe fn take(raw: Self::Raw, name: &str) -> Result<Self::Value>;
}

fn find<T: Clone>(handles: &Handles<T>, handle: usize, name: &str) -> Result<T> {
    if handle == 0 {
        fail!(code::NN_PARAM_NULLPTR, "{name} is null");
    }
    match handles.get(handle) {
        Some(value) => Ok((*value).clone()),
        None => fail!(code::NN_PARAM_INVALID, "{name} was destroyed before, or is something else"),
    }
}

macro_rules! arguments {
    ($($class:ident: $value:ty, |$raw:ident, $name:ident| $take:expr;)*) => {$(
        impl Argument for class::$class {
            type Value = $value;

            unsafe fn take($raw: Self::Raw, $name: &str) -> Result<$value> {
                $take
            }
        }
    )*};
}

arguments! {
    Tensor: Tensor, |raw, name| find(&TENSORS, raw as usize, name);
    OptionalTensor: Option<Tensor>, |raw, name| optional(raw, || find(&TENSORS, raw as usize, name));
    Scalar: Scalar, |raw, name| find(&SCALARS, raw as usize, name);
    OptionalScalar: Option<Scalar>, |raw, name| optional(raw, || find(&SCALARS, raw as usize, name));
    IntArray: Vec<i64>, |raw, name| find(&INT_ARRAYS, raw as usize, name);
    OptionalIntArray: Option<Vec<i64>>, |raw, name| optional(raw, || find(&INT_ARRAYS, raw as usize, name));
    BoolArray: Vec<bool>, |raw, name| find(&BOOL_ARRAYS, raw as usize, name);
    TensorList: Vec<Tensor>, |raw, name| {
        let tensors = find(&TENSOR_LISTS, raw as usize, name)?;
        tensors.into_iter().map(|tensor| find(&TENSORS, tensor, name)).collect()
    };
    // SAFETY: by the caller's promise.
    Text: String, |raw, name| unsafe { text(raw, name) };
    DataType: i32, |raw, _name| Ok(raw);
    bool: bool, |raw, _name| Ok(raw);
    f32: f32, |raw, _name| Ok(raw);
    f64: f64, |raw, _name| Ok(raw);
    i8: i8, |raw, _name| Ok(raw);
    i32: i32, |raw, _name| Ok(raw);
    i64: i64, |raw, _name| Ok(raw);
    u64: u64, |raw, _name| Ok(raw);
}

fn optional<P, T>(raw: *const P, take: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    if raw.is_null() { Ok(None) } else { take().map(Some) }
}

/// # Safety
/// `start` is null or text ended by a zero byte.
unsafe fn text(start: *const c_char, name: &str) -> Result<String> {
    if start.is_null() {
        fail!(code::NN_PARAM_NULLPTR, "{name} is null");
    }
    // SAFETY: not null, so the caller vouches for it.
    Ok(unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}

/// A name as C wants it.
const fn text_of(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name ends with its only zero byte"),
    }
}

macro_rules! export {
    ($($name:ident = $symbol:ident($($argument:ident: $class:ident),* $(,)?);)*) => {
        $(
            #[doc = concat!("`", stringify!($symbol), "`: its two functions.")]
            pub mod $name {
                use super::*;

                const SYMBOL: &CStr = text_of(concat!(stringify!($symbol), "\0"));

                /// Checks the arguments, and makes an executor of them.
                ///
                /// # Safety
                /// Results are null or may be written; texts are null or end with a zero byte.
                #[unsafe(export_name = concat!(stringify!($symbol), "GetWorkspaceSize"))]
                #[allow(clippy::too_many_arguments, reason = "as many as the operator has")]
                pub unsafe extern "C" fn plan(
                    $($argument: <class::$class as Class>::Raw,)*
                    size: *mut u64,
                    executor: *mut *mut Executor,
                ) -> Status {
                    let make = || {
                        $(
                            let name = stringify!($argument);
                            // SAFETY: by the caller's promise.
                            let $argument = unsafe { <class::$class as Argument>::take($argument, name)? };
                        )*
                        ops::$name($($argument),*)
                    };
                    // SAFETY: by the caller's promise.
                    unsafe { prepare(stringify!($symbol), make, size, executor) }
                }

                /// Lets a stream run what an executor holds.
                ///
                /// # Safety
                /// None: all is checked.
                #[unsafe(export_name = stringify!($symbol))]
                pub unsafe extern "C" fn run(
                    workspace: *mut c_void,
                    size: u64,
                    executor: *mut Executor,
                    stream: Stream,
                ) -> Status {
                    let workspace = Span { start: workspace as usize, bytes: size as usize };
                    launch(stringify!($symbol), SYMBOL, workspace, executor as usize, stream as usize)
                }
            }
        )*

        /// The address of an operator's function.
        pub(super) fn symbol(name: &str) -> Option<*const c_void> {
            match name.strip_suffix("GetWorkspaceSize") {
                Some(operator) => match operator {
                    $(stringify!($symbol) => Some($name::plan as *const c_void),)*
                    _ => None,
                },
                None => match name {
                    $(stringify!($symbol) => Some($name::run as *const c_void),)*
                    _ => None,
                },
            }
        }
    };
}

operators!(export);

/// The first function of any operator.
///
/// # Safety
/// `size` and `executor` are null or may be written.
unsafe fn prepare(
    operator: &'static str,
    make: impl FnOnce() -> Planned,
    size: *mut u64,
    executor: *mut *mut Executor,
) -> Status {
    call_or(code::NN_INNER, operator, || {
        fault::injected(&format!("{operator}GetWorkspaceSize"))?;
        if size.is_null() || executor.is_null() {
            fail!(code::NN_PARAM_NULLPTR, "the place for the workspace size or the executor is null");
        }
        if let Err(failure) = Context::current() {
            fail!(code::NN_RUNTIME_ERROR, "{}", failure.message);
        }
        let plan = make()?;
        let workspace = plan.workspace() as u64;
        let handle = EXECUTORS.insert(plan::Executor::new(operator, plan));
        // SAFETY: not null, so the caller vouches for them.
        unsafe { put(size, workspace).and(put(executor, handle as *mut Executor)) }
    })
}

/// The second function of any operator. Uses the executor up, also when it fails.
fn launch(
    operator: &'static str,
    function: &'static CStr,
    workspace: Span,
    executor: usize,
    stream: usize,
) -> Status {
    call_or(code::NN_INNER, operator, || {
        let plan = take(operator, executor)?;
        let stream = Context::current()?.stream(stream)?;
        let workspace = check(&plan, workspace, &stream.device.memory)?;
        let fault = fault::injected(operator);
        let launch = Launch::new(function);
        let (target, correlation) = (stream.clone(), launch.correlation);
        stream.push(Box::new(move || {
            let result = fault.and_then(|()| plan.run(&target, correlation, workspace));
            result.map_err(|failure| failure.of(operator))
        }));
        Ok(())
    })
}

fn take(operator: &str, handle: usize) -> Planned {
    if handle == 0 {
        fail!(code::NN_PARAM_NULLPTR, "the executor is null");
    }
    let Some(executor) = EXECUTORS.remove(handle).and_then(std::sync::Arc::into_inner) else {
        fail!(code::NN_PARAM_INVALID, "the executor was used or destroyed before");
    };
    executor.into_plan(operator)
}

fn check(plan: &Plan, given: Span, memory: &Memory) -> Result<Option<Span>> {
    let needed = plan.workspace();
    if needed == 0 {
        return Ok(None);
    }
    if given.start == 0 {
        fail!(code::NN_PARAM_NULLPTR, "the workspace of {needed} bytes is missing");
    }
    if given.bytes < needed {
        fail!(code::NN_PARAM_INVALID, "a workspace of {} bytes is less than {needed}", given.bytes);
    }
    let span = Span { bytes: needed, ..given };
    match memory.holds(span) {
        Ok(_) => Ok(Some(span)),
        Err(failure) => {
            fail!(code::NN_PARAM_INVALID, "the workspace is no device memory: {}", failure.message)
        }
    }
}
