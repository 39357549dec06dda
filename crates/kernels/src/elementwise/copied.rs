//! Changes in place by loops that fill: what is changed is copied, a little at a time.
//!
//! The copy stays in the first cache. A loop of its own for changes would be a little quicker, and is
//! compiled for those that are made often.

use super::large::{self, LARGE, Loop1, Loop2};
use super::spread;
use crate::{Element, View, ViewMut};

/// Elements that are copied at once.
const ROOM: usize = 128;

/// `x = f(x)`, where `each` fills with `f`.
pub(super) fn update1<T: Element>(mut x: ViewMut<'_>, each: Loop1<'_, T, T>) {
    let change = |x: &mut [T]| {
        for x in x.chunks_mut(ROOM) {
            each.run(&copied(x, &mut [T::default(); ROOM])[..x.len()], x);
        }
    };
    match x.slice() {
        Some(x) if x.len() < LARGE => change(x),
        Some(x) => large::update1(x, &change),
        None => spread::update1(x, &change),
    }
}

/// `a = f(a, b)`, where `each` fills with `f`.
pub(super) fn update2<A: Element, B: Element>(mut a: ViewMut<'_>, b: View<'_>, each: Loop2<'_, A, B, A>) {
    let change = |a: &mut [A], b: &[B]| {
        for (a, b) in a.chunks_mut(ROOM).zip(b.chunks(ROOM)) {
            each.run(&copied(a, &mut [A::default(); ROOM])[..a.len()], b, a);
        }
    };
    match (a.slice(), b.slice()) {
        (Some(a), Some(b)) if a.len() < LARGE => change(a, b),
        (Some(a), Some(b)) => large::update2(a, b, &change),
        _ => spread::update2(a, b, &change),
    }
}

fn copied<'a, T: Element>(x: &[T], room: &'a mut [T; ROOM]) -> &'a [T] {
    room[..x.len()].copy_from_slice(x);
    room
}
