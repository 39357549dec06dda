//! Where symbols come from: shared libraries, the process itself, or a table in the program.

use super::LoadError;
use std::ffi::c_void;
use std::path::PathBuf;

/// Finds C functions that a program has embedded, by name.
pub type Symbols = fn(&str) -> Option<*const c_void>;

/// One place to look for symbols.
pub(crate) enum Place {
    /// A shared library and where it was found. Leaked: unloading it would leave its threads
    /// without code.
    File(PathBuf, &'static libloading::Library),
    /// All that the process has loaded already, so that preloaded libraries come first.
    Process(libloading::Library),
}

/// All places of one installation, or a table that stands for them.
pub(crate) enum Origin {
    /// Libraries, in the order they are searched.
    Libraries(Vec<Place>),
    /// A table in this program.
    Embedded {
        /// What it calls itself.
        name: &'static str,
        /// Finds its functions.
        symbols: Symbols,
    },
}

impl Origin {
    /// The function `name` as a typed pointer.
    ///
    /// # Safety
    /// `F` is a function pointer with the C signature of `name`.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, LoadError> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        let address = self.address(name).ok_or_else(|| LoadError::symbol(name, self))?;
        // SAFETY: by the caller's promise; function and data pointers are of one size.
        Ok(unsafe { std::mem::transmute_copy::<*const c_void, F>(&address) })
    }

    /// Whether there is a function `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.address(name).is_some()
    }

    fn address(&self, name: &str) -> Option<*const c_void> {
        match self {
            Origin::Embedded { symbols, .. } => symbols(name),
            Origin::Libraries(places) => places.iter().find_map(|place| place.address(name)),
        }
        .filter(|address| !address.is_null())
    }

    /// The places, for people to read.
    pub(crate) fn describe(&self) -> String {
        match self {
            Origin::Embedded { name, .. } => format!("{name} (embedded)"),
            Origin::Libraries(places) => places.iter().map(Place::describe).collect::<Vec<_>>().join(", "),
        }
    }
}

impl Place {
    fn address(&self, name: &str) -> Option<*const c_void> {
        let library = match self {
            Place::File(_, library) => library,
            Place::Process(library) => library,
        };
        // SAFETY: only the address is taken; who gives it a type vouches for that type.
        let address = unsafe { library.get::<*const c_void>(name).ok()?.try_as_raw_ptr() };
        address.map(<*mut c_void>::cast_const)
    }

    fn describe(&self) -> String {
        match self {
            Place::File(path, _) => path.display().to_string(),
            Place::Process(_) => "this process".to_owned(),
        }
    }
}
