//! Pooling to a given size: windows that share the input evenly.

use super::maximum::{check_maxima, fill, pick, put};
use super::{plane, pooled_dims, resized};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::check_float;
use crate::{
    Backward, Cause, DType, Error, Grads, Kernel, MemoryFormat, Op, Result, Spec, Tensor, composite, grads,
    shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::pooling::{self, Span, Windows};

/// The sizes asked for, checked against the last dimensions of `x`.
fn output<const RANK: usize>(op: &'static str, x: &Tensor, sizes: &[Option<isize>]) -> Result<[usize; RANK]> {
    let refused = || {
        let text = format_args!(
            "expects a size from 0 on for each of the last {RANK} dimensions of {:?}, not {sizes:?}",
            x.shape()
        );
        Error::new(Cause::Argument, op, text)
    };
    let input = pooled_dims(op, x, RANK)?;
    let sizes: [Option<isize>; RANK] = match sizes {
        [one] => [*one; RANK],
        all => all.try_into().map_err(|_| refused())?,
    };
    let mut output = [0; RANK];
    for (dim, size) in sizes.into_iter().enumerate() {
        output[dim] = match size {
            Some(size) => usize::try_from(size).map_err(|_| refused())?,
            None => input[dim],
        };
    }
    Ok(output)
}

/// Windows that share the last dimensions of `x` among `output`.
fn windows<const RANK: usize>(x: &Tensor, output: [usize; RANK]) -> Windows {
    let input = &x.shape()[x.dim() - RANK..];
    let spans = |dim: usize| {
        let (size, count) = (input[dim], output[dim]);
        let span = |i: usize| {
            let (start, end) = (i * size / count, ((i + 1) * size).div_ceil(count));
            Span { start, end, step: 1, count: end - start }
        };
        (0..count).map(span).collect()
    };
    plane(input, (0..RANK).map(spans).collect())
}

/// How many windows a gradient has over the last dimensions, if it is one for `x`.
fn windows_of<const RANK: usize>(op: &'static str, grad: &Tensor, x: &Tensor) -> Result<[usize; RANK]> {
    let sizes = grad.shape().last_chunk::<RANK>();
    let Some(output) = sizes.filter(|_| grad.dim() == x.dim()) else {
        let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), x.shape());
        return Err(Error::new(Cause::Shape, op, text));
    };
    Ok(*output)
}

/// An average over a number of dimensions, and its gradient.
macro_rules! averages {
    ($($(#[$doc:meta])* $op:ident, $back:ident, $method:ident over $rank:literal as $dims:tt: $outer:literal,
        $name:literal, $node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// How many windows there are.
            pub output: [usize; $rank],
        }

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", $name);
            const BACKWARD: &'static str = concat!($node, "0");
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back.call([ctx.grad(), ctx.saved(0)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Ints(&self.output.map(|size| size as i64)));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_float(Self::NAME, x)?;
                pooled_dims(Self::NAME, x, $rank)?;
                Ok(Spec::new(resized(x, &self.output), x.dtype()))
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let spec = self.infer([x])?;
                let out = match $rank {
                    2 => super::grown(spec.dtype, &spec.shape)?,
                    _ => shown::grown(&shown::empty_output(spec.dtype)?, &spec.shape, Argument::None)?,
                };
                self.fill([x], &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                // Where nothing is pooled there may be any number of windows.
                if out.numel() == 0 {
                    return Ok(());
                }
                let (reading, mut writing) = (x.read(), out.write());
                let (windows, out) = (windows(x, self.output), out.elements_mut(&mut writing));
                pooling::average(x.elements(&reading), &windows, None, out);
                Ok(())
            }
        }

        /// Gradients of windows, shared by what they see.
        #[derive(Clone, Debug)]
        pub struct $back;

        impl Op for $back {
            const NAME: &'static str = concat!("aten::", $name, "_backward");
            const BACKWARD: &'static str = concat!($node, "Backward0");
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let output = windows_of(Self::NAME, ctx.saved(0), ctx.saved(1))?;
                grads!(ctx; $op { output }.call([ctx.grad()])?, crate::ops::no_influence(ctx.grad())?)
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
                let output = windows_of(Self::NAME, grad, x)?;
                super::check_gradient(Self::NAME, grad, &$op { output }.infer([x])?)?;
                Ok(Spec::like(x))
            }

            fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
                self.infer(inputs)?;
                let out = match $rank {
                    2 => super::grown_zeroed(inputs[1])?,
                    _ => inputs[1].zeros_like_with(MemoryFormat::Contiguous)?,
                };
                let _grad = inputs[0].contiguous()?;
                self.fill(inputs, &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                if out.numel() == 0 {
                    return Ok(());
                }
                let windows = windows::<$rank>(x, windows_of(Self::NAME, grad, x)?);
                let (reading, mut writing) = (grad.read(), out.write());
                let out = out.elements_mut(&mut writing);
                pooling::average_backward(grad.elements(&reading), &windows, None, out);
                Ok(())
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, sizes: &[Option<isize>]) -> Result<Tensor> {
                const NAME: &str = concat!("aten::", $outer);
                let output = output::<$rank>(NAME, self, sizes)?;
                let arguments = |visit: &mut dyn FnMut(Argument<'_>)| {
                    visit(Argument::Ints(&output.map(|size| size as i64)));
                };
                let _span = composite(NAME, [self], arguments);
                if let Some(cast) = autocast::casting(NAME, [self], |[x]| x.$method(sizes)) {
                    return cast;
                }
                if output == [1; $rank] {
                    return self.mean_dims(&$dims, true);
                }
                $op { output }.call([self])
            }
        }
    )*};
}

averages! {
    /// Averages of windows that share the last two dimensions evenly, so many of them.
    AdaptiveAvgPool2d, AdaptiveAvgPool2dBackward, adaptive_avg_pool2d over 2 as [-1, -2]: "adaptive_avg_pool2d",
        "_adaptive_avg_pool2d", "AdaptiveAvgPool2DBackward";
    /// Averages of windows that share the last three dimensions evenly, so many of them.
    AdaptiveAvgPool3d, AdaptiveAvgPool3dBackward, adaptive_avg_pool3d over 3 as [-1, -2, -3]: "adaptive_avg_pool3d",
        "_adaptive_avg_pool3d", "AdaptiveAvgPool3DBackward";
}

/// A maximum over a number of dimensions, and its gradient.
macro_rules! maxima {
    ($($(#[$doc:meta])* $op:ident, $back:ident, $method:ident over $rank:literal: $name:literal, $node:literal,
        gradient first $gradient_first:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// How many windows there are.
            pub output: [usize; $rank],
        }

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", $name);
            const BACKWARD: &'static str = concat!($node, "0");
            const SAVES: Saves = Saves::AndOutputsFrom(1);
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back.call([ctx.grad(), ctx.saved(0), ctx.saved(2)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Ints(&self.output.map(|size| size as i64)));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
                pooled_dims(Self::NAME, x, $rank)?;
                let shape = resized(x, &self.output);
                Ok([Spec::new(&shape, x.dtype()), Spec::new(&shape, DType::I64)])
            }

            fn cpu(&self, [x]: [&Tensor; 1], outputs: &[Tensor; 2]) -> Result<()> {
                if outputs[0].numel() > 0 {
                    fill(x, &windows(x, self.output), outputs);
                }
                Ok(())
            }
        }

        /// Gradients put where the maxima were.
        #[derive(Clone, Debug)]
        pub struct $back;

        impl Op for $back {
            const NAME: &'static str = concat!("aten::", $name, "_backward");
            const BACKWARD: &'static str = concat!($node, "Backward0");
            const SAVES: Saves = Saves::Inputs;
            /// The gradient, what was pooled, and where the maxima were.
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; pick(ctx.grad(), ctx.saved(2), $rank)?, crate::ops::no_influence(ctx.grad())?)
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x, indices]: [&Tensor; 3]) -> Result<Spec> {
                let output = windows_of(Self::NAME, grad, x)?;
                let [expected, _] = $op { output }.infer([x])?;
                check_maxima(Self::NAME, grad, indices, &expected)?;
                Ok(Spec::like(x))
            }

            fn shown(&self, inputs: [&Tensor; 3]) -> Result<Option<Tensor>> {
                self.infer(inputs)?;
                let _before = $gradient_first.then(|| inputs[0].contiguous()).transpose()?;
                let out = super::zeroed(inputs[1])?;
                let _grad = if $gradient_first { None } else { Some(inputs[0].contiguous()?) };
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
            pub fn $method(&self, sizes: &[Option<isize>]) -> Result<[Tensor; 2]> {
                $op { output: output($op::NAME, self, sizes)? }.call([self])
            }
        }
    )*};
}

maxima! {
    /// Maxima of windows that share the last two dimensions evenly, so many of them, and where each is in its
    /// plane.
    AdaptiveMaxPool2d, AdaptiveMaxPool2dBackward, adaptive_max_pool2d over 2: "adaptive_max_pool2d",
        "AdaptiveMaxPool2DBackward", gradient first false;
    /// Maxima of windows that share the last three dimensions evenly, so many of them, and where each is in its
    /// volume.
    AdaptiveMaxPool3d, AdaptiveMaxPool3dBackward, adaptive_max_pool3d over 3: "adaptive_max_pool3d",
        "AdaptiveMaxPool3DBackward", gradient first true;
}

impl Tensor {
    /// Averages of windows that share the last dimension evenly, `size` of them.
    pub fn adaptive_avg_pool1d(&self, size: isize) -> Result<Tensor> {
        let _span =
            composite("aten::adaptive_avg_pool1d", [self], |visit| visit(Argument::Ints(&[size as i64])));
        self.unsqueeze(-2)?.adaptive_avg_pool2d(&[Some(1), Some(size)])?.squeeze_dim(-2)
    }

    /// Maxima of windows that share the last dimension evenly, `size` of them, and where each is
    /// in its line.
    pub fn adaptive_max_pool1d(&self, size: isize) -> Result<[Tensor; 2]> {
        let _span =
            composite("aten::adaptive_max_pool1d", [self], |visit| visit(Argument::Ints(&[size as i64])));
        let [out, indices] = self.unsqueeze(-2)?.adaptive_max_pool2d(&[Some(1), Some(size)])?;
        let indices = indices.squeeze_dim(-2)?;
        Ok([out.squeeze_dim(-2)?, indices])
    }
}
