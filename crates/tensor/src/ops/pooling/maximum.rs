//! Maxima of what windows see, and where they are.

use super::{Pooling, resized};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::pooling;

fn arguments(windows: &Pooling, rank: usize, visit: &mut dyn FnMut(Argument<'_>)) {
    let list = |numbers: &[isize]| super::listed(numbers, rank);
    visit(Argument::Ints(&list(&windows.kernel)));
    visit(Argument::Ints(&list(&windows.stride)));
    visit(Argument::Ints(&list(&windows.padding)));
    visit(Argument::Ints(&list(&windows.dilation)));
    visit(Argument::Bool(windows.ceil_mode));
}

/// Fills maxima and where they are in their plane.
pub(super) fn fill(x: &Tensor, windows: &pooling::Windows, [out, indices]: &[Tensor; 2]) {
    let (reading, mut writing, mut placing) = (x.read(), out.write(), indices.write());
    let indices = indices.elements_mut(&mut placing);
    pooling::maximum(x.elements(&reading), windows, out.elements_mut(&mut writing), indices);
}

/// Puts gradients where the maxima were; planes have as many dimensions as windows slide over.
pub(super) fn put(grad: &Tensor, indices: &Tensor, rank: usize, out: &Tensor) {
    let (reading, placing, mut writing) = (grad.read(), indices.read(), out.write());
    let area = out.shape()[out.dim() - rank..].iter().product();
    let (grad, indices) = (grad.elements(&reading), indices.elements(&placing));
    pooling::maximum_backward(grad, indices, area, out.elements_mut(&mut writing));
}

/// Picks what lies where the maxima were.
pub(super) fn pick(x: &Tensor, indices: &Tensor, rank: usize) -> Result<Tensor> {
    let outer = &indices.shape()[..indices.dim() - rank];
    let flat: Vec<isize> = outer.iter().map(|&size| size as isize).chain([-1]).collect();
    let places = if indices.is_contiguous() { indices.view(&flat)? } else { indices.reshape(&flat)? };
    x.reshape(&flat)?.gather(-1, &places)?.view(indices.shape())
}

/// Refuses a gradient or indices that maxima of `expected` shape do not have.
pub(super) fn check_maxima(op: &'static str, grad: &Tensor, indices: &Tensor, expected: &Spec) -> Result<()> {
    super::check_gradient(op, grad, expected)?;
    if indices.shape() == &expected.shape[..] && indices.dtype() == DType::I64 {
        return Ok(());
    }
    let text = format_args!(
        "expects indices of i64 and shape {:?}, not {} and {:?}",
        &expected.shape[..],
        indices.dtype(),
        indices.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// A maximum over a number of dimensions, and its gradient.
macro_rules! maxima {
    ($($(#[$doc:meta])* $op:ident, $back:ident, $method:ident, $with_indices:ident over $rank:literal: $outer:literal,
        $name:literal, $node:literal, $back_name:literal, $back_node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op(pub Pooling);

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $node;
            const SAVES: Saves = Saves::AndOutputsFrom(1);
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back(self.0.clone()).call([ctx.grad(), ctx.saved(0), ctx.saved(2)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                arguments(&self.0, $rank, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                let shape = resized(x, &self.0.on(Self::NAME, x, $rank)?.output);
                Ok([Spec::new(&shape, x.dtype()), Spec::new(&shape, DType::I64)])
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 2]>> {
                let [out, indices] = self.infer([x])?;
                let rank: usize = $rank;
                if rank == 2 {
                    return Ok(None);
                }
                let empties = [shown::empty_output(out.dtype)?, shown::empty_output(indices.dtype)?];
                let row_major = Argument::Int(0);
                let outputs = [
                    shown::grown(&empties[0], &out.shape, row_major)?,
                    shown::grown(&empties[1], &indices.shape, row_major)?,
                ];
                self.fill([x], &outputs, x.device())?;
                Ok(Some(outputs))
            }

            fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
                fill(x, &self.0.on(Self::NAME, x, $rank)?.windows(false), outputs);
                Ok(())
            }
        }

        /// Gradients put where the maxima were.
        #[derive(Clone, Debug)]
        pub struct $back(pub Pooling);

        impl Op for $back {
            const NAME: &'static str = $back_name;
            const BACKWARD: &'static str = $back_node;
            const SAVES: Saves = Saves::Inputs;
            /// The gradient, what was pooled, and where the maxima were.
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; pick(ctx.grad(), ctx.saved(2), $rank)?, crate::ops::no_influence(ctx.grad())?)
            }

            fn arguments(&self, [grad, x, indices]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(grad.argument()));
                visit(Argument::Tensor(x.argument()));
                arguments(&self.0, $rank, visit);
                visit(Argument::Tensor(indices.argument()));
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x, indices]: [&Tensor; 3]) -> Result<Spec> {
                let [expected, _] = $op(self.0.clone()).infer([x])?;
                check_maxima(Self::NAME, grad, indices, &expected)?;
                Ok(Spec::like(x))
            }

            fn shown(&self, inputs: [&Tensor; 3]) -> Result<Option<Tensor>> {
                self.infer(inputs)?;
                let rank: usize = $rank;
                let out = if rank == 2 { super::zeroed(inputs[1])? } else { super::grown_zeroed(inputs[1])? };
                let _grad = inputs[0].contiguous()?;
                self.fill(inputs, &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [grad, _, indices]: [&Tensor; 3], out: &Tensor) -> Result<()> {
                put(grad, indices, $rank, out);
                Ok(())
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, windows: &Pooling) -> Result<Tensor> {
                let _span = composite($outer, [self], |visit| arguments(windows, $rank, visit));
                if let Some(cast) = autocast::casting($outer, [self], |[x]| x.$method(windows)) {
                    return cast;
                }
                let [out, _] = self.$with_indices(windows)?;
                Ok(out)
            }

            $(#[$doc])*
            /// Also where each is in its plane.
            pub fn $with_indices(&self, windows: &Pooling) -> Result<[Tensor; 2]> {
                $op(windows.clone()).call([self])
            }
        }
    )*};
}

maxima! {
    /// Maxima of windows that slide over the last two dimensions.
    MaxPool2d, MaxPool2dBackward, max_pool2d, max_pool2d_with_indices over 2: "aten::max_pool2d",
        "aten::max_pool2d_with_indices", "MaxPool2DWithIndicesBackward0",
        "aten::max_pool2d_with_indices_backward", "MaxPool2DWithIndicesBackwardBackward0";
    /// Maxima of windows that slide over the last three dimensions.
    MaxPool3d, MaxPool3dBackward, max_pool3d, max_pool3d_with_indices over 3: "aten::max_pool3d",
        "aten::max_pool3d_with_indices", "MaxPool3DWithIndicesBackward0",
        "aten::max_pool3d_with_indices_backward", "MaxPool3DWithIndicesBackwardBackward0";
}

impl Tensor {
    /// Maxima of windows that slide over the last dimension.
    pub fn max_pool1d(&self, windows: &Pooling) -> Result<Tensor> {
        let _span = composite("aten::max_pool1d", [self], |visit| arguments(windows, 1, visit));
        let [out, _] = self.max_pool1d_with_indices(windows)?;
        Ok(out)
    }

    /// Maxima of windows that slide over the last dimension, and where each is in its line.
    pub fn max_pool1d_with_indices(&self, windows: &Pooling) -> Result<[Tensor; 2]> {
        const NAME: &str = "aten::max_pool1d_with_indices";
        let _span = composite(NAME, [self], |visit| arguments(windows, 1, visit));
        let flat = windows.flat(NAME, self)?;
        let [out, indices] = self.unsqueeze(-2)?.max_pool2d_with_indices(&flat)?;
        Ok([out.squeeze_dim(-2)?, indices.squeeze_dim(-2)?])
    }
}
