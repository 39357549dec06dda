//! A report that opens in any browser: one file, no network, everything in it.

mod data;
mod inline;
mod peak;
mod speed;
mod split;

pub use peak::Peak;

use super::file;
use crate::error::Result;
use crate::trace::Trace;
use cresset_dispatch::Device;
use std::io::{self, Write};
use std::path::Path;

const PAGE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");

/// The page's program, one idea per file; all of it is one scope.
const PROGRAM: [&str; 8] = [
    include_str!("format.js"),
    include_str!("view.js"),
    include_str!("tooltip.js"),
    include_str!("flame.js"),
    include_str!("memory.js"),
    include_str!("table.js"),
    include_str!("split.js"),
    include_str!("report.js"),
];

/// A trace on its way to a page: see [`Trace::html_report`].
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-doc-report-{}.html", std::process::id()));
/// use cresset_profiler::{Profiler, record_function};
/// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
/// profiler.trace()?.html_report().write(&path)?;
/// assert!(std::fs::read_to_string(&path).unwrap().starts_with("<!DOCTYPE html>"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[must_use = "a report is written by `write`"]
pub struct HtmlReport<'a> {
    trace: &'a Trace,
    peaks: Vec<(Device, Peak)>,
}

impl<'a> HtmlReport<'a> {
    pub(crate) fn new(trace: &'a Trace) -> HtmlReport<'a> {
        HtmlReport { trace, peaks: Vec::new() }
    }

    /// What a device can do at best. Speeds are then shown as parts of it; without, the
    /// report says that it does not know.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-peak-{}.html", std::process::id()));
    /// use cresset_dispatch::Device;
    /// use cresset_profiler::{Peak, Profiler};
    /// let (_, profiler) = Profiler::builder().with_flops(true).run(|_| ())?;
    /// let peak = Peak { flops: 1e11, bandwidth: 1e10, source: "data sheet".to_owned() };
    /// profiler.trace()?.html_report().peak(Device::CPU, peak).write(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("data sheet"));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn peak(mut self, device: Device, peak: Peak) -> HtmlReport<'a> {
        self.peaks.retain(|(known, _)| *known != device);
        self.peaks.push((device, peak));
        self
    }

    /// Writes the page. The file appears whole or not at all.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder().run(|_| ())?;
    /// let report = profiler.trace()?.html_report();
    /// let error = report.write("/nowhere/report.html").unwrap_err().to_string();
    /// assert!(error.starts_with("cannot write /nowhere/report.html: "));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), |sink| self.fill(sink))
    }

    fn fill(&self, sink: &mut dyn Write) -> io::Result<()> {
        for part in PAGE.split("{{") {
            let (place, rest) = part.split_once("}}").unwrap_or(("", part));
            match place {
                "style" => sink.write_all(STYLE.as_bytes())?,
                "data" => data::write(self.trace, &self.peaks, &mut inline::Inline(&mut *sink))?,
                "program" => PROGRAM.iter().try_for_each(|file| sink.write_all(file.as_bytes()))?,
                _ => {}
            }
            sink.write_all(rest.as_bytes())?;
        }
        Ok(())
    }
}
