//! A tensor changed by other parts of its own memory, piece by piece: what a piece reads is set aside before
//! it is written, so that the whole is never in memory twice.

use super::{Source, lock, spread};
use crate::op::Operand;
use crate::{Cause, DType, Error, Layout, Result, Tensor};
use cresset_kernels::{Buffer, Dims, View, ViewMut, elementwise};

/// How many elements a piece has at most.
const PIECE: usize = 4096;

/// An operand of a change: in the memory that is changed, or elsewhere.
enum Part<'a> {
    Inside(&'a Tensor, Buffer),
    Outside(Source<'a>),
}

impl<'a> Part<'a> {
    fn new(operand: Operand<'a>, dtype: DType, target: &Tensor) -> Result<Part<'a>> {
        let Some(tensor) = operand.tensor().filter(|tensor| tensor.storage().same_as(target.storage()))
        else {
            return Source::new(operand, dtype).map(Part::Outside);
        };
        // Not every byte is a truth.
        let room = if dtype == DType::Bool { Buffer::zeroed } else { Buffer::uninit };
        let aside = room(PIECE.min(target.numel()) * dtype.size());
        let aside = aside.map_err(|failed| Error::new(Cause::Memory, "", failed))?;
        Ok(Part::Inside(tensor, aside))
    }

    fn layout(&self) -> &Layout {
        match self {
            Part::Inside(tensor, _) => tensor.layout(),
            Part::Outside(source) => source.layout(),
        }
    }

    fn outside(&self) -> Option<&Buffer> {
        match self {
            Part::Inside(..) => None,
            Part::Outside(source) => source.buffer(),
        }
    }
}

/// Changes `target` given `others`, each read as elements of the type beside it, and broadcast. Those that lie
/// in the same memory must be apart from the target, or lie just as it does.
pub(super) fn change<const N: usize>(
    target: &Tensor,
    others: [(Operand<'_>, DType); N],
    run: &mut dyn FnMut(ViewMut<'_>, [View<'_>; N]),
) -> Result<()> {
    let mut parts = [const { None }; N];
    for (part, (operand, dtype)) in parts.iter_mut().zip(others) {
        *part = Some(Part::new(operand, dtype, target)?);
    }
    let parts = parts.map(|part| part.expect("each was made above"));
    let layouts: [Layout; N] =
        std::array::from_fn(|i| spread(parts[i].layout(), target.shape()).into_owned());
    let (mut writing, readings) = lock(target.buffer(), parts.each_ref().map(Part::outside));
    each_piece(target.layout(), |piece| {
        let row_major = Layout::contiguous(&piece.shape).expect("a piece is smaller than the whole");
        let places: [Layout; N] = std::array::from_fn(|i| match &parts[i] {
            Part::Inside(..) => row_major.clone(),
            Part::Outside(_) => piece.of(&layouts[i]),
        });
        let asides: [_; N] = std::array::from_fn(|i| match &parts[i] {
            Part::Inside(tensor, aside) => {
                let from = piece.of(&layouts[i]);
                let from = View::new(writing.bytes(), tensor.dtype(), &from);
                elementwise::copy(from, ViewMut::new(aside.write().bytes(), others[i].1, &row_major));
                Some(aside.read())
            }
            Part::Outside(_) => None,
        });
        let views = std::array::from_fn(|i| match (&parts[i], &asides[i]) {
            (Part::Outside(source), _) => source.view(&readings[i], &places[i]),
            (Part::Inside(..), Some(aside)) => View::new(aside.bytes(), others[i].1, &places[i]),
            (Part::Inside(..), None) => unreachable!("what lies inside was set aside"),
        });
        run(ViewMut::new(writing.bytes(), target.dtype(), &piece.of(target.layout())), views);
    });
    Ok(())
}

/// Some elements: where they begin in each dimension, and how many there are.
struct Piece {
    start: Dims,
    shape: Dims,
}

impl Piece {
    fn of(&self, whole: &Layout) -> Layout {
        let ranges = self.start.iter().zip(&self.shape).enumerate();
        ranges.fold(whole.clone(), |part, (dim, (&start, &size))| part.narrow(dim, start, size))
    }
}

/// Cuts a layout into pieces, one after the other and as large as they may be.
fn each_piece(whole: &Layout, mut run: impl FnMut(&Piece)) {
    let shape = whole.shape();
    let mut piece = Piece { start: Dims::from_elem(0, shape.len()), shape: shape.into() };
    if whole.len() <= PIECE {
        return run(&piece);
    }
    // The dimension that is cut: all after it fit into a piece, it does not.
    let after = |dim: usize| shape[dim + 1..].iter().product::<usize>();
    let cut = (0..shape.len()).find(|&dim| after(dim) <= PIECE).unwrap_or(0);
    let step = PIECE / after(cut);
    piece.shape[..cut].fill(1);
    loop {
        piece.shape[cut] = step.min(shape[cut] - piece.start[cut]);
        run(&piece);
        piece.start[cut] += step;
        for dim in (0..=cut).rev() {
            if piece.start[dim] < shape[dim] {
                break;
            }
            if dim == 0 {
                return;
            }
            piece.start[dim] = 0;
            piece.start[dim - 1] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_element_once() {
        for shape in [&[3, 5][..], &[2, 5000, 3], &[9000], &[3, 2, 4097], &[4096, 2, 1]] {
            let whole = Layout::contiguous(shape).unwrap();
            let mut seen = vec![0u8; whole.len()];
            each_piece(&whole, |piece| {
                assert!(piece.shape.iter().product::<usize>() <= PIECE);
                let part = piece.of(&whole);
                let rows = Layout::contiguous(part.shape()).unwrap();
                for at in 0..rows.len() {
                    let mut rest = at;
                    let place =
                        part.strides().iter().zip(rows.strides()).fold(part.offset(), |place, (to, from)| {
                            let index = rest / from;
                            rest %= from;
                            place + index * to
                        });
                    seen[place] += 1;
                }
            });
            assert!(seen.iter().all(|&times| times == 1), "{shape:?}");
        }
    }
}
