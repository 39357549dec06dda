//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Writes `path` with what `fill` writes, compressed if the name ends in `.gz`.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let fill = |file: File| if gzip { fill_compressed(file, fill) } else { fill_plain(file, fill) };
    // What a link points to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let outcome = match fs::metadata(&target) {
        // A pipe or a device is no file to put another one in place of.
        Ok(known) if !known.is_file() => File::options().write(true).open(&target).and_then(fill).map(drop),
        _ => replace(&target, fill),
    };
    outcome.map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn fill_plain(mut file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    fill(&mut file)?;
    file.flush()?;
    Ok(file)
}

fn fill_compressed(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    // Level 1 is nine times smaller at twice the time of plain writing; more costs more.
    let mut encoder = GzEncoder::new(file, Compression::new(1));
    fill(&mut encoder)?;
    encoder.finish()
}

/// Fills a file beside `target`, makes sure it is on disk, and moves it there.
fn replace(target: &Path, fill: impl FnOnce(File) -> io::Result<File>) -> io::Result<()> {
    let hidden = hidden_name(target)?;
    remove_abandoned(target, &hidden);
    let (beside, file) = create_beside(target, &hidden)?;
    let outcome = fill(file).and_then(|file| {
        file.sync_all()?;
        fs::rename(&beside, target)
    });
    if outcome.is_err() {
        // The first error is the one to tell; there may be nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    outcome
}

/// A file in the same directory that nobody else uses, locked while it is open: so others know that
/// someone is at work on it.
fn create_beside(target: &Path, hidden: &str) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Relaxed);
        let path = target.with_file_name(format!("{hidden}{}.{count}{UNFINISHED}", std::process::id()));
        let file = File::create_new(&path)?;
        // A file system without locks has nobody who removes what is not locked.
        let _ = file.lock();
        // Before it was locked, another process may have taken it for abandoned.
        if path.exists() {
            return Ok((path, file));
        }
    }
}

const UNFINISHED: &str = ".tmp";

/// Removes what processes left here that were killed while they wrote the same file: their locks went
/// with them.
fn remove_abandoned(target: &Path, hidden: &str) {
    let directory = target.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(hidden)?.strip_suffix(UNFINISHED));
        let is_ours = number.is_some_and(|number| number.bytes().all(|b| b == b'.' || b.is_ascii_digit()));
        if is_ours && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // One that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What the names of unfinished files begin with.
fn hidden_name(target: &Path) -> io::Result<String> {
    let Some(name) = target.file_name() else {
        let is_empty = target.as_os_str().is_empty();
        let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the path is empty");
        return Err(if is_empty { empty() } else { io::ErrorKind::IsADirectory.into() });
    };
    Ok(format!(".{}.", name.to_string_lossy()))
}
