//! Sizes of sliding windows, for convolutions, pooling and unfolding.

use crate::{Cause, Error, Result};
use cresset_kernels::Dims;
use smallvec::SmallVec;

/// A number per spatial dimension, or one for all of them.
pub type PerDim = SmallVec<[isize; 4]>;

/// Numbers for `rank` dimensions, each at least `least`.
pub(super) fn per_dim(
    op: &'static str,
    name: &str,
    given: &[isize],
    rank: usize,
    least: isize,
) -> Result<Dims> {
    let all = match given {
        [one] => PerDim::from_elem(*one, rank),
        all => PerDim::from_slice(all),
    };
    if all.len() != rank || all.iter().any(|&number| number < least) {
        let text = format_args!("expects a {name} of one or {rank} numbers from {least} on, not {given:?}");
        return Err(Error::new(Cause::Argument, op, text));
    }
    Ok(all.into_iter().map(|number| number as usize).collect())
}

/// How many windows fit along a dimension. Rounded up, windows may reach beyond the end, but none
/// may begin there.
pub(super) fn windows(
    input: usize,
    [kernel, stride, padding, dilation]: [usize; 4],
    round_up: bool,
) -> Option<usize> {
    let [size, kernel, stride, padding, dilation] =
        [input, kernel, stride, padding, dilation].map(|number| number as i128);
    let room = size + 2 * padding - dilation * (kernel - 1) - 1;
    if !round_up {
        return usize::try_from(room.div_euclid(stride) + 1).ok();
    }
    let count = (room + stride - 1).div_euclid(stride) + 1;
    let last_begins_outside = (count - 1) * stride >= size + padding;
    usize::try_from(if last_begins_outside { count - 1 } else { count }).ok()
}

/// Up to three numbers as exactly three, after as many of `first` as are missing.
pub(super) fn three(numbers: &[usize], first: usize) -> [usize; 3] {
    let mut three = [first; 3];
    three[3 - numbers.len()..].copy_from_slice(numbers);
    three
}
