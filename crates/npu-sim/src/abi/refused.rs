//! Functions that are there to be found, and refuse.
#![allow(non_snake_case, reason = "the names are those of C")]

use crate::error::{call, fail};
use cresset_acl::code;
use cresset_acl::types::*;
use cresset_acl::{refused_functions, undeclared_functions};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// What a function gives that does not do what it is asked for.
trait Refusal {
    fn refusal(code: Status) -> Self;
}

impl Refusal for i32 {
    fn refusal(code: Status) -> i32 {
        code
    }
}

impl Refusal for u64 {
    fn refusal(_code: Status) -> u64 {
        0
    }
}

impl Refusal for usize {
    fn refusal(_code: Status) -> usize {
        0
    }
}

impl Refusal for () {
    fn refusal(_code: Status) {}
}

impl<T> Refusal for *mut T {
    fn refusal(_code: Status) -> *mut T {
        std::ptr::null_mut()
    }
}

fn refuse<R: Refusal>(name: &'static str) -> R {
    // What was never made can be ended: clients that clean up after a refusal must not fail again.
    if name.contains("Destroy") {
        return R::refusal(call(name, || Ok(())));
    }
    let code = call(name, || {
        static TOLD: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        // Many clients pass over what these functions return, so it is said where people see it.
        if TOLD.lock().insert(name) {
            eprintln!("cresset-npu-sim: {name} is not simulated");
        }
        fail!(code::API_NOT_SUPPORT, "not simulated")
    });
    R::refusal(code)
}

macro_rules! refuse {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {$(
        #[doc = concat!("Refuses: `", stringify!($name), "` is not simulated.")]
        ///
        /// # Safety
        /// None: the arguments are not looked at.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, unused_variables, reason = "as many as the function has")]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> $result {
            refuse(stringify!($name))
        }
    )*};
}

refused_functions!(refuse);
undeclared_functions!(refuse);
