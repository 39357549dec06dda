//! Operators: both C functions of every line of the table, each led to one function of `ops`.

use super::put;
use crate::context::Context;
use crate::error::{Result, call_or, call_unharmed, fail};
use crate::memory::{Memory, Span};
use crate::objects::{
    BOOL_ARRAYS, EXECUTORS, FLOAT_ARRAYS, INT_ARRAYS, SCALAR_LISTS, SCALARS, TENSOR_LISTS, TENSORS, Tensor,
};
use crate::ops;
use crate::plan::{self, Handed, Make, Plan, Planned};
use crate::trace::Launch;
use crate::{fault, handle::Handles, marker};
use cresset_acl::class::{self, Class};
use cresset_acl::types::{Executor, Status, Stream, c_char, c_void};
use cresset_acl::{code, foreign_operators, operators};
use cresset_kernels::Scalar;
use std::ffi::CStr;

/// How a C argument becomes a value that the operators' functions take.
trait Argument: Class {
    type Value;

    /// The same argument, good for later: a text of the client may be gone by then.
    ///
    /// # Safety
    /// A text is null or ended by a zero byte.
    unsafe fn keep(raw: Self::Raw) -> Self::Raw {
        raw
    }

    /// The value; tensors are noted in `handed`.
    ///
    /// # Safety
    /// A text is null or ended by a zero byte; all else is checked.
    unsafe fn take(raw: Self::Raw, name: &str, handed: &mut Handed) -> Result<Self::Value>;
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
    ($($class:ident: $value:ty, |$raw:ident, $name:ident, $handed:ident| $take:expr;)*) => {$(
        impl Argument for class::$class {
            type Value = $value;

            #[allow(unused_variables, reason = "most need no name, or note no tensor")]
            unsafe fn take($raw: Self::Raw, $name: &str, $handed: &mut Handed) -> Result<$value> {
                $take
            }
        }
    )*};
}

arguments! {
    Tensor: Tensor, |raw, name, handed| tensor(raw as usize, name, handed);
    OptionalTensor: Option<Tensor>, |raw, name, handed| optional(raw, || tensor(raw as usize, name, handed));
    Scalar: Scalar, |raw, name, handed| find(&SCALARS, raw as usize, name);
    OptionalScalar: Option<Scalar>, |raw, name, handed| optional(raw, || find(&SCALARS, raw as usize, name));
    IntArray: Vec<i64>, |raw, name, handed| find(&INT_ARRAYS, raw as usize, name);
    OptionalIntArray: Option<Vec<i64>>, |raw, name, handed| {
        optional(raw, || find(&INT_ARRAYS, raw as usize, name))
    };
    BoolArray: Vec<bool>, |raw, name, handed| find(&BOOL_ARRAYS, raw as usize, name);
    OptionalBoolArray: Option<Vec<bool>>, |raw, name, handed| {
        optional(raw, || find(&BOOL_ARRAYS, raw as usize, name))
    };
    FloatArray: Vec<f32>, |raw, name, handed| find(&FLOAT_ARRAYS, raw as usize, name);
    TensorList: Vec<Tensor>, |raw, name, handed| {
        let tensors = find(&TENSOR_LISTS, raw as usize, name)?;
        tensors.into_iter().map(|handle| tensor(handle, name, handed)).collect()
    };
    OptionalTensorList: Option<Vec<Tensor>>, |raw, name, handed| optional(raw, || {
        let tensors = find(&TENSOR_LISTS, raw as usize, name)?;
        tensors.into_iter().map(|handle| tensor(handle, name, handed)).collect()
    });
    ScalarList: Vec<Scalar>, |raw, name, handed| {
        let scalars = find(&SCALAR_LISTS, raw as usize, name)?;
        scalars.into_iter().map(|handle| find(&SCALARS, handle, name)).collect()
    };
    DataType: i32, |raw, name, handed| Ok(raw);
    bool: bool, |raw, name, handed| Ok(raw);
    f32: f32, |raw, name, handed| Ok(raw);
    f64: f64, |raw, name, handed| Ok(raw);
    i8: i8, |raw, name, handed| Ok(raw);
    i32: i32, |raw, name, handed| Ok(raw);
    i64: i64, |raw, name, handed| Ok(raw);
    u64: u64, |raw, name, handed| Ok(raw);
}

impl Argument for class::Text {
    type Value = String;

    unsafe fn keep(raw: *const c_char) -> *const c_char {
        // SAFETY: by the caller's promise.
        if raw.is_null() { raw } else { marker::keep(unsafe { CStr::from_ptr(raw) }).as_ptr() }
    }

    unsafe fn take(raw: *const c_char, name: &str, _handed: &mut Handed) -> Result<String> {
        // SAFETY: by the caller's promise.
        unsafe { text(raw, name) }
    }
}

impl Argument for class::OptionalText {
    type Value = Option<String>;

    unsafe fn keep(raw: *const c_char) -> *const c_char {
        // SAFETY: by the caller's promise.
        unsafe { <class::Text as Argument>::keep(raw) }
    }

    unsafe fn take(raw: *const c_char, name: &str, _handed: &mut Handed) -> Result<Option<String>> {
        // SAFETY: by the caller's promise.
        optional(raw, || unsafe { text(raw, name) })
    }
}

fn tensor(handle: usize, name: &str, handed: &mut Handed) -> Result<Tensor> {
    let tensor = find(&TENSORS, handle, name)?;
    handed.push(handle);
    Ok(tensor.known_as(handle))
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

                const SYMBOL: &str = stringify!($symbol);
                const PLAN: &str = concat!(stringify!($symbol), "GetWorkspaceSize");
                const NAME: &CStr = text_of(concat!(stringify!($symbol), "\0"));

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
                    // SAFETY: by the caller's promise.
                    let given = Given(unsafe { ($(<class::$class as Argument>::keep($argument),)*) });
                    let make: Make = Box::new(move |handed| {
                        let ($($argument,)*) = given.get();
                        $(
                            let name = stringify!($argument);
                            let $argument =
                                // SAFETY: texts were kept for ever.
                                unsafe { <class::$class as Argument>::take($argument, name, handed)? };
                        )*
                        ops::$name($($argument),*)
                    });
                    // SAFETY: by the caller's promise.
                    unsafe { prepare(SYMBOL, PLAN, make, size, executor) }
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
                    launch(SYMBOL, NAME, workspace, executor as usize, stream as usize)
                }
            }
        )*

        fn find_operator(name: &str) -> Option<*const c_void> {
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

/// Operators that this project's backend calls.
mod ours {
    use super::*;
    operators!(export);

    pub(super) fn symbol(name: &str) -> Option<*const c_void> {
        find_operator(name)
    }
}

/// Operators that other programs call.
mod foreign {
    use super::*;
    foreign_operators!(export);

    pub(super) fn symbol(name: &str) -> Option<*const c_void> {
        find_operator(name)
    }
}

pub use foreign::*;
pub use ours::*;

/// The address of an operator's function.
pub(super) fn symbol(name: &str) -> Option<*const c_void> {
    ours::symbol(name).or_else(|| foreign::symbol(name))
}

/// What the first function of an operator was given: handles and numbers.
#[derive(Clone, Copy)]
struct Given<T>(T);

impl<T: Copy> Given<T> {
    fn get(&self) -> T {
        self.0
    }
}

// SAFETY: handles are looked up and never followed, so they may go to any thread; texts are kept for ever.
unsafe impl<T> Send for Given<T> {}

/// The first function of any operator.
///
/// # Safety
/// `size` and `executor` are null or may be written.
unsafe fn prepare(
    operator: &'static str,
    function: &'static str,
    make: Make,
    size: *mut u64,
    executor: *mut *mut Executor,
) -> Status {
    call_or(code::NN_INNER, function, || {
        if size.is_null() || executor.is_null() {
            fail!(code::NN_PARAM_NULLPTR, "the place for the workspace size or the executor is null");
        }
        if let Err(failure) = Context::current() {
            fail!(code::NN_RUNTIME_ERROR, "{}", failure.message);
        }
        let mut handed = Handed::new();
        let plan = make(&mut handed)?;
        let workspace = plan.workspace() as u64;
        let handle = EXECUTORS.insert(plan::Executor::new(operator, handed, plan, make));
        // SAFETY: not null, so the caller vouches for them.
        unsafe { put(size, workspace).and(put(executor, handle as *mut Executor)) }
    })
}

/// The second function of any operator. Uses the executor up, also when it fails, unless it runs again.
fn launch(
    operator: &'static str,
    function: &'static CStr,
    workspace: Span,
    executor: usize,
    stream: usize,
) -> Status {
    call_unharmed(code::NN_INNER, operator, || {
        let plan = take(operator, executor)?;
        let stream = Context::current()?.stream(stream)?;
        let workspace = check(&plan, workspace, &stream.device.memory)?;
        let fault = fault::injected(operator);
        let launch = Launch::new(function);
        let (target, correlation) = (stream.clone(), launch.correlation);
        stream.push(Box::new(move || {
            let run = || plan.run(&target, correlation, workspace);
            let result = match fault {
                Some(fault) => fault.around(run),
                None => run(),
            };
            result.map_err(|failure| failure.of(operator))
        }));
        Ok(())
    })
}

fn take(operator: &str, handle: usize) -> Planned {
    if handle == 0 {
        fail!(code::NN_PARAM_NULLPTR, "the executor is null");
    }
    let Some(executor) = EXECUTORS.get(handle) else {
        fail!(code::NN_PARAM_INVALID, "the executor was used or destroyed before");
    };
    if executor.repeats() {
        expect_fit(operator, &executor)?;
        return executor.plan_again();
    }
    drop(executor);
    let Some(executor) = EXECUTORS.remove(handle).and_then(std::sync::Arc::into_inner) else {
        fail!(code::NN_PARAM_INVALID, "the executor was used or destroyed before");
    };
    expect_fit(operator, &executor)?;
    executor.into_plan()
}

/// Fails unless an executor was made for `operator`, of tensors that are all still there.
fn expect_fit(operator: &str, executor: &plan::Executor) -> Result {
    if executor.operator != operator {
        fail!(code::NN_PARAM_INVALID, "the executor was made for {}", executor.operator);
    }
    if !executor.tensors.iter().all(|&tensor| TENSORS.holds(tensor)) {
        fail!(code::NN_PARAM_INVALID, "a tensor was destroyed after the operator was planned");
    }
    Ok(())
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
