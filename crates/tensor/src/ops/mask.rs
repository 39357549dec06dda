//! Elements picked and changed where a mask is true.

use super::nonzero::not_meta;
use super::places::{Source, check_room, check_same_dtype, must_be_tensor, pick, start, tensor};
use super::{broadcast, scalar_argument, sizes};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, Shown, device_of, kernel_table};
use crate::{
    Backward, Cause, DType, Error, Forward, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, composite, cpu,
    grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::index::{Combine, Places};
use cresset_kernels::{View, elementwise};

fn check_mask(op: &'static str, mask: &Tensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    Err(Error::new(Cause::DType, op, format_args!("expects a mask of bool, not {}", mask.dtype())))
}

/// The places of a tensor's elements, repeated to fill the mask's shape or the other way round, where
/// the mask is true.
fn masked(op: &'static str, x: &Tensor, mask: &Tensor, shape: &[usize]) -> Result<Places> {
    check_room(op, shape)?;
    let fits = "`infer` found that the shapes broadcast";
    let (x, spread) =
        (x.layout().broadcast_to(shape).expect(fits), mask.layout().broadcast_to(shape).expect(fits));
    let reading = mask.read();
    Ok(Places::of_mask(&x, View::new(reading.bytes(), DType::Bool, &spread)))
}

/// A tensor with one value wherever a mask is true; both broadcast.
#[derive(Clone, Debug)]
pub struct MaskedFill;

impl Op for MaskedFill {
    const NAME: &'static str = "aten::masked_fill";
    const BACKWARD: &'static str = "MaskedFillBackward1";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the value, and the mask.
    type Inputs<'a> = [Operand<'a>; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mask = ctx.saved(2);
        grads!(ctx; ctx.grad().masked_fill(mask, 0)?, ctx.grad().masked_select(mask)?.sum()?)
    }

    fn arguments(&self, [x, value, mask]: [Operand<'_>; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(x.given().into_argument());
        visit(mask.given().into_argument());
        match value {
            Operand::Tensor(value) => visit(Argument::Tensor(value.argument())),
            Operand::Scalar(value) => visit(scalar_argument(value)),
        }
    }

    fn backward_name(&self, [_, value, _]: [Operand<'_>; 3]) -> &'static str {
        if value.tensor().is_some() { Self::BACKWARD } else { "MaskedFillBackward0" }
    }
}

impl Kernel for MaskedFill {
    kernel_table!(MaskedFill);

    fn infer(&self, [x, value, mask]: [Operand<'_>; 3]) -> Result<Spec> {
        must_be_tensor(Self::NAME, x)?;
        must_be_tensor(Self::NAME, mask)?;
        let (x, mask) = (tensor(x), tensor(mask));
        check_mask(Self::NAME, mask)?;
        if let Operand::Tensor(value) = value {
            if value.dim() > 0 {
                let text =
                    format_args!("expects one value without dimensions, not shape {:?}", value.shape());
                return Err(Error::new(Cause::Shape, Self::NAME, text));
            }
            if !crate::promote::can_cast(value.dtype(), x.dtype()) {
                let text = format_args!("a value of {} cannot be kept as {}", value.dtype(), x.dtype());
                return Err(Error::new(Cause::DType, Self::NAME, text));
            }
        }
        Ok(Spec { shape: broadcast(Self::NAME, x.shape(), mask.shape())?, dtype: x.dtype() })
    }

    /// Torch changes a copy, of all that it is spread to.
    fn shown(&self, [x, value, mask]: [Operand<'_>; 3]) -> Result<Option<Tensor>> {
        let spec = self.infer([x, value, mask])?;
        let (whole, _mask) = spread(tensor(x), tensor(mask), &spec.shape)?;
        let out = whole.copy()?;
        self.clone().call_in_place([(&out).into(), value, mask])?;
        Ok(Some(out))
    }

    fn cpu(&self, [x, value, mask]: [Operand<'_>; 3], out: &Tensor) -> Result<()> {
        let mask = tensor(mask);
        let reading = mask.read();
        let spread =
            mask.layout().broadcast_to(out.shape()).expect("`infer` found that the shapes broadcast");
        let mask = View::new(reading.bytes(), DType::Bool, &spread);
        cpu::map2(value, x, out.dtype(), out, |value, x, out| elementwise::select(mask, value, x, out))
    }
}

impl InPlace for MaskedFill {
    const IN_PLACE: &'static str = "aten::masked_fill_";
    kernel_table!(in place MaskedFill);

    /// While someone watches, no memory is taken that torch does without.
    fn cpu_in_place(&self, [x, value, mask]: [Operand<'_>; 3]) -> Result<()> {
        if !observe::is_watched() {
            return self.write_copy([x, value, mask]);
        }
        let value = value.tensor().map_or(Ok(value), |value| value.item().map(Operand::Scalar))?;
        let (x, mask) = (tensor(x), tensor(mask));
        let places = masked(Self::NAME, x, mask, x.shape())?;
        Source::filling(Self::NAME, &[places.count()], value, x)?.put(x, &places, Combine::Replace, true);
        Ok(())
    }
}

/// Fills `x` where the mask is true, as a call within another that changes it.
pub(super) fn write_filled(x: &Tensor, mask: &Tensor, value: Scalar) -> Result<()> {
    let more = [Argument::Tensor(mask.argument()), scalar_argument(value)];
    let written = || MaskedFill.write([x.into(), value.into(), mask.into()]).map(|()| x.clone());
    shown::within(MaskedFill::IN_PLACE, [x], &more, written).map(drop)
}

/// Both as torch spreads them to one shape, the tensor first; as they are if they have it.
fn spread(x: &Tensor, mask: &Tensor, shape: &[usize]) -> Result<(Tensor, Tensor)> {
    if x.shape() == mask.shape() {
        return Ok((x.clone(), mask.clone()));
    }
    Ok((x.expand(shape)?, mask.expand(shape)?))
}

/// The elements where a mask is true, in a row; both broadcast.
#[derive(Clone, Debug)]
pub struct MaskedSelect;

impl Op for MaskedSelect {
    const NAME: &'static str = "aten::masked_select";
    const BACKWARD: &'static str = "MaskedSelectBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, mask) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
        grads!(ctx; {
            let _span = composite("aten::masked_select_backward", [grad, x, mask], |_| {});
            // The engine sums to the shape of the input what broadcasting had repeated.
            let whole = x.expand(broadcast(Self::NAME, x.shape(), mask.shape())?)?;
            let zeros = shown::zeros_like(&whole)?;
            zeros.masked_scatter_(mask, grad)?;
            zeros
        })
    }
}

impl Forward for MaskedSelect {
    fn forward(&self, [x, mask]: [&Tensor; 2]) -> Result<Tensor> {
        check_mask(Self::NAME, mask)?;
        let shape = broadcast(Self::NAME, x.shape(), mask.shape())?;
        let (x, mask) = (not_meta(Self::NAME, x)?, not_meta(Self::NAME, mask)?);
        if !x.device().is_cpu() || !mask.device().is_cpu() {
            return select_numbered(x, mask, &shape);
        }
        if observe::is_watched() {
            return select_shown(x, mask, &shape);
        }
        let places = masked(Self::NAME, x, mask, &shape)?;
        let out = Tensor::uninit(&[places.count()], x.dtype(), x.device())?;
        pick(x, &places, &out);
        Ok(out)
    }
}

/// What a mask selects, by the numbers of the elements.
fn select_numbered(x: &Tensor, mask: &Tensor, shape: &[usize]) -> Result<Tensor> {
    device_of(MaskedSelect::NAME, [x, mask])?;
    let line = |x: &Tensor| x.expand(shape)?.reshape([shape.iter().product::<usize>()]);
    let places = line(mask)?.nonzero()?.select(1, 0)?;
    line(x)?.index_select(0, &places)
}

/// What a mask selects, by the calls of torch's kernel: it counts first, and where memory is not plain it
/// numbers the elements.
fn select_shown(x: &Tensor, mask: &Tensor, shape: &[usize]) -> Result<Tensor> {
    Tensor::empty([0], (x.dtype(), x.device()))?;
    let (x, mask) = spread(x, mask, shape)?;
    mask.sum()?.item()?;
    let places = masked(MaskedSelect::NAME, &x, &mask, shape)?;
    let out = Tensor::uninit(&[places.count()], x.dtype(), x.device())?;
    if places.count() == 0 {
        return Ok(out);
    }
    let still: Vec<usize> = vec![0; shape.len()];
    out.as_strided(shape, &still, 0)?;
    let _numbers = match x.is_contiguous() && mask.is_contiguous() {
        true => None,
        false => {
            let long = Tensor::empty(shape, (DType::I64, x.device()))?;
            long.copy_(&mask)?;
            Some([long, Tensor::empty(shape, (DType::I64, x.device()))?])
        }
    };
    pick(&x, &places, &out);
    Ok(out)
}

/// A tensor with the elements of another, in their order, wherever a mask is true.
#[derive(Clone, Debug)]
pub struct MaskedScatter;

impl Op for MaskedScatter {
    const NAME: &'static str = "aten::masked_scatter";
    const BACKWARD: &'static str = "MaskedScatterBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the source, and the mask.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mask = ctx.saved(2);
        grads!(ctx; ctx.grad().masked_fill(mask, 0)?, {
            let shape = ctx.shape(1);
            let told = sizes(shape);
            let told = [Argument::Ints(&told)];
            let _span = shown::call("aten::masked_scatter_backward", [ctx.grad(), mask], &told);
            let mut used = ctx.grad().masked_select(mask)?;
            let unused = shape.iter().product::<usize>() - used.numel();
            if unused > 0 {
                let nothing = Tensor::zeros([unused], (used.dtype(), used.device()))?;
                used = Tensor::cat(&[&used, &nothing], 0)?;
            }
            used.view(shape)?
        })
    }

    fn arguments(&self, [x, source, mask]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        [x, mask, source].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
    }
}

impl Kernel for MaskedScatter {
    kernel_table!(MaskedScatter);

    fn infer(&self, [x, source, mask]: [&Tensor; 3]) -> Result<Spec> {
        check_mask(Self::NAME, mask)?;
        check_same_dtype(Self::NAME, x, source)?;
        Ok(Spec { shape: broadcast(Self::NAME, x.shape(), mask.shape())?, dtype: x.dtype() })
    }

    fn cpu(&self, [x, source, mask]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        start(x, out)?;
        self.cpu_in_place([out, source, mask])
    }
}

impl InPlace for MaskedScatter {
    const IN_PLACE: &'static str = "aten::masked_scatter_";
    kernel_table!(in place MaskedScatter);

    fn shown_in_place(&self, [x, source, mask]: [&Tensor; 3]) -> Result<Shown> {
        if mask.shape() != x.shape() {
            mask.expand(x.shape())?;
        }
        source.contiguous().map(|source| Shown::keeping(Some(source)))
    }

    fn cpu_in_place(&self, [x, source, mask]: [&Tensor; 3]) -> Result<()> {
        let places = masked(Self::NAME, x, mask, x.shape())?;
        if source.numel() < places.count() {
            let text = format_args!(
                "a source of shape {:?} has not enough elements for the {} places of the mask",
                source.shape(),
                places.count()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Source::leading(source, places.count(), x)?.put(x, &places, Combine::Replace, true);
        Ok(())
    }
}

impl Tensor {
    /// This tensor with `value`, a number or a tensor of one, wherever `mask` is true; both broadcast.
    pub fn masked_fill<'a>(&'a self, mask: &'a Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        MaskedFill.call([self.into(), value.into(), mask.into()])
    }

    /// Makes every element `value` where `mask` is true, in place.
    pub fn masked_fill_<'a>(&'a self, mask: &'a Tensor, value: impl Into<Operand<'a>>) -> Result<()> {
        MaskedFill.call_in_place([self.into(), value.into(), mask.into()])
    }

    /// The elements where `mask` is true, in a row; both broadcast.
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        MaskedSelect.call([self, mask])
    }

    /// This tensor with the elements of `source`, in their order, wherever `mask` is true; both broadcast.
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        MaskedScatter.call([self, source, mask])
    }

    /// Puts the elements of `source`, in their order, wherever `mask` is true, in place.
    pub fn masked_scatter_(&self, mask: &Tensor, source: &Tensor) -> Result<()> {
        MaskedScatter.call_in_place([self, source, mask])
    }
}
