//! Softmax and its logarithm along a dimension.

use super::{check_float, dtype_argument};
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::promote::float_type;
use crate::{
    Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, cpu, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::softmax;

/// A function along a dimension that keeps its output, and its gradient as an operator of its own.
/// A line says what each is called, which kernels compute it, and the derivative of the gradient
/// for the saved output, given the gradient's gradient, the gradient and the output.
macro_rules! along_dim {
    ($($(#[$doc:meta])* $op:ident: $name:literal, $node:literal, $kernel:ident;
        $(#[$back_doc:meta])* $back:ident: $back_name:literal, $back_node:literal, $back_kernel:ident,
        |$outer:ident, $grad:ident, $y:ident, $dims:ident| $to_grad:expr, $to_output:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// Which dimension; negative ones count from the back.
            pub dim: isize,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $node;
            const SAVES: Saves = Saves::Outputs;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $back { dim: self.dim }.call([ctx.grad(), ctx.saved(0)])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Int(self.dim as i64));
                visit(Argument::Bool(false));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                x.dim_index(Self::NAME, self.dim)?;
                Ok(Spec::new(x.shape(), float_type(x.dtype())))
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                if x.numel() > 0 {
                    show_flat(x)?;
                }
                self.fill([x], &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                let dim = x.dim_index(Self::NAME, self.dim)?;
                cpu::map(x, out.dtype(), out, |x, out| softmax::$kernel(x, dim, out))
            }
        }

        $(#[$back_doc])*
        #[derive(Clone, Debug)]
        pub struct $back {
            /// Which dimension; negative ones count from the back.
            pub dim: isize,
        }

        impl Op for $back {
            const NAME: &'static str = $back_name;
            const BACKWARD: &'static str = $back_node;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let ($outer, $grad, $y, $dims) = (ctx.grad(), ctx.saved(0), ctx.saved(1), [self.dim]);
                grads!(ctx; $to_grad, $to_output)
            }

            fn arguments(&self, [grad, y]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(grad.argument()));
                visit(Argument::Tensor(y.argument()));
                visit(Argument::Int(self.dim as i64));
                visit(shown::dtype_code(y.dtype()));
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad, y]: [&Tensor; 2]) -> Result<Spec> {
                infer_gradient(Self::NAME, grad, y, self.dim)
            }

            fn shown(&self, [grad, y]: [&Tensor; 2]) -> Result<Option<Tensor>> {
                let out = self.room([grad, y])?;
                if grad.numel() > 0 {
                    let _copies = [show_flat(grad)?, show_flat(y)?];
                }
                self.fill([grad, y], &out, out.device())?;
                Ok(Some(out))
            }

            fn cpu(&self, [grad, y]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                let dim = y.dim_index(Self::NAME, self.dim)?;
                cpu::map2(Operand::Tensor(grad), Operand::Tensor(y), out.dtype(), out, |grad, y, out| {
                    softmax::$back_kernel(grad, y, dim, out);
                })
            }
        }
    )*};
}

along_dim! {
    /// `exp(x) / sum(exp(x))` along a dimension.
    Softmax: "aten::_softmax", "SoftmaxBackward0", softmax;
    /// `y * (grad - sum(grad * y))` along a dimension.
    SoftmaxBackward: "aten::_softmax_backward_data", "SoftmaxBackwardDataBackward0", softmax_backward,
        |outer, grad, y, dims|
        SoftmaxBackward { dim: dims[0] }.call([&outer.to(y.dtype())?, y])?,
        {
            let outer = outer.to(y.dtype())?;
            let shared = grad.mul(&y.mul(&outer)?.sum_dims(&dims, true)?)?;
            let inner = y.mul(grad)?.sum_dims(&dims, true)?.mul(&outer)?;
            grad.mul(&outer)?.sub(&inner)?.sub(&shared)?.to(y.dtype())?
        };
    /// `x - log(sum(exp(x)))` along a dimension.
    LogSoftmax: "aten::_log_softmax", "LogSoftmaxBackward0", log_softmax;
    /// `grad - exp(y) * sum(grad)` along a dimension.
    LogSoftmaxBackward: "aten::_log_softmax_backward_data", "LogSoftmaxBackwardDataBackward0", log_softmax_backward,
        |outer, grad, y, dims|
        {
            let y = y.exp()?;
            let inner = outer.to(y.dtype())?.mul(&y)?.sum_dims(&dims, true)?;
            outer.to(y.dtype())?.sub(&inner)?.to(grad.dtype())?
        },
        {
            let y = y.exp()?;
            grad.sum_dims(&dims, true)?.neg()?.mul(&y)?.mul(outer)?.to(grad.dtype())?
        };
}

/// A tensor as torch's kernel reads it: row-major, and with a dimension.
fn show_flat(x: &Tensor) -> Result<Tensor> {
    let x = x.contiguous()?;
    if x.dim() == 0 { x.view([1]) } else { Ok(x) }
}

fn infer_gradient(op: &'static str, grad: &Tensor, y: &Tensor, dim: isize) -> Result<Spec> {
    if grad.shape() != y.shape() {
        let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), y.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    y.dim_index(op, dim)?;
    check_float(op, grad)?;
    Ok(Spec::like(grad))
}

impl Tensor {
    /// `exp(x) / sum(exp(x))` along `dim`; negative ones count from the back.
    pub fn softmax(&self, dim: isize) -> Result<Tensor> {
        self.softmax_as(dim, None)
    }

    /// As [`softmax`](Tensor::softmax), of the elements converted to `dtype` first.
    pub fn softmax_as(&self, dim: isize, dtype: Option<DType>) -> Result<Tensor> {
        const NAME: &str = "aten::softmax";
        let _span = composite(NAME, [self], |visit| along_arguments(dim, dtype, visit));
        self.dim_index(NAME, dim).map_err(|error| {
            let more = [Argument::Int(dim as i64), Argument::Bool(false)];
            shown::failed("aten::_softmax", [self], &more, error)
        })?;
        Softmax { dim }.call([&self.as_floats(NAME, dtype)?])
    }

    /// The softmax of the negative elements along `dim`.
    pub fn softmin(&self, dim: isize, dtype: Option<DType>) -> Result<Tensor> {
        self.neg()?.softmax_as(dim, dtype)
    }

    /// The logarithm of softmax along `dim`; negative ones count from the back.
    pub fn log_softmax(&self, dim: isize) -> Result<Tensor> {
        self.log_softmax_as(dim, None)
    }

    /// As [`log_softmax`](Tensor::log_softmax), of the elements converted to `dtype` first.
    pub fn log_softmax_as(&self, dim: isize, dtype: Option<DType>) -> Result<Tensor> {
        const NAME: &str = "aten::log_softmax";
        let _span = composite(NAME, [self], |visit| along_arguments(dim, dtype, visit));
        self.dim_index(NAME, dim).map_err(|error| {
            let more = [Argument::Int(dim as i64), Argument::Bool(false)];
            shown::failed("aten::_log_softmax", [self], &more, error)
        })?;
        LogSoftmax { dim }.call([&self.as_floats(NAME, dtype)?])
    }

    /// As [`log_softmax`](Tensor::log_softmax), for a call that names the element type that this has.
    pub(super) fn log_softmax_named(&self, dim: isize) -> Result<Tensor> {
        let named = self.dtype().is_float().then_some(self.dtype());
        self.log_softmax_as(dim, named)
    }

    fn as_floats(&self, op: &'static str, dtype: Option<DType>) -> Result<Tensor> {
        let to = |dtype| self.to_options((dtype, self.device()).into());
        let x = dtype.map_or_else(|| Ok(self.clone()), to)?;
        if dtype.is_some() {
            check_float(op, &x)?;
        }
        Ok(x)
    }
}

fn along_arguments(dim: isize, dtype: Option<DType>, visit: &mut dyn FnMut(Argument<'_>)) {
    visit(Argument::Int(dim as i64));
    visit(dtype_argument(dtype));
}
