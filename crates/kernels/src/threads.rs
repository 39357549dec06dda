//! Threads that share the pieces of one kernel.
//!
//! A kernel cuts its work into pieces by shape alone, never by the number of threads, so that
//! results are the same bits for every number. Threads take pieces as they come. Between kernels
//! they watch for the next for a moment before they sleep: waking one costs as much as adding up
//! a hundred thousand numbers.

#![expect(
    unsafe_code,
    reason = "lends a closure to threads that outlive it, and parts of one slice to several"
)]

use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// The environment variable that says how many threads kernels use.
pub const THREADS_VARIABLE: &str = "CRESSET_NUM_THREADS";

/// Nanoseconds of work that are worth a second thread.
const PAYS: usize = 20_000;
/// How long a thread watches for more work before it sleeps.
const WATCH: Duration = Duration::from_micros(100);

/// How many threads kernels use unless the calling thread says otherwise; 0 before anyone asked.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many threads kernels called from this thread use; 0 for what the process uses.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// How many threads kernels that this thread calls use at most: what [`with_threads`] or
/// [`set_threads`] said, else the environment's `CRESSET_NUM_THREADS`, else one per processor.
pub fn threads() -> usize {
    match (HERE.get(), COUNT.load(Relaxed)) {
        (0, 0) => {
            set_threads(0);
            COUNT.load(Relaxed)
        }
        (0, count) | (count, _) => count,
    }
}

/// Sets how many threads kernels use in this process; 0 goes back to the default.
pub fn set_threads(count: usize) {
    COUNT.store(if count == 0 { default_threads() } else { count }, Relaxed);
}

/// Runs `f`; kernels that it calls on this thread use `count` threads, or the process's number if 0.
pub fn with_threads<R>(count: usize, f: impl FnOnce() -> R) -> R {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _restore = Restore(HERE.replace(count));
    f()
}

fn default_threads() -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let Ok(text) = std::env::var(THREADS_VARIABLE) else { return processors() };
    match text.trim().parse() {
        Ok(count) if count > 0 => count,
        _ => {
            eprintln!(
                "{THREADS_VARIABLE} is {text:?}, expected a number above 0; using one thread per processor"
            );
            processors()
        }
    }
}

/// Calls `f` with every number below `count`, on several threads if the work, of roughly `cost`
/// nanoseconds in all, pays for them.
#[inline]
pub(crate) fn each(count: usize, cost: usize, f: impl Fn(usize) + Sync) {
    if count < 2 || cost < PAYS || !share(count, &f) {
        (0..count).for_each(f);
    }
}

/// Calls `f` with each of `items`, as [`each`] does.
pub(crate) fn each_of<I: Send>(items: Vec<I>, cost: usize, f: impl Fn(I) + Sync) {
    if items.len() < 2 || cost < PAYS {
        return items.into_iter().for_each(f);
    }
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    each(items.len(), cost, |i| {
        if let Some(item) = items[i].lock().take() {
            f(item);
        }
    });
}

/// Calls `f` with each range of `size` numbers below `len`, as [`each`] does; the last may be shorter.
#[inline]
pub(crate) fn each_range(len: usize, size: usize, cost: usize, f: impl Fn(Range<usize>) + Sync) {
    each(len.div_ceil(size.max(1)), cost, |i| f(i * size..len.min((i + 1) * size)));
}

/// Calls `f` with each chunk of `size` elements and its number, as [`each`] does; the last may be
/// shorter.
#[inline]
pub(crate) fn each_chunk<T: Send>(
    out: &mut [T],
    size: usize,
    cost: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    if out.len() <= size || cost < PAYS {
        return out.chunks_mut(size.max(1)).enumerate().for_each(|(i, chunk)| f(i, chunk));
    }
    let (start, len) = (Start(out.as_mut_ptr()), out.len());
    each_range(len, size, cost, |range| {
        // SAFETY: ranges of different numbers do not meet, each is taken once, and all lie inside
        // the slice, which is borrowed until the last piece is done.
        let chunk = unsafe { std::slice::from_raw_parts_mut(start.at(range.start), range.len()) };
        f(range.start / size, chunk);
    });
}

/// Where a slice starts whose parts go to several threads.
struct Start<T>(*mut T);

// SAFETY: only distinct elements are reached through it, and they may be sent.
unsafe impl<T: Send> Sync for Start<T> {}

impl<T> Start<T> {
    /// # Safety
    /// The slice has at least `index` elements.
    unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index) }
    }
}

/// What is done with each piece. A `dyn Fn` would be compiled once more, to be called by value.
trait Pieces: Sync {
    fn run(&self, piece: usize);
}

impl<F: Fn(usize) + Sync> Pieces for F {
    fn run(&self, piece: usize) {
        self(piece);
    }
}

/// One kernel's pieces.
struct Job<'a> {
    pieces: &'a dyn Pieces,
    count: usize,
    /// The next piece that nobody took.
    next: AtomicUsize,
    /// How many more threads may join.
    seats: AtomicUsize,
    /// Threads of the pool that are at it.
    inside: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Runs pieces until none is left.
    fn work(&self) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let piece = self.next.fetch_add(1, Relaxed);
                if piece >= self.count {
                    return;
                }
                self.pieces.run(piece);
            }
        }));
        if let Err(panic) = done {
            // What is left must not be waited for.
            self.next.store(self.count, Relaxed);
            self.panic.lock().get_or_insert(panic);
        }
    }
}

/// The job that threads may join; valid while it stands in [`Pool::current`].
#[derive(Clone, Copy)]
struct Posted(*const Job<'static>);

// SAFETY: a job may be shared, and whoever follows the pointer does so as `Pool::current` asks.
unsafe impl Send for Posted {}

struct Pool {
    /// Held by whoever has posted a job.
    turn: Mutex<()>,
    /// A thread that finds a job here joins it (counts itself `inside`) before it lets go of the
    /// lock; the job's owner takes it away under the lock, and then waits until nobody is inside.
    current: Mutex<Option<Posted>>,
    /// How many jobs have been posted.
    posted: AtomicUsize,
    sleepers: AtomicUsize,
    wake: Condvar,
    /// Threads started so far.
    started: AtomicUsize,
}

static POOL: Pool = Pool {
    turn: Mutex::new(()),
    current: Mutex::new(None),
    posted: AtomicUsize::new(0),
    sleepers: AtomicUsize::new(0),
    wake: Condvar::new(),
    started: AtomicUsize::new(0),
};

/// Whether this is a forked process: it has none of the pool's threads, and locks that they held stay locked.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Lets forked processes know that they are.
fn watch_forks() {
    #[cfg(unix)]
    {
        extern "C" fn forked() {
            FORKED.store(true, Relaxed);
        }

        static WATCHING: Once = Once::new();
        // SAFETY: the handler only stores a number; without memory for it, forks are not noticed.
        WATCHING.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) });
    }
}

/// Shares the pieces; false if they are to be run here: the pool is busy, or there is none.
#[inline(never)]
fn share(count: usize, pieces: &dyn Pieces) -> bool {
    let threads = threads().min(count);
    if threads < 2 || FORKED.load(Relaxed) {
        return false;
    }
    let Some(_turn) = POOL.turn.try_lock() else { return false };
    let job = Job {
        pieces,
        count,
        next: AtomicUsize::new(0),
        seats: AtomicUsize::new(threads - 1),
        inside: AtomicUsize::new(0),
        panic: Mutex::new(None),
    };
    POOL.start(threads - 1);
    POOL.post(&job);
    // Kernels inside a piece stay on its thread.
    with_threads(1, || job.work());
    POOL.close(&job);
    if let Some(panic) = job.panic.into_inner() {
        resume_unwind(panic);
    }
    true
}

impl Pool {
    /// Sees to it that there are `count` threads; fewer if the system refuses.
    fn start(&'static self, count: usize) {
        if self.started.load(Relaxed) == 0 {
            watch_forks();
        }
        while self.started.load(Relaxed) < count {
            let name = format!("cresset-{}", self.started.load(Relaxed) + 1);
            if std::thread::Builder::new().name(name).spawn(|| self.serve()).is_err() {
                return;
            }
            self.started.fetch_add(1, Relaxed);
        }
    }

    fn post(&self, job: &Job<'_>) {
        {
            // Counted under the lock, or a thread about to sleep would miss it.
            let mut current = self.current.lock();
            *current = Some(Posted(std::ptr::from_ref(job).cast()));
            self.posted.fetch_add(1, SeqCst);
        }
        if self.sleepers.load(SeqCst) > 0 {
            self.wake.notify_all();
        }
    }

    fn close(&self, job: &Job<'_>) {
        *self.current.lock() = None;
        let mut turns = 0u32;
        while job.inside.load(Acquire) > 0 {
            turns += 1;
            if turns.is_multiple_of(4096) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// What the pool's threads do.
    fn serve(&self) {
        HERE.set(1);
        let mut seen = 0;
        loop {
            seen = self.wait(seen);
            let Some(job) = self.join() else { continue };
            job.work();
            job.inside.fetch_sub(1, Release);
        }
    }

    /// Waits for a job after the one with number `seen`; gives the number of the last.
    fn wait(&self, seen: usize) -> usize {
        let watched = Instant::now();
        while watched.elapsed() < WATCH {
            for _ in 0..64 {
                let posted = self.posted.load(Acquire);
                if posted != seen {
                    return posted;
                }
                std::hint::spin_loop();
            }
        }
        let mut current = self.current.lock();
        self.sleepers.fetch_add(1, SeqCst);
        while self.posted.load(SeqCst) == seen {
            self.wake.wait(&mut current);
        }
        self.sleepers.fetch_sub(1, SeqCst);
        self.posted.load(SeqCst)
    }

    /// Joins the current job, if there is one and a seat is left.
    fn join(&self) -> Option<&'static Job<'static>> {
        let current = self.current.lock();
        let posted = (*current)?;
        // SAFETY: it stands in `current`, which is locked, so its owner has not left; once this
        // thread is counted inside, the owner waits for it.
        let job = unsafe { &*posted.0 };
        job.seats.fetch_update(Relaxed, Relaxed, |seats| seats.checked_sub(1)).ok()?;
        job.inside.fetch_add(1, Relaxed);
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_piece_runs_once_whatever_the_number_of_threads() {
        for count in [1, 2, 3, 8] {
            let mut out = vec![0u32; 100_003];
            with_threads(count, || {
                each_chunk(&mut out, 1000, usize::MAX, |i, chunk| {
                    chunk.iter_mut().zip(i * 1000..).for_each(|(out, at)| *out += at as u32);
                });
            });
            assert!(out.iter().zip(0..).all(|(&out, at)| out == at));
        }
    }

    #[test]
    fn pieces_are_shared_by_threads_that_stay() {
        let seen = Mutex::new(HashSet::new());
        // Another test may have the pool for a while, but not for good.
        let mut rounds = 0;
        while seen.lock().len() < 2 && rounds < 1000 {
            rounds += 1;
            with_threads(2, || {
                each(64, usize::MAX, |_| {
                    seen.lock().insert(std::thread::current().id());
                    std::thread::sleep(Duration::from_micros(50));
                });
            });
        }
        assert!(seen.lock().contains(&std::thread::current().id()));
        assert_eq!(seen.lock().len(), 2, "no second thread took a piece");
        assert!(POOL.started.load(Relaxed) < 8);
    }

    #[test]
    fn work_inside_work_and_from_many_threads_is_done_too() {
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        each(10, usize::MAX, |_| {
                            each(10, usize::MAX, |_| {
                                total.fetch_add(1, Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 100 * 100);
    }

    #[test]
    fn a_panic_in_a_piece_reaches_the_caller_and_leaves_the_pool_usable() {
        let caught = catch_unwind(|| {
            with_threads(2, || each(100, usize::MAX, |i| assert_ne!(i, 37, "piece {i} fails")));
        });
        let text = *caught.expect_err("piece 37 fails").downcast::<String>().expect("a message");
        assert!(text.contains("piece 37 fails"));
        let count = AtomicUsize::new(0);
        each(100, usize::MAX, |_| {
            count.fetch_add(1, Relaxed);
        });
        assert_eq!(count.into_inner(), 100);
    }

    #[test]
    fn items_are_handed_out_once_each() {
        let sum = AtomicUsize::new(0);
        each_of((0..1000).map(Box::new).collect(), usize::MAX, |item: Box<usize>| {
            sum.fetch_add(*item, Relaxed);
        });
        assert_eq!(sum.into_inner(), 499_500);
    }

    #[test]
    fn a_number_of_threads_holds_for_a_call_and_then_no_more() {
        let before = threads();
        let (inside, nested) = with_threads(3, || (threads(), with_threads(5, threads)));
        assert_eq!((inside, nested, threads()), (3, 5, before));
    }
}
