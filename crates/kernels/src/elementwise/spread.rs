//! Views that are not contiguous, brought to loops over slices.
//!
//! Broadcast and sliced views are walked run by run (see [`Rows`]); what moves otherwise is first
//! packed. All of this depends on element types only: the loop comes as a `dyn Fn`, so that a function
//! of elements costs the compiler one loop, and not one of each kind of layout.

use super::copy::{pack, unpack, write};
use crate::rows::Rows;
use crate::{Element, View, ViewMut};
use smallvec::SmallVec;
use std::ops::Range;

/// How many elements of a run are computed at once where an operand stands still.
const PIECE: usize = 256;

/// A loop over slices of one length, the last of them written.
type Loop2<'a, A, B, O> = &'a dyn Fn(&[A], &[B], &mut [O]);
type Loop3<'a, A, B, C, O> = &'a dyn Fn(&[A], &[B], &[C], &mut [O]);
/// A loop that changes the first slice.
type Change3<'a, T> = &'a dyn Fn(&mut [T], &[T], &[T]);

/// One operand along a run: its elements, or a single one over and over.
struct Operand<'a, T: Element> {
    elements: &'a [T],
    start: usize,
    stands_still: bool,
    repeated: SmallVec<[T; PIECE]>,
}

impl<'a, T: Element> Operand<'a, T> {
    fn new(elements: &'a [T], step: usize) -> Operand<'a, T> {
        Operand { elements, start: 0, stands_still: step == 0, repeated: SmallVec::new() }
    }

    /// Goes to the run of `len` elements that starts at `start`.
    fn begin(&mut self, start: usize, len: usize) {
        self.start = start;
        if self.stands_still {
            self.repeated.clear();
            self.repeated.resize(len.min(PIECE), self.elements[start]);
        }
    }

    /// The elements of a part of the run.
    fn piece(&self, part: &Range<usize>) -> &[T] {
        if self.stands_still {
            &self.repeated[..part.len()]
        } else {
            &self.elements[self.start + part.start..self.start + part.end]
        }
    }
}

/// The parts of a run: all of it, if every operand moves.
fn pieces(len: usize, moving: bool) -> impl Iterator<Item = Range<usize>> {
    let size = if moving { len } else { PIECE };
    (0..len).step_by(size).map(move |start| start..len.min(start + size))
}

pub(super) fn map1<A: Element, O: Element>(x: View<'_>, mut out: ViewMut<'_>, each: &dyn Fn(&[A], &mut [O])) {
    let rows = Rows::new([out.layout(), x.layout()]);
    if !rows.are_plain() {
        return write(out, |out| each(&pack(x), out));
    }
    let (len, steps, out) = (rows.len, rows.steps, out.span());
    let mut x = Operand::new(x.span(), steps[1]);
    rows.for_each(|[o, i]| {
        x.begin(i, len);
        for part in pieces(len, steps == [1; 2]) {
            each(x.piece(&part), &mut out[o + part.start..o + part.end]);
        }
    });
}

pub(super) fn map2<A: Element, B: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    each: Loop2<'_, A, B, O>,
) {
    let rows = Rows::new([out.layout(), a.layout(), b.layout()]);
    if !rows.are_plain() {
        return write(out, |out| each(&pack(a), &pack(b), out));
    }
    let (len, steps, out) = (rows.len, rows.steps, out.span());
    let (mut a, mut b) = (Operand::new(a.span(), steps[1]), Operand::new(b.span(), steps[2]));
    rows.for_each(|[o, i, j]| {
        a.begin(i, len);
        b.begin(j, len);
        for part in pieces(len, steps == [1; 3]) {
            each(a.piece(&part), b.piece(&part), &mut out[o + part.start..o + part.end]);
        }
    });
}

pub(super) fn map3<A: Element, B: Element, C: Element, O: Element>(
    [a, b, c]: [View<'_>; 3],
    mut out: ViewMut<'_>,
    each: Loop3<'_, A, B, C, O>,
) {
    let rows = Rows::new([out.layout(), a.layout(), b.layout(), c.layout()]);
    if !rows.are_plain() {
        return write(out, |out| each(&pack(a), &pack(b), &pack(c), out));
    }
    let (len, steps, out) = (rows.len, rows.steps, out.span());
    let mut a = Operand::new(a.span(), steps[1]);
    let (mut b, mut c) = (Operand::new(b.span(), steps[2]), Operand::new(c.span(), steps[3]));
    rows.for_each(|[o, i, j, k]| {
        a.begin(i, len);
        b.begin(j, len);
        c.begin(k, len);
        for part in pieces(len, steps == [1; 4]) {
            let out = &mut out[o + part.start..o + part.end];
            each(a.piece(&part), b.piece(&part), c.piece(&part), out);
        }
    });
}

/// Packs, changes and unpacks elements that do not lie in runs.
fn change<T: Element>(x: ViewMut<'_>, change: impl FnOnce(&mut [T])) {
    let mut packed = pack(x.as_view()).into_owned();
    change(&mut packed);
    unpack(&packed, x);
}

pub(super) fn update1<T: Element>(mut x: ViewMut<'_>, each: &dyn Fn(&mut [T])) {
    let rows = Rows::new([x.layout()]);
    if !rows.are_plain() {
        return change(x, each);
    }
    let (len, x) = (rows.len, x.span());
    rows.for_each(|[i]| each(&mut x[i..][..len]));
}

pub(super) fn update2<A: Element, B: Element>(
    mut a: ViewMut<'_>,
    b: View<'_>,
    each: &dyn Fn(&mut [A], &[B]),
) {
    let rows = Rows::new([a.layout(), b.layout()]);
    if !rows.are_plain() {
        return change(a, |a| each(a, &pack(b)));
    }
    let (len, steps, a) = (rows.len, rows.steps, a.span());
    let mut b = Operand::new(b.span(), steps[1]);
    rows.for_each(|[i, j]| {
        b.begin(j, len);
        for part in pieces(len, steps == [1; 2]) {
            each(&mut a[i + part.start..i + part.end], b.piece(&part));
        }
    });
}

pub(super) fn update3<T: Element>(mut a: ViewMut<'_>, b: View<'_>, c: View<'_>, each: Change3<'_, T>) {
    let rows = Rows::new([a.layout(), b.layout(), c.layout()]);
    if !rows.are_plain() {
        return change(a, |a| each(a, &pack(b), &pack(c)));
    }
    let (len, steps, a) = (rows.len, rows.steps, a.span());
    let (mut b, mut c) = (Operand::new(b.span(), steps[1]), Operand::new(c.span(), steps[2]));
    rows.for_each(|[i, j, k]| {
        b.begin(j, len);
        c.begin(k, len);
        for part in pieces(len, steps == [1; 3]) {
            each(&mut a[i + part.start..i + part.end], b.piece(&part), c.piece(&part));
        }
    });
}
