//! Channels turned into pixels, pixels into channels, and channels among themselves.

use super::Copy;
use crate::op::InPlace as _;
use crate::{
    Backward, Cause, Error, Forward, Grads, MemoryFormat, Op, Result, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Channels laid out as pixels: an image becomes `factor` times as high and wide.
#[derive(Clone, Debug)]
pub struct PixelShuffle {
    /// How many times.
    pub factor: usize,
}

/// Pixels laid out as channels: an image becomes `factor` times as low and narrow.
#[derive(Clone, Debug)]
pub struct PixelUnshuffle {
    /// How many times.
    pub factor: usize,
}

/// The dimensions before channels, then channels, height and width.
fn split<'a>(op: &'static str, x: &'a Tensor, factor: usize) -> Result<(&'a [usize], [usize; 3])> {
    match x.shape() {
        [before @ .., channels, height, width] if factor > 0 => Ok((before, [*channels, *height, *width])),
        shape => {
            let text = format_args!(
                "expects [.., channels, height, width] and a factor from 1 on, not {shape:?} and {factor}"
            );
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

/// `x` seen with `inner` dimensions after `before`, those in the order of `places`, and copied to `outer`.
fn rearranged(
    x: &Tensor,
    before: usize,
    inner: &[usize],
    places: &[usize],
    outer: &[usize],
) -> Result<Tensor> {
    let with = |after: &[usize]| -> Dims { x.shape()[..before].iter().chain(after).copied().collect() };
    let order: Dims = (0..before).chain(places.iter().map(|at| before + at)).collect();
    if !x.device().is_cpu() {
        let order: Vec<isize> = order.iter().map(|&at| at as isize).collect();
        return x.reshape(with(inner))?.permute(&order)?.copy()?.reshape(with(outer));
    }
    let empty = shown::empty_output(x.dtype())?;
    let out = shown::grown(&empty, &with(outer), Argument::Int(MemoryFormat::Contiguous as i64))?;
    let x = x.contiguous()?;
    let split = x.layout().view(&with(inner)).expect("as many elements, one after the other");
    let from = x.with_layout(split.permute(&order));
    let to = out.layout().view(from.shape()).expect("as many elements, one after the other");
    Copy.cpu_in_place([&out.with_layout(to), &from])?;
    Ok(out)
}

fn indivisible(op: &'static str, x: &Tensor, factor: usize) -> Error {
    let text = format_args!("shape {:?} does not divide by the factor {factor}", x.shape());
    Error::new(Cause::Shape, op, text)
}

impl Op for PixelShuffle {
    const NAME: &'static str = "aten::pixel_shuffle";
    const BACKWARD: &'static str = "PixelShuffleBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().pixel_unshuffle(self.factor)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.factor as i64));
    }
}

impl Forward for PixelShuffle {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let (before, [channels, height, width]) = split(Self::NAME, x, self.factor)?;
        let area = self.factor.checked_mul(self.factor).filter(|&area| channels.is_multiple_of(area));
        let Some(area) = area else { return Err(indivisible(Self::NAME, x, self.factor)) };
        // An image without pixels may be of any size, so sizes are multiplied with care.
        let grown = |size: usize| size.checked_mul(self.factor);
        let (Some(high), Some(wide)) = (grown(height), grown(width)) else {
            return Err(indivisible(Self::NAME, x, self.factor));
        };
        let inner = [channels / area, self.factor, self.factor, height, width];
        rearranged(x, before.len(), &inner, &[0, 3, 1, 4, 2], &[channels / area, high, wide])
    }
}

impl Op for PixelUnshuffle {
    const NAME: &'static str = "aten::pixel_unshuffle";
    const BACKWARD: &'static str = "PixelUnshuffleBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().pixel_shuffle(self.factor)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.factor as i64));
    }
}

impl Forward for PixelUnshuffle {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let (before, [channels, height, width]) = split(Self::NAME, x, self.factor)?;
        let more = self.factor.checked_mul(self.factor).and_then(|area| area.checked_mul(channels));
        let Some(more) = more.filter(|_| [height, width].iter().all(|size| size.is_multiple_of(self.factor)))
        else {
            return Err(indivisible(Self::NAME, x, self.factor));
        };
        let (low, narrow) = (height / self.factor, width / self.factor);
        let inner = [channels, low, self.factor, narrow, self.factor];
        rearranged(x, before.len(), &inner, &[0, 2, 4, 1, 3], &[more, low, narrow])
    }
}

/// Channels in the order in which groups of them are dealt out by turns.
#[derive(Clone, Debug)]
pub struct ChannelShuffle {
    /// How many groups.
    pub groups: usize,
}

impl Op for ChannelShuffle {
    const NAME: &'static str = "aten::channel_shuffle";
    const BACKWARD: &'static str = "ChannelShuffleBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().channel_shuffle(ctx.shape(0)[1] / self.groups)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.groups as i64));
    }
}

impl Forward for ChannelShuffle {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let channels = x.shape().get(1).copied().filter(|_| x.dim() > 2);
        let fits = |channels: &usize| self.groups > 0 && channels.is_multiple_of(self.groups);
        let Some(channels) = channels.filter(fits) else {
            let text = format_args!(
                "expects [samples, channels, ..] with channels that {} groups share, not {:?}",
                self.groups,
                x.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        let rest: usize = x.shape()[2..].iter().product();
        let inner = [self.groups, channels / self.groups, rest];
        let _span = composite("aten::native_channel_shuffle", [x], |visit| {
            visit(Argument::Int(self.groups as i64));
        });
        rearranged(x, 1, &inner, &[1, 0, 2], &x.shape()[1..])
    }
}

impl Tensor {
    /// Images `[.., channels, height, width]` with channels laid out as pixels, `factor` times as high
    /// and wide.
    pub fn pixel_shuffle(&self, factor: usize) -> Result<Tensor> {
        PixelShuffle { factor }.call([self])
    }

    /// Images `[.., channels, height, width]` with pixels laid out as channels, `factor` times as low
    /// and narrow.
    pub fn pixel_unshuffle(&self, factor: usize) -> Result<Tensor> {
        PixelUnshuffle { factor }.call([self])
    }

    /// Channels, the second dimension, in the order in which `groups` of them are dealt out by turns.
    pub fn channel_shuffle(&self, groups: usize) -> Result<Tensor> {
        ChannelShuffle { groups }.call([self])
    }
}
