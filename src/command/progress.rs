//! Progress: a bar on a terminal, plain lines elsewhere.

use cresset::Device;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Shows how far a training run is.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    epochs: usize,
    /// Steps of the whole run.
    steps: usize,
    /// Steps, and samples of them, since it was begun.
    done: Cell<(u64, usize)>,
    /// Bytes in use after the last step.
    memory: Cell<usize>,
    first: u64,
    begun: Instant,
}

impl Progress {
    /// Progress through `epochs` of `steps` each, of which `first` were taken before.
    pub(crate) fn new(epochs: usize, steps: usize, first: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new((epochs * steps) as u64).with_position(first);
            bar.reset_eta();
            let style =
                ProgressStyle::with_template("{msg}  {wide_bar} {pos}/{len} steps  {per_sec}  {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let (done, memory) = (Cell::new((0, 0)), Cell::new(0));
        Progress { bar, epochs, steps: epochs * steps, done, memory, first, begun: Instant::now() }
    }

    /// One step of so many samples is done.
    pub(crate) fn step(&self, samples: usize, device: Device) {
        let (steps, all) = self.done.get();
        self.done.set((steps + 1, all + samples));
        self.memory.set(in_use(device).unwrap_or(0));
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// An epoch is done, counted from 1.
    pub(crate) fn epoch(&self, epoch: usize, loss: f64) {
        let ((steps, samples), seconds) = (self.done.get(), self.begun.elapsed().as_secs_f64());
        let left = (self.steps as u64).saturating_sub(self.first + steps) as f64;
        let left = left * seconds / steps.max(1) as f64;
        let (speed, memory) = (samples as f64 / seconds, self.memory.get() >> 20);
        let line =
            format!("epoch {epoch:>2}/{}  loss {loss:.4}  {speed:.0} samples/s  {memory} MiB", self.epochs);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            // Progress is a courtesy: training goes on if nobody can see it.
            None => drop(writeln!(std::io::stderr(), "{line}  {left:.0} s left")),
        }
    }
}

/// Bytes of the device that tensors use; of the host, what the whole process has.
fn in_use(device: Device) -> Option<usize> {
    if !device.is_cpu() {
        return Some(cresset::npu::memory_allocated(device));
    }
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * PAGE)
}

/// Bytes of a page, as `/proc` counts them on the machines that have it.
const PAGE: usize = 4096;

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}
