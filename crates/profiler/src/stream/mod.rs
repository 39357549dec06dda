//! Recordings larger than memory: events go to a file while the session runs, and come back in
//! pieces.
//!
//! A thread of its own writes each block that is full, and gives its memory back. An event that
//! had not ended by then gets its end later, so those are kept here, with the table of contents. What
//! is made of a recording is made of it piece by piece, each as if it were a session of its own; calls
//! that reach into a piece from before are given to it as a frame for what is inside them.
//! What devices did is written as it becomes known, and goes to the piece that it was launched in.

mod activity;
mod block;
mod pieces;
mod writer;

pub(crate) use pieces::Streamed;
pub(crate) use writer::{Writer, chunk_is_full};

use crate::chunk::End;
use activity::Batch;
use cresset_dispatch::Device;
use std::collections::HashSet;

/// One block in the file, and what is known of it.
#[derive(Debug)]
struct Block {
    offset: u64,
    bytes: u32,
    /// When its first and its last event began, in ticks.
    first: u64,
    last: u64,
    events: u32,
    /// Ends of calls that were open when it was written, by place.
    late: Vec<(u32, End)>,
}

/// A thread that was recorded.
#[derive(Debug)]
struct Thread {
    number: u32,
    tid: u32,
    name: Option<String>,
    exited: Option<u64>,
    blocks: Vec<Block>,
}

/// What blocks refer to by number: it is the same program that reads them.
#[derive(Debug, Default)]
struct Tables {
    names: Vec<&'static str>,
    texts: Vec<String>,
    devices: Vec<Device>,
}

/// All that is known of a recording beside the events in its file.
#[derive(Debug, Default)]
struct Contents {
    threads: Vec<Thread>,
    tables: Tables,
    launches: Vec<Batch>,
    work: Vec<Batch>,
    /// Devices whose streams count from zero.
    from_zero: HashSet<Device>,
    /// What allocators had handed out when the recording began.
    totals: Vec<(Device, u64)>,
}
