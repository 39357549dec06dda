//! Sums, products, means and extremes of all elements that meet at a place.
//!
//! `index_reduce` puts slices to places along a dimension, `scatter_reduce` single elements; all else is
//! the same.

use super::places::{Source, in_order, start};
use super::scatter::{check_source, elements};
use super::select_rows::{check_slices, slices};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
pub use cresset_kernels::index::Combine;

/// How the derivative of a reduction reaches the elements that took part.
trait Meeting {
    fn how(&self) -> Combine;
    fn include(&self) -> bool;
    /// For each element of the source, the one that it was put to.
    fn back(&self, x: &Tensor, index: &Tensor) -> Result<Tensor>;
    /// The source added to `x`.
    fn add(&self, x: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor>;
    /// 0 wherever something is put.
    fn clear(&self, x: &Tensor, index: &Tensor) -> Result<Tensor>;
    /// The reduction itself.
    fn again(&self, x: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor>;
}

/// The gradients of the tensor and of the source.
fn derivative(op: &impl Meeting, ctx: &Backward<'_>) -> Result<Grads> {
    let [x, source, index] = [ctx.saved(0), ctx.saved(1), ctx.saved(2)];
    let (grad, result) = (ctx.grad(), ctx.saved(3));
    let [of_x, of_source] = match op.how() {
        Combine::Multiply => product(op, ctx, [x, source, index], result)?,
        Combine::Mean => {
            let ones = source.ones_like()?;
            let count = if op.include() { x.ones_like()? } else { x.zeros_like()? };
            let count = op.add(&count, index, &ones)?;
            let count = count.masked_fill(&count.eq(0)?, 1)?;
            let share = grad.div(&count)?;
            [share.clone(), op.back(&share, index)?]
        }
        Combine::Largest | Combine::Smallest => {
            let of_x = x.eq(result)?.to_dtype(grad.dtype())?;
            let of_source = source.eq(&op.back(result, index)?)?.to_dtype(grad.dtype())?;
            let share = grad.div(&op.add(&of_x, index, &of_source)?)?;
            [of_x.mul(&share)?, of_source.mul(&op.back(&share, index)?)?]
        }
        Combine::Add | Combine::Replace => [grad.clone(), op.back(grad, index)?],
    };
    grads!(ctx; if op.include() { of_x.clone() } else { op.clear(&of_x, index)? }, of_source.clone())
}

/// The gradients of a product: the product of all others, found by division where there is no zero among
/// them, and by leaving out the only zero.
fn product(
    op: &impl Meeting,
    ctx: &Backward<'_>,
    [x, source, index]: [&Tensor; 3],
    result: &Tensor,
) -> Result<[Tensor; 2]> {
    let grad = ctx.grad();
    let without_zeros = x.masked_fill(&x.eq(0)?, 1)?;
    let others = op.again(&without_zeros, index, source)?;
    let of_x = grad.mul(&others)?.div(&without_zeros)?;
    let is_zero = source.eq(0)?;
    let zeros = op.back(&op.add(&x.zeros_like()?, index, &is_zero.to_dtype(x.dtype())?)?, index)?;
    let is_only_zero = zeros.where_(&is_zero, &zeros.zeros_like()?)?.eq(1)?;
    let rest = op.again(x, index, &source.masked_fill(&is_only_zero, 1)?)?;
    let by_leaving_out = op.back(&grad.mul(&rest)?, index)?;
    let by_division = op.back(&grad.mul(result)?, index)?.div(&source.masked_fill(&is_zero, 1)?)?;
    Ok([of_x, by_leaving_out.where_(&is_only_zero, &by_division)?])
}

/// What observers and messages call a reduction.
fn name(how: Combine) -> &'static str {
    match how {
        Combine::Replace => "replace",
        Combine::Add => "sum",
        Combine::Multiply => "prod",
        Combine::Mean => "mean",
        Combine::Largest => "amax",
        Combine::Smallest => "amin",
    }
}

fn check_how(op: &'static str, x: &Tensor, how: Combine, accepted: &[Combine]) -> Result<()> {
    if !accepted.contains(&how) {
        let names: Vec<_> = accepted.iter().map(|&how| name(how)).collect();
        let text = format_args!("expects one of {names:?}, not {:?}", name(how));
        return Err(Error::new(Cause::Argument, op, text));
    }
    if how == Combine::Mean && x.dtype() == DType::Bool {
        return Err(Error::new(Cause::DType, op, "truths have no mean; convert with to_dtype() first"));
    }
    Ok(())
}

macro_rules! reductions {
    ($(#[$doc:meta])* $op:ident: $name:literal, $in_place:literal, $backward:literal,
        of $accepted:expr, check $check:expr, places $places:expr, source $source:expr,
        back $back:ident, add $add:ident, clear $clear:ident, again $again:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimension.
            pub dim: usize,
            /// What becomes of elements that meet.
            pub how: Combine,
            /// Whether what was there takes part.
            pub include: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            /// The tensor, the source, and the index.
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                derivative(self, ctx)
            }

            fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                in_order(self.dim.into(), inputs.map(Operand::Tensor), visit);
                visit(Argument::Text(name(self.how)));
                visit(Argument::Bool(self.include));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
                check_how(Self::NAME, x, self.how, $accepted)?;
                $check(Self::NAME, x, self.dim, index, source.into())?;
                Ok(Spec::like(x))
            }

            fn cpu(&self, [x, source, index]: [&Tensor; 3], out: &Tensor) -> Result<()> {
                start(x, out)?;
                self.cpu_in_place([out, source, index])
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            kernel_table!(in place $op);

            fn cpu_in_place(&self, [x, source, index]: [&Tensor; 3]) -> Result<()> {
                if index.numel() == 0 {
                    return Ok(());
                }
                let places = $places(Self::NAME, x, self.dim, index)?;
                $source(index, source, x)?.put(x, &places, self.how, self.include);
                Ok(())
            }
        }

        impl Meeting for $op {
            fn how(&self) -> Combine {
                self.how
            }

            fn include(&self) -> bool {
                self.include
            }

            fn back(&self, x: &Tensor, index: &Tensor) -> Result<Tensor> {
                x.$back(self.dim as isize, index)
            }

            fn add(&self, x: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor> {
                x.$add(self.dim as isize, index, source)
            }

            fn clear(&self, x: &Tensor, index: &Tensor) -> Result<Tensor> {
                x.$clear(self.dim as isize, index, 0)
            }

            fn again(&self, x: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor> {
                x.$again(self.dim as isize, index, source, self.how, self.include)
            }
        }
    };
}

reductions! {
    /// A tensor with slices of another combined with it where an index says.
    IndexReduce: "aten::index_reduce", "aten::index_reduce_", "IndexReduceBackward0",
    of &[Combine::Multiply, Combine::Mean, Combine::Largest, Combine::Smallest],
    check check_slices, places slices, source |_, source, x| Source::all(source, x),
    back index_select, add index_add, clear index_fill, again index_reduce
}

reductions! {
    /// A tensor with elements of another combined with it where an index says.
    ScatterReduce: "aten::scatter_reduce", "aten::scatter_reduce_", "ScatterReduceBackward0",
    of &[Combine::Add, Combine::Multiply, Combine::Mean, Combine::Largest, Combine::Smallest],
    check check_source, places elements,
    source |index: &Tensor, source, x| Source::first(index.shape(), Operand::Tensor(source), x),
    back gather, add scatter_add, clear scatter, again scatter_reduce
}

impl Tensor {
    /// This tensor with the slices of `source` combined with those along `dim` that `index` names; without
    /// `include`, what was there takes no part.
    pub fn index_reduce(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        how: Combine,
        include: bool,
    ) -> Result<Tensor> {
        let dim = self.dim_index(IndexReduce::NAME, dim)?;
        IndexReduce { dim, how, include }.call([self, source, index])
    }

    /// Combines the slices of `source` with those along `dim` that `index` names, in place.
    pub fn index_reduce_(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        how: Combine,
        include: bool,
    ) -> Result<()> {
        let dim = self.dim_index(IndexReduce::IN_PLACE, dim)?;
        IndexReduce { dim, how, include }.call_in_place([self, source, index])
    }

    /// This tensor with elements of `source` combined with those that `index` names along `dim`; without
    /// `include`, what was there takes no part.
    pub fn scatter_reduce(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        how: Combine,
        include: bool,
    ) -> Result<Tensor> {
        let dim = self.dim_index(ScatterReduce::NAME, dim)?;
        ScatterReduce { dim, how, include }.call([self, source, index])
    }

    /// Combines elements of `source` with those that `index` names along `dim`, in place.
    pub fn scatter_reduce_(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        how: Combine,
        include: bool,
    ) -> Result<()> {
        let dim = self.dim_index(ScatterReduce::IN_PLACE, dim)?;
        ScatterReduce { dim, how, include }.call_in_place([self, source, index])
    }
}
