//! What the operating system says about this process, without asking it through `unsafe`.

use std::fs;
use std::hash::{BuildHasher, RandomState};

/// The calling thread's id as the operating system counts, or as we do where it is not told.
/// Callers keep it: asking costs a system call.
pub(crate) fn thread() -> u32 {
    let link = fs::read_link("/proc/thread-self").ok();
    let id = link.as_deref().and_then(|path| path.file_name()?.to_str()?.parse().ok());
    id.unwrap_or_else(cresset_dispatch::thread::number)
}

/// The machine's name.
pub(crate) fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { std::env::var("HOSTNAME").unwrap_or_default() } else { name };
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// The program's name.
pub(crate) fn process() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "cresset".to_owned())
}

/// A new random trace id: 32 upper-case hexadecimal digits.
pub(crate) fn trace_id() -> String {
    let random = |salt: u8| RandomState::new().hash_one((salt, crate::clock::wall_nanos()));
    format!("{:016X}{:016X}", random(0), random(1))
}
