//! The loops: a function of elements over views of one shape.
//!
//! Contiguous views are walked as slices. Broadcast and sliced ones are walked run by run
//! (see [`Rows`]). What moves otherwise is first packed by `ndarray`, so that each function
//! is compiled for slices only.

use super::copy::{pack, unpack, write};
use crate::rows::Rows;
use crate::wide::wide;
use crate::{Element, View, ViewMut};

/// `out = f(x)`
#[inline]
pub(crate) fn map1<A: Element, O: Element>(x: View<'_>, mut out: ViewMut<'_>, f: impl Fn(A) -> O + Copy) {
    check(x.shape(), out.shape());
    if let (Some(x), Some(out)) = (x.slice(), out.slice()) {
        return zip1(x, out, f);
    }
    let rows = Rows::new([out.layout(), x.layout()]);
    if !rows.are_plain() {
        return write(out, |out| zip1(&pack(x), out, f));
    }
    let (len, step) = (rows.len, rows.steps[1]);
    let (x, out) = (x.span(), out.span());
    rows.for_each(|[o, i]| match step {
        0 => out[o..][..len].fill(f(x[i])),
        _ => zip1(&x[i..][..len], &mut out[o..][..len], f),
    });
}

/// `out = f(a, b)`
#[inline]
pub(crate) fn map2<A: Element, B: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    f: impl Fn(A, B) -> O + Copy,
) {
    check(a.shape(), out.shape());
    check(b.shape(), out.shape());
    if let (Some(a), Some(b), Some(out)) = (a.slice(), b.slice(), out.slice()) {
        return zip2(a, b, out, f);
    }
    let rows = Rows::new([out.layout(), a.layout(), b.layout()]);
    if !rows.are_plain() {
        return write(out, |out| zip2(&pack(a), &pack(b), out, f));
    }
    let (len, [_, a_step, b_step]) = (rows.len, rows.steps);
    let (a, b, out) = (a.span(), b.span(), out.span());
    rows.for_each(|[o, i, j]| {
        let out = &mut out[o..][..len];
        match (a_step, b_step) {
            (0, 0) => out.fill(f(a[i], b[j])),
            (0, _) => {
                let a = a[i];
                zip1(&b[j..][..len], out, move |b| f(a, b));
            }
            (_, 0) => {
                let b = b[j];
                zip1(&a[i..][..len], out, move |a| f(a, b));
            }
            _ => zip2(&a[i..][..len], &b[j..][..len], out, f),
        }
    });
}

/// `out = f(a, b, c)`
#[inline]
pub(crate) fn map3<A: Element, B: Element, C: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    c: View<'_>,
    mut out: ViewMut<'_>,
    f: impl Fn(A, B, C) -> O + Copy,
) {
    for shape in [a.shape(), b.shape(), c.shape()] {
        check(shape, out.shape());
    }
    if let (Some(a), Some(b), Some(c), Some(out)) = (a.slice(), b.slice(), c.slice(), out.slice()) {
        return zip3(a, b, c, out, f);
    }
    let rows = Rows::new([out.layout(), a.layout(), b.layout(), c.layout()]);
    if !rows.are_plain() {
        return write(out, |out| zip3(&pack(a), &pack(b), &pack(c), out, f));
    }
    let (len, [_, a_step, b_step, c_step]) = (rows.len, rows.steps);
    let (a, b, c, out) = (a.span(), b.span(), c.span(), out.span());
    rows.for_each(|[o, i, j, k]| {
        let out = &mut out[o..][..len];
        if (a_step, b_step, c_step) == (1, 1, 1) {
            return zip3(&a[i..][..len], &b[j..][..len], &c[k..][..len], out, f);
        }
        for (n, out) in out.iter_mut().enumerate() {
            *out = f(a[i + n * a_step], b[j + n * b_step], c[k + n * c_step]);
        }
    });
}

/// `x = f(x)`
#[inline]
pub(crate) fn update1<T: Element>(mut x: ViewMut<'_>, f: impl Fn(T) -> T + Copy) {
    if let Some(x) = x.slice() {
        return change1(x, f);
    }
    let rows = Rows::new([x.layout()]);
    if !rows.are_plain() {
        let mut packed = pack(x.as_view()).into_owned();
        change1(&mut packed, f);
        return unpack(&packed, x);
    }
    let (len, x) = (rows.len, x.span());
    rows.for_each(|[i]| change1(&mut x[i..][..len], f));
}

/// `a = f(a, b)`
#[inline]
pub(crate) fn update2<A: Element, B: Element>(mut a: ViewMut<'_>, b: View<'_>, f: impl Fn(A, B) -> A + Copy) {
    check(b.shape(), a.shape());
    if let (Some(a), Some(b)) = (a.slice(), b.slice()) {
        return change2(a, b, f);
    }
    let rows = Rows::new([a.layout(), b.layout()]);
    if !rows.are_plain() {
        let mut packed = pack(a.as_view()).into_owned();
        change2(&mut packed, &pack(b), f);
        return unpack(&packed, a);
    }
    let (len, step) = (rows.len, rows.steps[1]);
    let (a, b) = (a.span(), b.span());
    rows.for_each(|[i, j]| match step {
        0 => {
            let b = b[j];
            change1(&mut a[i..][..len], move |a| f(a, b));
        }
        _ => change2(&mut a[i..][..len], &b[j..][..len], f),
    });
}

/// `a = f(a, b, c)`
#[inline]
pub(crate) fn update3<T: Element>(
    mut a: ViewMut<'_>,
    b: View<'_>,
    c: View<'_>,
    f: impl Fn(T, T, T) -> T + Copy,
) {
    check(b.shape(), a.shape());
    check(c.shape(), a.shape());
    if let (Some(a), Some(b), Some(c)) = (a.slice(), b.slice(), c.slice()) {
        return change3(a, b, c, f);
    }
    let mut packed = pack(a.as_view()).into_owned();
    change3(&mut packed, &pack(b), &pack(c), f);
    unpack(&packed, a);
}

#[inline]
fn check(shape: &[usize], out: &[usize]) {
    // Compared here rather than by a call, which would cost small operands more than the work.
    let same = shape.len() == out.len() && shape.iter().zip(out).all(|(a, b)| a == b);
    assert!(same, "elementwise: operands have different shapes {shape:?} and {out:?}");
}

wide! {
    fn zip1[A: Element, O, F: Fn(A) -> O](a: &[A], out: &mut [O], f: F), for A {
        for (out, &a) in out.iter_mut().zip(a) {
            *out = f(a);
        }
    }
}

wide! {
    fn zip2[A: Element, B: Copy, O, F: Fn(A, B) -> O](a: &[A], b: &[B], out: &mut [O], f: F), for A {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = f(a, b);
        }
    }
}

wide! {
    fn zip3[A: Copy, B: Element, C: Copy, O, F: Fn(A, B, C) -> O](
        a: &[A], b: &[B], c: &[C], out: &mut [O], f: F,
    ), for B {
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = f(a, b, c);
        }
    }
}

wide! {
    fn change1[A: Element, F: Fn(A) -> A](a: &mut [A], f: F), for A {
        for a in a {
            *a = f(*a);
        }
    }
}

wide! {
    fn change2[A: Element, B: Copy, F: Fn(A, B) -> A](a: &mut [A], b: &[B], f: F), for A {
        for (a, &b) in a.iter_mut().zip(b) {
            *a = f(*a, b);
        }
    }
}

wide! {
    fn change3[T: Copy, F: Fn(T, T, T) -> T](a: &mut [T], b: &[T], c: &[T], f: F) {
        for ((a, &b), &c) in a.iter_mut().zip(b).zip(c) {
            *a = f(*a, b, c);
        }
    }
}
