//! Slices along one dimension, picked and changed by an index of one dimension.

use super::places::{
    Source, check_index, check_room, check_same_dtype, in_order, must_be_tensor, out_of_range, pick, start,
    tensor,
};
use super::{check_dims, scalar_argument, scaled, sizes};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, NamedDim, Op, Result, Scalar, Spec, Tensor,
    composite, cpu, grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::index::{Combine, Places};
use cresset_kernels::{Dims, elementwise, functions};

/// Refuses what is no index along dimension `dim` of `x`.
pub(super) fn check_rows(op: &'static str, x: &Tensor, dim: usize, index: &Tensor) -> Result<()> {
    check_index(op, index)?;
    check_dims(op, &[dim], x)?;
    if index.dim() <= 1 {
        return Ok(());
    }
    let text = format_args!("expects an index of one dimension, not shape {:?}", index.shape());
    Err(Error::new(Cause::Shape, op, text))
}

/// Refuses a source that has not one slice per index, as large as those of `x`.
pub(super) fn check_slices(
    op: &'static str,
    x: &Tensor,
    dim: usize,
    index: &Tensor,
    source: &Tensor,
) -> Result<()> {
    check_rows(op, x, dim, index)?;
    check_same_dtype(op, x, source)?;
    let slice = |tensor: &Tensor| {
        let mut shape = Dims::from_slice(tensor.shape());
        if dim < shape.len() {
            shape.remove(dim);
        }
        shape
    };
    let count = source.shape().get(dim).copied().unwrap_or(1);
    if slice(x) == slice(source) && count == index.numel() {
        return Ok(());
    }
    let text = format_args!(
        "a source of shape {:?} has not {} slices along dimension {dim} like those of {:?}",
        source.shape(),
        index.numel(),
        x.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// The places of the slices that `index` names.
pub(super) fn slices(op: &'static str, x: &Tensor, dim: usize, index: &Tensor) -> Result<Places> {
    slices_from(op, x, dim, index, false)
}

/// As [`slices`]; with `wrap`, negative numbers count from the back.
fn slices_from(op: &'static str, x: &Tensor, dim: usize, index: &Tensor, wrap: bool) -> Result<Places> {
    let size = x.shape().get(dim).copied().unwrap_or(1).max(1);
    check_room(op, &[index.numel(), x.numel() / size])?;
    let reading = index.read();
    Places::of_slices(x.layout(), dim, index.elements(&reading), wrap).map_err(out_of_range(op))
}

/// Torch looks at the first slices to learn how others lie.
fn show_first(dim: usize, tensors: [&Tensor; 2]) -> Result<()> {
    tensors.iter().try_for_each(|tensor| tensor.select(dim as isize, 0).map(drop))
}

/// The slices of a tensor along one dimension, in the order that an index names them.
#[derive(Clone, Debug)]
pub struct IndexSelect {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for IndexSelect {
    const NAME: &'static str = "aten::index_select";
    const BACKWARD: &'static str = "IndexSelectBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let (grad, index, shape) = (ctx.grad(), ctx.saved(1), sizes(ctx.shape(0)));
            let _span = composite("aten::index_select_backward", [grad], |visit| {
                visit(Argument::Ints(&shape));
                visit(self.dim.argument());
                visit(Argument::Tensor(index.argument()));
            });
            let zeros = shown::new_zeros(grad, ctx.shape(0), true)?;
            zeros.index_add_(self.dim.named(), index, grad)?;
            zeros
        })
    }

    fn arguments(&self, [x, index]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(self.dim.argument());
        visit(Argument::Tensor(index.argument()));
    }
}

impl Kernel for IndexSelect {
    kernel_table!(IndexSelect);

    fn infer(&self, [x, index]: [&Tensor; 2]) -> Result<Spec> {
        check_rows(Self::NAME, x, *self.dim, index)?;
        let mut shape = Dims::from_slice(x.shape());
        match (shape.get_mut(*self.dim), index.numel()) {
            (Some(size), count) => *size = count,
            (None, 1) => {}
            (None, count) => {
                let text = format_args!("a tensor without dimensions has one element, not {count}");
                return Err(Error::new(Cause::Index, Self::NAME, text));
            }
        }
        Ok(Spec { shape, dtype: x.dtype() })
    }

    /// Torch makes its output of nothing; along the second dimension it reads plain memory, else by slices.
    fn shown(&self, [x, index]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        self.infer([x, index])?;
        Tensor::empty([0], (x.dtype(), Device::CPU))?;
        let out = self.room([x, index])?;
        let mut plain = None;
        if x.dim() > 1 && out.numel() > 0 {
            match *self.dim {
                1 => plain = Some(x.contiguous()?),
                dim => show_first(dim, [x, &out])?,
            }
        }
        self.fill([x, index], &out, Device::CPU)?;
        drop(plain);
        Ok(Some(out))
    }

    fn cpu(&self, [x, index]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        pick(x, &slices(Self::NAME, x, *self.dim, index)?, out);
        Ok(())
    }
}

/// A tensor with slices of another, times a number, added where an index says.
#[derive(Clone, Debug)]
pub struct IndexAdd {
    /// Which dimension.
    pub dim: NamedDim,
    /// What the slices are multiplied by.
    pub alpha: Scalar,
}

impl Op for IndexAdd {
    const NAME: &'static str = "aten::index_add";
    const BACKWARD: &'static str = "IndexAddBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, what is added, and the index.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx;
            ctx.grad().clone(),
            {
                let (dim, index) = (self.dim.named(), ctx.saved(2));
                let picked = match ctx.shape(1) {
                    [] if index.dim() > 0 => ctx.grad().index_select(dim, &index.squeeze_dim(0)?)?,
                    [] => ctx.grad().index_select(dim, index)?,
                    _ => like_source(ctx.grad().index_select(dim, index)?)?,
                };
                scaled(picked, self.alpha)?
            }
        )
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        in_order(self.dim, inputs.map(Operand::Tensor), visit);
        visit(scalar_argument(self.alpha));
    }
}

/// The gradient of slices spread to the shape of the source, which it has.
fn like_source(picked: Tensor) -> Result<Tensor> {
    if observe::is_watched() { picked.expand_as(&picked) } else { Ok(picked) }
}

impl IndexAdd {
    /// Torch adds whole elements where slices do not lie in a row, by their first and last dimensions.
    fn adds_elements(&self, x: &Tensor, index: &Tensor) -> bool {
        let at_end = *self.dim == 0 || *self.dim + 1 == x.dim();
        at_end && self.alpha.as_f64() == 1.0 && index.dtype() == DType::I64
    }
}

impl Kernel for IndexAdd {
    kernel_table!(IndexAdd);

    fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
        check_slices(Self::NAME, x, *self.dim, index, source)?;
        let fits = match self.alpha {
            Scalar::Bool(_) => x.dtype() == DType::Bool,
            Scalar::Float(_) => x.dtype().is_float(),
            Scalar::Int(_) => true,
        };
        if fits {
            return Ok(Spec::like(x));
        }
        let text = format_args!("alpha is {}, which is no factor for elements of {}", self.alpha, x.dtype());
        Err(Error::new(Cause::DType, Self::NAME, text))
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

impl InPlace for IndexAdd {
    const IN_PLACE: &'static str = "aten::index_add_";
    kernel_table!(in place IndexAdd);

    fn shown_in_place(&self, [x, source, index]: [&Tensor; 3]) -> Result<Shown> {
        if x.dim() < 2 || source.numel() == 0 || x.numel() == 0 {
            return Ok(Shown::default());
        }
        if !self.adds_elements(x, index) {
            show_first(*self.dim, [x, source])?;
            return Ok(Shown::default());
        }
        let strides: Dims = (0..x.dim()).map(|dim| usize::from(dim == *self.dim)).collect();
        let line = index.contiguous()?;
        let numbers = line.as_strided(source.shape(), &strides, line.layout().offset())?;
        let more = [
            Argument::Int(*self.dim as i64),
            Argument::Tensor(numbers.argument()),
            Argument::Tensor(source.argument()),
        ];
        shown::within("aten::scatter_add_", [x], &more, || numbers.to(DType::I64)).map(|_| Shown::default())
    }

    fn cpu_in_place(&self, [x, source, index]: [&Tensor; 3]) -> Result<()> {
        let places = slices(Self::NAME, x, *self.dim, index)?;
        if self.alpha.as_f64() == 1.0 {
            Source::all(source, x)?.put(x, &places, Combine::Add, true);
        } else if x.dtype() != DType::Bool {
            let product = Tensor::uninit(source.shape(), x.dtype(), x.device())?;
            cpu::map2(source.into(), self.alpha.into(), x.dtype(), &product, |source, alpha, out| {
                elementwise::binary(functions::Mul, source, alpha, out);
            })?;
            Source::all(&product, x)?.put(x, &places, Combine::Add, true);
        } else if self.alpha.as_f64() != 0.0 {
            Source::all(source, x)?.put(x, &places, Combine::Add, true);
        }
        Ok(())
    }
}

/// A tensor with slices of another in the places that an index says.
#[derive(Clone, Debug)]
pub struct IndexCopy {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for IndexCopy {
    const NAME: &'static str = "aten::index_copy";
    const BACKWARD: &'static str = "IndexCopyBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, what is copied, and the index.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (dim, index) = (self.dim.named(), ctx.saved(2));
        grads!(ctx; ctx.grad().index_fill(dim, index, 0)?, ctx.grad().index_select(dim, index)?)
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        in_order(self.dim, inputs.map(Operand::Tensor), visit);
    }
}

impl Kernel for IndexCopy {
    kernel_table!(IndexCopy);

    fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
        check_slices(Self::NAME, x, *self.dim, index, source)?;
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x, source, index]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        start(x, out)?;
        self.cpu_in_place([out, source, index])
    }
}

impl InPlace for IndexCopy {
    const IN_PLACE: &'static str = "aten::index_copy_";
    kernel_table!(in place IndexCopy);

    fn cpu_in_place(&self, [x, source, index]: [&Tensor; 3]) -> Result<()> {
        let places = slices(Self::NAME, x, *self.dim, index)?;
        Source::all(source, x)?.put(x, &places, Combine::Replace, true);
        Ok(())
    }
}

/// A tensor with one value in the slices that an index names; negative numbers count from the back.
#[derive(Clone, Debug)]
pub struct IndexFill {
    /// Which dimension.
    pub dim: NamedDim,
}

impl Op for IndexFill {
    const NAME: &'static str = "aten::index_fill";
    const BACKWARD: &'static str = "IndexFillBackward1";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the value, and the index.
    type Inputs<'a> = [Operand<'a>; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (dim, index) = (self.dim.named(), ctx.saved(2));
        grads!(ctx; ctx.grad().index_fill(dim, index, 0)?, {
            // A slice that the index names twice was filled once.
            let filled = Tensor::zeros(ctx.grad().shape(), (DType::Bool, ctx.grad().device()))?;
            let filled = filled.index_fill(dim, index, true)?;
            ctx.grad().where_(&filled, &ctx.grad().zeros_like()?)?.sum()?
        })
    }

    fn arguments(&self, [x, value, index]: [Operand<'_>; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(x.given().into_argument());
        visit(self.dim.argument());
        visit(index.given().into_argument());
        match value {
            Operand::Tensor(value) => visit(Argument::Tensor(value.argument())),
            Operand::Scalar(value) => visit(scalar_argument(value)),
        }
    }

    fn backward_name(&self, [_, value, _]: [Operand<'_>; 3]) -> &'static str {
        if value.tensor().is_some() { Self::BACKWARD } else { "IndexFillBackward0" }
    }
}

impl Kernel for IndexFill {
    kernel_table!(IndexFill);

    fn infer(&self, [x, value, index]: [Operand<'_>; 3]) -> Result<Spec> {
        must_be_tensor(Self::NAME, x)?;
        must_be_tensor(Self::NAME, index)?;
        let x = tensor(x);
        check_rows(Self::NAME, x, *self.dim, tensor(index))?;
        if value.shape().is_empty() {
            return Ok(Spec::like(x));
        }
        let text = format_args!("expects one value without dimensions, not shape {:?}", value.shape());
        Err(Error::new(Cause::Shape, Self::NAME, text))
    }

    fn cpu(&self, [x, value, index]: [Operand<'_>; 3], out: &Tensor) -> Result<()> {
        start(tensor(x), out)?;
        self.cpu_in_place([out.into(), value, index])
    }
}

impl InPlace for IndexFill {
    const IN_PLACE: &'static str = "aten::index_fill_";
    kernel_table!(in place IndexFill);

    fn cpu_in_place(&self, [x, value, index]: [Operand<'_>; 3]) -> Result<()> {
        let (x, index) = (tensor(x), tensor(index));
        let places = slices_from(Self::NAME, x, *self.dim, index, true)?;
        let value = Source::filling(Self::NAME, &[places.count()], value, x)?;
        value.put(x, &places, Combine::Replace, true);
        Ok(())
    }
}

impl Tensor {
    /// The slices along `dim` that `index` names, in its order.
    pub fn index_select(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        let dim = self.named_dim(IndexSelect::NAME, dim)?;
        IndexSelect { dim }.call([self, index])
    }

    /// This tensor with the slices of `source` added along `dim` where `index` says.
    pub fn index_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.index_add_scaled(dim, index, source, 1)
    }

    /// This tensor with `alpha` times the slices of `source` added along `dim` where `index` says.
    pub fn index_add_scaled(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let dim = self.named_dim(IndexAdd::NAME, dim)?;
        IndexAdd { dim, alpha: alpha.into() }.call([self, source, index])
    }

    /// Adds the slices of `source` along `dim` where `index` says, in place.
    pub fn index_add_(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<()> {
        self.index_add_scaled_(dim, index, source, 1)
    }

    /// Adds `alpha` times the slices of `source` along `dim` where `index` says, in place.
    pub fn index_add_scaled_(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        alpha: impl Into<Scalar>,
    ) -> Result<()> {
        let dim = self.named_dim(IndexAdd::IN_PLACE, dim)?;
        IndexAdd { dim, alpha: alpha.into() }.call_in_place([self, source, index])
    }

    /// This tensor with the slices of `source` along `dim` where `index` says.
    pub fn index_copy(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let dim = self.named_dim(IndexCopy::NAME, dim)?;
        IndexCopy { dim }.call([self, source, index])
    }

    /// Overwrites the slices along `dim` that `index` names with those of `source`.
    pub fn index_copy_(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<()> {
        let dim = self.named_dim(IndexCopy::IN_PLACE, dim)?;
        IndexCopy { dim }.call_in_place([self, source, index])
    }

    /// This tensor with `value`, a number or a tensor of one, in the slices along `dim` that `index` names.
    pub fn index_fill<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        value: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let dim = self.named_dim(IndexFill::NAME, dim)?;
        IndexFill { dim }.call([self.into(), value.into(), index.into()])
    }

    /// Makes every element `value` in the slices along `dim` that `index` names.
    pub fn index_fill_<'a>(
        &'a self,
        dim: isize,
        index: &'a Tensor,
        value: impl Into<Operand<'a>>,
    ) -> Result<()> {
        let dim = self.named_dim(IndexFill::IN_PLACE, dim)?;
        IndexFill { dim }.call_in_place([self.into(), value.into(), index.into()])
    }
}
