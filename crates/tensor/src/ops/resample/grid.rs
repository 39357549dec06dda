//! Samples of images at the places of a grid.

use super::{Border, Method, Sampling};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::{self, kernel_table};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, resample};

fn arguments(how: Sampling, visit: &mut dyn FnMut(Argument<'_>)) {
    let method = match how.method {
        Method::Linear => 0,
        Method::Nearest | Method::NearestExact => 1,
        Method::Cubic => 2,
    };
    let border = match how.border {
        Border::Zeros => 0,
        Border::Nearest => 1,
        Border::Mirrored => 2,
    };
    visit(Argument::Int(method));
    visit(Argument::Int(border));
    visit(Argument::Bool(how.align_corners));
}

/// Checks that the grid names places in `x`, an image of `rank` dimensions.
fn infer(op: &'static str, x: &Tensor, grid: &Tensor, how: Sampling, rank: usize) -> Result<Spec> {
    let refused = |cause, what: &str| {
        let text = format_args!(
            "{what}: images {} {:?}, grid {} {:?}",
            x.dtype(),
            x.shape(),
            grid.dtype(),
            grid.shape()
        );
        Err(Error::new(cause, op, text))
    };
    if !x.dtype().is_float() || x.dtype() != grid.dtype() {
        return refused(Cause::DType, "expects floats of one type");
    }
    if x.dim() != rank + 2 || grid.dim() != rank + 2 || grid.shape()[rank + 1] != rank {
        let text = format!("expects [samples, channels, ..] and [samples, .., {rank}], of {rank} dimensions");
        return refused(Cause::Shape, &text);
    }
    if x.shape()[0] != grid.shape()[0] || x.shape()[2..].contains(&0) {
        return refused(Cause::Shape, "expects a grid for each image, none of them empty");
    }
    if how.method == Method::NearestExact {
        return refused(Cause::Argument, "samples are nearest, linear or cubic");
    }
    let shape: Dims = x.shape()[..2].iter().chain(&grid.shape()[1..=rank]).copied().collect();
    Ok(Spec { shape, dtype: x.dtype() })
}

macro_rules! samplers {
    ($($(#[$doc:meta])* $op:ident, $back:ident, $double:ident over $rank:literal: $name:literal, $node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op(pub Sampling);

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", $name);
            const BACKWARD: &'static str = concat!($node, "0");
            const SAVES: Saves = Saves::Inputs;
            /// The images, and the grid.
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let [of_x, of_grid] = $back(self.0).call([ctx.grad(), ctx.saved(0), ctx.saved(1)])?;
                grads!(ctx; of_x, of_grid)
            }

            fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
                arguments(self.0, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x, grid]: [&Tensor; 2]) -> Result<Spec> {
                infer(Self::NAME, x, grid, self.0, $rank)
            }

            fn cpu(&self, [x, grid]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                let (reading, placing, mut writing) = (x.read(), grid.read(), out.write());
                let (x, grid) = (x.elements(&reading), grid.elements(&placing));
                resample::sample(x, grid, self.0, out.elements_mut(&mut writing));
                Ok(())
            }
        }

        #[doc = concat!("The gradients of [`", stringify!($op), "`] for the images and for the grid.")]
        #[derive(Clone, Debug)]
        pub struct $back(pub Sampling);

        impl Op for $back {
            const NAME: &'static str = concat!("aten::", $name, "_backward");
            const BACKWARD: &'static str = concat!($node, "Backward0");
            const SAVES: Saves = Saves::Inputs;
            /// The gradient, the images, and the grid.
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let (grad, x, grid) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
                let [of_grad, of_x, of_grid] =
                    $double(self.0).call([ctx.grad_of(0), ctx.grad_of(1), grad, x, grid])?;
                grads!(ctx; of_grad, of_x, of_grid)
            }

            fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
                arguments(self.0, visit);
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x, grid]: [&Tensor; 3]) -> Result<[Spec; 2]> {
                check_like(Self::NAME, grad, &infer(Self::NAME, x, grid, self.0, $rank)?)?;
                Ok([Spec::like(x), Spec::like(grid)])
            }

            fn cpu(&self, [grad, x, grid]: [&Tensor; 3], [of_x, of_grid]: &[Tensor; 2]) -> Result<()> {
                let (gradients, reading, placing) = (grad.read(), x.read(), grid.read());
                let (mut writing_x, mut writing_grid) = (of_x.write(), of_grid.write());
                resample::sample_backward(
                    grad.elements(&gradients),
                    x.elements(&reading),
                    grid.elements(&placing),
                    self.0,
                    [of_x.elements_mut(&mut writing_x), of_grid.elements_mut(&mut writing_grid)],
                );
                Ok(())
            }
        }

        #[doc = concat!("The gradients of [`", stringify!($back), "`] for all it is given.")]
        #[derive(Clone, Debug)]
        pub struct $double(pub Sampling);

        impl Op for $double {
            const NAME: &'static str = concat!("aten::", $name, "_double_backward");
            const BACKWARD: &'static str = "NotImplemented";
            /// Gradients of the gradients of images and grid; the gradient, the images, the grid.
            type Inputs<'a> = [&'a Tensor; 5];
            type Output = [Tensor; 3];
        }

        impl Kernel for $double {
            kernel_table!($double);

            fn infer(&self, [towards_x, towards_grid, grad, x, grid]: [&Tensor; 5]) -> Result<[Spec; 3]> {
                let expected = infer(Self::NAME, x, grid, self.0, $rank)?;
                let expected = [expected, Spec::like(x), Spec::like(grid)];
                for (given, expected) in [grad, towards_x, towards_grid].into_iter().zip(&expected) {
                    check_like(Self::NAME, given, expected)?;
                }
                Ok(expected)
            }

            fn cpu(
                &self,
                [towards_x, towards_grid, grad, x, grid]: [&Tensor; 5],
                outputs: &[Tensor; 3],
            ) -> Result<()> {
                let (reading_x, reading_grid) = (towards_x.read(), towards_grid.read());
                let (gradients, reading, placing) = (grad.read(), x.read(), grid.read());
                let [of_grad, of_x, of_grid] = outputs;
                let [mut a, mut b, mut c] = [of_grad.write(), of_x.write(), of_grid.write()];
                resample::sample_double_backward(
                    [towards_x.elements(&reading_x), towards_grid.elements(&reading_grid)],
                    grad.elements(&gradients),
                    x.elements(&reading),
                    grid.elements(&placing),
                    self.0,
                    [of_grad.elements_mut(&mut a), of_x.elements_mut(&mut b), of_grid.elements_mut(&mut c)],
                );
                Ok(())
            }
        }
    )*};
}

fn check_like(op: &'static str, given: &Tensor, expected: &Spec) -> Result<()> {
    if Spec::like(given) == *expected {
        return Ok(());
    }
    let text = format_args!(
        "gradient of {} {:?} for {} {:?}",
        given.dtype(),
        given.shape(),
        expected.dtype,
        &expected.shape[..]
    );
    Err(Error::new(Cause::Shape, op, text))
}

samplers! {
    /// Samples of planes.
    GridSampler2d, GridSampler2dBackward, GridSampler2dDoubleBackward over 2: "grid_sampler_2d", "GridSampler2DBackward";
    /// Samples of volumes.
    GridSampler3d, GridSampler3dBackward, GridSampler3dDoubleBackward over 3: "grid_sampler_3d", "GridSampler3DBackward";
}

impl Tensor {
    /// Samples of these images `[samples, channels, ..]` at the places that `grid` names, `[samples, ..,
    /// dimensions]`, each from -1 to 1 and the last dimension first.
    pub fn grid_sample(&self, grid: &Tensor, how: Sampling) -> Result<Tensor> {
        const NAME: &str = "aten::grid_sampler";
        let _span = composite(NAME, [self, grid], |visit| arguments(how, visit));
        if let Some(cast) = autocast::casting(NAME, [self, grid], |[x, grid]| x.grid_sample(grid, how)) {
            return cast;
        }
        let device = self.device();
        let pieces = |name, rank| {
            infer(name, self, grid, how, rank)?;
            super::pieces::sampled(self, grid, how)
        };
        match self.dim() {
            4 if !op::is_served::<GridSampler2d>(device) => pieces(GridSampler2d::NAME, 2),
            5 if !op::is_served::<GridSampler3d>(device) => pieces(GridSampler3d::NAME, 3),
            4 => GridSampler2d(how).call([self, grid]),
            5 => GridSampler3d(how).call([self, grid]),
            _ => {
                let text = format_args!("expects images of 4 or 5 dimensions, not shape {:?}", self.shape());
                Err(Error::new(Cause::Shape, NAME, text))
            }
        }
    }
}
