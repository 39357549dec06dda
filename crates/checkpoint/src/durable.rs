//! Directories of files that appear whole or not at all, also when the power fails.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Ends the names of what is not finished.
const UNFINISHED: &str = ".partial";

/// A directory that is being written. Dropped before [`publish`](Draft::publish), it leaves nothing behind.
pub(crate) struct Draft {
    target: PathBuf,
    place: PathBuf,
    published: bool,
}

impl Draft {
    /// Begins to write `target`, beside it.
    pub(crate) fn new(target: &Path) -> io::Result<Draft> {
        let place = beside(target, &format!("{}{UNFINISHED}", std::process::id()));
        remove(&place)?;
        fs::create_dir(&place)?;
        Ok(Draft { target: target.to_owned(), place, published: false })
    }

    /// Where files are written meanwhile.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        File::create(self.path(name))?.write_all(bytes)
    }

    /// Gives the directory its name, once all of it is on the disk. What had the name before is gone then.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        for file in fs::read_dir(&self.place)? {
            File::open(file?.path())?.sync_all()?;
        }
        sync(&self.place)?;
        let replaces = self.target.exists();
        if replaces {
            exchange(&self.place, &self.target)?;
        } else {
            fs::rename(&self.place, &self.target)?;
        }
        self.published = true;
        sync(self.target.parent().unwrap_or(Path::new(".")))?;
        if replaces { remove(&self.place) } else { Ok(()) }
    }
}

/// Lets two directories change names in one moment, so that there always is one under either name.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        // Some file systems cannot.
        Err(Errno::INVAL | Errno::NOSYS) => exchange_by_steps(one, other),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(target_os = "linux"))]
use exchange_by_steps as exchange;

/// As [`exchange`], in three moments; a failure undoes what was done, but whoever is killed in between leaves
/// nothing under the name of `other`.
fn exchange_by_steps(one: &Path, other: &Path) -> io::Result<()> {
    let aside = beside(other, &format!("{}.old{UNFINISHED}", std::process::id()));
    remove(&aside)?;
    fs::rename(other, &aside)?;
    if let Err(error) = fs::rename(one, other) {
        fs::rename(&aside, other)?;
        return Err(error);
    }
    fs::rename(&aside, one)
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // The error that led here is told; this one would hide it.
            let _ = remove(&self.place);
        }
    }
}

/// Whether this is something that a run which ended early has left.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(UNFINISHED))
}

/// Removes a directory, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Removes a directory that was whole: under its name it is there with all files, or not at all.
pub(crate) fn discard(path: &Path) -> io::Result<()> {
    let hidden = beside(path, &format!("{}.old{UNFINISHED}", std::process::id()));
    fs::rename(path, &hidden)?;
    remove(&hidden)
}

fn beside(target: &Path, ending: &str) -> PathBuf {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.{ending}"))
}

/// Names in a directory are on the disk only after this.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_change_names_in_one_step_or_in_several() {
        let folder = std::env::temp_dir().join(format!("cresset-exchange-{}", std::process::id()));
        let [one, other] = ["one", "other"].map(|name| folder.join(name));
        for path in [&one, &other] {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join("file"), path.to_string_lossy().as_bytes()).unwrap();
        }
        let read = |path: &Path| PathBuf::from(fs::read_to_string(path.join("file")).unwrap());
        exchange(&one, &other).unwrap();
        assert_eq!([read(&one), read(&other)], [other.clone(), one.clone()]);
        exchange_by_steps(&one, &other).unwrap();
        assert_eq!([read(&one), read(&other)], [one.clone(), other.clone()]);
        assert!(exchange_by_steps(&folder.join("missing"), &other).is_err());
        assert_eq!(read(&other), other, "a failed exchange is undone");
        fs::remove_dir_all(folder).unwrap();
    }
}
