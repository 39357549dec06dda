//! Why no library could be used: what was tried, and what to do.

use super::symbols::Origin;
use std::fmt;

/// Why no library could be loaded: what was tried, and what to do.
///
/// ```
/// let text = cresset_npu::init(cresset_npu::Library::at("/nowhere/libascendcl.so")).unwrap_err().to_string();
/// assert!(text.starts_with("cannot load /nowhere/libascendcl.so\n  tried /nowhere/libascendcl.so: "));
/// ```
#[derive(Clone, Debug)]
pub struct LoadError {
    what: String,
    tried: Vec<String>,
    advice: String,
}

impl LoadError {
    pub(super) fn new(what: impl Into<String>, tried: Vec<String>, advice: impl Into<String>) -> LoadError {
        let (mut advice, what) = (advice.into(), what.into());
        if tried.iter().any(|reason| reason.contains("libascend_hal.so")) {
            let driver =
                "the driver's libraries are missing: add /usr/local/Ascend/driver/lib64 to LD_LIBRARY_PATH";
            advice = if advice.is_empty() { driver.to_owned() } else { format!("{driver}\n  {advice}") };
        }
        LoadError { what, tried, advice }
    }

    /// A function that a library of this kind must have, and this one has not.
    pub(super) fn symbol(name: &str, origin: &Origin) -> LoadError {
        LoadError::new(
            format!("cannot load {name}: undefined symbol"),
            vec![origin.describe()],
            "this release of the library may lack it; install a newer one",
        )
    }

    /// A library that is something else altogether.
    pub(super) fn foreign(origin: &Origin) -> LoadError {
        LoadError::new(
            "the library is no runtime of Ascend devices: it has no aclInit",
            vec![origin.describe()],
            "set CRESSET_NPU_LIBRARY to libascendcl.so of the toolkit, or to the directory it lies in",
        )
    }

    /// A release that nobody has tried this program with.
    pub(super) fn version(found: &str, supported: &str, origin: &Origin) -> LoadError {
        LoadError::new(
            format!("version {found} of CANN is not known here; known are {supported}"),
            vec![origin.describe()],
            "install one of these, or set CRESSET_NPU_VERSION=any to go on at your own risk",
        )
    }

    /// Every path that was tried, each with what came of it.
    pub fn tried(&self) -> &[String] {
        &self.tried
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for tried in &self.tried {
            write!(f, "\n  tried {tried}")?;
        }
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl std::error::Error for LoadError {}
