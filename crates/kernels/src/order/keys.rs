//! Integers that are ordered as elements are.

use crate::elementwise::{to_vec, write};
use crate::{View, ViewMut};

/// The key of every NaN: above that of infinity.
pub(super) const NAN: i64 = i64::MAX;

/// A tensor as lines along one dimension, each element a key.
pub(crate) struct Lines {
    pub(super) keys: Vec<i64>,
    /// Whether a key of [`NAN`] stands for NaN rather than for the largest integer.
    pub(super) floats: bool,
    size: usize,
    inner: usize,
}

impl Lines {
    /// The lines of `x` along `dim`; one element without dimensions is a line of one.
    pub(crate) fn new(x: View<'_>, dim: usize) -> Lines {
        let floats = x.dtype().is_float();
        let keys = match floats {
            true => to_vec::<f64>(x).into_iter().map(key).collect(),
            false => to_vec::<i64>(x),
        };
        let size = x.shape().get(dim).copied().unwrap_or(1);
        Lines { keys, floats, size, inner: x.shape().iter().skip(dim + 1).product() }
    }

    /// Fills the lines of `out`, which may have another length, from those of the keys.
    pub(super) fn fill(&self, out: ViewMut<'_>, mut f: impl FnMut(&[i64], &mut [i64])) {
        let count = self.keys.len() / self.size.max(1);
        if count == 0 || out.layout().is_empty() {
            return;
        }
        let (inner, length) = (self.inner, out.layout().len() / count);
        let (mut keys, mut filled) = (vec![0; self.size], vec![0; length]);
        write(out, |out: &mut [i64]| {
            for line in 0..count {
                let (outer, column) = (line / inner, line % inner);
                let start = outer * self.size * inner + column;
                keys.iter_mut().enumerate().for_each(|(i, key)| *key = self.keys[start + i * inner]);
                f(&keys, &mut filled);
                let start = outer * length * inner + column;
                filled.iter().enumerate().for_each(|(i, filled)| out[start + i * inner] = *filled);
            }
        });
    }

    /// Whether the keys of two elements say that they are equal: NaN never is.
    pub(super) fn same(&self, a: i64, b: i64) -> bool {
        a == b && !(self.floats && a == NAN)
    }
}

/// Negative floats have their other bits flipped: the larger they are the smaller.
fn key(x: f64) -> i64 {
    if x.is_nan() {
        return NAN;
    }
    // Both zeros get one key.
    let bits = (x + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}
