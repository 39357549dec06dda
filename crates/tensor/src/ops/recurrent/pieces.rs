//! Gates cut out of their sums.

use crate::ops::split::join;
use crate::{Backward, Forward, Grads, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::{self, Argument};

/// Columns of a matrix in pieces of one size, each changed in place by itself: they are no views, for nobody looks
/// at the whole again.
#[derive(Clone, Debug)]
struct UnsafeSplit {
    size: usize,
}

impl Op for UnsafeSplit {
    const NAME: &'static str = "aten::unsafe_split";
    const BACKWARD: &'static str = "UnsafeSplitBackward0";
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Vec<Tensor>;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let pieces = ctx.shape(0)[1] / self.size;
            join(ctx, std::iter::repeat_n(self.size, pieces), 1)?
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.size as i64));
        visit(Argument::Int(1));
    }
}

impl Forward for UnsafeSplit {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Vec<Tensor>> {
        let piece = |start: usize| {
            if observe::is_watched() {
                x.narrow(1, start as isize, self.size)?;
            }
            let layout = x.layout().narrow(1, start, self.size);
            Ok(Tensor::from_parts(x.storage().counted_apart(), layout, x.dtype()))
        };
        (0..x.shape()[1]).step_by(self.size).map(piece).collect()
    }
}

/// The columns of sums in `N` pieces. They share the memory of `sums`, which must not be used again.
pub(super) fn gates<const N: usize>(sums: &Tensor) -> Result<[Tensor; N]> {
    let _span = composite("aten::unsafe_chunk", [sums], |visit| {
        visit(Argument::Int(N as i64));
        visit(Argument::Int(1));
    });
    let pieces = UnsafeSplit { size: sums.shape()[1] / N }.call([sums])?;
    Ok(pieces.try_into().expect("sums have as many columns for each gate"))
}
