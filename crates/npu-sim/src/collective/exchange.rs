//! What ranks do with each other's bytes, chunk by chunk.

use super::element::{Elements, Operation};
use super::meeting::Meeting;
use super::region::MAIL;
use crate::error::Result;
use crate::memory::{Memory, Span};
use cresset_acl::collective::result;
use std::thread;

/// One kind of communication, with where bytes come from and go to.
pub(crate) enum Exchange {
    /// Everyone gets what all together make.
    AllReduce { from: Span, to: Span, operation: Operation },
    /// One gets what all together make.
    Reduce { from: Span, to: Span, operation: Operation, root: u32 },
    /// Each gets its part of what all together make; `from` holds a part for every rank.
    ReduceScatter { from: Span, to: Span, operation: Operation },
    /// All get what one has.
    Broadcast { buffer: Span, root: u32 },
    /// Everyone gets what all have, one after the other.
    AllGather { from: Span, to: Span },
    /// Each gets its part of what one has.
    Scatter { from: Span, to: Span, root: u32 },
    /// Everyone gets a part from everyone: where parts start, and how long they are.
    AllToAll { from: Vec<Span>, to: Vec<Span> },
    /// Messages between two.
    Transfers(Vec<Transfer>),
    /// Nothing, but all must have come.
    Barrier,
}

/// A message to or from another rank.
#[derive(Clone, Copy)]
pub(crate) enum Transfer {
    Send { from: Span, rank: u32 },
    Receive { to: Span, rank: u32 },
}

/// Some bytes of a span.
fn cut(span: Span, start: usize, bytes: usize) -> Span {
    Span { start: span.start + start, bytes }
}

fn read(memory: &Memory, span: Span, to: &mut [u8]) -> Result {
    let mut claim = memory.claim(&[span], &[])?;
    to.copy_from_slice(claim.bytes().0[0].lease().bytes());
    Ok(())
}

fn write(memory: &Memory, span: Span, from: &[u8]) -> Result {
    let mut claim = memory.claim(&[], &[span])?;
    claim.bytes().1[0].copy_from_slice(from);
    Ok(())
}

/// Pieces of at most `step` bytes, by where they start and how long they are.
fn pieces(bytes: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..bytes).step_by(step.max(1)).map(move |start| (start, step.min(bytes - start)))
}

impl Exchange {
    /// All memory it touches.
    pub(super) fn spans(&self) -> Vec<Span> {
        match self {
            Exchange::AllReduce { from, to, .. }
            | Exchange::Reduce { from, to, .. }
            | Exchange::ReduceScatter { from, to, .. }
            | Exchange::AllGather { from, to }
            | Exchange::Scatter { from, to, .. } => vec![*from, *to],
            Exchange::Broadcast { buffer, .. } => vec![*buffer],
            Exchange::AllToAll { from, to } => from.iter().chain(to).copied().collect(),
            Exchange::Transfers(transfers) => transfers.iter().map(|transfer| transfer.span()).collect(),
            Exchange::Barrier => vec![],
        }
    }

    pub(super) fn run(&self, elements: Elements, memory: &Memory, meeting: &Meeting) -> Result {
        match *self {
            Exchange::AllReduce { from, to, operation } => {
                reduce(elements, operation, memory, meeting, from, Some(to))
            }
            Exchange::Reduce { from, to, operation, root } => {
                let to = (meeting.rank() == root).then_some(to);
                reduce(elements, operation, memory, meeting, from, to)
            }
            Exchange::ReduceScatter { from, to, operation } => {
                reduce_scatter(elements, operation, memory, meeting, from, to)
            }
            Exchange::Broadcast { buffer, root } => broadcast(memory, meeting, buffer, root),
            Exchange::AllGather { from, to } => gather(memory, meeting, from, to),
            Exchange::Scatter { from, to, root } => scatter(memory, meeting, from, to, root),
            Exchange::AllToAll { ref from, ref to } => all_to_all(memory, meeting, from, to),
            Exchange::Transfers(ref transfers) => transfer(memory, meeting, transfers),
            Exchange::Barrier => meeting.meet("come to the barrier"),
        }
    }
}

impl Transfer {
    fn span(self) -> Span {
        match self {
            Transfer::Send { from, .. } => from,
            Transfer::Receive { to, .. } => to,
        }
    }
}

fn reduce(
    elements: Elements,
    operation: Operation,
    memory: &Memory,
    meeting: &Meeting,
    from: Span,
    to: Option<Span>,
) -> Result {
    for (start, bytes) in pieces(from.bytes, meeting.part(1, elements.size())) {
        let lay = |slot: &mut [u8]| read(memory, cut(from, start, bytes), &mut slot[..bytes]);
        meeting.round("bring its part", lay, |slots| {
            let Some(to) = to else { return Ok(()) };
            let parts: Vec<&[u8]> = meeting.everyone().map(|rank| &slots.of(rank)[..bytes]).collect();
            let mut joined = vec![0; bytes];
            elements.reduce(operation, &parts, &mut joined);
            write(memory, cut(to, start, bytes), &joined)
        })?;
    }
    Ok(())
}

fn reduce_scatter(
    elements: Elements,
    operation: Operation,
    memory: &Memory,
    meeting: &Meeting,
    from: Span,
    to: Span,
) -> Result {
    let (own, step) = (meeting.rank() as usize, meeting.part(meeting.ranks() as usize, elements.size()));
    for (start, bytes) in pieces(to.bytes, step) {
        let lay = |slot: &mut [u8]| {
            meeting.everyone().try_for_each(|rank| {
                let piece = cut(from, rank * to.bytes + start, bytes);
                read(memory, piece, &mut slot[rank * step..][..bytes])
            })
        };
        meeting.round("bring its part", lay, |slots| {
            let parts: Vec<&[u8]> =
                meeting.everyone().map(|rank| &slots.of(rank)[own * step..][..bytes]).collect();
            let mut joined = vec![0; bytes];
            elements.reduce(operation, &parts, &mut joined);
            write(memory, cut(to, start, bytes), &joined)
        })?;
    }
    Ok(())
}

fn broadcast(memory: &Memory, meeting: &Meeting, buffer: Span, root: u32) -> Result {
    for (start, bytes) in pieces(buffer.bytes, meeting.part(1, 1)) {
        let piece = cut(buffer, start, bytes);
        let is_root = meeting.rank() == root;
        let lay = |slot: &mut [u8]| if is_root { read(memory, piece, &mut slot[..bytes]) } else { Ok(()) };
        meeting.round("come to a broadcast", lay, |slots| {
            if is_root { Ok(()) } else { write(memory, piece, &slots.of(root as usize)[..bytes]) }
        })?;
    }
    Ok(())
}

fn gather(memory: &Memory, meeting: &Meeting, from: Span, to: Span) -> Result {
    for (start, bytes) in pieces(from.bytes, meeting.part(1, 1)) {
        let lay = |slot: &mut [u8]| read(memory, cut(from, start, bytes), &mut slot[..bytes]);
        meeting.round("bring its part", lay, |slots| {
            meeting.everyone().try_for_each(|rank| {
                write(memory, cut(to, rank * from.bytes + start, bytes), &slots.of(rank)[..bytes])
            })
        })?;
    }
    Ok(())
}

fn scatter(memory: &Memory, meeting: &Meeting, from: Span, to: Span, root: u32) -> Result {
    let (own, step) = (meeting.rank(), meeting.part(meeting.ranks() as usize, 1));
    for (start, bytes) in pieces(to.bytes, step) {
        let lay = |slot: &mut [u8]| {
            let parts = if own == root { meeting.everyone() } else { 0..0 };
            parts.into_iter().try_for_each(|rank| {
                read(memory, cut(from, rank * to.bytes + start, bytes), &mut slot[rank * step..][..bytes])
            })
        };
        meeting.round("come to a scatter", lay, |slots| {
            write(memory, cut(to, start, bytes), &slots.of(root as usize)[own as usize * step..][..bytes])
        })?;
    }
    Ok(())
}

/// Ranks need not know how much others have for each other, so each part is announced by its length.
fn all_to_all(memory: &Memory, meeting: &Meeting, from: &[Span], to: &[Span]) -> Result {
    const LENGTH: usize = size_of::<u64>();
    let own = meeting.rank() as usize;
    let step = meeting.part(meeting.ranks() as usize, LENGTH);
    let room = step - LENGTH;
    let mut start = 0;
    loop {
        let mut more = false;
        let lay = |slot: &mut [u8]| {
            meeting.everyone().try_for_each(|rank| {
                let part = &mut slot[rank * step..][..step];
                let left = from[rank].bytes.saturating_sub(start);
                part[..LENGTH].copy_from_slice(&(left as u64).to_ne_bytes());
                let bytes = left.min(room);
                read(
                    memory,
                    cut(from[rank], start.min(from[rank].bytes), bytes),
                    &mut part[LENGTH..][..bytes],
                )
            })
        };
        meeting.round("bring its parts", lay, |slots| {
            for rank in meeting.everyone() {
                let length = |part: usize| {
                    let bytes =
                        slots.of(rank)[part * step..][..LENGTH].try_into().expect("a length is laid first");
                    u64::from_ne_bytes(bytes) as usize
                };
                // All must agree on whether there is another round.
                more |= meeting.everyone().any(|part| length(part) > room);
                let bytes = length(own).min(room);
                if start + bytes > to[rank].bytes {
                    let (given, have) = (start + length(own), to[rank].bytes);
                    crate::error::fail!(
                        result::PARAMETER,
                        "rank {rank} sends {given} bytes, expected {have}"
                    );
                }
                let part = &slots.of(rank)[own * step + LENGTH..][..bytes];
                write(memory, cut(to[rank], start, bytes), part)?;
            }
            Ok(())
        })?;
        if !more {
            return Ok(());
        }
        start += room;
    }
}

/// Sends on a thread of their own, so that two ranks which both send first do not wait for each other.
fn transfer(memory: &Memory, meeting: &Meeting, transfers: &[Transfer]) -> Result {
    let send = || {
        transfers.iter().try_for_each(|transfer| match *transfer {
            Transfer::Send { from, rank } => pieces(from.bytes, MAIL).try_for_each(|(start, bytes)| {
                let mut message = vec![0; bytes];
                read(memory, cut(from, start, bytes), &mut message)?;
                meeting.send(rank as usize, &message)
            }),
            Transfer::Receive { .. } => Ok(()),
        })
    };
    let receive = || {
        transfers.iter().try_for_each(|transfer| match *transfer {
            Transfer::Receive { to, rank } => pieces(to.bytes, MAIL).try_for_each(|(start, bytes)| {
                meeting.receive(rank as usize, |message| {
                    if message.len() != bytes {
                        let given = message.len();
                        crate::error::fail!(
                            result::PARAMETER,
                            "rank {rank} sent {given} bytes, expected {bytes}"
                        );
                    }
                    write(memory, cut(to, start, bytes), message)
                })
            }),
            Transfer::Send { .. } => Ok(()),
        })
    };
    thread::scope(|scope| {
        let sending = scope.spawn(send);
        let received = receive();
        let sent = sending.join().expect("sending does not panic");
        received.and(sent)
    })
}
