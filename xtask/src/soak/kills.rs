//! Processes that are killed at random moments, and what they leave.

use super::programs::Programs;
use crate::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A small generator of repeatable choices.
struct Choices(u64);

impl Choices {
    fn new(seed: u64) -> Choices {
        Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Some time between two.
    fn between(&mut self, least: Duration, most: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + (most - least).mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

fn start(command: &mut Command) -> Result<Child> {
    Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

/// Lets it run for a while and kills it, unless it ends before; whether it was killed.
fn kill_after(mut child: Child, time: Duration) -> Result<bool> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait()? {
            let output = child.wait_with_output()?;
            if !status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            return Ok(false);
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Trains to the end with a checkpoint every few steps, and is killed meanwhile, again and again: what is there
/// is whole each time, and the last weights are those of a run that nobody killed.
pub(super) fn training(programs: &Programs, kills: u64, seed: u64, every: u64) -> Result<String> {
    let folder = programs.scratch(&format!("training-{every}"))?;
    let train = |directory: &Path, resume: bool| {
        let mut command = programs.cresset();
        command
            .args(["train", "mlp", "--epochs", "4", "--save-every", &every.to_string(), "--checkpoint"])
            .arg(directory);
        if resume {
            command.arg("--resume");
        }
        command
    };
    let straight = folder.join("straight");
    let begin = Instant::now();
    kill_after(start(&mut train(&straight, false))?, Duration::from_secs(3600))?;
    let usual = begin.elapsed();
    let expected = newest(&straight)?;
    let (mut choices, mut killed, mut runs, mut checked) = (Choices::new(seed), 0, 0, 0);
    while killed < kills {
        let directory = folder.join(format!("run-{runs}"));
        loop {
            // Most of the time at work, some of it starting up.
            let time = if killed < kills {
                choices.between(usual / 20, usual / 2)
            } else {
                Duration::from_secs(3600)
            };
            let resume = checkpoints(&directory)?.next_back().is_some();
            if !kill_after(start(&mut train(&directory, resume))?, time)? {
                break;
            }
            killed += 1;
            for checkpoint in checkpoints(&directory)? {
                check(&checkpoint)?;
                checked += 1;
            }
        }
        if newest(&directory)? != expected {
            return Err(format!(
                "{} ended with other weights than a run that nobody killed",
                directory.display()
            )
            .into());
        }
        runs += 1;
    }
    Ok(format!(
        "{killed} kills, {checked} checkpoints whole, {runs} runs ended with the same weights bit for bit"
    ))
}

/// The checkpoints of a directory, the oldest first.
fn checkpoints(directory: &Path) -> Result<std::vec::IntoIter<std::path::PathBuf>> {
    let mut found = Vec::new();
    if directory.exists() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step-")) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found.into_iter())
}

/// Fails unless all files are those that the checksums are of.
fn check(checkpoint: &Path) -> Result {
    let sums = fs::read_to_string(checkpoint.join("checksums.txt"))?;
    if sums.lines().count() != 3 {
        return Err(format!("{} has no three checksums", checkpoint.display()).into());
    }
    for line in sums.lines() {
        let (sum, name) = line.split_once(' ').ok_or("a checksum has a name")?;
        let bytes = fs::read(checkpoint.join(name))?;
        if sum != format!("{}:{:08x}", bytes.len(), crc32fast::hash(&bytes)) {
            return Err(format!("{}/{name} is not whole", checkpoint.display()).into());
        }
    }
    Ok(())
}

/// The weights of the newest checkpoint.
fn newest(directory: &Path) -> Result<Vec<u8>> {
    let newest = checkpoints(directory)?.next_back().ok_or("there is no checkpoint")?;
    Ok(fs::read(newest.join("model.safetensors"))?)
}

/// Exports profiles over earlier ones, and is killed meanwhile: every file is as it was, or whole.
pub(super) fn exporting(programs: &Programs, kills: u64, seed: u64) -> Result<String> {
    let folder = programs.scratch("exporting")?;
    let train = || {
        let mut command = programs.cresset();
        command.args(["train", "mlp", "--epochs", "1", "--batch", "128", "--profile"]).arg(&folder);
        command
    };
    let begin = Instant::now();
    kill_after(start(&mut train())?, Duration::from_secs(3600))?;
    let usual = begin.elapsed();
    let (mut choices, mut killed, mut replaced, mut left) = (Choices::new(seed), 0, 0, 0);
    while killed < kills {
        let before = files(&folder)?;
        // Files are written at the end.
        if kill_after(start(&mut train())?, choices.between(usual / 2, usual))? {
            killed += 1;
        }
        for (name, bytes) in files(&folder)? {
            if name.starts_with('.') {
                left += 1;
            } else if before.get(&name) != Some(&bytes) {
                whole(&name, &bytes)?;
                replaced += 1;
            }
        }
        if before.keys().any(|name| !name.starts_with('.') && !folder.join(name).exists()) {
            return Err("a file is gone".into());
        }
    }
    // What was left half done is removed by the next who writes there.
    kill_after(start(&mut train())?, Duration::from_secs(3600))?;
    if files(&folder)?.keys().any(|name| name.starts_with('.')) {
        return Err("what killed processes left was not removed".into());
    }
    Ok(format!(
        "{killed} kills, {replaced} files replaced whole, {left} unfinished ones hidden and then removed"
    ))
}

/// The files of a folder by name.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        found.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), fs::read(&path)?);
    }
    Ok(found)
}

/// Fails unless a file of this name is complete.
fn whole(name: &str, bytes: &[u8]) -> Result {
    let ends = |ending: &str| String::from_utf8_lossy(bytes).trim_end().ends_with(ending);
    let is_whole = match name.rsplit('.').next() {
        Some("json") => serde_json::from_slice::<serde_json::Value>(bytes).is_ok(),
        Some("html") => ends("</html>"),
        Some("svg") => ends("</svg>"),
        // The table ends with the sum of all times.
        _ => String::from_utf8_lossy(bytes).contains("CPU time total:"),
    };
    if is_whole { Ok(()) } else { Err(format!("{name} is not whole: {} bytes", bytes.len()).into()) }
}
