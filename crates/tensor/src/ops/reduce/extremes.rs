//! Largest and smallest elements, and where they are. NaN beats everything.

use super::{
    as_vector, check_dims, check_reduced, fill, is_nan, kept, kept_layout, reduced, selected, show_filled,
    sizes,
};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, Layout, NamedDim, NamedDims, Op, Result, Scalar,
    Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::{Dims, Element, ViewMut, reduce, with_dtype};

/// Torch writes a number that it found into the output with a call.
fn show_written(found: &Tensor) -> Result<()> {
    let reading = found.read();
    let number = with_dtype!(found.dtype(), T => found.elements(&reading).only::<T>().scalar());
    drop(reading);
    drop(shown::call("aten::fill_", [found], &[shown::plain(number)]));
    Ok(())
}

pub(super) fn check_some(op: &'static str, x: &Tensor, dims: &[usize]) -> Result<()> {
    check_dims(op, dims, x)?;
    let Some(dim) = dims.iter().find(|&&dim| x.shape().get(dim) == Some(&0)) else { return Ok(()) };
    let text = format_args!("dimension {dim} of shape {:?} has no elements to choose from", x.shape());
    Err(Error::new(Cause::Index, op, text))
}

/// Where `x` is the extreme `found`, NaN included.
pub(super) fn mask(x: &Tensor, found: &Tensor) -> Result<Tensor> {
    x.eq(found)?.where_(&found.eq(found)?, &is_nan(x)?)
}

/// The gradient of one element chosen among all, shared by those that are equal to it.
pub(super) fn shared(grad: &Tensor, x: &Tensor, found: &Tensor) -> Result<Tensor> {
    if observe::is_watched() && grad.device().is_cpu() {
        return shared_shown(grad, x, found);
    }
    let mask = mask(x, found)?.to_dtype(grad.dtype())?;
    mask.mul(&grad.div(&mask.sum()?)?)
}

/// As [`shared`], by the calls that torch makes.
fn shared_shown(grad: &Tensor, x: &Tensor, found: &Tensor) -> Result<Tensor> {
    let is_nan = found.isnan()?.item()?.as_i64() != 0;
    let mask = if is_nan { x.isnan()? } else { x.eq(found)? };
    let zeros = shown::new_zeros(grad, x.shape(), true)?;
    zeros.masked_fill_(&mask, &grad.div(&mask.sum()?)?)?;
    Ok(zeros)
}

/// The extreme of all elements: one line per operator.
macro_rules! of_all {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, $kernel:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            /// Elements that are all extreme share the gradient.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; shared(ctx.grad(), ctx.saved(0), ctx.saved(1))?)
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                if x.numel() == 0 {
                    let text = format_args!("a tensor of shape {:?} has no elements to choose from", x.shape());
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
                Ok(Spec::new([], x.dtype()))
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let spec = self.infer([x])?;
                let out = Tensor::empty(&spec.shape, (spec.dtype, Device::CPU))?;
                self.fill([x], &out, Device::CPU)?;
                show_written(&out)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let dims: Dims = (0..x.dim()).collect();
                fill(x, &dims, out, |x, out| reduce::$kernel(x, &dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                $op.call([self])
            }
        }
    )*};
}

of_all! {
    /// The largest element of all.
    Max, max: "aten::max", "MaxBackward1", amax;
    /// The smallest element of all.
    Min, min: "aten::min", "MinBackward1", amin;
}

/// What torch begins with: what every element beats.
fn extreme(dtype: DType, largest: bool) -> Scalar {
    let bound = |low: i64, high: i64| Scalar::Float(if largest { low } else { high } as f64);
    match dtype {
        DType::Bool => bound(0, 1),
        DType::U8 => bound(0, 255),
        DType::I8 => bound(i8::MIN.into(), i8::MAX.into()),
        DType::I16 => bound(i16::MIN.into(), i16::MAX.into()),
        DType::I32 => bound(i32::MIN.into(), i32::MAX.into()),
        DType::I64 => bound(i64::MIN, i64::MAX),
        _ if largest => Scalar::Float(f64::NEG_INFINITY),
        _ => Scalar::Float(f64::INFINITY),
    }
}

/// The extremes over several dimensions: one line per operator.
macro_rules! over_dims {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, largest $largest:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimensions.
            pub dims: NamedDims,
            /// Whether they stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Both;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            /// Elements that are all extreme share the gradient.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let mut shape = kept(ctx.shape(0), &self.dims);
                if shape.is_empty() {
                    // A number is seen as a row of one.
                    shape.push(1);
                }
                let whole = |x: &Tensor| match (self.keep, self.dims.named().is_empty()) {
                    (true, _) => Ok(x.clone()),
                    // Torch does not restore what it was not told.
                    (false, true) => x.reshape(x.shape()),
                    (false, false) => x.reshape(&shape),
                };
                grads!(ctx; {
                    let mask = whole(ctx.saved(1))?.eq(ctx.saved(0))?;
                    let grad = whole(ctx.grad())?;
                    grad.div(&mask.sum_dims(self.dims.named(), true)?)?.mul(&mask)?
                })
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Ints(&self.dims.told()));
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_reduced(Self::NAME, &self.dims, x)?;
                check_some(Self::NAME, x, &self.dims)?;
                Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype: x.dtype() })
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                let start = extreme(x.dtype(), $largest);
                shown::reduced(&out, x.shape(), &self.dims, self.keep)?.fill_(start)?;
                self.fill([x], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                fill(x, &self.dims, out, |x, out| reduce::$method(x, &self.dims, out))
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// Over all if none are named; with `keep` they stay, with size 1.
            pub fn $method(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
                $op { dims: self.dims_or_all($op::NAME, dims)?, keep }.call([self])
            }
        }
    )*};
}

over_dims! {
    /// The largest elements over some dimensions.
    Amax, amax: "aten::amax", "AmaxBackward0", largest true;
    /// The smallest elements over some dimensions.
    Amin, amin: "aten::amin", "AminBackward0", largest false;
}

/// Shows how torch gives an output a dimension of size 1 in place.
fn show_raised(output: &Tensor, dim: usize) {
    let raised = output.layout().unsqueeze(dim);
    show_become("aten::unsqueeze_", output, dim, &raised);
}

/// Shows how torch takes it away again.
fn show_lowered(output: &Tensor, dim: usize) {
    let raised = output.with_layout(output.layout().unsqueeze(dim));
    show_become("aten::squeeze_", &raised, dim, output.layout());
}

fn show_become(op: &'static str, output: &Tensor, dim: usize, layout: &Layout) {
    let _span = shown::call(op, [output], &[Argument::Int(dim as i64)]);
    let (shape, strides) = (sizes(layout.shape()), sizes(layout.strides()));
    drop(shown::call(
        "aten::as_strided_",
        [output],
        &[Argument::Ints(&shape), Argument::Ints(&strides), Argument::None],
    ));
}

/// The extremes along a dimension and their indices: one line per operator.
macro_rules! along_dim {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal, $backward:literal, $kernel:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimension.
            pub dim: NamedDim,
            /// Whether it stays, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Outputs;
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; selected(ctx.grad(), self.dim, ctx.saved(1), ctx.shape(0), self.keep)?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(self.dim.argument());
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                check_some(Self::NAME, x, &[*self.dim])?;
                let shape = reduced(x.shape(), &[*self.dim], self.keep);
                Ok([Spec { shape: shape.clone(), dtype: x.dtype() }, Spec { shape, dtype: DType::I64 }])
            }

            /// Torch gives its outputs the dimension back while it works.
            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 2]>> {
                let outputs = self.room([x])?;
                if x.dim() == 0 {
                    show_filled(&outputs[0], x)?;
                    outputs[1].fill_(0)?;
                    return Ok(Some(outputs));
                }
                if !self.keep {
                    outputs.iter().for_each(|output| show_raised(output, *self.dim));
                }
                self.fill([x], &outputs, Device::CPU)?;
                if !self.keep {
                    outputs.iter().for_each(|output| show_lowered(output, *self.dim));
                }
                Ok(Some(outputs))
            }

            fn cpu(&self, [x]: [&Tensor; 1], [values, indices]: &[Tensor; 2]) -> Result<()> {
                let x = as_vector(x)?;
                let layout = kept_layout(x.shape(), &[*self.dim]);
                let (reading, mut writing, mut indexing) = (x.read(), values.write(), indices.write());
                reduce::$kernel(
                    x.elements(&reading),
                    *self.dim,
                    ViewMut::new(writing.bytes(), values.dtype(), &layout),
                    ViewMut::new(indexing.bytes(), DType::I64, &layout),
                );
                Ok(())
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// With `keep` the dimension stays, with size 1.
            pub fn $method(&self, dim: isize, keep: bool) -> Result<[Tensor; 2]> {
                $op { dim: self.named_dim($op::NAME, dim)?, keep }.call([self])
            }
        }
    )*};
}

along_dim! {
    /// The largest elements along a dimension, and their indices.
    MaxDim, max_dim: "aten::max", "MaxBackward0", max;
    /// The smallest elements along a dimension, and their indices.
    MinDim, min_dim: "aten::min", "MinBackward0", min;
}

/// All elements in one row, looked at without a call if they lie so.
fn in_a_row(x: &Tensor) -> Result<Tensor> {
    let row = x.layout().view(&[x.numel()]).map(|row| x.with_layout(row));
    row.map_or_else(|| x.apart(x.dtype())?.view([x.numel()]), Ok)
}

/// Where the extremes are: one line per operator.
macro_rules! places {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $all:ident: $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Along which dimension; among all elements, in row-major order, if none is named.
            pub dim: Option<NamedDim>,
            /// Whether reduced dimensions stay, with size 1.
            pub keep: bool,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(self.dim.map_or(Argument::None, NamedDim::argument));
                visit(Argument::Bool(self.keep));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                if x.dtype() == DType::Bool {
                    return Err(Error::new(Cause::DType, Self::NAME, "expects numbers, not bool"));
                }
                let dims = self.dims(x);
                check_some(Self::NAME, x, &dims)?;
                Ok(Spec { shape: reduced(x.shape(), &dims, self.keep), dtype: DType::I64 })
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                match self.dim {
                    Some(_) if x.dim() == 0 => drop(shown::reduced(&out, &[], &[], self.keep)?),
                    Some(dim) => drop(shown::reduced(&out, x.shape(), &[*dim], self.keep)?),
                    None => {
                        x.reshape(-1)?;
                        shown::reduced(&out, &[x.numel()], &[0], false)?;
                    }
                }
                self.fill([x], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let (x, dim) = match self.dim {
                    Some(dim) => (as_vector(x)?, *dim),
                    None => (in_a_row(x)?, 0),
                };
                let one = out.layout().view(&[1]).filter(|_| self.dim.is_none());
                let flat = one.map_or_else(|| out.alias(), |one| out.with_layout(one));
                fill(&x, &[dim], &flat, |x, out| reduce::$method(x, dim, out))
            }
        }

        impl $op {
            fn dims(&self, x: &Tensor) -> Dims {
                self.dim.map_or_else(|| (0..x.dim()).collect(), |dim| Dims::from_slice(&[*dim]))
            }
        }

        impl Tensor {
            $(#[$doc])*
            /// Along `dim`; with `keep` it stays, with size 1.
            pub fn $method(&self, dim: isize, keep: bool) -> Result<Tensor> {
                $op { dim: Some(self.named_dim($op::NAME, dim)?), keep }.call([self])
            }

            $(#[$doc])*
            /// Among all elements, in row-major order.
            pub fn $all(&self) -> Result<Tensor> {
                $op { dim: None, keep: false }.call([self])
            }
        }
    )*};
}

places! {
    /// The index of the largest element.
    Argmax, argmax, argmax_all: "aten::argmax";
    /// The index of the smallest element.
    Argmin, argmin, argmin_all: "aten::argmin";
}

impl Tensor {
    /// As [`maximum`](Tensor::maximum).
    pub fn max_of(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::max", [self, other], |_| {});
        self.maximum(other)
    }

    /// As [`minimum`](Tensor::minimum).
    pub fn min_of(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::min", [self, other], |_| {});
        self.minimum(other)
    }

    /// The smallest and the largest elements along `dim`, or of all if none is named; with `keep` what was
    /// reduced stays, with size 1.
    pub fn aminmax(&self, dim: Option<isize>, keep: bool) -> Result<[Tensor; 2]> {
        let _span = composite("aten::aminmax", [self], |visit| {
            visit(dim.map_or(Argument::None, |dim| Argument::Int(dim as i64)));
            visit(Argument::Bool(keep));
        });
        if dim.is_none() && !keep && observe::is_watched() && self.device().is_cpu() {
            // Torch finds both at once, and writes them down as numbers.
            let dims = NamedDims::from((0..self.dim()).collect::<Dims>());
            let found =
                [Amin { dims: dims.clone(), keep }.computed([self])?, Amax { dims, keep }.computed([self])?];
            for number in &found {
                show_written(number)?;
            }
            return Ok(found);
        }
        Ok([self.amin(dim.as_slice(), keep)?, self.amax(dim.as_slice(), keep)?])
    }
}
