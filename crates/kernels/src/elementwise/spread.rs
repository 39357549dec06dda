//! Views that are not contiguous, brought to loops over slices.
//!
//! The output is walked as it lies in memory, in runs (see [`Rows`]). An operand that moves along is
//! read where it is; one that stands still is repeated, and one that jumps is packed, for a tile that
//! fits into the first cache at a time. All of this depends on element types only: the loop comes as
//! a `dyn` trait, so that a function of elements costs the compiler one loop, and not one of each kind
//! of layout.

use super::copy::{pack, unpack, write};
use super::large::{Change1, Change2, Change3, FAR_PIECE, Loop1, Loop2, Loop3, PIECE, cost};
use super::stream;
use super::tile::{FAR_TILE, Operand, TILE};
use crate::rows::{Rows, Walk};
use crate::{Element, Layout, View, ViewMut, threads};

/// Elements of a run that are computed at once if an operand is repeated or packed.
const AT_ONCE: usize = 1024;

/// What becomes of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// It is filled, whatever it held.
    Filled,
    /// It is read too.
    Changed,
}

/// Rows of elements that are computed after each other.
struct Tile<const N: usize> {
    /// Where the first element is, per operand.
    at: [usize; N],
    rows: usize,
    columns: usize,
    /// Whether no cache holds the operands.
    far: bool,
}

/// The operands beside the output, and the loop over all of them.
trait Operands<const N: usize, O>: Clone + Send + Sync {
    /// Bytes of one element of each.
    const BYTES: usize;

    /// Goes to a tile.
    fn begin(&mut self, tile: Tile<N>);

    /// Computes one row of the tile.
    fn run(&mut self, row: usize, out: &mut [O]);
}

/// One row per number of operands: structs whose loop fills the output or changes it.
macro_rules! operands {
    ($($name:ident, $operator:ident, $n:literal: $($T:ident $x:ident $i:literal),*;)*) => {$(
        #[derive(Clone)]
        struct $name<'a, O, $($T: Element),*> {
            $($x: Operand<'a, $T>,)*
            each: $operator<'a, $($T,)* O>,
        }

        impl<O: Element, $($T: Element),*> Operands<$n, O> for $name<'_, O, $($T),*> {
            const BYTES: usize = 0 $(+ size_of::<$T>())*;

            #[inline]
            fn begin(&mut self, Tile { at, rows, columns, far }: Tile<$n>) {
                $(self.$x.begin(at[$i], [rows, columns], far);)*
            }

            #[inline]
            fn run(&mut self, row: usize, out: &mut [O]) {
                self.each.run($(self.$x.row(row),)* out);
            }
        }
    )*};
}

operands! {
    One, Loop1, 2: A a 1;
    Two, Loop2, 3: A a 1, B b 2;
    Three, Loop3, 4: A a 1, B b 2, C c 3;
}

pub(super) fn map1<A: Element, O: Element>(x: View<'_>, out: ViewMut<'_>, each: Loop1<'_, A, O>) {
    let rows = Rows::new([out.layout(), x.layout()]);
    if !is_walkable(&rows) {
        return write(out, |out| each.run(&pack(x), out));
    }
    let across = Across::of(&rows);
    let a = Operand::new(x.span(), rows.steps[1], across.stride(1));
    walk(&rows, across, out, Output::Filled, One { a, each });
}

pub(super) fn map2<A: Element, B: Element, O: Element>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    each: Loop2<'_, A, B, O>,
) {
    if out.layout().len() <= FEW
        && let Some(out) = out.slice()
        && let (Some(a), Some(b)) = (few(a, &mut [A::default(); FEW]), few(b, &mut [B::default(); FEW]))
    {
        return each.run(a, b, out);
    }
    let rows = Rows::new([out.layout(), a.layout(), b.layout()]);
    if !is_walkable(&rows) {
        return write(out, |out| each.run(&pack(a), &pack(b), out));
    }
    let across = Across::of(&rows);
    let a = Operand::new(a.span(), rows.steps[1], across.stride(1));
    let b = Operand::new(b.span(), rows.steps[2], across.stride(2));
    walk(&rows, across, out, Output::Filled, Two { a, b, each });
}

pub(super) fn map3<A: Element, B: Element, C: Element, O: Element>(
    [a, b, c]: [View<'_>; 3],
    out: ViewMut<'_>,
    each: Loop3<'_, A, B, C, O>,
) {
    let rows = Rows::new([out.layout(), a.layout(), b.layout(), c.layout()]);
    if !is_walkable(&rows) {
        return write(out, |out| each.run(&pack(a), &pack(b), &pack(c), out));
    }
    let across = Across::of(&rows);
    let a = Operand::new(a.span(), rows.steps[1], across.stride(1));
    let b = Operand::new(b.span(), rows.steps[2], across.stride(2));
    let c = Operand::new(c.span(), rows.steps[3], across.stride(3));
    walk(&rows, across, out, Output::Filled, Three { a, b, c, each });
}

/// Up to this many elements, walking in tiles costs more than the work.
const FEW: usize = 64;

/// A few elements as they lie, or a single one repeated in `room`.
fn few<'a, T: Element>(x: View<'a>, room: &'a mut [T; FEW]) -> Option<&'a [T]> {
    if let Some(slice) = x.slice() {
        return Some(slice);
    }
    let &[only] = x.span() else { return None };
    let room = room.get_mut(..x.layout().len())?;
    room.fill(only);
    Some(room)
}

/// Whether [`map1`] is a good way to copy: it needs no copies of its own, and runs are worth a call each.
pub(super) fn copies(from: &Layout, to: &Layout) -> bool {
    let rows = Rows::new([to, from]);
    is_walkable(&rows) && rows.len >= 16
}

/// Packs, changes and unpacks elements that do not lie in runs.
fn change<T: Element>(x: ViewMut<'_>, change: impl FnOnce(&mut [T])) {
    let mut packed = pack(x.as_view()).into_scratch();
    change(&mut packed);
    unpack(&packed, x);
}

pub(super) fn update1<T: Element>(mut x: ViewMut<'_>, each: Change1<'_, T>) {
    let rows = Rows::new([x.layout()]);
    if !is_walkable(&rows) {
        return change(x, |x| each.run(x));
    }
    let (len, x) = (rows.len, x.span());
    rows.for_each(|[i]| each.run(&mut x[i..][..len]));
}

pub(super) fn update2<A: Element, B: Element>(mut a: ViewMut<'_>, b: View<'_>, each: Change2<'_, A, B>) {
    if a.layout().len() <= FEW
        && let Some(a) = a.slice()
        && let Some(b) = few(b, &mut [B::default(); FEW])
    {
        return each.run(a, b);
    }
    let rows = Rows::new([a.layout(), b.layout()]);
    if !is_walkable(&rows) {
        return change(a, |a| each.run(a, &pack(b)));
    }
    let across = Across::of(&rows);
    let b = Operand::new(b.span(), rows.steps[1], across.stride(1));
    walk(&rows, across, a, Output::Changed, One { a: b, each: &|b: &[B], a: &mut [A]| each.run(a, b) });
}

pub(super) fn update3<T: Element>(a: ViewMut<'_>, b: View<'_>, c: View<'_>, each: Change3<'_, T>) {
    let rows = Rows::new([a.layout(), b.layout(), c.layout()]);
    if !is_walkable(&rows) {
        return change(a, |a| each.run(a, &pack(b), &pack(c)));
    }
    let across = Across::of(&rows);
    let b = Operand::new(b.span(), rows.steps[1], across.stride(1));
    let c = Operand::new(c.span(), rows.steps[2], across.stride(2));
    walk(
        &rows,
        across,
        a,
        Output::Changed,
        Two { a: b, b: c, each: &|b: &[T], c: &[T], a: &mut [T]| each.run(a, b, c) },
    );
}

/// Whether the output's elements lie side by side in its runs.
fn is_walkable<const N: usize>(rows: &Rows<N>) -> bool {
    rows.steps[0] == 1
}

/// The second dimension of tiles: where an operand that jumps along the runs lies side by side.
#[derive(Clone, Copy)]
struct Across<const N: usize> {
    /// Its place among the dimensions around the runs, and its strides.
    dim: Option<(usize, [usize; N])>,
}

impl<const N: usize> Across<N> {
    fn of(rows: &Rows<N>) -> Across<N> {
        let jumping = (1..N).find(|&i| rows.steps[i] > 1);
        let dim = jumping.and_then(|i| {
            let moving =
                rows.outer.iter().enumerate().filter(|(_, dim)| (1..rows.steps[i]).contains(&dim.strides[i]));
            moving.min_by_key(|(_, dim)| dim.strides[i]).map(|(at, dim)| (at, dim.strides))
        });
        Across { dim }
    }

    fn stride(self, operand: usize) -> usize {
        self.dim.map_or(0, |(_, strides)| strides[operand])
    }
}

fn walk<const N: usize, O: Element, P: Operands<N, O>>(
    rows: &Rows<N>,
    across: Across<N>,
    mut out: ViewMut<'_>,
    becomes: Output,
    mut operands: P,
) {
    let len = out.layout().len();
    let out = out.span::<O>();
    if len == 0 {
        return;
    }
    let cost = cost(len * (P::BYTES + size_of::<O>()));
    // Only what fills its memory can be cut for threads.
    if out.len() > len {
        let mut walk = Walk::new(&rows.outer, 0, [0; N]);
        loop {
            run(rows, walk.at, &mut out[walk.at[0]..][..rows.len], &mut operands);
            if !walk.advance() {
                return;
            }
        }
    }
    let far = becomes == Output::Filled && stream::pays(out);
    let Some((dim, strides)) = across.dim else {
        if far {
            return threads::each_chunk(out, FAR_PIECE, cost, |i, out| {
                let mut places: [_; stream::PLACES] =
                    std::array::from_fn(|_| (Cursor::new(rows, i * FAR_PIECE), operands.clone()));
                stream::through::<_, { stream::BLOCK }>(out, |place, at, out| {
                    let (cursor, operands) = &mut places[place];
                    cursor.go_to(rows, i * FAR_PIECE + at);
                    cursor.fill(rows, out, operands);
                });
            });
        }
        return threads::each_chunk(out, PIECE, cost, |i, out| {
            Cursor::new(rows, i * PIECE).fill(rows, out, &mut operands.clone());
        });
    };
    let (outer, size, block) = (&rows.outer[..dim], rows.outer[dim].size, strides[0]);
    let tiles = Tiles { rows, dim, side: if far { FAR_TILE } else { TILE }, far };
    if outer.is_empty() {
        threads::each_chunk(out, tiles.side * block, cost, |i, out| {
            tiles.fill(moved([0; N], i * tiles.side, strides), out, &mut operands.clone());
        });
    } else {
        threads::each_chunk(out, size * block, cost, |i, out| {
            let (origin, operands) = (Walk::new(outer, i, [0; N]).at, &mut operands.clone());
            for (i, out) in out.chunks_mut(tiles.side * block).enumerate() {
                tiles.fill(moved(origin, i * tiles.side, strides), out, operands);
            }
        });
    }
}

/// A way through an output without gaps, run by run.
struct Cursor<const N: usize> {
    walk: Walk<N>,
    /// The element of the run that is next, and of the output.
    column: usize,
    next: usize,
}

impl<const N: usize> Cursor<N> {
    fn new(rows: &Rows<N>, first: usize) -> Cursor<N> {
        let walk = Walk::new(&rows.outer, first / rows.len, [0; N]);
        Cursor { walk, column: first % rows.len, next: first }
    }

    /// Makes `first` the next element, which costs nothing if it is already.
    fn go_to(&mut self, rows: &Rows<N>, first: usize) {
        if first != self.next {
            *self = Cursor::new(rows, first);
        }
    }

    /// Fills the next elements of the output.
    #[inline]
    fn fill<O, P: Operands<N, O>>(&mut self, rows: &Rows<N>, out: &mut [O], operands: &mut P) {
        self.next += out.len();
        let mut rest = out;
        while !rest.is_empty() {
            let (part, after) = rest.split_at_mut(rest.len().min(rows.len - self.column));
            run(rows, moved(self.walk.at, self.column, rows.steps), part, operands);
            self.column += part.len();
            if self.column == rows.len {
                self.walk.advance();
                self.column = 0;
            }
            rest = after;
        }
    }
}

/// Fills part of a run, as many elements at once as operands that are not read in place allow.
#[inline]
fn run<const N: usize, O, P: Operands<N, O>>(
    rows: &Rows<N>,
    start: [usize; N],
    out: &mut [O],
    operands: &mut P,
) {
    if out.len() <= AT_ONCE || rows.steps == [1; N] {
        operands.begin(Tile { at: start, rows: 1, columns: out.len(), far: false });
        return operands.run(0, out);
    }
    for (i, out) in out.chunks_mut(AT_ONCE).enumerate() {
        let at = moved(start, i * AT_ONCE, rows.steps);
        operands.begin(Tile { at, rows: 1, columns: out.len(), far: false });
        operands.run(0, out);
    }
}

/// How an output is filled tile by tile.
struct Tiles<'a, const N: usize> {
    rows: &'a Rows<N>,
    /// The second dimension of tiles, beside the runs.
    dim: usize,
    side: usize,
    /// Whether no cache holds the output or the operands.
    far: bool,
}

impl<const N: usize> Tiles<'_, N> {
    /// Fills `out`, which holds up to a tile's side of indices of the second dimension from `start` on.
    fn fill<O: Element, P: Operands<N, O>>(&self, start: [usize; N], out: &mut [O], operands: &mut P) {
        let (rows, block) = (self.rows, self.rows.outer[self.dim].strides[0]);
        let mut walk = Walk::new(&rows.outer[self.dim + 1..], 0, start);
        loop {
            for column in (0..rows.len).step_by(self.side) {
                let columns = self.side.min(rows.len - column);
                let at = moved(walk.at, column, rows.steps);
                operands.begin(Tile { at, rows: out.len() / block, columns, far: self.far });
                for (row, out) in out.chunks_mut(block).enumerate() {
                    let out = &mut out[walk.at[0] - start[0] + column..][..columns];
                    if self.far { run_past(row, out, operands) } else { operands.run(row, out) }
                }
            }
            if !walk.advance() {
                break;
            }
        }
        if self.far {
            stream::finish();
        }
    }
}

/// Computes one row of a tile and writes it past the caches.
fn run_past<const N: usize, O: Element, P: Operands<N, O>>(row: usize, out: &mut [O], operands: &mut P) {
    let room = &mut [O::default(); FAR_TILE][..out.len()];
    operands.run(row, room);
    stream::copy_past(room, out);
}

fn moved<const N: usize>(at: [usize; N], by: usize, steps: [usize; N]) -> [usize; N] {
    std::array::from_fn(|i| at[i] + by * steps[i])
}
