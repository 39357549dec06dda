//! Finds the vendor's libraries: which ones, in which order, and what to say if there are none.
//!
//! 1. the path that the program gave, or `CRESSET_NPU_LIBRARY`: these must load;
//! 2. `ASCEND_HOME_PATH`, `ASCEND_TOOLKIT_HOME`, `LD_LIBRARY_PATH`, the usual places, the system's own search;
//! 3. the table of symbols that the program embeds.
//!
//! `CRESSET_NPU` chooses: `hardware` stops before 3, `sim` goes there at once, `auto` (or
//! unset) takes what comes first.

use super::error::LoadError;
use super::symbols::{Origin, Place, Symbols};
use std::env;
use std::path::{Path, PathBuf};

/// Where [`init`](crate::init) shall look for the device's library.
///
/// ```
/// use cresset_npu::Library;
/// let library = Library::at("/opt/Ascend/latest/lib64").or_embedded("none", |_| None);
/// assert!(cresset_npu::init(library).is_err(), "a path that was given must load");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Library {
    path: Option<PathBuf>,
    embedded: Option<(&'static str, Symbols)>,
    /// Whether nothing but the embedded functions will do.
    only_embedded: bool,
}

impl Library {
    /// The installed library, wherever it is.
    ///
    /// ```no_run
    /// cresset_npu::init(cresset_npu::Library::installed())?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn installed() -> Library {
        Library::default()
    }

    /// The library at `path`: a file, or a directory of the vendor's libraries.
    ///
    /// ```no_run
    /// cresset_npu::init(cresset_npu::Library::at("/usr/local/Ascend/cann/lib64"))?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn at(path: impl Into<PathBuf>) -> Library {
        Library { path: Some(path.into()), ..Library::default() }
    }

    /// The functions that `symbols` finds in this program, whatever is installed.
    ///
    /// ```
    /// use cresset_npu::{Library, init, is_available};
    /// init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
    /// assert!(is_available());
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn embedded(name: &'static str, symbols: Symbols) -> Library {
        Library { path: None, embedded: Some((name, symbols)), only_embedded: true }
    }

    /// The same, and if there is none, the functions that `symbols` finds in this program.
    ///
    /// ```
    /// use cresset_npu::{Library, init};
    /// init(Library::installed().or_embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    #[must_use]
    pub fn or_embedded(self, name: &'static str, symbols: Symbols) -> Library {
        Library { embedded: Some((name, symbols)), ..self }
    }
}

/// What was found, and what was tried before.
pub(crate) struct Found {
    pub(crate) origin: Origin,
    pub(crate) tried: Vec<String>,
}

/// The first of the places that `library` and the environment name.
pub(crate) fn find(library: &Library) -> Result<Found, LoadError> {
    let mut tried = Vec::new();
    let choice = Choice::from_env()?;
    if choice != Choice::Simulator && !library.only_embedded {
        let given = library.path.clone().or_else(|| path_from("CRESSET_NPU_LIBRARY"));
        if let Some(origin) = installed(given.as_deref(), &mut tried)? {
            return Ok(Found { origin, tried });
        }
    }
    match library.embedded {
        Some((name, symbols)) if choice != Choice::Hardware => {
            Ok(Found { origin: Origin::Embedded { name, symbols }, tried })
        }
        _ => Err(none(choice, tried)),
    }
}

fn none(choice: Choice, tried: Vec<String>) -> LoadError {
    match choice {
        Choice::Simulator => LoadError::new(
            "CRESSET_NPU=sim, but this program embeds no simulator",
            tried,
            "unset CRESSET_NPU, or build with the simulator",
        ),
        _ => LoadError::new(
            format!("cannot find {RUNTIME}, the runtime of Ascend devices"),
            tried,
            "source the toolkit's set_env.sh, or set CRESSET_NPU_LIBRARY to the library or its directory",
        ),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Auto,
    Hardware,
    Simulator,
}

impl Choice {
    fn from_env() -> Result<Choice, LoadError> {
        match env::var("CRESSET_NPU").unwrap_or_default().as_str() {
            "" | "auto" => Ok(Choice::Auto),
            "hardware" => Ok(Choice::Hardware),
            "sim" => Ok(Choice::Simulator),
            other => Err(LoadError::new(
                format!("CRESSET_NPU={other}: expected sim, hardware or auto"),
                vec![],
                "",
            )),
        }
    }
}

const RUNTIME: &str = "libascendcl.so";
const DESCRIPTORS: &str = "libnnopbase.so";
/// Releases from 9 on have one library of operators per family; more of them are found by this prefix.
const FAMILY: &str = "libopapi_";
const FAMILIES: [&str; 4] =
    ["libopapi_math.so", "libopapi_nn.so", "libopapi_cv.so", "libopapi_transformer.so"];
/// What else may hold operators: all in one library, the names before that, and those of users.
const OPERATORS: [&str; 8] = [
    "libopapi.so",
    "libaclnn_ops_infer.so",
    "libaclnn_ops_train.so",
    "libaclnn_math.so",
    "libaclnn_sparse.so",
    "libaclnn_fft.so",
    "libaclnn_rand.so",
    "libcust_opapi.so",
];
const COLLECTIVES: &str = "libhccl.so";
const TRACING: &str = "libmspti.so";

fn installed(given: Option<&Path>, tried: &mut Vec<String>) -> Result<Option<Origin>, LoadError> {
    if let Some(path) = given {
        let places = if path.is_dir() { directory(path, tried) } else { file(path, tried) };
        return match places {
            Some(places) => Ok(Some(origin(places))),
            None => {
                let advice = "the path was given by name, so nothing else is tried";
                Err(LoadError::new(format!("cannot load {}", path.display()), tried.clone(), advice))
            }
        };
    }
    let places = directories().iter().find_map(|path| directory(path, tried));
    Ok(places.or_else(|| by_system(tried)).map(origin))
}

/// Libraries as they are searched. Where the tracing library is preloaded, it stands in for
/// runtime functions, and only a search of the whole process finds its versions first.
fn origin(mut places: Vec<Place>) -> Origin {
    if env::var("LD_PRELOAD").is_ok_and(|list| list.contains("libmspti")) {
        places.insert(0, Place::Process(libloading::os::unix::Library::this().into()));
    }
    Origin::Libraries(places)
}

fn path_from(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn directories() -> Vec<PathBuf> {
    let named = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].into_iter().filter_map(path_from);
    let usual =
        ["/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann", "/usr/local/Ascend/latest"];
    let home = path_from("HOME").map(|home| home.join("Ascend/ascend-toolkit/latest"));
    let usual = usual.into_iter().map(PathBuf::from).chain(home);
    named.map(lib64).chain(searched()).chain(usual.map(lib64)).collect()
}

fn lib64(toolkit: PathBuf) -> PathBuf {
    toolkit.join("lib64")
}

/// The directories of `LD_LIBRARY_PATH` that have the runtime: beside it lie the others, by any name.
fn searched() -> Vec<PathBuf> {
    let list = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    env::split_paths(&list).filter(|path| path.join(RUNTIME).exists()).collect()
}

/// One library by path, and its companions if they lie beside it.
fn file(path: &Path, tried: &mut Vec<String>) -> Option<Vec<Place>> {
    let mut places = vec![open(path, tried)?];
    if path.file_name().is_some_and(|name| name == RUNTIME) {
        places.extend(path.parent().into_iter().flat_map(|beside| companions(beside, tried)));
    }
    Some(places)
}

/// The runtime in a directory, and its companions.
fn directory(path: &Path, tried: &mut Vec<String>) -> Option<Vec<Place>> {
    let mut places = vec![open(&path.join(RUNTIME), tried)?];
    places.extend(companions(path, tried));
    Some(places)
}

/// What lies in the directory of the runtime: each only if it is there.
fn companions(directory: &Path, tried: &mut Vec<String>) -> Vec<Place> {
    let named = |name: &&str| directory.join(name);
    let before = [DESCRIPTORS].iter().map(named).chain(families(directory));
    let paths: Vec<PathBuf> =
        before.chain(OPERATORS.iter().chain(&[COLLECTIVES, TRACING]).map(named)).collect();
    paths.iter().filter(|path| path.exists()).filter_map(|path| open(path, tried)).collect()
}

fn families(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(FAMILY) && name.ends_with(".so")
    };
    let mut found: Vec<PathBuf> = entries.filter(is_one).collect();
    found.sort();
    found
}

/// The libraries by name, wherever the system's loader finds them.
fn by_system(tried: &mut Vec<String>) -> Option<Vec<Place>> {
    let mut places = vec![open(Path::new(RUNTIME), tried)?];
    // Companions are optional here: their absence shows when one of their symbols is missing.
    let names = [DESCRIPTORS].into_iter().chain(FAMILIES).chain(OPERATORS).chain([COLLECTIVES, TRACING]);
    places.extend(names.filter_map(|name| open(Path::new(name), &mut Vec::new())));
    Some(places)
}

fn open(path: &Path, tried: &mut Vec<String>) -> Option<Place> {
    // SAFETY: the vendor's libraries run no code on load that depends on our state.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => Some(Place::File(path.to_owned(), Box::leak(Box::new(library)))),
        Err(error) => {
            tried.push(failure(path, &error));
            None
        }
    }
}

/// The loader repeats the path in front of what it has to say.
fn failure(path: &Path, error: &libloading::Error) -> String {
    let text =
        std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string());
    let path = path.display().to_string();
    match text.strip_prefix(&path) {
        Some(reason) => format!("{path}{reason}"),
        None => format!("{path}: {text}"),
    }
}
