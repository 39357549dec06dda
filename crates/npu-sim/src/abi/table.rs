//! The tables against the exports: every function is there, with exactly the type it must have.

use super::{activity, device, memory, objects, operators, stream};
use crate::trace;
use cresset_acl::types::*;
use cresset_acl::{activity_functions, object_functions, runtime_functions};

#[allow(unused_imports, reason = "the functions of each table are spread over these")]
use {activity::*, device::*, memory::*, objects::*, stream::*};

macro_rules! table {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        $(const _: unsafe extern "C" fn($($ty),*) -> $result = $name;)*

        pub(super) fn find(name: &str) -> Option<*const c_void> {
            match name {
                $(stringify!($name) => Some($name as *const c_void),)*
                _ => None,
            }
        }
    };
}

mod runtime {
    use super::*;
    runtime_functions!(table);
}

mod object {
    use super::*;
    object_functions!(table);
}

mod tracing {
    use super::*;
    activity_functions!(table);
}

/// The address of the C function `name`, for programs that embed the device instead of
/// loading the shared library.
pub fn symbol(name: &str) -> Option<*const c_void> {
    trace::embed();
    let extra = || (name == "cressetSimVersion").then_some(cressetSimVersion as *const c_void);
    runtime::find(name)
        .or_else(|| object::find(name))
        .or_else(|| tracing::find(name))
        .or_else(|| operators::symbol(name))
        .or_else(extra)
}
