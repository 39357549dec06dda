//! A window of steps under the profiler, and everything that can be seen of it.

use super::super::{Outcome, say};
use super::Model;
use cresset::prelude::*;
use std::path::{Path, PathBuf};

/// Steps before the window: the first ones are not typical.
pub(super) const LEFT_OUT: usize = 4;

/// Steps that are recorded.
const RECORDED: u64 = 5;

pub(super) struct Profile<'a> {
    profiler: Profiler,
    directory: &'a Path,
    model: Model,
    device: Device,
    /// Which of several ranks this is: each has files of its own.
    rank: Option<u32>,
}

impl<'a> Profile<'a> {
    pub(super) fn start(
        directory: &'a Path,
        model: Model,
        device: Device,
        rank: Option<u32>,
    ) -> Outcome<Profile<'a>> {
        let profiler = Profiler::builder()
            .schedule(Schedule::new(LEFT_OUT as u64 - 1, 1, RECORDED)?.repeat(1))
            .record_shapes(true)
            .profile_memory(true)
            .with_stack(true)
            .with_flops(true)
            .with_modules(true)
            .start()?;
        Ok(Profile { profiler, directory, model, device, rank })
    }

    pub(super) fn step(&mut self) -> Outcome {
        Ok(self.profiler.step()?)
    }

    fn file(&self, ending: &str) -> PathBuf {
        let rank = self.rank.map_or(String::new(), |rank| format!(".rank{rank}"));
        self.directory.join(format!("{}{rank}.{ending}", self.model))
    }

    /// Writes it all, and says where to open each.
    pub(super) fn finish(mut self) -> Outcome {
        self.profiler.stop()?;
        let trace = self.profiler.trace()?;
        let mut places = Vec::new();
        let path = self.file("html");
        trace.html_report().peak(self.device, cresset::peak(self.device)?).write(&path)?;
        places.push(("report", path, "opens in any browser"));
        let path = self.file("pt.trace.json");
        trace.export_chrome_trace(&path)?;
        let readers =
            "open it at https://ui.perfetto.dev (nothing is uploaded), in chrome://tracing or speedscope";
        places.push(("trace", path, readers));
        if trace.device_events().len() > 0 {
            let path = self.file("cuda.pt.trace.json");
            trace.export_chrome_trace_as_cuda(&path)?;
            places.push((
                "trace",
                path,
                "the same for HolisticTraceAnalysis, which knows launches by CUDA's names only",
            ));
        }
        let path = self.file("memory.html");
        self.profiler.export_memory_timeline(&path, self.device)?;
        places.push(("memory", path, "by what it was for; opens in any browser"));
        let table =
            self.profiler.key_averages()?.table().sort_by("self_cpu_time_total")?.row_limit(20).to_string();
        let path = self.file("table.txt");
        super::write_whole(&path, &table)?;
        say(table)?;
        for (what, path, how) in places {
            say(format_args!("{what}: {}\n  {how}", path.display()))?;
        }
        Ok(())
    }
}
