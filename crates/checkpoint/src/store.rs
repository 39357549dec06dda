//! A directory of checkpoints: saving one, finding the newest, and how many are kept.

use crate::TrainingState;
use crate::durable::{Draft, discard, is_unfinished, remove};
use crate::json;
use cresset_nn::{Module, load_state, save_state};
use cresset_optim::schedule::ScheduleState;
use cresset_optim::{Optimizer, StateDict};
use cresset_tensor::{Cause, Error, Result, Tensor, set_random_state, set_random_state_of};
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MODEL: &str = "model.safetensors";
/// What the optimizer and the schedule keep, under these names.
const KEPT: &str = "training.safetensors";
const KEPT_BY_OPTIMIZER: &str = "optimizer";
const KEPT_BY_SCHEDULE: &str = "schedule";
const TRAINING: &str = "training.json";
const CHECKSUMS: &str = "checksums.txt";
/// What has a checksum.
const FILES: [&str; 3] = [MODEL, KEPT, TRAINING];
/// Directories of checkpoints are called this and the number of steps.
const PREFIX: &str = "step-";

/// The checkpoints of one training run.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    directory: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Those in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(directory: impl AsRef<Path>) -> Result<Checkpoints> {
        let directory = directory.as_ref().to_owned();
        fs::create_dir_all(&directory).map_err(|error| fault(&directory, error))?;
        Ok(Checkpoints { directory, keep: 3 })
    }

    /// How many are kept, the newest; 3 unless said otherwise. All of them for 0.
    #[must_use]
    pub fn keep(mut self, count: usize) -> Checkpoints {
        self.keep = count;
        self
    }

    /// Saves the weights of `model` and `state`, then removes checkpoints that are too many.
    ///
    /// # Errors
    /// If it cannot be written, for want of room above all: the checkpoints of before are as they were.
    pub fn save(&self, model: &dyn Module, state: &TrainingState) -> Result<Checkpoint> {
        let directory = self.directory.join(format!("{PREFIX}{:010}", state.step));
        let told = |error: io::Error| fault(&directory, error);
        let draft = Draft::new(&directory).map_err(told)?;
        save_state(&model.state_dict(), draft.path(MODEL))?;
        let mut kept = below(KEPT_BY_OPTIMIZER, state.optimizer.to_tensors()?);
        if let Some(schedule) = &state.schedule {
            kept.extend(below(KEPT_BY_SCHEDULE, schedule.to_tensors()?));
        }
        save_state(&kept, draft.path(KEPT))?;
        let text = format!("{:#}\n", json::write(state));
        draft.write(TRAINING, text.as_bytes()).map_err(told)?;
        let sums = FILES.iter().map(|name| Ok(format!("{} {name}\n", checksum(&draft.path(name))?)));
        let sums = sums.collect::<io::Result<String>>().map_err(told)?;
        draft.write(CHECKSUMS, sums.as_bytes()).map_err(told)?;
        draft.publish().map_err(told)?;
        self.tidy().map_err(told)?;
        Ok(Checkpoint { directory, step: state.step })
    }

    /// All of them, the oldest first.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn all(&self) -> Result<Vec<Checkpoint>> {
        let told = |error: io::Error| fault(&self.directory, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(told)? {
            let directory = entry.map_err(told)?.path();
            let name = directory.file_name().and_then(|name| name.to_str());
            if let Some(step) = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok()) {
                found.push(Checkpoint { directory, step });
            }
        }
        found.sort_by_key(|checkpoint| checkpoint.step);
        Ok(found)
    }

    /// The newest that is whole; `None` if there is none at all.
    ///
    /// # Errors
    /// If there are some, and all of them are damaged: what is wrong with the newest.
    pub fn newest(&self) -> Result<Option<Checkpoint>> {
        let mut damage = None;
        for checkpoint in self.all()?.into_iter().rev() {
            match checkpoint.verify() {
                Ok(()) => return Ok(Some(checkpoint)),
                Err(error) => damage = damage.or(Some(error)),
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// Removes what is too old, and what runs that ended early have left.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if is_unfinished(&path) {
                remove(&path)?;
            }
        }
        let Ok(all) = self.all() else { return Ok(()) };
        let surplus = if self.keep == 0 { 0 } else { all.len().saturating_sub(self.keep) };
        all[..surplus].iter().try_for_each(|checkpoint| discard(&checkpoint.directory))
    }
}

/// One checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    directory: PathBuf,
    step: u64,
}

impl Checkpoint {
    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The weights, which torch can load too.
    pub fn model(&self) -> PathBuf {
        self.directory.join(MODEL)
    }

    /// After how many steps it was saved.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Overwrites the weights of `model`, the state of `optimizer` and the random numbers of this process by
    /// what was saved, and gives the rest. Training goes on bit for bit.
    ///
    /// # Errors
    /// If a file is missing, damaged, or does not fit the model or the optimizer. Both are as before then.
    pub fn restore(&self, model: &dyn Module, optimizer: &mut dyn Optimizer) -> Result<TrainingState> {
        self.verify()?;
        let state = self.state()?;
        let before = optimizer.state_dict()?;
        optimizer.load_state_dict(&state.optimizer)?;
        let loaded = load_state(self.model()).and_then(|weights| model.load_state_dict(&weights));
        if let Err(error) = loaded {
            optimizer.load_state_dict(&before)?;
            return Err(error);
        }
        set_random_state(state.random);
        for (name, random) in &state.device_random {
            // A run may go on where that device is not.
            if let Ok(device) = name.parse() {
                set_random_state_of(device, *random);
            }
        }
        Ok(state)
    }

    /// All but the weights.
    ///
    /// # Errors
    /// If a file cannot be read or makes no sense.
    pub fn state(&self) -> Result<TrainingState> {
        let path = self.directory.join(TRAINING);
        let text = fs::read(&path).map_err(|error| fault(&path, error))?;
        let value = serde_json::from_slice(&text).map_err(|error| fault(&path, error))?;
        let mut state = json::read(&value).map_err(|error| fault(&path, error))?;
        let path = self.directory.join(KEPT);
        let (mut optimizer, mut schedule) = (Vec::new(), Vec::new());
        for (name, tensor) in load_state(&path)? {
            match name.split_once('.') {
                Some((KEPT_BY_OPTIMIZER, name)) => optimizer.push((name.to_owned(), tensor)),
                Some((KEPT_BY_SCHEDULE, name)) => schedule.push((name.to_owned(), tensor)),
                _ => return Err(fault(&path, format_args!("{name:?} is no part of a training state"))),
            }
        }
        state.optimizer = StateDict::from_tensors(optimizer)?;
        state.schedule =
            if schedule.is_empty() { None } else { Some(ScheduleState::from_tensors(schedule)?) };
        Ok(state)
    }

    /// Whether all files are as they were written.
    fn verify(&self) -> Result<()> {
        let path = self.directory.join(CHECKSUMS);
        let mut known = String::new();
        // Three short lines: more than that was not written here.
        let read = fs::File::open(&path).and_then(|file| file.take(4096).read_to_string(&mut known));
        read.map_err(|error| fault(&path, error))?;
        for name in FILES {
            let file = self.directory.join(name);
            let now = checksum(&file).map_err(|error| fault(&file, error))?;
            if !known.lines().any(|line| line.split_once(' ') == Some((&now, name))) {
                return Err(fault(&file, "is not what was saved: its checksum differs"));
            }
        }
        Ok(())
    }
}

/// The same tensors with `prefix` before their names.
fn below(prefix: &str, tensors: Vec<(String, Tensor)>) -> Vec<(String, Tensor)> {
    tensors.into_iter().map(|(name, tensor)| (format!("{prefix}.{name}"), tensor)).collect()
}

/// Length and CRC-32 of a file.
fn checksum(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let (mut hasher, mut length, mut block) = (crc32fast::Hasher::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(format!("{length}:{:08x}", hasher.finalize())),
            count => {
                hasher.update(&block[..count]);
                length += count;
            }
        }
    }
}

fn fault(path: &Path, what: impl Display) -> Error {
    Error::new(Cause::Argument, "checkpoint", format_args!("{}: {what}", path.display()))
}
