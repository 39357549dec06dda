//! Walks the stack of the calling thread: return addresses, innermost first.
//!
//! Where the program was compiled with frame pointers, a walk is one load per frame. Whether it
//! was is not known to the compiler of this crate alone, so it is tried out once, against the
//! unwinder. Without them the unwinder does the walking, which takes a hundred times longer.

#![expect(unsafe_code, reason = "reads the stack of the calling thread, within its limits")]

use std::sync::OnceLock;

/// How many frames are kept, the innermost ones.
pub(crate) const LIMIT: usize = 64;

/// How stacks are walked in this program.
///
/// ```
/// use cresset_profiler::{StackSource, stack_source};
/// if stack_source() == StackSource::Unwinder {
///     println!("build with frame pointers for quicker stacks");
/// }
/// # assert_eq!(stack_source(), stack_source());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackSource {
    /// By frame pointers, in about 2 ns per frame. Compile with `-C force-frame-pointers=yes`.
    FramePointers,
    /// By the unwinder's tables, in about 150 ns per frame.
    Unwinder,
}

/// How [`with_stack`](crate::Builder::with_stack) walks stacks in this program; found out on
/// first use, by walking this very stack both ways.
///
/// ```
/// println!("stacks are walked by {:?}", cresset_profiler::stack_source());
/// ```
pub fn stack_source() -> StackSource {
    static SOURCE: OnceLock<StackSource> = OnceLock::new();
    *SOURCE.get_or_init(|| if probe(6) { StackSource::FramePointers } else { StackSource::Unwinder })
}

/// Fills `frames` and returns how many there are.
#[inline]
pub(super) fn walk(frames: &mut [usize]) -> usize {
    match stack_source() {
        // A thread on a stack of its own making has no limits to stay within.
        StackSource::FramePointers => by_frame_pointers(frames).unwrap_or_else(|| by_unwinder(frames)),
        StackSource::Unwinder => by_unwinder(frames),
    }
}

/// Compares both ways, a few calls further down: frames of this crate and of the caller's.
#[inline(never)]
fn probe(depth: usize) -> bool {
    if depth > 0 {
        return std::hint::black_box(probe(depth - 1));
    }
    let (mut fast, mut sure) = ([0; LIMIT], [0; LIMIT]);
    let Some(depth) = by_frame_pointers(&mut fast) else { return false };
    let sure_depth = by_unwinder(&mut sure);
    agree(&fast[..depth], &sure[..sure_depth])
}

/// What runs before `main` and below a thread's first function need not have frame pointers.
const START_UP: usize = 4;

/// Whether the walk by frame pointers found what the unwinder found. Where each was called from
/// differs, so the innermost frames do.
fn agree(fast: &[usize], sure: &[usize]) -> bool {
    (0..START_UP).any(|skip| fast.get(skip..).is_some_and(|fast| agree_from_the_first(fast, sure)))
}

fn agree_from_the_first(fast: &[usize], sure: &[usize]) -> bool {
    let Some(from) = fast.first().and_then(|first| sure.iter().position(|frame| frame == first)) else {
        return false;
    };
    let sure = &sure[from..];
    let same = fast.iter().zip(sure).take_while(|(a, b)| a == b).count();
    // One of the lists may be cut off by the limit, at the outer end.
    same > START_UP && (same + START_UP >= sure.len() || same == fast.len() && fast.len() == LIMIT)
}

fn by_unwinder(frames: &mut [usize]) -> usize {
    let mut depth = 0;
    let mut keep = |frame: &backtrace::Frame| {
        let Some(slot) = frames.get_mut(depth) else { return false };
        *slot = frame.ip().addr();
        depth += 1;
        depth < LIMIT
    };
    // SAFETY: the walk itself shares nothing with other threads; what the lock of the safe form
    // protects is the library that names frames on some systems, and none is named here.
    unsafe { backtrace::trace_unsynchronized(&mut keep) };
    depth
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn by_frame_pointers(frames: &mut [usize]) -> Option<usize> {
    linux::by_frame_pointers(frames)
}

/// Elsewhere the limits of a stack are not known.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn by_frame_pointers(_frames: &mut [usize]) -> Option<usize> {
    None
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::arch::asm;
    use std::cell::Cell;

    thread_local! {
        /// Where this thread's stack lies, once it was asked for.
        static STACK: Cell<Option<Stack>> = const { Cell::new(None) };
    }

    /// The addresses of a thread's stack, the last excluded. Empty if they are not known.
    #[derive(Clone, Copy, Default)]
    struct Stack {
        start: usize,
        end: usize,
    }

    /// `None` if the thread runs on a stack that is not the system's.
    #[inline]
    pub(super) fn by_frame_pointers(frames: &mut [usize]) -> Option<usize> {
        let (mut frame, here) = registers();
        let Stack { start, end } = STACK.get().unwrap_or_else(find_stack);
        if here < start || here >= end {
            return None;
        }
        let (mut depth, mut lowest) = (0, here);
        for slot in frames {
            // A frame is two words: the caller's frame, and where to return to.
            if frame < lowest || frame % size_of::<usize>() != 0 || frame > end - 2 * size_of::<usize>() {
                break;
            }
            // SAFETY: both words lie between the stack pointer and the end of this thread's
            // stack, which is mapped as long as the thread runs.
            let (caller, back) = unsafe { (load(frame), load(frame + size_of::<usize>())) };
            if back == 0 {
                break;
            }
            *slot = back;
            depth += 1;
            // Frames of callers lie strictly above, so the walk ends.
            (lowest, frame) = (frame + 2 * size_of::<usize>(), caller);
        }
        Some(depth)
    }

    /// The frame pointer and the stack pointer.
    #[inline(always)]
    fn registers() -> (usize, usize) {
        let (frame, stack);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: copies two registers.
        unsafe {
            asm!("mov {}, rbp", "mov {}, rsp", out(reg) frame, out(reg) stack, options(nomem, nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: copies two registers.
        unsafe {
            asm!("mov {}, x29", "mov {}, sp", out(reg) frame, out(reg) stack, options(nomem, nostack, preserves_flags));
        }
        (frame, stack)
    }

    /// Reads a word that the compiler knows nothing about, and which may belong to anyone.
    ///
    /// # Safety
    /// The word at `address` is mapped and aligned.
    #[inline(always)]
    unsafe fn load(address: usize) -> usize {
        let word;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller promises that the word can be read.
        unsafe {
            asm!("mov {}, [{}]", out(reg) word, in(reg) address, options(readonly, nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the caller promises that the word can be read.
        unsafe {
            asm!("ldr {}, [{}]", out(reg) word, in(reg) address, options(readonly, nostack, preserves_flags));
        }
        word
    }

    #[cold]
    fn find_stack() -> Stack {
        let stack = ask_for_stack().unwrap_or_default();
        STACK.set(Some(stack));
        stack
    }

    fn ask_for_stack() -> Option<Stack> {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: the attributes are written by the call, and read only if it succeeded.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            let (mut start, mut size) = (std::ptr::null_mut(), 0);
            let outcome = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            (outcome == 0).then(|| Stack { start: start.addr(), end: start.addr() + size })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_lost_a_frame_or_found_garbage_is_not_believed() {
        let sure: Vec<usize> = (100..130).collect();
        assert!(agree(&sure[2..], &sure));
        assert!(agree(&sure[2..27], &sure), "start-up code may lack frame pointers");
        assert!(!agree(&sure[2..20], &sure), "cut short");
        assert!(!agree(&[&sure[2..8], &sure[9..]].concat(), &sure), "a frame is missing");
        assert!(!agree(&[7; 30], &sure));
        assert!(!agree(&[], &sure));
    }

    #[test]
    fn any_frame_pointer_is_survived() {
        let mut frames = [0; LIMIT];
        let depth = by_frame_pointers(&mut frames).unwrap_or(0);
        assert!(depth <= LIMIT);
        assert!(frames[..depth].iter().all(|&frame| frame != 0));
    }

    #[test]
    fn the_unwinder_sees_this_function() {
        let mut frames = [0; LIMIT];
        let depth = by_unwinder(&mut frames);
        let mut names = Vec::new();
        for &frame in &frames[..depth] {
            backtrace::resolve(std::ptr::without_provenance_mut(frame), |symbol| {
                names.extend(symbol.name().map(|name| name.to_string()));
            });
        }
        assert!(names.iter().any(|name| name.contains("the_unwinder_sees_this_function")), "{names:?}");
    }
}
