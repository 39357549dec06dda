//! Lays two lists of calls side by side, so that as many as possible stand beside their equals.

use super::forest::Forest;

/// Two calls side by side, or one beside nothing.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Longer lists are laid side by side piece by piece.
const PIECE: usize = 2048;

/// The calls of both lists in their order.
pub(super) fn align(theirs: (&Forest<'_>, &[usize]), ours: (&Forest<'_>, &[usize])) -> Vec<Pair> {
    let score = |i: usize, j: usize| score((theirs.0, theirs.1[i]), (ours.0, ours.1[j]));
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < theirs.1.len() || j < ours.1.len() {
        if i < theirs.1.len() && j < ours.1.len() && score(i, j) == BEST {
            pairs.push((Some(theirs.1[i]), Some(ours.1[j])));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (rest, beside) = (theirs.1.len() - i, ours.1.len() - j);
        let is_last = rest <= PIECE && beside <= PIECE;
        let piece = best(rest.min(PIECE), beside.min(PIECE), |a, b| score(i + a, j + b));
        // Near the end of a piece, what comes after it could change the picture.
        let kept = if is_last { piece.len() } else { piece.len().div_ceil(2) };
        for (a, b) in piece.into_iter().take(kept) {
            pairs.push((a.map(|a| theirs.1[i + a]), b.map(|b| ours.1[j + b])));
        }
        let taken = &pairs[pairs.len() - kept..];
        let (lefts, rights) = (
            taken.iter().filter(|pair| pair.0.is_some()).count(),
            taken.iter().filter(|pair| pair.1.is_some()).count(),
        );
        (i, j) = (i + lefts, j + rights);
    }
    pairs
}

/// Calls of one name, one set of shapes and as many calls inside.
const BEST: u32 = 7;

fn score(theirs: (&Forest<'_>, usize), ours: (&Forest<'_>, usize)) -> u32 {
    let (a, b) = (&theirs.0.nodes[theirs.1], &ours.0.nodes[ours.1]);
    if a.name != b.name {
        return 0;
    }
    4 + 2 * u32::from(a.dims == b.dims) + u32::from(a.children.len() == b.children.len())
}

/// The way through two lists that has the highest score, by the scores of all pairs.
pub(super) fn best(rows: usize, columns: usize, score: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let width = columns + 1;
    // From each pair of places to the ends.
    let mut sums = vec![0u32; (rows + 1) * width];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let apart = sums[(i + 1) * width + j].max(sums[i * width + j + 1]);
            let together = match score(i, j) {
                0 => 0,
                score => score + sums[(i + 1) * width + j + 1],
            };
            sums[i * width + j] = apart.max(together);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut way = Vec::with_capacity(rows.max(columns));
    while i < rows || j < columns {
        let here = sums[i * width + j];
        let together = if i < rows && j < columns { score(i, j) } else { 0 };
        if together > 0 && here == together + sums[(i + 1) * width + j + 1] {
            way.push((Some(i), Some(j)));
            (i, j) = (i + 1, j + 1);
        } else if i < rows && (j == columns || here == sums[(i + 1) * width + j]) {
            way.push((Some(i), None));
            i += 1;
        } else {
            way.push((None, Some(j)));
            j += 1;
        }
    }
    way
}
