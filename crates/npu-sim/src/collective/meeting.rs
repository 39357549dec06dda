//! Ranks that wait for each other, and notice who does not come.

#![expect(unsafe_code, reason = "lends shared memory by turns, and asks whether processes live")]

use super::Id;
use super::region::{MAIL, MOST_RANKS, Region, SLOT};
use crate::error::{Result, fail};
use cresset_acl::collective::result;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// One rank's place in a group.
#[derive(Clone)]
pub(crate) struct Meeting {
    region: Arc<Joined>,
    rank: usize,
    ranks: usize,
    patience: Duration,
}

/// A region that a rank has joined; leaving it is told to the others.
struct Joined {
    region: Region,
    rank: usize,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.region.head().ranks[self.rank].left.store(1, Ordering::SeqCst);
    }
}

impl Meeting {
    pub(super) fn join(id: &Id, rank: u32, ranks: u32) -> Result<Meeting> {
        let (rank, ranks) = (rank as usize, ranks as usize);
        if ranks == 0 || ranks > MOST_RANKS || rank >= ranks {
            fail!(result::PARAMETER, "rank {rank} of {ranks}, expected up to {MOST_RANKS}");
        }
        let region = Region::open(id, ranks)?;
        let state = &region.head().ranks[rank];
        if state.process.swap(std::process::id(), Ordering::SeqCst) != 0 {
            fail!(result::PARAMETER, "rank {rank} has joined before");
        }
        region.head().joined.fetch_add(1, Ordering::SeqCst);
        let region = Arc::new(Joined { region, rank });
        Ok(Meeting { region, rank, ranks, patience: Duration::ZERO })
    }

    /// Waits until all ranks have joined.
    pub(super) fn gather(&self, patience: Duration) -> Result {
        let head = self.region.region.head();
        let meeting = self.with_patience(patience);
        let came = meeting.until("join", |rank| head.ranks[rank].process.load(Ordering::SeqCst) != 0);
        self.region.region.forget_name();
        came
    }

    pub(super) fn with_patience(&self, patience: Duration) -> Meeting {
        Meeting { patience, ..self.clone() }
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank as u32
    }

    pub(super) fn ranks(&self) -> u32 {
        self.ranks as u32
    }

    /// All ranks' numbers.
    pub(super) fn everyone(&self) -> std::ops::Range<usize> {
        0..self.ranks
    }

    /// Tells the others that this rank will not come any more.
    pub(super) fn give_up(&self) {
        let failed = &self.region.region.head().failed;
        failed.compare_exchange(0, self.rank as u32 + 1, Ordering::SeqCst, Ordering::SeqCst).ok();
    }

    /// Waits until every other rank has done something.
    fn until(&self, what: &str, done: impl Fn(usize) -> bool) -> Result {
        self.everyone()
            .filter(|rank| *rank != self.rank)
            .try_for_each(|rank| self.wait(rank, what, || done(rank)))
    }

    /// Waits until a rank has done something; fails if it is gone, or takes too long.
    fn wait(&self, rank: usize, what: &str, done: impl Fn() -> bool) -> Result {
        /// How often to look before sleeping in between.
        const EAGER: u32 = 200;
        let (start, head) = (Instant::now(), self.region.region.head());
        let mut looks = 0;
        while !done() {
            looks += 1;
            if looks < EAGER {
                thread::yield_now();
                continue;
            }
            thread::sleep(Duration::from_micros(if looks < 2 * EAGER { 20 } else { 200 }));
            let state = &head.ranks[rank];
            let process = state.process.load(Ordering::SeqCst);
            let failed = head.failed.load(Ordering::SeqCst);
            let ended = state.left.load(Ordering::SeqCst) != 0 || process != 0 && !is_alive(process);
            if ended && !done() {
                fail!(result::REMOTE, "rank {rank} (process {process}) is gone, and did not {what}");
            }
            if failed != 0 && failed != self.rank as u32 + 1 && !done() {
                fail!(result::REMOTE, "rank {} gave up, while rank {rank} had yet to {what}", failed - 1);
            }
            if start.elapsed() > self.patience && !done() {
                fail!(result::TIMEOUT, "rank {rank} did not {what} within {} s", self.patience.as_secs_f64());
            }
        }
        Ok(())
    }

    /// Comes to the next meeting, and waits for all others to come.
    pub(super) fn meet(&self, what: &str) -> Result {
        let head = self.region.region.head();
        let step = head.ranks[self.rank].step.fetch_add(1, Ordering::SeqCst) + 1;
        self.until(what, |rank| head.ranks[rank].step.load(Ordering::SeqCst) >= step)
    }

    /// One round: every rank lays out bytes, then looks at those of all others.
    ///
    /// `lay` fills this rank's slot, `look` sees the slots of all.
    pub(super) fn round(
        &self,
        what: &str,
        lay: impl FnOnce(&mut [u8]) -> Result,
        look: impl FnOnce(&Slots<'_>) -> Result,
    ) -> Result {
        let region = &self.region.region;
        // SAFETY: others look at it only between the two meetings below.
        lay(unsafe { region.slot_mut(self.rank) })?;
        self.meet(what)?;
        look(&Slots(region))?;
        self.meet(what)
    }

    /// Lays bytes in the mailbox to a rank, once it is empty.
    pub(super) fn send(&self, to: usize, bytes: &[u8]) -> Result {
        assert!(bytes.len() <= MAIL, "messages come in parts");
        let (region, rank) = (&self.region.region, self.rank);
        let mailbox = region.mailbox(rank, to);
        let count = mailbox.sent.load(Ordering::SeqCst);
        self.wait(to, "receive", || mailbox.received.load(Ordering::SeqCst) == count)?;
        // SAFETY: all that was sent was received, so the room is the sender's.
        let mail = unsafe { region.mail(rank, to) };
        mail[..bytes.len()].copy_from_slice(bytes);
        mailbox.bytes.store(bytes.len() as u64, Ordering::SeqCst);
        mailbox.sent.store(count + 1, Ordering::SeqCst);
        Ok(())
    }

    /// Takes bytes out of the mailbox from a rank, once some are there.
    pub(super) fn receive(&self, from: usize, take: impl FnOnce(&[u8]) -> Result) -> Result {
        let (region, rank) = (&self.region.region, self.rank);
        let mailbox = region.mailbox(from, rank);
        let count = mailbox.received.load(Ordering::SeqCst);
        self.wait(from, "send", || mailbox.sent.load(Ordering::SeqCst) > count)?;
        let bytes = mailbox.bytes.load(Ordering::SeqCst) as usize;
        // SAFETY: something was sent and not yet received, so the room is the receiver's.
        take(&unsafe { region.mail(from, rank) }[..bytes.min(MAIL)])?;
        mailbox.received.store(count + 1, Ordering::SeqCst);
        Ok(())
    }

    /// Bytes that fit into one part of a slot, if there are so many parts, in whole elements.
    pub(super) fn part(&self, parts: usize, element: usize) -> usize {
        SLOT / parts / element * element
    }
}

/// What all ranks have laid out, between two meetings.
pub(super) struct Slots<'a>(&'a Region);

impl Slots<'_> {
    pub(super) fn of(&self, rank: usize) -> &[u8] {
        // SAFETY: this exists between two meetings only, when nobody writes.
        unsafe { self.0.slot(rank) }
    }
}

fn is_alive(process: u32) -> bool {
    // SAFETY: sends nothing, only asks.
    let asked = unsafe { libc::kill(process as libc::pid_t, 0) };
    let is_known = asked == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_known && !is_zombie(process)
}

/// Whether a process has ended, and only its parent has not asked how.
fn is_zombie(process: u32) -> bool {
    // The state follows the program's name, which stands in parentheses and may contain some itself.
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
