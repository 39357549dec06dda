//! Progress: a bar on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Shows how far a training run is.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    epochs: usize,
}

impl Progress {
    /// Progress through `epochs` of `steps` each.
    pub(crate) fn new(epochs: usize, steps: usize) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new((epochs * steps) as u64);
            let style =
                ProgressStyle::with_template("{msg}  {wide_bar} {pos}/{len} steps  {per_sec}  {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Progress { bar, epochs }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// An epoch is done, counted from 1.
    pub(crate) fn epoch(&self, epoch: usize, loss: f64) {
        let line = format!("epoch {epoch:>2}/{}  loss {loss:.4}", self.epochs);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            // Progress is a courtesy: training goes on if nobody can see it.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}
