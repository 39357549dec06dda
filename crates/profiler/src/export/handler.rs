//! A ready-made `on_trace_ready` handler.

use crate::clock;
use crate::error::{Error, Result};
use crate::host;
use crate::profiler::Profiler;
use std::fs;
use std::path::PathBuf;

/// Writes each trace to `directory` as `<worker>.<time>.pt.trace.json`, where TensorBoard and
/// others look for it; with `gzip`, compressed. The worker is host and process by default.
///
/// ```
/// # let directory = std::env::temp_dir().join("cresset-doc-traces");
/// use cresset_profiler::{Profiler, trace_directory};
/// let builder = Profiler::builder().on_trace_ready(trace_directory(&directory, None, true));
/// let (sum, _) = builder.run(|_| 1 + 1)?;
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub fn trace_directory(
    directory: impl Into<PathBuf>,
    worker: Option<&str>,
    gzip: bool,
) -> impl FnMut(&Profiler) -> Result<()> + Send + 'static {
    let directory = directory.into();
    let worker = worker.map_or_else(|| format!("{}_{}", host::name(), std::process::id()), str::to_owned);
    move |profiler| {
        fs::create_dir_all(&directory).map_err(|source| Error::Write { path: directory.clone(), source })?;
        let suffix = if gzip { ".gz" } else { "" };
        let name = format!("{worker}.{}.pt.trace.json{suffix}", clock::wall_nanos());
        profiler.export_chrome_trace(directory.join(name))
    }
}
