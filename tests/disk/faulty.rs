//! The functions that files are written with, which fail when they are told to.

use libc::{c_char, c_int, c_long, c_void, mode_t, size_t, ssize_t};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

/// Calls until the one that fails; none does below 1.
static LEFT: AtomicI64 = AtomicI64::new(0);
/// Whether a write that is told to fail writes half instead, as systems may.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Counts a call; whether it is the one.
fn strikes() -> bool {
    LEFT.load(SeqCst) > 0 && LEFT.fetch_sub(1, SeqCst) == 1
}

fn fail(code: c_int) -> c_int {
    // SAFETY: this thread's own number.
    unsafe { *libc::__errno_location() = code };
    -1
}

fn result(code: c_long) -> c_int {
    // A system call by this function sets the error's number as the others do.
    code as c_int
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    if flags & libc::O_CREAT != 0 && strikes() {
        return fail(libc::EMFILE);
    }
    // SAFETY: the caller's promise.
    result(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) })
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, from: *const c_void, count: size_t) -> ssize_t {
    let mut count = count;
    // What tests print is left alone.
    if file > libc::STDERR_FILENO && strikes() {
        if !SHORT.load(SeqCst) || count < 2 {
            return fail(libc::ENOSPC) as ssize_t;
        }
        count /= 2;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_write, file, from, count) as ssize_t }
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    if strikes() {
        return fail(libc::EIO);
    }
    // SAFETY: has no preconditions.
    result(unsafe { libc::syscall(libc::SYS_fsync, file) })
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    if strikes() {
        return fail(libc::EACCES);
    }
    // SAFETY: the caller's promise.
    result(unsafe { libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) })
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    if strikes() {
        return fail(libc::ENOSPC);
    }
    // SAFETY: the caller's promise.
    result(unsafe { libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path, mode) })
}

/// Runs `body` with the `n`-th call failing; what it gives, and whether there was such a call.
pub(crate) fn with_fault<R>(n: i64, body: impl FnOnce() -> R) -> (R, bool) {
    LEFT.store(n, SeqCst);
    let outcome = body();
    let happened = LEFT.swap(0, SeqCst) <= 0;
    (outcome, happened)
}

/// A directory of one test, which has the disk for itself until it ends.
pub(crate) struct Scratch(
    pub(crate) PathBuf,
    #[expect(dead_code, reason = "held until the test ends")] MutexGuard<'static, ()>,
);

impl Scratch {
    /// With `short`, writes that are told to fail write half of what they should.
    pub(crate) fn new(name: &str, short: bool) -> Scratch {
        static ONE: Mutex<()> = Mutex::new(());
        let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        SHORT.store(short, SeqCst);
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("disk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path, guard)
    }

    /// The names in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
