//! The larger and the smaller of two, and bounds.

use super::broadcast;
use super::pair::{self, Pair, meet, no_truths, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::promote::common_type;
use crate::{Backward, DType, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_kernels::{elementwise, functions};
use std::borrow::Cow;

pairs! {
    /// The larger of each element and that of the other; NaN if either is. Equals share their gradient.
    Maximum, maximum; "aten::maximum", "MaximumBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Maximum), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx; shared(ctx)?.zero_where(&a.lt(b)?)?, shared(ctx)?.zero_where(&a.gt(b)?)?)
        };
    /// The smaller of each element and that of the other; NaN if either is. Equals share their gradient.
    Minimum, minimum; "aten::minimum", "MinimumBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Minimum), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx; shared(ctx)?.zero_where(&a.gt(b)?)?, shared(ctx)?.zero_where(&a.lt(b)?)?)
        };
    /// The larger of each element and that of the other; the other one if either is NaN. Equals share their
    /// gradient.
    Fmax, fmax; "aten::fmax", "FmaxBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Fmax), |ctx| chosen(ctx, |a, b| a.gt(b));
    /// The smaller of each element and that of the other; the other one if either is NaN. Equals share their
    /// gradient.
    Fmin, fmin; "aten::fmin", "FminBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Fmin), |ctx| chosen(ctx, |a, b| a.lt(b));
}

/// The gradient for the first operand where it wins or the second is NaN, for the second elsewhere.
fn chosen(ctx: &Backward<'_>, wins: fn(&Tensor, Operand<'_>) -> Result<Tensor>) -> Result<Grads> {
    let (a, b) = (ctx.saved(0), ctx.operand(1));
    let first = match b {
        Operand::Tensor(tensor) => wins(a, b)?.logical_or(&tensor.isnan()?)?,
        Operand::Scalar(number) => wins(a, b)?.logical_or(number.as_f64().is_nan())?,
    };
    let (tie, half) = (a.eq(b)?, ctx.grad().div(2)?);
    grads!(ctx;
        tie.choose(&half, &first.choose(ctx.grad(), 0)?)?,
        tie.choose(&half, &first.choose(0, ctx.grad())?)?,
    )
}

/// The gradient, halved where both operands are the same.
fn shared(ctx: &Backward<'_>) -> Result<Tensor> {
    ctx.saved(0).eq(ctx.operand(1))?.choose(&ctx.grad().div(2)?, ctx.grad())
}

/// One line per bound.
macro_rules! bounds {
    ($($(#[$doc:meta])* $op:ident, $method:ident / $method_:ident: $name:literal, $in_place:literal,
        $backward:literal by number $by_number:literal,
        $function:ident, $inside:ident, $outside:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = Pair<'a>;
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let (x, bound) = (ctx.saved(0), ctx.operand(1));
                if bound.tensor().is_none() {
                    return grads!(ctx; x.$inside(bound)?.choose(ctx.grad(), 0)?);
                }
                grads!(ctx;
                    shared(ctx)?.zero_where(&x.$outside(bound)?)?,
                    shared(ctx)?.zero_where(&x.$inside(bound)?)?,
                )
            }

            fn backward_name(&self, (_, bound): Pair<'_>) -> &'static str {
                if bound.tensor().is_some() { Self::BACKWARD } else { $by_number }
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
                let spec = meet(Self::NAME, inputs)?;
                if inputs.1.tensor().is_some() { Ok(spec) } else { no_truths(Self::NAME, spec) }
            }

            fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
                pair::elements::run(Self::NAME, functions::$function, inputs, out)
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            kernel_table!(in place $op);

            fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
                pair::elements::change(self, functions::$function, inputs)
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method<'a>(&'a self, bound: impl Into<Operand<'a>>) -> Result<Tensor> {
                $op.call((self, bound.into()))
            }

            #[doc = concat!("As [`", stringify!($method), "`](Tensor::", stringify!($method), "), in place.")]
            pub fn $method_<'a>(&'a self, bound: impl Into<Operand<'a>>) -> Result<()> {
                $op.call_in_place((self, bound.into()))
            }
        }
    )*};
}

bounds! {
    /// Each element, but at least the bound, a tensor or a number. At the bound, a number gives no gradient
    /// and a tensor takes half of it.
    ClampMin, clamp_min / clamp_min_: "aten::clamp_min", "aten::clamp_min_",
        "ClampMinBackward1" by number "ClampMinBackward0", Maximum, gt, lt;
    /// Each element, but at most the bound, a tensor or a number. At the bound, a number gives no gradient
    /// and a tensor takes half of it.
    ClampMax, clamp_max / clamp_max_: "aten::clamp_max", "aten::clamp_max_",
        "ClampMaxBackward1" by number "ClampMaxBackward0", Minimum, lt, gt;
}

/// Each element, but at least the second operand and at most the third, which wins if they cross.
#[derive(Clone, Debug)]
pub struct Clamp;

impl Op for Clamp {
    const NAME: &'static str = "aten::clamp";
    const BACKWARD: &'static str = "ClampBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [Operand<'a>; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, min, max, grad) = (ctx.saved(0), ctx.operand(1), ctx.operand(2), ctx.grad());
        if min.tensor().or(max.tensor()).is_none() {
            return grads!(ctx; x.gt(min)?.logical_and(&x.lt(max)?)?.choose(grad, 0)?);
        }
        let (min, max) = (bound(min, x)?, bound(max, x)?);
        let ordered = min.le(&*max)?;
        let hits = [
            x.ge(&*min)?.logical_and(&x.le(&*max)?)?,
            x.le(&*min)?.logical_and(&ordered)?,
            x.ge(&*max)?.logical_or(&max.le(&*min)?)?,
        ];
        // All operands that the result is equal to share the gradient.
        let count = hits[0].to_dtype(DType::I64)?.add(&hits[1])?.add(&hits[2])?;
        let share = grad.div(&count)?;
        grads!(ctx; hits[0].choose(&share, 0)?, hits[1].choose(&share, 0)?, hits[2].choose(&share, 0)?)
    }

    fn backward_name(&self, [_, min, max]: [Operand<'_>; 3]) -> &'static str {
        if min.tensor().or(max.tensor()).is_some() { Self::BACKWARD } else { "ClampBackward1" }
    }
}

/// A bound as a tensor.
fn bound<'a>(operand: Operand<'a>, x: &Tensor) -> Result<Cow<'a, Tensor>> {
    match operand {
        Operand::Tensor(tensor) => Ok(Cow::Borrowed(tensor)),
        Operand::Scalar(number) => x.new_full([], number, ()).map(Cow::Owned),
    }
}

impl Kernel for Clamp {
    kernel_table!(Clamp);

    fn infer(&self, operands: [Operand<'_>; 3]) -> Result<Spec> {
        let [x, min, max] = operands;
        super::places::must_be_tensor(Self::NAME, x)?;
        let shape = broadcast(Self::NAME, x.shape(), min.shape())?;
        let shape = broadcast(Self::NAME, &shape, max.shape())?;
        no_truths(Self::NAME, Spec { shape, dtype: common_type(operands) })
    }

    fn cpu(&self, [x, min, max]: [Operand<'_>; 3], out: &Tensor) -> Result<()> {
        let dtype = out.dtype();
        cpu::map2(x, min, dtype, out, |x, min, out| elementwise::binary(functions::Maximum, x, min, out))?;
        cpu::change(out, [max], |out, [max]| elementwise::binary_in_place(functions::Minimum, out, max))
    }
}

impl InPlace for Clamp {
    const IN_PLACE: &'static str = "aten::clamp_";
    kernel_table!(in place Clamp);
}

impl Tensor {
    /// Each element, but at least `min` and at most `max`, tensors or numbers. If the two cross, `max`
    /// it is. [`clamp_min`](Tensor::clamp_min) and [`clamp_max`](Tensor::clamp_max) take one of them.
    pub fn clamp<'a>(&'a self, min: impl Into<Operand<'a>>, max: impl Into<Operand<'a>>) -> Result<Tensor> {
        Clamp.call([Operand::Tensor(self), min.into(), max.into()])
    }

    /// As [`clamp`](Tensor::clamp), in place.
    pub fn clamp_<'a>(&'a self, min: impl Into<Operand<'a>>, max: impl Into<Operand<'a>>) -> Result<()> {
        Clamp.call_in_place([Operand::Tensor(self), min.into(), max.into()])
    }
}
