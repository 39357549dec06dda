//! Whole orders: sorting, the first few, and what is there more than once.

use super::Lines;
use super::select::{introselect, introsort};
use crate::{View, ViewMut};

/// How [`argsort`] sorts.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// Whether the largest come first.
    pub descending: bool,
    /// Whether equal elements stay in order.
    pub stable: bool,
}

/// The indices, as i64, that sort `x` along `dim`.
pub fn argsort(how: Sort, x: View<'_>, dim: usize, out: ViewMut<'_>) {
    Lines::new(x, dim).fill(out, |keys, order| {
        order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        // Flipped, keys are in the other order.
        let flip = if how.descending { -1 } else { 0 };
        match how.stable {
            true => order.sort_by_key(|&i| keys[i as usize] ^ flip),
            false => introsort(order, |a, b| keys[a as usize] ^ flip < keys[b as usize] ^ flip),
        }
    });
}

/// Which elements [`topk`] picks.
#[derive(Clone, Copy, Debug)]
pub struct Topk {
    /// The largest, or the smallest.
    pub largest: bool,
    /// Whether the best come first.
    pub sorted: bool,
}

/// The indices of the largest or smallest elements along `dim`, as many as `out` has room for.
pub fn topk(how: Topk, x: View<'_>, dim: usize, out: ViewMut<'_>) {
    Lines::new(x, dim).fill(out, |keys, out| {
        let count = out.len();
        let mut order: Vec<i64> = (0..keys.len() as i64).collect();
        let before = |a: i64, b: i64| {
            let (a, b) = (keys[a as usize], keys[b as usize]);
            if how.largest { a > b } else { a < b }
        };
        introselect(&mut order, count - 1, before);
        if how.sorted {
            introsort(&mut order[..count - 1], before);
        }
        out.copy_from_slice(&order[..count]);
    });
}

/// What is left of a list when repetitions are dropped.
pub struct Unique {
    /// The index of one element, or slice, of each kind.
    pub kept: Vec<i64>,
    /// For each element, or slice, the place of its kind in `kept`.
    pub inverse: Vec<i64>,
    /// How many there are of each kind.
    pub counts: Vec<i64>,
}

/// The kinds among the slices of `x` along `dim`, or among all elements, in rising order.
pub fn unique(x: View<'_>, dim: Option<usize>) -> Unique {
    let slices = Slices::new(x, dim);
    let mut order: Vec<usize> = (0..slices.count).collect();
    order.sort_by(|&a, &b| slices.of(a).cmp(slices.of(b)));
    slices.group(&order)
}

/// As [`unique`], of neighbours only, in the order in which they lie.
pub fn unique_neighbours(x: View<'_>, dim: Option<usize>) -> Unique {
    let slices = Slices::new(x, dim);
    slices.group(&(0..slices.count).collect::<Vec<_>>())
}

/// Slices along a dimension as rows of keys.
struct Slices {
    lines: Lines,
    rows: Vec<i64>,
    count: usize,
    width: usize,
}

impl Slices {
    fn new(x: View<'_>, dim: Option<usize>) -> Slices {
        let lines = Lines::new(x, dim.unwrap_or(0));
        let Some(dim) = dim else {
            let rows = lines.keys.clone();
            return Slices { lines, count: rows.len(), rows, width: 1 };
        };
        let count = x.shape().get(dim).copied().unwrap_or(1);
        let width = lines.keys.len().checked_div(count).unwrap_or(0);
        let inner: usize = x.shape().iter().skip(dim + 1).product();
        let key = |slice: usize, at: usize| lines.keys[(at / inner * count + slice) * inner + at % inner];
        let rows = (0..count).flat_map(|slice| (0..width).map(move |at| (slice, at)));
        let rows = rows.map(|(slice, at)| key(slice, at)).collect();
        Slices { lines, rows, count, width }
    }

    fn of(&self, slice: usize) -> &[i64] {
        &self.rows[slice * self.width..][..self.width]
    }

    fn same(&self, a: usize, b: usize) -> bool {
        self.of(a).iter().zip(self.of(b)).all(|(&a, &b)| self.lines.same(a, b))
    }

    /// Groups slices that are equal and next to each other in `order`.
    fn group(&self, order: &[usize]) -> Unique {
        let mut unique = Unique { kept: vec![], inverse: vec![0; self.count], counts: vec![] };
        let mut last = None;
        for &slice in order {
            match unique.counts.last_mut() {
                Some(count) if last.is_some_and(|last| self.same(last, slice)) => *count += 1,
                _ => {
                    unique.kept.push(slice as i64);
                    unique.counts.push(1);
                }
            }
            unique.inverse[slice] = unique.kept.len() as i64 - 1;
            last = Some(slice);
        }
        unique
    }
}
