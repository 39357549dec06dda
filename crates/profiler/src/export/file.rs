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
    let beside = beside(target)?;
    let outcome = File::create_new(&beside)
        .and_then(fill)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&beside, target));
    if outcome.is_err() {
        // The first error is the one to tell; there may be nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    outcome
}

/// A name in the same directory that nobody else uses.
fn beside(target: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = target.file_name() else {
        let is_empty = target.as_os_str().is_empty();
        let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the path is empty");
        return Err(if is_empty { empty() } else { io::ErrorKind::IsADirectory.into() });
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.{}.tmp", std::process::id(), COUNT.fetch_add(1, Relaxed)));
    Ok(target.with_file_name(hidden))
}
