//! How a product is cut into pieces for threads.
//!
//! The sum of each element is the same in any tile: its order depends on the depth alone, as long as
//! no tile is so narrow that other kernels would take it. So results are the same for every number of
//! threads, and one thread need not cut at all.

/// Below this many multiplications a plain loop is over before anything else has begun.
const TINY: usize = 64;
/// Multiplications that are not worth cutting further, some 20 microseconds of them.
const ENOUGH: usize = 1 << 20;
/// Multiplications worth handing out at once.
const HANDFUL: usize = 1 << 16;
/// Tiles per thread: one that is held up does not keep all others waiting.
const EACH: usize = 2;
/// Tiles that are worth packing a left operand of columns for again, which is slow.
const FEW: usize = 4;
/// Columns and rows below which packing the other operand again for each tile shows.
const WIDE: usize = 192;
/// The same where the other operand is not packed, or fast.
const NARROW: usize = 64;
/// Elements and longer side of the smallest tile. Smaller ones are added up in another order: the gemm
/// crate has other kernels below 256 elements, and cuts the depth otherwise up to a side of 64.
const SMALLEST: usize = 1024;
const SHORTEST: usize = 96;
/// Tiles are of whole blocks of the kernels for vectors.
const VECTOR: usize = 16;
/// Depth from which on the lines of an operand fall into the same few sets of a cache.
const DEEP: usize = 1024;
/// Rows and columns that use a packed operand so often that packing pays.
const OFTEN: usize = 512;

/// Whether a product is over before a function for larger ones has begun.
pub(super) fn is_tiny([m, k, n]: [usize; 3]) -> bool {
    work([m, k, n]) <= TINY
}

/// Whether an operand in rows is to be packed, which others are read faster without.
pub(super) fn is_deep([m, k, n]: [usize; 3]) -> bool {
    k >= DEEP && m.min(n) >= OFTEN
}

/// Whether a product is one tile.
pub(super) fn is_whole(shape: [usize; 3]) -> bool {
    work(shape) <= ENOUGH
}

fn work(shape: [usize; 3]) -> usize {
    shape.iter().fold(1, |work: usize, &size| work.saturating_mul(size))
}

/// Where a part of a matrix starts, and its sizes.
pub(super) type Tile = ([usize; 2], [usize; 2]);

/// The tiles of a matrix that is the product of two.
pub(super) struct Tiles {
    shape: [usize; 3],
    down: usize,
    across: usize,
}

impl Tiles {
    /// Cuts `[m, k] @ [k, n]` for so many threads. A left operand in rows is packed only if it is deep,
    /// so columns are cut first; one in columns is packed for each tile anew, so rows are.
    pub(super) fn of(shape: [usize; 3], in_rows: bool, threads: usize) -> Tiles {
        let [m, k, n] = shape;
        let wanted = if threads == 1 { 1 } else { EACH * threads };
        let (mut down, mut across) = (1, 1);
        while down * across < wanted && work([m / down, k, n / across]) > ENOUGH {
            let (rows, columns) = (m / (2 * down), n / (2 * across));
            let cut_columns = if is_deep([rows, k, columns]) {
                columns >= rows
            } else if in_rows && (columns >= WIDE || rows < WIDE && columns >= NARROW) {
                true
            } else if in_rows && rows >= WIDE || !in_rows && rows >= NARROW {
                false
            } else if !in_rows && columns >= WIDE && down * across < FEW {
                true
            } else {
                break;
            };
            let (more_down, more_across) = if cut_columns { (down, 2 * across) } else { (2 * down, across) };
            if !is_ordinary(m / more_down, n / more_across) {
                break;
            }
            (down, across) = (more_down, more_across);
        }
        Tiles { shape, down, across }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.down * self.across
    }

    /// Where a tile starts, and its sizes.
    pub(super) fn at(&self, tile: usize) -> Tile {
        let [m, _, n] = self.shape;
        let (row, rows) = cut(m, self.down, tile / self.across);
        let (column, columns) = cut(n, self.across, tile % self.across);
        ([row, column], [rows, columns])
    }

    /// How many products of a batch, or tiles, make a piece.
    pub(super) fn together(&self) -> usize {
        (HANDFUL * self.count() / work(self.shape).max(1)).max(1)
    }

    /// Nanoseconds of the whole product, roughly.
    pub(super) fn cost(&self) -> usize {
        work(self.shape) / 40
    }
}

/// Whether a tile of about this size is added up as larger ones are.
fn is_ordinary(rows: usize, columns: usize) -> bool {
    rows * columns >= SMALLEST && rows.max(columns) >= SHORTEST
}

/// Where one of several parts of about the same size starts, and its size.
fn cut(size: usize, parts: usize, part: usize) -> (usize, usize) {
    let start = |part: usize| if part == parts { size } else { size * part / parts / VECTOR * VECTOR };
    (start(part), start(part + 1) - start(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[usize; 3]; 8] = [
        [1, 1, 1],
        [128, 128, 128],
        [2048, 2048, 2048],
        [64, 784, 512],
        [300, 1000, 7],
        [7, 5000, 1001],
        [4097, 300, 130],
        [2, 9000, 256],
    ];

    #[test]
    fn tiles_cover_a_product_once() {
        for (shape, in_rows, threads) in SHAPES
            .iter()
            .flat_map(|shape| [false, true].map(|in_rows| (shape, in_rows)))
            .flat_map(|(shape, in_rows)| [1, 2, 3, 16].map(|threads| (*shape, in_rows, threads)))
        {
            let tiles = Tiles::of(shape, in_rows, threads);
            let mut area = 0;
            for tile in 0..tiles.count() {
                let ([row, column], [rows, columns]) = tiles.at(tile);
                assert!(row + rows <= shape[0] && column + columns <= shape[2]);
                let is_ordinary = rows * columns > 256 && rows.max(columns) > 64;
                assert!(tiles.count() == 1 || is_ordinary, "{shape:?} has a tile of {rows} x {columns}");
                area += rows * columns;
            }
            assert_eq!(area, shape[0] * shape[2]);
        }
    }

    #[test]
    fn products_have_tiles_for_all_threads_unless_they_are_small() {
        assert_eq!(Tiles::of([64, 64, 64], true, 2).count(), 1);
        assert_eq!(Tiles::of([128, 128, 128], true, 2).count(), 2);
        assert_eq!(Tiles::of([64, 784, 512], true, 2).count(), 4);
        assert_eq!(Tiles::of([2048, 2048, 2048], true, 1).count(), 1);
        assert!(Tiles::of([2048, 2048, 2048], true, 16).count() >= 32);
    }
}
