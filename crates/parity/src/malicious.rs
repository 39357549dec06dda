//! Hostile and broken files: whether our readers take and refuse what the reference readers do, within bounds.

use crate::BadFile;
use cresset_data::read_npy;
use cresset_nn::load_state;
use serde_json::Value;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a reader may take.
const LONGEST: Duration = Duration::from_secs(1);
/// Bytes that a reader may take besides twice those of the file.
const ROOM: u64 = 64 << 20;

/// What should become of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is read.
    Accept,
    /// It is refused.
    Reject,
    /// One of these, but nothing else.
    Either,
}

/// What became of a file.
#[derive(Clone, Debug)]
pub struct HostileFile {
    /// Its name.
    pub name: String,
    /// What should have become of it.
    pub expected: Expected,
    /// What the reader said: how many tensors there are, or why it was refused.
    pub said: Result<usize, String>,
    /// What went wrong besides: a panic, or too much of time or memory.
    pub trouble: Option<String>,
    /// How long it took.
    pub time: Duration,
}

impl HostileFile {
    /// Whether all was as it should be.
    pub fn passed(&self) -> bool {
        let agrees = match self.expected {
            Expected::Accept => self.said.is_ok(),
            Expected::Reject => self.said.is_err(),
            Expected::Either => true,
        };
        agrees && self.trouble.is_none()
    }
}

impl fmt::Display for HostileFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed() { "ok" } else { "FAILED" };
        write!(f, "{verdict:6} {:34} {:>7.1} ms  ", self.name, self.time.as_secs_f64() * 1e3)?;
        match &self.said {
            Ok(1) => write!(f, "1 tensor")?,
            Ok(count) => write!(f, "{count} tensors")?,
            Err(reason) => write!(f, "refused: {reason}")?,
        }
        self.trouble.iter().try_for_each(|trouble| write!(f, "; {trouble}"))?;
        if self.passed() { Ok(()) } else { write!(f, "; expected: {:?}", self.expected) }
    }
}

/// Reads every file that `folder/index.json` lists, and tells `show` of each.
///
/// # Errors
/// If the index cannot be read, or speaks of what is not known.
pub fn replay_malicious(
    folder: &Path,
    show: &mut dyn FnMut(&HostileFile),
) -> Result<Vec<HostileFile>, BadFile> {
    let index = folder.join("index.json");
    let bad = |what: String| BadFile::new(&index, what);
    let text = std::fs::read_to_string(&index).map_err(|error| bad(error.to_string()))?;
    let parsed: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    if parsed["format"] != "golden-v1" || parsed["suite"] != "malicious" {
        return Err(bad("is no index of format golden-v1 and suite malicious".into()));
    }
    let cases = parsed["cases"].as_array().ok_or_else(|| bad("has no cases".into()))?;
    let mut files = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = case["file"].as_str().ok_or_else(|| bad(format!("case {number} names no file")))?;
        // An index names files beside itself, and leads nowhere else.
        if Path::new(name).components().count() != 1 || Path::new(name).file_name().is_none() {
            return Err(bad(format!("case {number}: {name:?} is not the name of a file")));
        }
        let expected = match case["verdict"].as_str() {
            Some("accept") => Expected::Accept,
            Some("reject") => Expected::Reject,
            Some("either") => Expected::Either,
            _ => return Err(bad(format!("case {number}: expected a verdict accept, reject or either"))),
        };
        let file = read(&folder.join(name), name, expected);
        show(&file);
        files.push(file);
    }
    Ok(files)
}

fn read(path: &Path, name: &str, expected: Expected) -> HostileFile {
    let before = Memory::now();
    let start = Instant::now();
    let outcome =
        catch_unwind(AssertUnwindSafe(|| match path.extension().and_then(|ending| ending.to_str()) {
            Some("safetensors") => {
                load_state(path).map(|tensors| tensors.len()).map_err(|error| error.to_string())
            }
            Some("npy") => read_npy(path).map(|_| 1).map_err(|error| error.to_string()),
            _ => Err("there is no reader for files of this ending".to_owned()),
        }));
    let time = start.elapsed();
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    let taken = before.taken();
    let trouble = match &outcome {
        Err(_) => Some("the reader panicked".to_owned()),
        Ok(_) if time > LONGEST => Some(format!("took longer than {LONGEST:?}")),
        Ok(_) if taken > ROOM + 2 * size => Some(format!("took {} MiB", taken >> 20)),
        Ok(_) => None,
    };
    let said = outcome.unwrap_or_else(|_| Err("panicked".to_owned()));
    HostileFile { name: name.to_owned(), expected, said, trouble, time }
}

/// What memory the process had, where the system tells.
struct Memory(u64);

impl Memory {
    /// As it is now, from where the peak is counted anew.
    fn now() -> Memory {
        // Not every system has this; there, nothing is found to be too much.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Memory(bytes_of("VmRSS:"))
    }

    /// How much more there was at the peak since.
    fn taken(&self) -> u64 {
        bytes_of("VmHWM:").saturating_sub(self.0)
    }
}

fn bytes_of(entry: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(entry));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
