//! Means and variances, in double precision.

use super::blocks::{self, Blocks};
use super::fold::sum_slice;
use crate::elementwise::{contiguous, copy, to_vec};
use crate::{Layout, View, ViewMut};

/// The variance of a group, or its square root, and its mean.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// What is taken off the count before the squares are divided by it.
    pub correction: f64,
    /// Whether the square root of the variance is wanted.
    pub root: bool,
}

/// Fills `variance` and, if asked for, `mean`, over `dims`.
pub fn moments(how: Moments, x: View<'_>, dims: &[usize], variance: ViewMut<'_>, mean: Option<ViewMut<'_>>) {
    blocks::check(x.shape(), dims, variance.shape());
    let (elements, layout) = (to_vec::<f64>(x), contiguous(x.shape()));
    let blocks = Blocks::<f64>::new(View::of(&elements, &layout), dims);
    let count = variance.layout().len();
    let groups: Vec<(f64, f64)> = if elements.is_empty() {
        vec![(f64::NAN, f64::NAN); count]
    } else {
        let groups = blocks.elements.chunks_exact(blocks.size * blocks.inner);
        groups.flat_map(|rows| columns(rows, blocks.inner)).map(|group| how.of(&group)).collect()
    };
    let layout = contiguous(variance.shape());
    store(groups.iter().map(|group| group.0), &layout, variance);
    if let Some(mean) = mean {
        store(groups.iter().map(|group| group.1), &layout, mean);
    }
}

fn columns(rows: &[f64], inner: usize) -> impl Iterator<Item = Vec<f64>> + '_ {
    (0..inner).map(move |column| rows[column..].iter().step_by(inner).copied().collect())
}

fn store(values: impl Iterator<Item = f64>, layout: &Layout, out: ViewMut<'_>) {
    copy(View::of(&values.collect::<Vec<_>>(), layout), out);
}

impl Moments {
    /// The mean first, then squares around it: exact where one pass would cancel.
    fn of(self, group: &[f64]) -> (f64, f64) {
        let count = group.len() as f64;
        let mean = sum_slice(group) / count;
        let squares: Vec<f64> = group.iter().map(|x| (x - mean) * (x - mean)).collect();
        let variance = sum_slice(&squares) / (count - self.correction).max(0.0);
        (if self.root { variance.sqrt() } else { variance }, mean)
    }
}
