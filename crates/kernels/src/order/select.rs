//! Elements of one rank: the k-th smallest, medians, the most frequent, running extremes.
//!
//! Which of several equal elements is found is nowhere promised, but recorded answers name one.
//! So the k-th is searched, and ranks are sorted, by the very steps that torch takes: its own
//! quickselect, and the introselect and introsort of the C++ library it is built with.

use super::Lines;
use super::keys::NAN;
use crate::{View, ViewMut};

/// The index of the k-th smallest element, from 0, along `dim`.
pub fn kth(x: View<'_>, dim: usize, k: usize, out: ViewMut<'_>) {
    Lines::new(x, dim).fill(out, |keys, out| out[0] = quickselect(keys, k));
}

/// The index of the middle element along `dim`, the lower of two, or of the first NaN.
pub fn median(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    let lines = Lines::new(x, dim);
    let floats = lines.floats;
    lines.fill(out, |keys, out| {
        let nan = keys.iter().position(|&key| floats && key == NAN);
        out[0] = nan.map_or_else(|| ranked(keys, (keys.len() - 1) / 2), |at| at as i64);
    });
}

/// As [`median`], of those that are not NaN, if there are any. Of equals the one is found that stands
/// there when all are sorted in order.
pub fn nan_median(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    let lines = Lines::new(x, dim);
    let floats = lines.floats;
    lines.fill(out, |keys, out| {
        let count = keys.iter().filter(|&&key| !floats || key != NAN).count();
        let mut order: Vec<i64> = (0..keys.len() as i64).collect();
        order.sort_by_key(|&index| keys[index as usize]);
        out[0] = order[count.saturating_sub(1) / 2];
    });
}

fn ranked(keys: &[i64], rank: usize) -> i64 {
    let mut order: Vec<i64> = (0..keys.len() as i64).collect();
    introselect(&mut order, rank, |a, b| keys[a as usize] < keys[b as usize]);
    order[rank]
}

/// The index of the last of the most frequent elements along `dim`, the smallest if several are.
pub fn mode(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    let lines = Lines::new(x, dim);
    lines.fill(out, |keys, out| {
        let mut order: Vec<i64> = (0..keys.len() as i64).collect();
        introsort(&mut order, |a, b| keys[a as usize] < keys[b as usize]);
        let (mut most, mut count) = (0, 0);
        for (at, &index) in order.iter().enumerate() {
            count += 1;
            let next = order.get(at + 1).map(|&next| keys[next as usize]);
            if next.is_some_and(|next| lines.same(keys[index as usize], next)) {
                continue;
            }
            if count > most {
                (most, out[0]) = (count, index);
            }
            count = 0;
        }
    });
}

/// The index of the largest element so far along `dim`, the last of equals.
pub fn cummax(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    running(x, dim, out, |key, best| key >= best);
}

/// The index of the smallest element so far along `dim`, the last of equals. NaN beats all.
pub fn cummin(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    let floats = x.dtype().is_float();
    let nan = move |key| floats && key == NAN;
    running(x, dim, out, move |key, best| nan(key) || (!nan(best) && key <= best));
}

fn running(x: View<'_>, dim: usize, out: ViewMut<'_>, beats: impl Fn(i64, i64) -> bool) {
    Lines::new(x, dim).fill(out, |keys, out| {
        let mut best = 0;
        for (at, out) in out.iter_mut().enumerate() {
            if beats(keys[at], keys[best]) {
                best = at;
            }
            *out = best as i64;
        }
    });
}

/// The index of the `k`th smallest key, by quickselect with the median of three as pivot.
fn quickselect(keys: &[i64], k: usize) -> i64 {
    let mut order: Vec<i64> = (0..keys.len() as i64).collect();
    let above = |order: &[i64], a: usize, b: usize| keys[order[a] as usize] > keys[order[b] as usize];
    let (mut low, mut high) = (0, keys.len() - 1);
    while high > low {
        if high == low + 1 {
            if above(&order, low, high) {
                order.swap(low, high);
            }
            break;
        }
        order.swap(low + (high - low) / 2, low + 1);
        for (a, b) in [(low + 1, high), (low, high), (low + 1, low)] {
            if above(&order, a, b) {
                order.swap(a, b);
            }
        }
        let pivot = keys[order[low] as usize];
        let (mut i, mut j) = (low + 1, high);
        loop {
            i += 1;
            while pivot > keys[order[i] as usize] {
                i += 1;
            }
            j -= 1;
            while keys[order[j] as usize] > pivot {
                j -= 1;
            }
            if j < i {
                break;
            }
            order.swap(i, j);
        }
        order.swap(low, j);
        if j <= k {
            low = i;
        }
        if j >= k {
            high = j - 1;
        }
    }
    order[k]
}

/// Rows up to this length are sorted by insertion.
const SHORT: usize = 16;

/// Puts the element of rank `nth` in its place, with none after it that is `before` it.
pub(super) fn introselect(order: &mut [i64], nth: usize, before: impl Fn(i64, i64) -> bool + Copy) {
    let (mut low, mut high) = (0, order.len());
    let mut depth = 2 * high.max(1).ilog2();
    while high - low > 3 {
        if depth == 0 {
            // Pivots that were all bad: any order of equals will do.
            return sort(&mut order[low..high], &before);
        }
        depth -= 1;
        let cut = low + partition(&mut order[low..high], before);
        if cut <= nth {
            low = cut;
        } else {
            high = cut;
        }
    }
    insertion_sort(&mut order[low..high], before);
}

/// Sorts, equals in no particular order.
pub(super) fn introsort(order: &mut [i64], before: impl Fn(i64, i64) -> bool + Copy) {
    let depth = 2 * order.len().max(1).ilog2();
    presort(order, depth, before);
    insertion_sort(order, before);
}

/// Sorts what was cut unluckily. Rare, so compiled once for all orders.
fn sort(order: &mut [i64], before: &dyn Fn(i64, i64) -> bool) {
    order.sort_by(|&a, &b| before(b, a).cmp(&before(a, b)));
}

/// Leaves every element within a short distance of its place.
fn presort(mut order: &mut [i64], mut depth: u32, before: impl Fn(i64, i64) -> bool + Copy) {
    while order.len() > SHORT {
        if depth == 0 {
            return sort(order, &before);
        }
        depth -= 1;
        let cut = partition(order, before);
        let (left, right) = order.split_at_mut(cut);
        presort(right, depth, before);
        order = left;
    }
}

/// Splits around the median of the second, the middle and the last; gives where.
fn partition(order: &mut [i64], before: impl Fn(i64, i64) -> bool) -> usize {
    let (second, middle, last) = (1, order.len() / 2, order.len() - 1);
    let less = |a: usize, b: usize| before(order[a], order[b]);
    let median = match (less(second, middle), less(middle, last), less(second, last)) {
        (true, true, _) | (false, false, false) => middle,
        (true, false, true) | (false, true, false) => last,
        _ => second,
    };
    order.swap(0, median);
    let pivot = order[0];
    let (mut low, mut high) = (1, order.len());
    loop {
        while before(order[low], pivot) {
            low += 1;
        }
        high -= 1;
        while before(pivot, order[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        order.swap(low, high);
        low += 1;
    }
}

fn insertion_sort(order: &mut [i64], before: impl Fn(i64, i64) -> bool) {
    for end in 1..order.len() {
        let moved = order[end];
        let mut at = end;
        while at > 0 && before(moved, order[at - 1]) {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = moved;
    }
}
