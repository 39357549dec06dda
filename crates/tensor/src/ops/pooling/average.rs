//! Averages of what windows see.

use super::{Pooling, resized};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::check_float;
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::pooling;

/// How windows are averaged.
#[derive(Clone, Debug)]
pub struct Averaging {
    /// The windows. A dilation other than 1 is refused.
    pub windows: Pooling,
    /// Whether places in the padding count.
    pub count_include_pad: bool,
    /// What sums are divided by, if not by the number of places.
    pub divisor_override: Option<i64>,
}

impl Averaging {
    /// Averages of windows side by side.
    pub fn new(kernel: impl AsRef<[isize]>) -> Averaging {
        Averaging { windows: Pooling::new(kernel), count_include_pad: true, divisor_override: None }
    }

    fn check(&self, op: &'static str, x: &Tensor) -> Result<()> {
        check_float(op, x)?;
        if self.divisor_override == Some(0) || self.windows.dilation.iter().any(|&step| step != 1) {
            let text = format_args!(
                "expects a divisor other than 0 and no dilation, not {:?} and {:?}",
                self.divisor_override, self.windows.dilation
            );
            return Err(Error::new(Cause::Argument, op, text));
        }
        Ok(())
    }

    fn divisor(&self) -> Option<f64> {
        self.divisor_override.map(|divisor| divisor as f64)
    }

    fn arguments(&self, rank: usize, visit: &mut dyn FnMut(Argument<'_>)) {
        let list = |numbers: &[isize]| super::listed(numbers, rank);
        visit(Argument::Ints(&list(&self.windows.kernel)));
        visit(Argument::Ints(&list(&self.windows.stride)));
        visit(Argument::Ints(&list(&self.windows.padding)));
        visit(Argument::Bool(self.windows.ceil_mode));
        visit(Argument::Bool(self.count_include_pad));
        if rank > 1 {
            visit(self.divisor_override.map_or(Argument::None, Argument::Int));
        }
    }
}

/// An average over a number of dimensions, and its gradient.
macro_rules! averages {
    ($($(#[$doc:meta])* $op:ident, $back:ident, $method:ident over $rank:literal: $name:literal, $node:literal,
        $back_name:literal, $back_node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op(pub Averaging);

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $node;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back(self.0.clone()).call([ctx.grad(), ctx.saved(0)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                self.0.arguments($rank, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                self.0.check(Self::NAME, x)?;
                let plan = self.0.windows.on(Self::NAME, x, $rank)?;
                Ok(Spec::new(resized(x, &plan.output), x.dtype()))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let windows = self.0.windows.on(Self::NAME, x, $rank)?.windows(self.0.count_include_pad);
                let (reading, mut writing) = (x.read(), out.write());
                pooling::average(x.elements(&reading), &windows, self.0.divisor(), out.elements_mut(&mut writing));
                Ok(())
            }
        }

        /// Gradients of windows, shared by what they see.
        #[derive(Clone, Debug)]
        pub struct $back(pub Averaging);

        impl Op for $back {
            const NAME: &'static str = $back_name;
            const BACKWARD: &'static str = $back_node;
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $op(self.0.clone()).call([ctx.grad()])?, crate::ops::no_influence(ctx.grad())?)
            }

            fn arguments(&self, [grad, x]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(grad.argument()));
                visit(Argument::Tensor(x.argument()));
                self.0.arguments($rank, visit);
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
                let expected = $op(self.0.clone()).infer([x])?;
                super::check_gradient(Self::NAME, grad, &expected)?;
                Ok(Spec::like(x))
            }

            fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
                self.infer(inputs)?;
                let volumes = $rank == 3;
                let _before = volumes.then(|| inputs[0].contiguous()).transpose()?;
                let out = super::zeroed(inputs[1])?;
                let _grad = (!volumes).then(|| inputs[0].contiguous()).transpose()?;
                self.fill(inputs, &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                let windows = self.0.windows.on(Self::NAME, x, $rank)?.windows(self.0.count_include_pad);
                let (reading, mut writing) = (grad.read(), out.write());
                let out = out.elements_mut(&mut writing);
                pooling::average_backward(grad.elements(&reading), &windows, self.0.divisor(), out);
                Ok(())
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, how: &Averaging) -> Result<Tensor> {
                $op(how.clone()).call([self])
            }
        }
    )*};
}

averages! {
    /// Averages of windows that slide over the last two dimensions.
    AvgPool2d, AvgPool2dBackward, avg_pool2d over 2: "aten::avg_pool2d", "AvgPool2DBackward0",
        "aten::avg_pool2d_backward", "AvgPool2DBackwardBackward0";
    /// Averages of windows that slide over the last three dimensions.
    AvgPool3d, AvgPool3dBackward, avg_pool3d over 3: "aten::avg_pool3d", "AvgPool3DBackward0",
        "aten::avg_pool3d_backward", "AvgPool3DBackwardBackward0";
}

impl Tensor {
    /// Averages of windows that slide over the last dimension.
    pub fn avg_pool1d(&self, how: &Averaging) -> Result<Tensor> {
        const NAME: &str = "aten::avg_pool1d";
        let _span = composite(NAME, [self], |visit| how.arguments(1, visit));
        let flat = how.windows.flat(NAME, self)?;
        self.unsqueeze(-2)?.avg_pool2d(&Averaging { windows: flat, ..how.clone() })?.squeeze_dim(-2)
    }
}
