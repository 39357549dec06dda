//! The tables against the exports: every function is there, with exactly the type it must have.

use super::*;
use crate::config::CONFIG;
use crate::trace;
use cresset_acl::structure::*;
use cresset_acl::types::*;
use cresset_acl::{
    activity_functions, collective_functions, foreign_activity_functions, foreign_object_functions,
    foreign_runtime_functions, object_functions, probed_functions, refused_functions, runtime_functions,
    undeclared_functions,
};

#[allow(unused_imports, reason = "the functions of each table are spread over these")]
use {
    activity::*, callback::*, collective::*, communicator::*, copy::*, device::*, event::*, exception::*,
    executor::*, info::*, marker::*, memory::*, objects::*, refused::*, stream::*, tensor::*, tester::*,
    virtual_memory::*,
};

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

macro_rules! tables {
    ($($module:ident = $table:ident;)*) => {
        $(
            mod $module {
                use super::*;
                $table!(table);
            }
        )*

        fn plain(name: &str) -> Option<*const c_void> {
            None$(.or_else(|| $module::find(name)))*
        }
    };
}

tables! {
    runtime = runtime_functions;
    probed = probed_functions;
    foreign_runtime = foreign_runtime_functions;
    object = object_functions;
    foreign_object = foreign_object_functions;
    tracing = activity_functions;
    foreign_tracing = foreign_activity_functions;
    collectives = collective_functions;
    refusing = refused_functions;
    undeclared = undeclared_functions;
}

/// Functions of our own.
fn own(name: &str) -> Option<*const c_void> {
    match name {
        "cressetSimVersion" => Some(cressetSimVersion as *const c_void),
        "cressetSimConfigure" => Some(cressetSimConfigure as *const c_void),
        "cressetSimReport" => Some(cressetSimReport as *const c_void),
        _ => None,
    }
}

/// The address of the C function `name`, for programs that embed the device instead of
/// loading the shared library. None if the release that it claims to be has no such function.
pub fn symbol(name: &str) -> Option<*const c_void> {
    trace::embed();
    if CONFIG.release.lacks(name) {
        return None;
    }
    plain(name).or_else(|| operators::symbol(name)).or_else(|| own(name))
}
