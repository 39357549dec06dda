//! Call stacks: walked while recording, kept once each, named when somebody asks.
//!
//! ```text
//! walk ──► table ──► (the number of a stack, in the event) ──► resolve
//! ```
//!
//! A program calls its operators from few places. So a stack is looked up before it is
//! written down, and an event holds only its number.

mod resolve;
mod table;
mod walk;

pub use resolve::Frame;
pub(crate) use resolve::{Frames, resolve};
pub use walk::{StackSource, stack_source};

pub(crate) use table::{Kept, clear, get, keep};

/// The number of the calling thread's stack as it is now, above 0.
pub(crate) fn capture() -> u64 {
    let mut buffer = [0; walk::LIMIT];
    let depth = walk::walk(&mut buffer);
    table::number(&buffer[..depth])
}
