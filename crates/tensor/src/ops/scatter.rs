//! Elements picked and changed by an index that has a number for each of them.

use super::places::{
    Source, check_index, check_room, check_same_dtype, in_order, must_be_tensor, out_of_range, pick, start,
    tensor,
};
use super::{broadcast, check_dims};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, NamedDim, Op, Result, Spec, Tensor, composite,
    grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index::{Combine, Places};

/// A number by itself is seen as a line of one.
fn line(shape: &[usize]) -> &[usize] {
    if shape.is_empty() { &[1] } else { shape }
}

/// Refuses an index that reaches beyond `x` in a dimension other than `dim`.
pub(super) fn check_elements(op: &'static str, x: &Tensor, dim: usize, index: &Tensor) -> Result<()> {
    check_index(op, index)?;
    check_dims(op, &[dim], x)?;
    let (sizes, given) = (line(x.shape()), line(index.shape()));
    let beyond = || (0..sizes.len()).any(|at| at != dim && given[at] > sizes[at]);
    if index.numel() == 0 || (sizes.len() == given.len() && !beyond()) {
        return Ok(());
    }
    let text = format_args!(
        "an index of shape {:?} does not fit {:?}: expects as many dimensions, none larger but dimension {dim}",
        index.shape(),
        x.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// Refuses a source that has no element for some number of the index.
pub(super) fn check_source(
    op: &'static str,
    x: &Tensor,
    dim: usize,
    index: &Tensor,
    source: Operand<'_>,
) -> Result<()> {
    check_elements(op, x, dim, index)?;
    let Operand::Tensor(source) = source else { return Ok(()) };
    check_same_dtype(op, x, source)?;
    let (sizes, given) = (line(source.shape()), line(index.shape()));
    let covered = || sizes.iter().zip(given).all(|(size, wanted)| size >= wanted);
    if index.numel() == 0 || (sizes.len() == given.len() && covered()) {
        return Ok(());
    }
    let text = format_args!(
        "a source of shape {:?} has not an element for each number of an index of shape {:?}",
        source.shape(),
        index.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// The places of the elements that `index` names.
pub(super) fn elements(op: &'static str, x: &Tensor, dim: usize, index: &Tensor) -> Result<Places> {
    check_room(op, index.shape())?;
    let reading = index.read();
    Places::of_elements(x.layout(), dim, index.elements(&reading)).map_err(out_of_range(op))
}

/// Puts a source to the elements of `x` that `index` names.
pub(super) fn put_elements(
    op: &'static str,
    [x, source, index]: [Operand<'_>; 3],
    dim: usize,
    (how, include): (Combine, bool),
) -> Result<()> {
    let (x, index) = (tensor(x), tensor(index));
    if index.numel() > 0 {
        let places = elements(op, x, dim, index)?;
        Source::first(index.shape(), source, x)?.put(x, &places, how, include);
    }
    Ok(())
}

/// Torch's kernels write half precision by way of single.
fn show_single_precision(out: &Tensor) -> Result<()> {
    if matches!(out.dtype(), DType::F16 | DType::BF16) {
        let single = shown::empty(out.shape(), DType::F32)?;
        drop(shown::call("aten::copy_", [&single, out], &[Argument::Bool(false)]));
        drop(shown::call("aten::copy_", [out, &single], &[Argument::Bool(false)]));
    }
    Ok(())
}

/// The index as torch's kernels read it: of i64.
pub(super) fn show_numbers(index: &Tensor) -> Result<Option<Tensor>> {
    (index.numel() > 0).then(|| index.to(DType::I64)).transpose()
}

/// Elements picked along one dimension: `out[i, j] = x[index[i, j], j]` for the first of two.
#[derive(Clone, Debug)]
pub struct Gather {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for Gather {
    const NAME: &'static str = "aten::gather";
    const BACKWARD: &'static str = "GatherBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let (grad, x, index) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
            let _span = composite("aten::gather_backward", [grad, x], |visit| {
                visit(self.dim.argument());
                visit(Argument::Tensor(index.argument()));
                visit(Argument::Bool(false));
            });
            let zeros = shown::new_zeros(grad, x.shape(), false)?;
            zeros.scatter_add_(self.dim.named(), index, grad)?;
            zeros
        })
    }

    fn arguments(&self, [x, index]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(self.dim.argument());
        visit(Argument::Tensor(index.argument()));
        visit(Argument::Bool(false));
    }
}

impl Kernel for Gather {
    kernel_table!(Gather);

    fn infer(&self, [x, index]: [&Tensor; 2]) -> Result<Spec> {
        check_elements(Self::NAME, x, *self.dim, index)?;
        Ok(Spec::new(index.shape(), x.dtype()))
    }

    fn shown(&self, [x, index]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let out = self.room([x, index])?;
        let _numbers = show_numbers(index)?;
        show_single_precision(&out)?;
        self.fill([x, index], &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [x, index]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        if index.numel() > 0 {
            pick(x, &elements(Self::NAME, x, *self.dim, index)?, out);
        }
        Ok(())
    }
}

/// A tensor with elements of another, or a number, where an index says:
/// `x[index[i, j], j] = source[i, j]` for the first of two dimensions.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Which dimension.
    pub dim: NamedDim,
    /// What becomes of an element that another one is put to: replaced, or added to or multiplied.
    pub how: Combine,
}

impl Op for Scatter {
    const NAME: &'static str = "aten::scatter";
    const BACKWARD: &'static str = "ScatterBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the source, and the index.
    type Inputs<'a> = [Operand<'a>; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (dim, index) = (self.dim, ctx.saved(2));
        let source = || gathered(Self::NAME, ctx, dim, index);
        match self.how {
            Combine::Replace => grads!(ctx; ctx.grad().scatter(dim.named(), index, 0)?, source()?),
            Combine::Add => grads!(ctx; ctx.grad().clone(), source()?),
            _ => {
                let text = "products have no derivative here; use scatter_reduce()";
                Err(Error::new(Cause::Graph, Self::NAME, text))
            }
        }
    }

    fn arguments(&self, inputs: [Operand<'_>; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        in_order(self.dim, inputs, visit);
        if self.how != Combine::Replace {
            visit(Argument::None);
        }
    }

    fn backward_name(&self, [_, value, _]: [Operand<'_>; 3]) -> &'static str {
        if value.tensor().is_some() { Self::BACKWARD } else { "ScatterBackward1" }
    }
}

/// The gradient of a source: what the index leads to.
pub(super) fn gathered(
    op: &'static str,
    ctx: &Backward<'_>,
    dim: NamedDim,
    index: &Tensor,
) -> Result<Tensor> {
    if line(ctx.shape(1)) == line(index.shape()) {
        return ctx.grad().gather(dim.named(), index);
    }
    let text = format_args!(
        "has a derivative for a source of the shape of its index only, not {:?} and {:?}; narrow the source first",
        ctx.shape(1),
        index.shape()
    );
    Err(Error::new(Cause::Graph, op, text))
}

impl Kernel for Scatter {
    kernel_table!(Scatter);

    fn infer(&self, [x, source, index]: [Operand<'_>; 3]) -> Result<Spec> {
        must_be_tensor(Self::NAME, x)?;
        must_be_tensor(Self::NAME, index)?;
        let x = tensor(x);
        check_source(Self::NAME, x, *self.dim, tensor(index), source)?;
        if matches!(self.how, Combine::Replace | Combine::Add | Combine::Multiply) {
            return Ok(Spec::like(x));
        }
        let text = format_args!("replaces, adds or multiplies, not {:?}; use scatter_reduce()", self.how);
        Err(Error::new(Cause::Argument, Self::NAME, text))
    }

    fn shown(&self, [x, source, index]: [Operand<'_>; 3]) -> Result<Option<Tensor>> {
        let out = self.room([x, source, index])?;
        out.copy_(tensor(x))?;
        self.write([(&out).into(), source, index])?;
        Ok(Some(out))
    }

    fn cpu(&self, [x, source, index]: [Operand<'_>; 3], out: &Tensor) -> Result<()> {
        start(tensor(x), out)?;
        self.cpu_in_place([out.into(), source, index])
    }
}

impl InPlace for Scatter {
    const IN_PLACE: &'static str = "aten::scatter_";
    kernel_table!(in place Scatter);

    fn cpu_in_place(&self, inputs: [Operand<'_>; 3]) -> Result<()> {
        put_elements(Self::NAME, inputs, *self.dim, (self.how, true))
    }

    fn shown_in_place(&self, [x, _, index]: [Operand<'_>; 3]) -> Result<Shown> {
        let numbers = show_numbers(tensor(index))?;
        show_single_precision(tensor(x))?;
        Ok(Shown::keeping(numbers))
    }
}

/// A tensor with elements of another added where an index says.
#[derive(Clone, Debug)]
pub struct ScatterAdd {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for ScatterAdd {
    const NAME: &'static str = "aten::scatter_add";
    const BACKWARD: &'static str = "ScatterAddBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the source, and the index.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone(), gathered(Self::NAME, ctx, self.dim, ctx.saved(2))?)
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        in_order(self.dim, inputs.map(Operand::Tensor), visit);
    }
}

impl Kernel for ScatterAdd {
    kernel_table!(ScatterAdd);

    fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
        check_source(Self::NAME, x, *self.dim, index, source.into())?;
        Ok(Spec::like(x))
    }

    fn shown(&self, [x, source, index]: [&Tensor; 3]) -> Result<Option<Tensor>> {
        let out = self.room([x, source, index])?;
        out.copy_(x)?;
        self.write([&out, source, index])?;
        Ok(Some(out))
    }

    fn cpu(&self, [x, source, index]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        start(x, out)?;
        self.cpu_in_place([out, source, index])
    }
}

impl InPlace for ScatterAdd {
    const IN_PLACE: &'static str = "aten::scatter_add_";
    kernel_table!(in place ScatterAdd);

    fn cpu_in_place(&self, inputs: [&Tensor; 3]) -> Result<()> {
        put_elements(Self::NAME, inputs.map(Operand::Tensor), *self.dim, (Combine::Add, true))
    }

    fn shown_in_place(&self, [x, _, index]: [&Tensor; 3]) -> Result<Shown> {
        let numbers = show_numbers(index)?;
        show_single_precision(x)?;
        Ok(Shown::keeping(numbers))
    }
}

impl Tensor {
    /// Elements picked along `dim`, one per number of `index`, whose other coordinates they share.
    pub fn gather(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        let dim = self.named_dim(Gather::NAME, dim)?;
        Gather { dim }.call([self, index])
    }

    /// As [`gather`](Tensor::gather), with both broadcast against each other but for `dim`, and negative
    /// numbers counted from the back.
    pub fn take_along_dim(&self, index: &Tensor, dim: isize) -> Result<Tensor> {
        const NAME: &str = "aten::take_along_dim";
        let _span = composite(NAME, [self, index], |visit| visit(Argument::Int(dim as i64)));
        if self.dim() != index.dim() {
            let text = format_args!(
                "expects as many dimensions in the index as in the tensor, not {:?} for {:?}",
                index.shape(),
                self.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let at = self.dim_index(NAME, dim)?;
        let (mut x_shape, mut index_shape) = (self.shape().to_vec(), index.shape().to_vec());
        if let (Some(size), Some(count)) = (x_shape.get(at).copied(), index_shape.get(at).copied()) {
            (x_shape[at], index_shape[at]) = (1, 1);
            let mut shape = broadcast(NAME, &x_shape, &index_shape)?;
            shape[at] = size;
            x_shape = shape.to_vec();
            shape[at] = count;
            index_shape = shape.to_vec();
        }
        let index = index.broadcast_to(index_shape)?;
        let x = self.broadcast_to(x_shape)?;
        x.gather(at as isize, &index.remainder(line(x.shape())[at] as i64)?)
    }

    /// As [`take_along_dim`](Tensor::take_along_dim), of all elements in one row.
    pub fn take_along(&self, index: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::take_along_dim", [self, index], |visit| visit(Argument::None));
        let row = |x: &Tensor| if x.is_contiguous() { x.view(-1) } else { x.reshape(-1) };
        row(self)?.gather(0, &row(index)?)
    }

    /// This tensor with elements of `source`, a tensor or a number, where `index` says along `dim`.
    pub fn scatter<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        source: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        self.scatter_combined(dim, index, source, Combine::Replace)
    }

    /// Puts elements of `source`, a tensor or a number, where `index` says along `dim`.
    pub fn scatter_<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        source: impl Into<Operand<'a>>,
    ) -> Result<()> {
        self.scatter_combined_(dim, index, source, Combine::Replace)
    }

    /// As [`scatter`](Tensor::scatter), with elements combined with what is there: replaced, added or
    /// multiplied.
    pub fn scatter_combined<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        source: impl Into<Operand<'a>>,
        how: Combine,
    ) -> Result<Tensor> {
        let dim = self.named_dim(Scatter::NAME, dim)?;
        Scatter { dim, how }.call([self.into(), source.into(), index.into()])
    }

    /// As [`scatter_`](Tensor::scatter_), with elements combined with what is there: replaced, added or
    /// multiplied.
    pub fn scatter_combined_<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        source: impl Into<Operand<'a>>,
        how: Combine,
    ) -> Result<()> {
        let dim = self.named_dim(Scatter::IN_PLACE, dim)?;
        Scatter { dim, how }.call_in_place([self.into(), source.into(), index.into()])
    }

    /// This tensor with elements of `source` added where `index` says along `dim`.
    pub fn scatter_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let dim = self.named_dim(ScatterAdd::NAME, dim)?;
        ScatterAdd { dim }.call([self, source, index])
    }

    /// Adds elements of `source` where `index` says along `dim`, in place.
    pub fn scatter_add_(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<()> {
        let dim = self.named_dim(ScatterAdd::IN_PLACE, dim)?;
        ScatterAdd { dim }.call_in_place([self, source, index])
    }
}
