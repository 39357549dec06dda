//! Failures: a code for the caller, and the text that `aclGetRecentErrMsg` gives.

use crate::{
    calls,
    fault::{self, Injected},
};
use cresset_acl::code;
use cresset_acl::types::{Status, c_char};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call returns instead of success, and why.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Status,
    pub(crate) message: String,
}

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: Status, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// The same failure, told by `who`.
    pub(crate) fn of(self, who: &str) -> Failure {
        Failure { message: format!("{who}: {}", self.message), ..self }
    }
}

/// `fail!(code, "text {value}")`: a failure as an early return.
macro_rules! fail {
    ($code:expr, $($text:tt)*) => {
        return Err($crate::error::Failure::new($code, format!($($text)*)))
    };
}
pub(crate) use fail;

thread_local! {
    static PENDING: RefCell<Option<CString>> = const { RefCell::new(None) };
    static SHOWN: RefCell<Option<CString>> = const { RefCell::new(None) };
    static LAST: Cell<Status> = const { Cell::new(code::SUCCESS) };
}

/// Runs the body of the C function `name`; its failure becomes a code and a text.
pub(crate) fn call(name: &str, body: impl FnOnce() -> Result) -> Status {
    call_or(code::RT_INTERNAL_ERROR, name, body)
}

/// As [`call`], with the code for a panic.
pub(crate) fn call_or(panic: Status, name: &str, body: impl FnOnce() -> Result) -> Status {
    guarded(panic, name, fault::injected(name), &mut once(body))
}

/// As [`call_or`], without injected faults.
pub(crate) fn call_unharmed(panic: Status, name: &str, body: impl FnOnce() -> Result) -> Status {
    guarded(panic, name, None, &mut once(body))
}

/// A body by reference, so that what surrounds it is compiled once for all functions.
fn once(body: impl FnOnce() -> Result) -> impl FnMut() -> Result {
    let mut body = Some(body);
    move || body.take().map_or(Ok(()), |body| body())
}

fn guarded(panic: Status, name: &str, fault: Option<Injected>, body: &mut dyn FnMut() -> Result) -> Status {
    calls::count(name);
    let body = || match fault {
        Some(fault) => fault.around(body),
        None => body(),
    };
    match contain(panic, body) {
        Ok(()) => code::SUCCESS,
        // Both functions of an operator tell failures under its name.
        Err(failure) => report(failure.of(name.strip_suffix("GetWorkspaceSize").unwrap_or(name))),
    }
}

/// Runs `body`; a panic in it becomes a failure with `code`, for it must not reach C.
pub(crate) fn contain<T>(code: Status, body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Failure::new(code, format!("the simulator panicked: {}", text(&*panic)))))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Keeps the text for this thread's next `aclGetRecentErrMsg`, and gives the code.
pub(crate) fn report(failure: Failure) -> Status {
    let text = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
    PENDING.set(Some(text));
    LAST.set(failure.code);
    failure.code
}

/// The code of this thread's last failure.
pub(crate) fn last() -> Status {
    LAST.get()
}

/// The same, which is forgotten then.
pub(crate) fn take_last() -> Status {
    LAST.replace(code::SUCCESS)
}

/// This thread's last text, once; valid until the next call. Null if there is none.
pub(crate) fn recent() -> *const c_char {
    SHOWN.set(PENDING.take());
    SHOWN.with_borrow(|text| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr()))
}
