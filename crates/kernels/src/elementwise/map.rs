//! The loops: a function of elements over views of one shape.
//!
//! Contiguous views are walked as slices, here if they are small; [`large`] and [`spread`] bring all
//! others to the same loops. A function of two elements is `HEAVY` if it computes longer than they take to load.

use super::large::{self, LARGE};
use super::{copied, spread};
use crate::view::{floats, floats_mut};
use crate::wide::wide;
use crate::{Element, Float, View, ViewMut};

/// So few elements are done before the widest vectors could be chosen.
const FEW: usize = 8;

/// `out = f(x)`
#[inline]
pub(crate) fn map1<A: Element, O: Element>(
    x: View<'_>,
    mut out: ViewMut<'_>,
    f: impl Fn(A) -> O + Copy + Sync,
) {
    check(x.shape(), out.shape());
    let each = |x: &[A], out: &mut [O]| zip1(x, out, f);
    match (x.slice(), out.slice()) {
        (Some(x), Some(out)) if out.len() < LARGE => zip1(x, out, f),
        (Some(x), Some(out)) => large::map1(x, out, &each),
        _ => spread::map1(x, out, &each),
    }
}

/// `out = f(a, b)`
#[inline]
pub(crate) fn map2<const HEAVY: bool, A: Element, B: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    f: impl Fn(A, B) -> O + Copy + Sync,
) {
    check(a.shape(), out.shape());
    check(b.shape(), out.shape());
    let each = |a: &[A], b: &[B], out: &mut [O]| zip2::<HEAVY, _, _, _>(a, b, out, f);
    match (a.slice(), b.slice(), out.slice()) {
        (Some(a), Some(b), Some(out)) if out.len() < LARGE => zip2::<HEAVY, _, _, _>(a, b, out, f),
        (Some(a), Some(b), Some(out)) => large::map2(a, b, out, &each),
        _ => spread::map2(a, b, out, &each),
    }
}

/// `out = f(a, b)` for floats that lie one after the other, given as their bytes. An operand of one
/// element stands for as many as there are.
#[inline]
pub(super) fn map2_bytes<const HEAVY: bool, T: Float>(
    [a, b]: [&[u8]; 2],
    out: &mut [u8],
    f: impl Fn(T, T) -> T + Copy + Sync,
) {
    let out: &mut [T] = floats_mut(out);
    match (floats(a), floats(b)) {
        (a, b) if a.len() == out.len() && b.len() == out.len() => map2_slices::<HEAVY, T>(a, b, out, f),
        (&[a], &[b]) => out.fill(f(a, b)),
        (&[a], b) => map1_slices(
            b,
            out,
            #[inline(always)]
            move |b| f(a, b),
        ),
        (a, &[b]) => map1_slices(
            a,
            out,
            #[inline(always)]
            move |a| f(a, b),
        ),
        (a, b) => panic!("elementwise: {} and {} elements for {}", a.len(), b.len(), out.len()),
    }
}

#[inline]
fn map1_slices<T: Float>(x: &[T], out: &mut [T], f: impl Fn(T) -> T + Copy + Sync) {
    assert_eq!(x.len(), out.len(), "elementwise: the operand and the output differ in length");
    if out.len() <= FEW {
        return out.iter_mut().zip(x).for_each(|(out, &x)| *out = f(x));
    }
    if out.len() < LARGE {
        return zip1(x, out, f);
    }
    large::map1(x, out, &|x: &[T], out: &mut [T]| zip1(x, out, f));
}

#[inline]
fn map2_slices<const HEAVY: bool, T: Float>(
    a: &[T],
    b: &[T],
    out: &mut [T],
    f: impl Fn(T, T) -> T + Copy + Sync,
) {
    if out.len() <= FEW {
        return out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b));
    }
    if out.len() < LARGE {
        return zip2::<HEAVY, _, _, _>(a, b, out, f);
    }
    large::map2(a, b, out, &|a: &[T], b: &[T], out: &mut [T]| zip2::<HEAVY, _, _, _>(a, b, out, f));
}

/// `out = f(a, b, c)`
#[inline]
pub(crate) fn map3<A: Element, B: Element, C: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    c: View<'_>,
    mut out: ViewMut<'_>,
    f: impl Fn(A, B, C) -> O + Copy + Sync,
) {
    for shape in [a.shape(), b.shape(), c.shape()] {
        check(shape, out.shape());
    }
    let each = |a: &[A], b: &[B], c: &[C], out: &mut [O]| zip3(a, b, c, out, f);
    match (a.slice(), b.slice(), c.slice(), out.slice()) {
        (Some(a), Some(b), Some(c), Some(out)) if out.len() < LARGE => zip3(a, b, c, out, f),
        (Some(a), Some(b), Some(c), Some(out)) => large::map3(a, b, c, out, &each),
        _ => spread::map3([a, b, c], out, &each),
    }
}

/// `x = f(x)`
#[inline]
pub(crate) fn update1<T: Element>(x: ViewMut<'_>, f: impl Fn(T) -> T + Copy + Sync) {
    copied::update1(x, &|x: &[T], out: &mut [T]| zip1(x, out, f));
}

/// `a = f(a, b)`
#[inline]
pub(crate) fn update2<const HEAVY: bool, A: Element, B: Element>(
    mut a: ViewMut<'_>,
    b: View<'_>,
    f: impl Fn(A, B) -> A + Copy + Sync,
) {
    check(b.shape(), a.shape());
    if !A::DTYPE.is_float() {
        return copied::update2(a, b, &|a: &[A], b: &[B], out: &mut [A]| {
            zip2::<HEAVY, _, _, _>(a, b, out, f)
        });
    }
    let each = |a: &mut [A], b: &[B]| change2::<HEAVY, _, _>(a, b, f);
    match (a.slice(), b.slice()) {
        (Some(a), Some(b)) if a.len() < LARGE => change2::<HEAVY, _, _>(a, b, f),
        (Some(a), Some(b)) => large::update2(a, b, &each),
        _ => spread::update2(a, b, &each),
    }
}

/// `a = f(a, b, c)`
#[inline]
pub(crate) fn update3<T: Element>(
    mut a: ViewMut<'_>,
    b: View<'_>,
    c: View<'_>,
    f: impl Fn(T, T, T) -> T + Copy + Sync,
) {
    check(b.shape(), a.shape());
    check(c.shape(), a.shape());
    let each = |a: &mut [T], b: &[T], c: &[T]| change3(a, b, c, f);
    match (a.slice(), b.slice(), c.slice()) {
        (Some(a), Some(b), Some(c)) if a.len() < LARGE => change3(a, b, c, f),
        (Some(a), Some(b), Some(c)) => large::update3(a, b, c, &each),
        _ => spread::update3(a, b, c, &each),
    }
}

#[inline]
fn check(shape: &[usize], out: &[usize]) {
    // Compared here rather than by a call, which would cost small operands more than the work.
    let same = shape.len() == out.len() && shape.iter().zip(out).all(|(a, b)| a == b);
    assert!(same, "elementwise: operands have different shapes {shape:?} and {out:?}");
}

// Never inlined: there is one of each loop, small operands or large, wherever the result goes.
wide! {
    #[inline(never)]
    fn zip1[A: Element, O, F: Fn(A) -> O](a: &[A], out: &mut [O], f: F), for A, heavy if true {
        for (out, &a) in out.iter_mut().zip(a) {
            *out = f(a);
        }
    }
}

wide! {
    #[inline(never)]
    fn zip3[A: Copy, B: Element, C: Copy, O, F: Fn(A, B, C) -> O](
        a: &[A], b: &[B], c: &[C], out: &mut [O], f: F,
    ), for B {
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = f(a, b, c);
        }
    }
}

wide! {
    #[inline(never)]
    fn change3[T: Copy, F: Fn(T, T, T) -> T](a: &mut [T], b: &[T], c: &[T], f: F) {
        for ((a, &b), &c) in a.iter_mut().zip(b).zip(c) {
            *a = f(*a, b, c);
        }
    }
}

/// The loops of two operands, for functions that are heavy or not.
macro_rules! pairs {
    ($zip:ident, $change:ident, heavy if $heavy:ident) => {
        wide! {
            #[inline(never)]
            fn $zip[A: Element, B: Copy, O, F: Fn(A, B) -> O](a: &[A], b: &[B], out: &mut [O], f: F), for A, heavy if $heavy {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(a, b);
                }
            }
        }

        wide! {
            #[inline(never)]
            fn $change[A: Element, B: Copy, F: Fn(A, B) -> A](a: &mut [A], b: &[B], f: F), for A, heavy if $heavy {
                for (a, &b) in a.iter_mut().zip(b) {
                    *a = f(*a, b);
                }
            }
        }
    };
}

pairs!(zip_light, change_light, heavy if false);
pairs!(zip_heavy, change_heavy, heavy if true);

#[inline(always)]
fn zip2<const HEAVY: bool, A: Element, B: Copy, O>(a: &[A], b: &[B], out: &mut [O], f: impl Fn(A, B) -> O) {
    if HEAVY { zip_heavy(a, b, out, f) } else { zip_light(a, b, out, f) }
}

#[inline(always)]
fn change2<const HEAVY: bool, A: Element, B: Copy>(a: &mut [A], b: &[B], f: impl Fn(A, B) -> A) {
    if HEAVY { change_heavy(a, b, f) } else { change_light(a, b, f) }
}
