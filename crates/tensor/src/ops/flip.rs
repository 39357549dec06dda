//! Elements in the opposite order, moved around the end, and turned.

use super::{check_dims, sizes};
use crate::op::{Forward, kernel_table};
use crate::{
    Backward, Cause, Device, Error, Grads, Kernel, NamedDim, NamedDims, Op, Result, Spec, Tensor, composite,
    cpu, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, arrange};

/// Some dimensions in the opposite order.
#[derive(Clone, Debug)]
pub struct Flip {
    /// The dimensions.
    pub dims: NamedDims,
}

impl Op for Flip {
    const NAME: &'static str = "aten::flip";
    const BACKWARD: &'static str = "FlipBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.clone().call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&self.dims.told()));
    }
}

impl Kernel for Flip {
    kernel_table!(Flip);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_dims(Self::NAME, &self.dims, x)?;
        Ok(Spec::like(x))
    }

    /// As in torch, the output lies as the input does.
    fn quick(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        if !x.device().is_cpu() || x.is_contiguous() {
            return Ok(None);
        }
        self.infer([x])?;
        let out = shown::empty_like(x, shown::PRESERVE)?;
        self.fill([x], &out, Device::CPU)?;
        Ok(Some(out))
    }

    /// Torch looks at the dimensions that are turned as if they did not move.
    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        self.infer([x])?;
        let out = shown::empty_like(x, shown::PRESERVE)?;
        let moves = |dim: usize| x.shape()[dim] > 1 && x.strides()[dim] != 0;
        let turned: Dims = self.dims.iter().copied().filter(|&dim| dim < x.dim() && moves(dim)).collect();
        if turned.is_empty() || x.numel() <= 1 {
            out.copy_(x)?;
            return Ok(Some(out));
        }
        let still: Dims =
            (0..x.dim()).map(|dim| if turned.contains(&dim) { 0 } else { x.strides()[dim] }).collect();
        x.as_strided(x.shape(), &still, x.layout().offset())?;
        self.fill([x], &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let dims: Dims = self.dims.iter().copied().filter(|&dim| dim < x.dim()).collect();
        cpu::map(x, x.dtype(), out, |x, out| arrange::flip(x, &dims, out))
    }
}

/// Dimensions shifted; what leaves at the end comes in at the start.
#[derive(Clone, Debug)]
pub struct Roll {
    /// How far each dimension is shifted.
    pub shifts: Vec<isize>,
    /// The dimensions; none to shift the elements as they follow each other.
    pub dims: NamedDims,
}

impl Op for Roll {
    const NAME: &'static str = "aten::roll";
    const BACKWARD: &'static str = "RollBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let shifts = self.shifts.iter().rev().map(|shift| shift.wrapping_neg()).collect();
        let at = self.dims.iter().rev().copied().collect();
        let named: Vec<isize> = self.dims.named().iter().rev().copied().collect();
        grads!(ctx; Roll { shifts, dims: NamedDims::new(at, &named) }.call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&self.shifts.iter().map(|&shift| shift as i64).collect::<Vec<_>>()));
        visit(Argument::Ints(&self.dims.told()));
    }
}

impl Forward for Roll {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let named = self.dims.named();
        match (&self.shifts[..], &self.dims[..]) {
            (&[shift], []) => {
                let line = x.contiguous()?.view(x.numel())?;
                Ok(Roll { shifts: vec![shift], dims: Dims::from_slice(&[0]).into() }
                    .call([&line])?
                    .view(x.shape())?
                    .alias())
            }
            (&[shift], &[dim]) => roll(x, shift, NamedDim::new(dim, named[0])),
            (&[shift, ref shifts @ ..], &[dim, ref dims @ ..]) if shifts.len() == dims.len() => {
                let (one, rest) = (
                    NamedDims::new(Dims::from_slice(&[dim]), &named[..1]),
                    NamedDims::new(dims.into(), &named[1..]),
                );
                let first = Roll { shifts: vec![shift], dims: one }.call([x])?;
                Roll { shifts: shifts.to_vec(), dims: rest }.call([&first])
            }
            (shifts, dims) => {
                let text = format_args!("expects a shift per dimension, not {shifts:?} for {dims:?}");
                Err(Error::new(Cause::Argument, Self::NAME, text))
            }
        }
    }
}

fn roll(x: &Tensor, shift: isize, dim: NamedDim) -> Result<Tensor> {
    let Some(&size) = x.shape().get(*dim) else {
        let text = format_args!("shape {:?} has no dimension {}", x.shape(), *dim);
        return Err(Error::new(Cause::Index, Roll::NAME, text));
    };
    if x.numel() == 0 {
        return if x.device().is_cpu() { shown::cloned(x, shown::PRESERVE) } else { x.copy() };
    }
    let first = shift.wrapping_neg().rem_euclid(size as isize);
    let (dim, rest) = (dim.named(), size - first.unsigned_abs());
    let (end, start) = (x.narrow(dim, first, rest)?, x.narrow(dim, 0, first.unsigned_abs())?);
    Tensor::cat(&[&end, &start], dim)
}

/// A plane of two dimensions turned by quarters, from the first towards the second.
#[derive(Clone, Debug)]
pub struct Rot90 {
    /// How many quarters; backwards if negative.
    pub quarters: isize,
    /// The plane.
    pub dims: [usize; 2],
}

impl Op for Rot90 {
    const NAME: &'static str = "aten::rot90";
    const BACKWARD: &'static str = "Rot90Backward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let quarters = self.quarters.rem_euclid(4);
        grads!(ctx; Rot90 { quarters: -quarters, dims: self.dims }.call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.quarters as i64));
        visit(Argument::Ints(&sizes(&self.dims)));
    }
}

impl Forward for Rot90 {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        check_dims(Self::NAME, &self.dims, x)?;
        let [a, b] = self.dims.map(|dim| dim as isize);
        match self.quarters.rem_euclid(4) {
            1 => Ok(x.flip(&[b])?.transpose(a, b)?.alias()),
            2 => x.flip(&[a, b]),
            3 => Ok(x.flip(&[a])?.transpose(a, b)?.alias()),
            _ => x.copy(),
        }
    }
}

impl Tensor {
    /// The dimensions `dims` in the opposite order, in memory of their own.
    pub fn flip(&self, dims: &[isize]) -> Result<Tensor> {
        let at = dims.iter().map(|&dim| self.dim_index(Flip::NAME, dim)).collect::<Result<_>>()?;
        Flip { dims: NamedDims::new(at, dims) }.call([self])
    }

    /// The second dimension in the opposite order.
    pub fn fliplr(&self) -> Result<Tensor> {
        self.flip_one("aten::fliplr", 1)
    }

    /// The first dimension in the opposite order.
    pub fn flipud(&self) -> Result<Tensor> {
        self.flip_one("aten::flipud", 0)
    }

    fn flip_one(&self, op: &'static str, dim: usize) -> Result<Tensor> {
        let _span = composite(op, [self], |_| {});
        if self.dim() <= dim {
            let text = format_args!("shape {:?} has no dimension {dim}", self.shape());
            return Err(Error::new(Cause::Shape, op, text));
        }
        self.flip(&[dim as isize])
    }

    /// Each of `dims` shifted by as much as `shifts` says; what leaves at one end comes in at the
    /// other. Without `dims`, the elements as they follow each other.
    pub fn roll(&self, shifts: &[isize], dims: &[isize]) -> Result<Tensor> {
        let at = dims.iter().map(|&dim| self.dim_index(Roll::NAME, dim)).collect::<Result<_>>()?;
        Roll { shifts: shifts.to_vec(), dims: NamedDims::new(at, dims) }.call([self])
    }

    /// The plane of `dims` turned by quarters, from the first dimension towards the second.
    pub fn rot90(&self, quarters: isize, dims: [isize; 2]) -> Result<Tensor> {
        if self.dim() < 2 {
            let text = format_args!("expects two dimensions or more, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, Rot90::NAME, text));
        }
        let [a, b] = dims.map(|dim| self.dim_index(Rot90::NAME, dim));
        Rot90 { quarters, dims: [a?, b?] }.call([self])
    }
}
