//! Large contiguous operands: pieces for several threads, and outputs written past the caches.
//!
//! As in [`spread`](super::spread), the loop over a piece comes as a `dyn` trait.

use super::stream;
use crate::{Element, threads};

/// Elements from which on it pays to look at pieces.
pub(super) const LARGE: usize = 2 * PIECE;
/// Elements of a piece: a few operands of them fit into a processor's own caches.
pub(super) const PIECE: usize = 1 << 14;
/// Elements of a piece that no cache will hold.
pub(super) const FAR_PIECE: usize = 1 << 16;

/// One row per kind of loop over slices: as `dyn Fn`, which would be compiled once more to be called by
/// value.
macro_rules! loops {
    ($($(#[$doc:meta])* $name:ident, $kind:ident<$($T:ident),*>($($x:ident: $slice:ty),*);)*) => {$(
        $(#[$doc])*
        pub(super) trait $kind<$($T),*>: Sync {
            fn run(&self, $($x: $slice),*);
        }

        impl<$($T,)* F: Fn($($slice),*) + Sync> $kind<$($T),*> for F {
            fn run(&self, $($x: $slice),*) {
                self($($x),*)
            }
        }

        pub(super) type $name<'a, $($T),*> = &'a dyn $kind<$($T),*>;
    )*};
}

loops! {
    /// Fills the last slice.
    Loop1, Fill1<A, O>(a: &[A], out: &mut [O]);
    /// Fills the last slice.
    Loop2, Fill2<A, B, O>(a: &[A], b: &[B], out: &mut [O]);
    /// Fills the last slice.
    Loop3, Fill3<A, B, C, O>(a: &[A], b: &[B], c: &[C], out: &mut [O]);
    /// Changes the first slice.
    Change1, Update1<A>(a: &mut [A]);
    /// Changes the first slice.
    Change2, Update2<A, B>(a: &mut [A], b: &[B]);
    /// Changes the first slice.
    Change3, Update3<T>(a: &mut [T], b: &[T], c: &[T]);
}

/// Roughly how long a pass over so many bytes takes, in nanoseconds, if little is computed.
#[inline]
pub(crate) fn cost(bytes: usize) -> usize {
    bytes / 32
}

/// Calls `fill` with pieces of `out`, to be overwritten, and where they start; `read` bytes are read
/// for each element.
fn pieces<O: Element>(out: &mut [O], read: usize, fill: impl Fn(usize, &mut [O]) + Sync) {
    let cost = cost(out.len() * (read + size_of::<O>()));
    if stream::pays(out) {
        return threads::each_chunk(out, FAR_PIECE, cost, |i, out| {
            stream::through::<_, { stream::BLOCK }>(out, |_, at, out| fill(i * FAR_PIECE + at, out));
        });
    }
    threads::each_chunk(out, PIECE, cost, |i, out| fill(i * PIECE, out));
}

pub(super) fn map1<A: Element, O: Element>(x: &[A], out: &mut [O], each: Loop1<'_, A, O>) {
    pieces(out, size_of::<A>(), |at, out| each.run(&x[at..][..out.len()], out));
}

pub(super) fn map2<A: Element, B: Element, O: Element>(
    a: &[A],
    b: &[B],
    out: &mut [O],
    each: Loop2<'_, A, B, O>,
) {
    pieces(out, size_of::<(A, B)>(), |at, out| each.run(&a[at..][..out.len()], &b[at..][..out.len()], out));
}

pub(super) fn map3<A: Element, B: Element, C: Element, O: Element>(
    a: &[A],
    b: &[B],
    c: &[C],
    out: &mut [O],
    each: Loop3<'_, A, B, C, O>,
) {
    pieces(out, size_of::<(A, B, C)>(), |at, out| {
        let len = out.len();
        each.run(&a[at..][..len], &b[at..][..len], &c[at..][..len], out);
    });
}

/// Calls `change` with pieces of `a` and where they start.
fn pieces_in_place<A: Element>(a: &mut [A], read: usize, change: impl Fn(usize, &mut [A]) + Sync) {
    let cost = cost(a.len() * (read + 2 * size_of::<A>()));
    threads::each_chunk(a, PIECE, cost, |i, a| change(i * PIECE, a));
}

pub(super) fn update1<A: Element>(a: &mut [A], each: Change1<'_, A>) {
    pieces_in_place(a, 0, |_, a| each.run(a));
}

pub(super) fn update2<A: Element, B: Element>(a: &mut [A], b: &[B], each: Change2<'_, A, B>) {
    pieces_in_place(a, size_of::<B>(), |at, a| each.run(a, &b[at..][..a.len()]));
}

pub(super) fn update3<T: Element>(a: &mut [T], b: &[T], c: &[T], each: Change3<'_, T>) {
    pieces_in_place(a, 2 * size_of::<T>(), |at, a| each.run(a, &b[at..][..a.len()], &c[at..][..a.len()]));
}

/// As `copy_from_slice`.
pub(super) fn copy<T: Element>(from: &[T], to: &mut [T]) {
    if to.len() < LARGE {
        return to.copy_from_slice(from);
    }
    map1(from, to, &|from: &[T], to: &mut [T]| to.copy_from_slice(from));
}

/// As `fill` of slices.
pub(super) fn fill<T: Element>(value: T, out: &mut [T]) {
    if out.len() < LARGE {
        return out.fill(value);
    }
    let cost = cost(size_of_val(out));
    threads::each_chunk(out, PIECE, cost, |_, out| out.fill(value));
}
