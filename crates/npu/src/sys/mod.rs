//! What the C libraries export: typed function pointers, made from the tables of `cresset-acl`.
//!
//! Runtime and descriptor functions are resolved when the library is loaded, and so are the
//! tracing and communication functions if they are there. Operators are resolved when first used: releases
//! differ, and only programs that use an operator should notice. Libraries are never
//! unloaded, so all pointers are `'static`.

mod error;
mod find;
mod symbols;
mod version;

pub use error::LoadError;
pub use find::Library;
pub(crate) use find::find;
pub(crate) use symbols::Origin;
pub use symbols::Symbols;
pub(crate) use version::Version;

use cresset_acl::types::*;
use cresset_acl::{
    activity_functions, collective_functions, object_functions, probed_functions, runtime_functions,
};
use std::sync::OnceLock;

macro_rules! table {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        /// One pointer per function of the table.
        #[allow(non_snake_case, reason = "the names are those of C")]
        #[allow(dead_code, reason = "a table also serves functions that nothing calls yet")]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($ty),*) -> $result,)*
        }

        impl Functions {
            pub(super) fn resolve(origin: &Origin) -> Result<Functions, LoadError> {
                Ok(Functions {
                    // SAFETY: the table has the signature that the vendor's headers declare.
                    $($name: unsafe { origin.function(stringify!($name)) }?,)*
                })
            }
        }
    };
}

/// As `table`, for functions that may be missing.
macro_rules! probes {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        /// One pointer per function of the table that is there.
        #[allow(non_snake_case, reason = "the names are those of C")]
        pub(crate) struct Probed {
            $(pub(crate) $name: Option<unsafe extern "C" fn($($ty),*) -> $result>,)*
        }

        impl Probed {
            fn resolve(origin: &Origin) -> Probed {
                Probed {
                    // SAFETY: the table has the signature that the vendor's headers declare.
                    $($name: unsafe { origin.function(stringify!($name)) }.ok(),)*
                }
            }
        }
    };
}

probed_functions!(probes);

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

mod collective {
    use super::*;
    use cresset_acl::structure::{CommunicatorConfig, RootInfo, SendRecvItem};
    collective_functions!(table);
}

pub(crate) use collective::Functions as Collectives;
pub(crate) use tracing::Functions as Tracing;

/// Everything that was loaded.
pub(crate) struct Loaded {
    pub(crate) origin: Origin,
    pub(crate) runtime: runtime::Functions,
    pub(crate) object: object::Functions,
    /// What this release may lack.
    pub(crate) probed: Probed,
    /// What the library says that it is; `None` if it cannot tell.
    pub(crate) version: Option<Version>,
    /// Absent where the tracing library is.
    pub(crate) tracing: Result<Tracing, LoadError>,
    /// Absent where the library for communication is.
    pub(crate) collectives: Result<Collectives, LoadError>,
}

impl Loaded {
    fn new(origin: Origin) -> Result<Loaded, LoadError> {
        if !origin.has("aclInit") {
            return Err(LoadError::foreign(&origin));
        }
        // The version first: all else follows from what the release declares.
        let probed = Probed::resolve(&origin);
        let version = Version::of(&probed);
        version.map_or(Ok(()), |version| version.check(&origin))?;
        let runtime = runtime::Functions::resolve(&origin)?;
        let object = object::Functions::resolve(&origin)?;
        let tracing = Tracing::resolve(&origin);
        let collectives = Collectives::resolve(&origin);
        Ok(Loaded { origin, runtime, object, probed, version, tracing, collectives })
    }
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

/// Makes the functions of `origin` the ones that [`loaded`] gives. Called once.
pub(crate) fn load(origin: Origin) -> Result<&'static Loaded, LoadError> {
    let loaded = Loaded::new(origin)?;
    Ok(LOADED.get_or_init(|| loaded))
}

/// What was loaded, if anything was.
pub(crate) fn try_loaded() -> Option<&'static Loaded> {
    LOADED.get()
}

/// What was loaded.
#[inline]
pub(crate) fn loaded() -> &'static Loaded {
    LOADED.get().expect("devices, streams and tensors exist only after init")
}

/// Calls a runtime function and checks its status: `call!(aclrtFree(address))`.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::status::check(
            stringify!($function),
            ($crate::sys::loaded().runtime.$function)($($argument),*),
        )
    };
}
pub(crate) use call;

/// The library's text on this thread's last failure, which it then forgets; may be empty.
pub(crate) fn recent_message() -> String {
    let Some(loaded) = try_loaded() else { return String::new() };
    // SAFETY: has no preconditions.
    let text = unsafe { (loaded.runtime.aclGetRecentErrMsg)() };
    // SAFETY: the text is valid until the next such call on this thread.
    unsafe { text_of(text) }
}

/// A copy of a C string; empty for null.
///
/// # Safety
/// `text` is null or ended by a zero byte.
pub(crate) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}
