//! Elements around a tensor: a constant, or more of its own.

use crate::autograd::Saves;
use crate::op::{Forward, kernel_table};
use crate::{
    Backward, Cause, Device, Error, Grads, Kernel, MemoryFormat, Op, Result, Scalar, Spec, Tensor, composite,
    grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;
use cresset_kernels::arrange::{self, Sources};

/// What lies around a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Padding {
    /// Zeros everywhere.
    Zeros,
    /// One value everywhere.
    Constant(Scalar),
    /// The tensor mirrored at its edges, which are not repeated.
    Reflect,
    /// The elements at the edges.
    Replicate,
    /// The tensor over and over.
    Circular,
}

/// How much is added before and after each dimension, the last dimension first; less than nothing
/// takes away.
fn padding_argument(padding: &[isize], visit: &mut dyn FnMut(Argument<'_>)) {
    visit(Argument::Ints(&padding.iter().map(|&pad| pad as i64).collect::<Vec<_>>()));
}

/// The dimensions that are padded, with what is added before and after.
fn padded(rank: usize, padding: &[isize]) -> impl Iterator<Item = (usize, [isize; 2])> {
    let (pairs, _) = padding.as_chunks::<2>();
    pairs.iter().enumerate().map(move |(at, pair)| (rank - 1 - at, *pair))
}

/// The shape after padding.
fn padded_shape(op: &'static str, shape: &[usize], padding: &[isize]) -> Result<Dims> {
    let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, op, text));
    if !padding.len().is_multiple_of(2) || padding.len() / 2 > shape.len() {
        return refused(format_args!(
            "padding {padding:?} for shape {shape:?}: expected two numbers for each of its last dimensions"
        ));
    }
    let mut out = Dims::from_slice(shape);
    for (dim, [before, after]) in padded(shape.len(), padding) {
        let size = isize::try_from(shape[dim]).ok();
        let size = size.and_then(|size| size.checked_add(before)?.checked_add(after));
        match size.and_then(|size| usize::try_from(size).ok()) {
            Some(size) => out[dim] = size,
            None => return refused(format_args!("{before} and {after} cannot be added to {}", shape[dim])),
        }
    }
    Ok(out)
}

/// One value around a tensor.
#[derive(Clone, Debug)]
pub struct ConstantPadNd {
    /// How much is added before and after each dimension, the last dimension first.
    pub padding: Vec<isize>,
    /// The value.
    pub value: Scalar,
}

impl Op for ConstantPadNd {
    const NAME: &'static str = "aten::constant_pad_nd";
    const BACKWARD: &'static str = "ConstantPadNdBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let padding: Vec<isize> = self.padding.iter().map(|pad| -pad).collect();
        grads!(ctx; ctx.grad().constant_pad_nd(&padding, 0)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        padding_argument(&self.padding, visit);
        visit(super::scalar_argument(self.value));
    }
}

impl Forward for ConstantPadNd {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let shape = padded_shape(Self::NAME, x.shape(), &self.padding)?;
        let from = self.inner(x, |pad| -pad)?;
        if self.padding.iter().all(|&pad| pad <= 0) {
            return if x.device().is_cpu() { shown::cloned(&from, Argument::None) } else { from.copy() };
        }
        let out = match x.device().is_cpu() {
            true => shown::empty_in(&shape, x.dtype(), shown::CONTIGUOUS),
            false => Tensor::empty(shape, (x.dtype(), x.device())),
        };
        let out = out.map_err(|error| error.in_op(Self::NAME))?;
        out.fill_(self.value)?;
        self.inner(&out, |pad| pad)?.copy_(&from)?;
        Ok(out)
    }
}

impl ConstantPadNd {
    /// What is left of `x` without as much at each end as `taken` says, from the first padded dimension on.
    fn inner(&self, x: &Tensor, taken: impl Fn(isize) -> isize) -> Result<Tensor> {
        let mut inner = x.clone();
        let pairs: Vec<_> = padded(x.dim(), &self.padding).collect();
        for (dim, [before, after]) in pairs.into_iter().rev() {
            let (before, after) = (taken(before).max(0), taken(after).max(0));
            for (start, less) in [(before, before), (0, after)].into_iter().filter(|(_, less)| *less > 0) {
                let size = inner.shape()[dim];
                let rest = size.saturating_sub(less.unsigned_abs());
                inner = inner.narrow(dim as isize, start.min(size as isize), rest)?;
            }
        }
        Ok(inner)
    }
}

/// Where elements beyond an edge come from.
#[derive(Clone, Copy, Debug)]
enum Edge {
    Mirror,
    Nearest,
}

impl Edge {
    /// Refuses shapes and padding that this edge does not make sense for; gives the padded shape.
    fn check(self, op: &'static str, dims: usize, shape: &[usize], padding: &[isize]) -> Result<Dims> {
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, op, text));
        let rank = shape.len();
        if padding.len() != 2 * dims || !(dims + 1..=dims + 2).contains(&rank) {
            return refused(format_args!(
                "padding {padding:?} for shape {shape:?}: expected {} numbers and {} or {} dimensions",
                2 * dims,
                dims + 1,
                dims + 2
            ));
        }
        let batch = usize::from(rank == dims + 2);
        if shape[batch..].contains(&0) {
            return refused(format_args!("shape {shape:?} has nothing to pad with"));
        }
        let out = padded_shape(op, shape, padding)?;
        for (dim, pair) in padded(rank, padding) {
            let size = shape[dim] as isize;
            if matches!(self, Edge::Mirror) && pair.iter().any(|&pad| pad >= size) {
                return refused(format_args!("padding {pair:?} is not less than a size of {size}"));
            }
            if out[dim] == 0 {
                return refused(format_args!("padding {pair:?} leaves nothing of a size of {size}"));
            }
        }
        Ok(out)
    }

    /// Memory for the output as torch's kernel asks for it.
    fn shown_room(self, dims: usize, spec: &Spec) -> Result<Tensor> {
        let (shape, dtype) = (&spec.shape, spec.dtype);
        let order = if shape.len() > 3 { shown::CONTIGUOUS } else { Argument::None };
        match (self, dims) {
            (_, 1) => Tensor::uninit(shape, dtype, Device::CPU),
            (Edge::Mirror, 2) => shown::grown(&shown::empty_output(dtype)?, shape, order),
            _ => resized_in_place(spec),
        }
    }

    /// Zeros for the gradient as torch's kernel asks for them.
    fn shown_zeros(self, dims: usize, x: &Tensor, spec: &Spec) -> Result<Tensor> {
        let out = match (self, dims) {
            (_, 1) => Tensor::uninit(&spec.shape, spec.dtype, Device::CPU)?,
            (Edge::Mirror, 3) => resized_in_place(spec)?,
            _ => return x.zeros_like_with(MemoryFormat::Contiguous),
        };
        if out.numel() > 0 {
            out.zero_()?;
        }
        Ok(out)
    }

    /// For each index of each padded dimension, where its element comes from.
    fn sources(self, dims: usize, shape: &[usize], padding: &[isize]) -> Vec<Sources> {
        let mut sources: Vec<Sources> = padded(shape.len(), padding)
            .map(|(dim, [before, after])| {
                let last = shape[dim] as isize - 1;
                let source = |at: isize| match self {
                    Edge::Nearest => at.clamp(0, last),
                    Edge::Mirror if at < 0 => -at,
                    Edge::Mirror if at > last => 2 * last - at,
                    Edge::Mirror => at,
                };
                (-before..=last + after).map(|at| source(at).unsigned_abs()).collect()
            })
            .collect();
        sources.reverse();
        debug_assert_eq!(sources.len(), dims);
        sources
    }
}

/// Memory that torch resizes to the size it has.
fn resized_in_place(spec: &Spec) -> Result<Tensor> {
    let out = Tensor::uninit(&spec.shape, spec.dtype, Device::CPU)?;
    let sizes = shown::ints(&spec.shape);
    shown::within("aten::resize_", [&out], &[Argument::Ints(&sizes), shown::CONTIGUOUS], || Ok(out.clone()))?;
    Ok(out)
}

macro_rules! edges {
    ($($(#[$doc:meta])* $op:ident, $back:ident: $edge:expr, $dims:literal, $name:literal, $node:literal, $back_name:literal, $back_node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// How much is added before and after each dimension, the last dimension first.
            pub padding: Vec<isize>,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $node;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back { padding: self.padding.clone() }.call([ctx.grad(), ctx.saved(0)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                padding_argument(&self.padding, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                Ok(Spec { shape: $edge.check(Self::NAME, $dims, x.shape(), &self.padding)?, dtype: x.dtype() })
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = $edge.shown_room($dims, &self.infer([x])?)?;
                self.fill([x], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let sources = $edge.sources($dims, x.shape(), &self.padding);
                let (reading, mut writing) = (x.read(), out.write());
                arrange::gather_edges(x.elements(&reading), &sources, out.elements_mut(&mut writing));
                Ok(())
            }
        }

        #[doc = concat!("The gradient of [`", stringify!($op), "`]: each comes back to where its element was taken from.")]
        #[derive(Clone, Debug)]
        pub struct $back {
            /// How much was added before and after each dimension, the last dimension first.
            pub padding: Vec<isize>,
        }

        impl Op for $back {
            const NAME: &'static str = $back_name;
            const BACKWARD: &'static str = $back_node;
            /// The gradient, and what was padded, which tells the shape.
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx;
                    $op { padding: self.padding.clone() }.call([ctx.grad()])?,
                    super::no_influence(ctx.grad())?
                )
            }

            fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
                padding_argument(&self.padding, visit);
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
                super::check_float(Self::NAME, grad)?;
                let shape = $edge.check(Self::NAME, $dims, x.shape(), &self.padding)?;
                if grad.shape() != &shape[..] {
                    let text = format_args!("the gradient has shape {:?}, expected {:?}", grad.shape(), &shape[..]);
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
                Ok(Spec::new(x.shape(), grad.dtype()))
            }

            fn shown(&self, [grad, x]: [&Tensor; 2]) -> Result<Option<Tensor>> {
                let out = $edge.shown_zeros($dims, x, &self.infer([grad, x])?)?;
                let _lying_plain = grad.contiguous()?;
                self.fill([grad, x], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                let sources = $edge.sources($dims, x.shape(), &self.padding);
                let (reading, mut writing) = (grad.read(), out.write());
                arrange::add_edges(grad.elements(&reading), &sources, out.elements_mut(&mut writing));
                Ok(())
            }
        }
    )*};
}

edges! {
    /// The last dimension mirrored at its edges.
    ReflectionPad1d, ReflectionPad1dBackward: Edge::Mirror, 1, "aten::reflection_pad1d",
        "ReflectionPad1DBackward0", "aten::reflection_pad1d_backward", "ReflectionPad1DBackwardBackward0";
    /// The last two dimensions mirrored at their edges.
    ReflectionPad2d, ReflectionPad2dBackward: Edge::Mirror, 2, "aten::reflection_pad2d",
        "ReflectionPad2DBackward0", "aten::reflection_pad2d_backward", "ReflectionPad2DBackwardBackward0";
    /// The last three dimensions mirrored at their edges.
    ReflectionPad3d, ReflectionPad3dBackward: Edge::Mirror, 3, "aten::reflection_pad3d",
        "ReflectionPad3DBackward0", "aten::reflection_pad3d_backward", "ReflectionPad3DBackwardBackward0";
    /// The elements at the edges of the last dimension repeated.
    ReplicationPad1d, ReplicationPad1dBackward: Edge::Nearest, 1, "aten::replication_pad1d",
        "ReplicationPad1DBackward0", "aten::replication_pad1d_backward", "ReplicationPad1DBackwardBackward0";
    /// The elements at the edges of the last two dimensions repeated.
    ReplicationPad2d, ReplicationPad2dBackward: Edge::Nearest, 2, "aten::replication_pad2d",
        "ReplicationPad2DBackward0", "aten::replication_pad2d_backward", "ReplicationPad2DBackwardBackward0";
    /// The elements at the edges of the last three dimensions repeated.
    ReplicationPad3d, ReplicationPad3dBackward: Edge::Nearest, 3, "aten::replication_pad3d",
        "ReplicationPad3DBackward0", "aten::replication_pad3d_backward", "ReplicationPad3DBackwardBackward0";
}

impl Tensor {
    /// This tensor with elements around it.
    ///
    /// `padding` says how much is added before and after each dimension, the last dimension first;
    /// less than nothing takes away.
    pub fn pad(&self, padding: &[isize], with: Padding) -> Result<Tensor> {
        const NAME: &str = "aten::pad";
        let _span = composite(NAME, [self], |visit| {
            padding_argument(padding, visit);
            visit(Argument::None);
            visit(match with {
                Padding::Constant(value) => Argument::Float(value.as_f64()),
                _ => Argument::None,
            });
        });
        let own = || padding.to_vec();
        match (with, padding.len()) {
            (Padding::Zeros, _) => self.constant_pad_nd(padding, 0.0),
            (Padding::Constant(value), _) => self.constant_pad_nd(padding, value.as_f64()),
            (Padding::Reflect, 2) => ReflectionPad1d { padding: own() }.call([self]),
            (Padding::Reflect, 4) => ReflectionPad2d { padding: own() }.call([self]),
            (Padding::Reflect, 6) => ReflectionPad3d { padding: own() }.call([self]),
            (Padding::Replicate, 2) => ReplicationPad1d { padding: own() }.call([self]),
            (Padding::Replicate, 4) => ReplicationPad2d { padding: own() }.call([self]),
            (Padding::Replicate, 6) => ReplicationPad3d { padding: own() }.call([self]),
            (Padding::Circular, 2 | 4 | 6) => self.pad_circular(padding),
            (with, count) => {
                let text = format_args!("{with:?} expects 2, 4 or 6 numbers, not {count}");
                Err(Error::new(Cause::Argument, NAME, text))
            }
        }
    }

    /// This tensor with `value` around it. See [`pad`](Tensor::pad).
    pub fn constant_pad_nd(&self, padding: &[isize], value: impl Into<Scalar>) -> Result<Tensor> {
        ConstantPadNd { padding: padding.to_vec(), value: value.into() }.call([self])
    }

    fn pad_circular(&self, padding: &[isize]) -> Result<Tensor> {
        const NAME: &str = "aten::_pad_circular";
        let _span = composite(NAME, [self], |visit| padding_argument(padding, visit));
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, NAME, text));
        let dims = padding.len() / 2;
        if !(dims + 1..=dims + 2).contains(&self.dim()) {
            return refused(format_args!(
                "padding {padding:?} for shape {:?}: expected {} or {} dimensions",
                self.shape(),
                dims + 1,
                dims + 2
            ));
        }
        let shape = padded_shape(NAME, self.shape(), padding)?;
        for (dim, [before, after]) in padded(self.dim(), padding) {
            let size = self.shape()[dim] as isize + before.min(0) + after.min(0);
            if before > size || after > size {
                return refused(format_args!(
                    "{before} and {after} wrap around a size of {size} more than once"
                ));
            }
        }
        let out = shown::new_empty(self, &shape)?;
        let (mut to, mut from) = (out.clone(), self.clone());
        for (dim, [before, after]) in padded(self.dim(), padding) {
            let (along, new, old) = (dim as isize, shape[dim] as isize, self.shape()[dim] as isize);
            to = to.slice(along, before.max(0)..new - after.max(0), 1)?;
            from = from.slice(along, (-before).max(0)..old - (-after).max(0), 1)?;
        }
        to.copy_(&from)?;
        // Each side is filled from the other; corners are written once for each dimension.
        for (dim, [before, after]) in padded(self.dim(), padding) {
            let (along, end) = (dim as isize, shape[dim] as isize);
            let (before, after) = (before.max(0), after.max(0));
            if before > 0 {
                let side = out.slice(along, 0..before, 1)?;
                side.copy_(&out.slice(along, end - before - after..end - after, 1)?)?;
            }
            if after > 0 {
                let side = out.slice(along, end - after..end, 1)?;
                side.copy_(&out.slice(along, before..before + after, 1)?)?;
            }
        }
        Ok(out)
    }
}
