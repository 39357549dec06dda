//! How processes that were started together find each other.

use cresset_tensor::{Cause, Error, Result};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Which rank this process is, and a directory that all ranks see, where the first leaves what the others need to
/// find it. What is exchanged there is small, and only at the start.
///
/// | variable | meaning |
/// |---|---|
/// | `RANK` | which rank this is |
/// | `WORLD_SIZE` | how many there are |
/// | `LOCAL_RANK` | which of them on this host; `RANK` unless said otherwise |
/// | `CRESSET_RENDEZVOUS` | the directory, empty before the start |
/// | `CRESSET_TIMEOUT` | seconds to wait for other ranks; 1800 unless said otherwise |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// Which rank this process is.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// Which of the ranks on this host; the number of the device to use.
    pub local_rank: u32,
    /// Where ranks leave things for each other.
    pub directory: PathBuf,
    /// How long to wait for other ranks.
    pub timeout: Duration,
}

/// How long ranks wait unless they are told.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1800);

impl Rendezvous {
    /// What the environment says; `None` if this process was started alone, without `CRESSET_RENDEZVOUS`.
    ///
    /// # Errors
    /// If a variable is missing or is no number.
    pub fn from_env() -> Result<Option<Rendezvous>> {
        let Some(directory) = env::var_os("CRESSET_RENDEZVOUS").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let (rank, size) = (required("RANK")?, required("WORLD_SIZE")?);
        let local_rank = number("LOCAL_RANK")?.unwrap_or(rank);
        let timeout =
            number("CRESSET_TIMEOUT")?.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.into()));
        Ok(Some(Rendezvous { rank, size, local_rank, directory: directory.into(), timeout }))
    }

    /// The variables that tell a process which rank it is, as [`from_env`](Rendezvous::from_env) reads them.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("RANK", self.rank.to_string()),
            ("WORLD_SIZE", self.size.to_string()),
            ("LOCAL_RANK", self.local_rank.to_string()),
            ("CRESSET_RENDEZVOUS", self.directory.display().to_string()),
            ("CRESSET_TIMEOUT", self.timeout.as_secs().to_string()),
        ]
    }

    /// Bytes that rank 0 makes, and all ranks get. Each `name` can be shared once.
    ///
    /// # Errors
    /// If they cannot be made or written, or rank 0 does not leave them in time.
    pub fn share(&self, name: &str, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let path = self.directory.join(name);
        if self.rank == 0 {
            let bytes = make()?;
            let partial = self.directory.join(format!("{name}.partial"));
            fs::write(&partial, &bytes)
                .and_then(|()| fs::rename(&partial, &path))
                .map_err(|error| fault(format_args!("cannot write {}: {error}", path.display())))?;
            return Ok(bytes);
        }
        self.look_for(&path)
    }

    /// What rank 0 leaves appears whole.
    fn look_for(&self, path: &Path) -> Result<Vec<u8>> {
        const PAUSE: Duration = Duration::from_millis(5);
        let started = Instant::now();
        loop {
            match fs::read(path) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(fault(format_args!("cannot read {}: {error}", path.display())));
                }
                Err(_) if started.elapsed() > self.timeout => {
                    let seconds = self.timeout.as_secs_f64();
                    return Err(fault(format_args!(
                        "rank 0 did not leave {} within {seconds} s",
                        path.display()
                    )));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }
}

fn fault(text: std::fmt::Arguments<'_>) -> Error {
    Error::new(Cause::Argument, "Rendezvous", text)
}

fn number(variable: &str) -> Result<Option<u32>> {
    let Ok(value) = env::var(variable) else { return Ok(None) };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(fault(format_args!("{variable} is {value:?}, expected a whole number"))),
    }
}

fn required(variable: &str) -> Result<u32> {
    number(variable)?.ok_or_else(|| fault(format_args!("CRESSET_RENDEZVOUS is set, and {variable} is not")))
}
