//! Names for addresses: which file, line and function, and whose.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A place in the program's own code, shown as `file:line:function`.
///
/// ```
/// use cresset_profiler::{Frame, Profiler, record_function};
/// let (_, profiler) = Profiler::builder().with_stack(true).run(|_| record_function("here").run(|| ()))?;
/// let stack: &[Frame] = profiler.events()?.next().unwrap().stack().unwrap();
/// assert!(stack[0].to_string().ends_with(&format!(":{}:{}", stack[0].line(), stack[0].function())));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    file: Option<Arc<str>>,
    line: u32,
    function: Arc<str>,
}

impl Frame {
    /// The source file, if the program was compiled with line tables.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let (_, profiler) = Profiler::builder().with_stack(true).run(|_| record_function("here").run(|| ()))?;
    /// let frame = &profiler.events()?.next().unwrap().stack().unwrap()[0];
    /// assert!(frame.file().is_none_or(|file| file.ends_with(".rs")));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The line, counted from 1; 0 if it is not known.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let (_, profiler) = Profiler::builder().with_stack(true).run(|_| record_function("here").run(|| ()))?;
    /// let frame = &profiler.events()?.next().unwrap().stack().unwrap()[0];
    /// assert_eq!(frame.line() > 0, frame.file().is_some());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The full name of the function.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// fn train() {
    ///     record_function("batch").run(|| ());
    /// }
    /// let (_, profiler) = Profiler::builder().with_stack(true).run(|_| train())?;
    /// let stack = profiler.events()?.next().unwrap().stack().unwrap();
    /// assert!(stack.iter().any(|frame| frame.function().contains("train")), "{stack:?}");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn function(&self) -> &str {
        &self.function
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file().unwrap_or("??"), self.line, self.function)
    }
}

/// A stack as users see it, innermost frame first.
pub(crate) type Frames = Box<[Frame]>;

/// Names a stack, and leaves out what is not the program's own: this profiler, the dispatcher,
/// the inside of operators, the standard library, and what runs before `main`.
pub(crate) fn resolve(stack: &[usize]) -> Frames {
    let mut frames = Vec::new();
    for &address in stack {
        let place = place(address);
        frames.extend(place.frames.iter().cloned());
        if place.is_outermost {
            break;
        }
    }
    frames.into()
}

/// What is at an address: several functions if they were inlined into each other.
struct Place {
    frames: Box<[Frame]>,
    /// Whether everything further out is the start-up of the program or the thread.
    is_outermost: bool,
}

/// Looking an address up takes a microsecond and the first one much longer, so each is looked
/// up once.
fn place(address: usize) -> Arc<Place> {
    static PLACES: OnceLock<Mutex<HashMap<usize, Arc<Place>>>> = OnceLock::new();
    let mut places = PLACES.get_or_init(Mutex::default).lock();
    places.entry(address).or_insert_with(|| Arc::new(look_up(address))).clone()
}

fn look_up(address: usize) -> Place {
    let (mut frames, mut is_outermost) = (Vec::new(), false);
    backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
        let Some(name) = symbol.name() else { return };
        let function = format!("{name:#}");
        let file = symbol.filename().map(Path::to_string_lossy);
        is_outermost |= is_start(&function, file.is_some());
        // Line tables may hold names without paths, so that files are the better witness.
        let is_internal = file.as_deref().map_or_else(|| is_internal_name(&function), is_internal_file);
        if !is_outermost && !is_internal {
            frames.push(Frame {
                file: file.map(Arc::from),
                line: symbol.lineno().unwrap_or(0),
                function: without_parameters(&function).into(),
            });
        }
    });
    Place { frames: frames.into(), is_outermost }
}

/// The name without the types that a function was compiled for.
fn without_parameters(function: &str) -> &str {
    let end = function.find('<').filter(|&at| at > 0 && function.ends_with('>'));
    function[..end.unwrap_or(function.len())].trim_end_matches("::")
}

/// Whether a program or a thread starts here. C's functions have no lines; a program's `main` has.
fn is_start(function: &str, has_lines: bool) -> bool {
    const NAMES: [&str; 8] = [
        "main",
        "_start",
        "__libc_start_main",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "clone3",
        "__clone3",
    ];
    !has_lines && NAMES.contains(&function) || function.contains("__rust_begin_short_backtrace")
}

/// Crates of ours between a program and what is recorded.
const OURS: [&str; 5] = ["profiler", "dispatch", "tensor", "kernels", "npu"];
/// Crates of others, by the beginning of a function's name.
const OTHERS: [&str; 5] = ["std", "core", "alloc", "test", "backtrace"];

/// Whether the code of a file stands between a program and what is recorded.
fn is_internal_file(file: &str) -> bool {
    static DIRECTORIES: OnceLock<Vec<String>> = OnceLock::new();
    let directories = DIRECTORIES.get_or_init(|| sources(file!()));
    file.starts_with("/rustc/")
        || file.contains("/rustlib/src/rust/library/")
        || file.contains("/backtrace-0.")
        || directories.iter().any(|directory| file.contains(directory))
}

/// Where the sources of our crates lie: beside those of this one, which `this` is a file of.
fn sources(this: &str) -> Vec<String> {
    let own = this.strip_suffix("src/stack/resolve.rs").unwrap_or(this);
    let Some((before, after)) = own.rsplit_once("profiler") else { return Vec::new() };
    OURS.iter().map(|name| format!("{before}{name}{after}src/")).collect()
}

fn is_internal_name(function: &str) -> bool {
    match function.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        // What a program implements for our types, or of our traits, is its own.
        Some((own, of)) => is_internal_path(own) && is_internal_path(of),
        None => is_internal_path(function),
    }
}

fn is_internal_path(path: &str) -> bool {
    let path = path.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let path = path.strip_prefix("mut ").or(path.strip_prefix("dyn ")).unwrap_or(path);
    let root = path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let is_ours = root.strip_prefix("cresset_").is_some_and(|name| OURS.contains(&name));
    let is_runtime = || ["_Unwind", "__rust", "rust_"].iter().any(|prefix| root.starts_with(prefix));
    is_ours || OTHERS.contains(&root) || is_runtime()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_functions_are_shown() {
        let own = [
            "train::main",
            "train::main::{{closure}}",
            "<train::Model as cresset_nn::module::Module>::forward",
            "<cresset_tensor::tensor::Tensor as train::Extension>::twice",
            "<train::MyOp as cresset_tensor::op::Op>::backward",
            "cresset_nn::linear::Linear::new",
            "<alloc::vec::Vec<T> as train::Sum>::sum",
            "<F as train::Call>::call",
            "exported_to_c",
        ];
        for function in own {
            assert!(!is_internal_name(function), "{function}");
        }
        let others = [
            "cresset_profiler::recorder::enter",
            "<cresset_profiler::recorder::Recorder as cresset_dispatch::observe::Observer>::enter",
            "cresset_tensor::op::Op::call",
            "cresset_tensor::ops::<impl core::ops::arith::Mul for &cresset_tensor::Tensor>::mul",
            "<&cresset_tensor::tensor::Tensor as core::ops::arith::Mul>::mul",
            "<&mut cresset_tensor::tensor::Tensor as core::ops::arith::Mul>::mul",
            "core::iter::traits::iterator::Iterator::for_each",
            "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold",
            "backtrace::backtrace::trace_unsynchronized",
        ];
        for function in others {
            assert!(is_internal_name(function), "{function}");
        }
    }

    #[test]
    fn sources_are_known_in_a_workspace_and_in_a_registry() {
        let here = sources("crates/profiler/src/stack/resolve.rs");
        assert_eq!(here[..2], ["crates/profiler/src/", "crates/dispatch/src/"]);
        let there = sources("/registry/profiler/cresset-profiler-0.1.0/src/stack/resolve.rs");
        assert_eq!(there[2], "/registry/profiler/cresset-tensor-0.1.0/src/");
        assert!(is_internal_file(&format!("/somewhere/{}", file!())));
        assert!(is_internal_file("/rustc/4a4ef493/library/core/src/ops.rs"));
        assert!(!is_internal_file("/home/me/train/src/main.rs"));
    }

    #[test]
    fn the_programs_main_is_no_start_up_code() {
        assert!(is_start("main", false) && !is_start("main", true));
        assert!(is_start("std::sys::backtrace::__rust_begin_short_backtrace::<fn(), ()>", true));
    }

    #[test]
    fn names_are_shown_without_type_parameters() {
        assert_eq!(without_parameters("run<(), train::main::{closure_env#0}>"), "run");
        assert_eq!(without_parameters("train::run::<fn() -> u8>"), "train::run");
        assert_eq!(
            without_parameters("<train::A<u8> as train::B<u8>>::call"),
            "<train::A<u8> as train::B<u8>>::call"
        );
        assert_eq!(without_parameters("{closure#0}"), "{closure#0}");
    }

    #[test]
    fn a_frame_is_file_line_and_function() {
        let frame = Frame { file: Some("a.rs".into()), line: 7, function: "b::c".into() };
        assert_eq!(frame.to_string(), "a.rs:7:b::c");
        assert_eq!(Frame { file: None, line: 0, ..frame }.to_string(), "??:0:b::c");
    }
}
