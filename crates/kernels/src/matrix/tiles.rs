//! How a product is cut into pieces for threads: by its shape alone, so that results are the same
//! for every number of them.

/// Below this many multiplications a plain loop is over before anything else has begun.
const TINY: usize = 64;
/// Multiplications that are not worth cutting further, some 40 microseconds of them.
const ENOUGH: usize = 2 << 20;
/// Multiplications worth handing out at once.
const HANDFUL: usize = 1 << 16;
/// Tiles that keep as many threads busy as most machines have; more would pack operands too often.
const MANY: usize = 16;
/// Tiles that are worth packing a left operand of columns for again, which is slow.
const FEW: usize = 4;
/// Columns and rows below which packing the other operand again for each tile shows.
const WIDE: usize = 192;
/// The same where the other operand is not packed, or fast.
const NARROW: usize = 96;
/// Tiles are of whole blocks of the kernels for vectors.
const VECTOR: usize = 16;

/// Whether a product is over before a function for larger ones has begun.
pub(super) fn is_tiny([m, k, n]: [usize; 3]) -> bool {
    work([m, k, n]) <= TINY
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
    rows: usize,
    columns: usize,
}

impl Tiles {
    /// Cuts `[m, k] @ [k, n]`. A left operand in rows is not packed, so columns are cut first; one in
    /// columns is packed for each tile anew, so rows are.
    pub(super) fn of(shape: [usize; 3], in_rows: bool) -> Tiles {
        let [m, k, n] = shape;
        let (mut down, mut across) = (1, 1);
        while down * across < MANY && work([m / down, k, n / across]) > ENOUGH {
            let (rows, columns) = (m / (2 * down), n / (2 * across));
            if in_rows && (columns >= WIDE || rows < WIDE && columns >= NARROW) {
                across *= 2;
            } else if in_rows && rows >= WIDE || !in_rows && rows >= NARROW {
                down *= 2;
            } else if !in_rows && columns >= WIDE && down * across < FEW {
                across *= 2;
            } else {
                break;
            }
        }
        let even = |size: usize, parts: usize| size.div_ceil(parts).next_multiple_of(VECTOR);
        Tiles { shape, rows: even(m, down), columns: even(n, across) }
    }

    fn across(&self) -> usize {
        self.shape[2].div_ceil(self.columns)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.shape[0].div_ceil(self.rows) * self.across()
    }

    /// Where a tile starts, and its sizes.
    pub(super) fn at(&self, tile: usize) -> Tile {
        let [m, _, n] = self.shape;
        let (row, column) = (tile / self.across() * self.rows, tile % self.across() * self.columns);
        ([row, column], [self.rows.min(m - row), self.columns.min(n - column)])
    }

    /// How many products of a batch, or tiles, make a piece.
    pub(super) fn together(&self) -> usize {
        (HANDFUL / work([self.rows, self.shape[1], self.columns]).max(1)).max(1)
    }

    /// Nanoseconds of the whole product, roughly.
    pub(super) fn cost(&self) -> usize {
        work(self.shape) / 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_a_product_once() {
        for shape in
            [[1, 1, 1], [2048, 2048, 2048], [64, 784, 512], [300, 1000, 7], [7, 5000, 1001], [4097, 300, 130]]
        {
            for in_rows in [false, true] {
                let tiles = Tiles::of(shape, in_rows);
                let mut area = 0;
                for tile in 0..tiles.count() {
                    let ([row, column], [rows, columns]) = tiles.at(tile);
                    assert!(
                        rows > 0 && columns > 0 && row + rows <= shape[0] && column + columns <= shape[2]
                    );
                    area += rows * columns;
                }
                assert_eq!(area, shape[0] * shape[2]);
            }
        }
    }

    #[test]
    fn large_products_have_tiles_for_several_threads_and_small_ones_have_one() {
        assert_eq!(Tiles::of([64, 64, 64], true).count(), 1);
        assert_eq!(Tiles::of([256, 256, 256], true).count(), 2);
        assert!(Tiles::of([64, 784, 512], true).count() >= 4);
        assert!(Tiles::of([2048, 2048, 2048], true).count() >= 16);
    }
}
