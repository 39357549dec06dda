//! The larger and the smaller of two, and bounds.

use super::broadcast;
use super::pair::{self, Pair, meet, no_truths, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::promote::common_type;
use crate::{
    Backward, Cause, DType, Error, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor, autograd, cpu,
    grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, elementwise, functions};
use std::borrow::Cow;

pairs! {
    /// The larger of each element and that of the other; NaN if either is. Equals share their gradient.
    Maximum, maximum; "aten::maximum", "MaximumBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Maximum), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx; 1 => beyond(ctx, b, a.gt(b)?)?, 0 => beyond(ctx, b, a.lt(b)?)?)
        };
    /// The smaller of each element and that of the other; NaN if either is. Equals share their gradient.
    Minimum, minimum; "aten::minimum", "MinimumBackward0", saves Saves::Inputs, differentiable 1,
        elements(functions::Minimum), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx; 1 => beyond(ctx, b, a.lt(b)?)?, 0 => beyond(ctx, b, a.gt(b)?)?)
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
                let (x, bound, grad) = (ctx.saved(0), ctx.operand(1), ctx.grad());
                if bound.tensor().is_none() {
                    return grads!(ctx; {
                        let zero = Tensor::scalar_tensor(0.0, (grad.dtype(), grad.device()))?;
                        x.$inside(bound)?.choose(grad, &zero)?
                    });
                }
                grads!(ctx; 1 => beyond(ctx, bound, x.$inside(bound)?)?, 0 => beyond(ctx, bound, x.$outside(bound)?)?)
            }

            fn backward_name(&self, (_, bound): Pair<'_>) -> &'static str {
                if bound.tensor().is_some() { Self::BACKWARD } else { $by_number }
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
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

/// Each element, but at least the first bound and at most the second, which wins if they cross. Either
/// may be missing.
#[derive(Clone, Debug)]
pub struct Clamp;

type Bounded<'a> = (&'a Tensor, [Option<Operand<'a>>; 2]);

impl Op for Clamp {
    const NAME: &'static str = "aten::clamp";
    const BACKWARD: &'static str = "ClampBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Bounded<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, grad) = (ctx.saved(0), ctx.grad());
        match [ctx.optional_operand(1), ctx.optional_operand(2)] {
            [Some(min), None] if min.tensor().is_some() => grads!(ctx;
                2 => grad.zeros_like()?,
                1 => beyond(ctx, min, x.gt(min)?)?,
                0 => beyond(ctx, min, x.lt(min)?)?,
            ),
            [None, Some(max)] if max.tensor().is_some() => grads!(ctx;
                2 => beyond(ctx, max, x.lt(max)?)?,
                1 => grad.zeros_like()?,
                0 => beyond(ctx, max, x.gt(max)?)?,
            ),
            [Some(min), Some(max)] if min.tensor().or(max.tensor()).is_some() => between(ctx, min, max),
            bounds => grads!(ctx; within_numbers(grad, x, bounds)?),
        }
    }

    fn arguments(&self, (x, bounds): Bounded<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        bounds.into_iter().for_each(|bound| {
            visit(bound.map_or(Argument::None, |bound| bound.given().into_argument()));
        });
    }

    fn backward_name(&self, (_, bounds): Bounded<'_>) -> &'static str {
        if are_tensors(bounds) { Self::BACKWARD } else { "ClampBackward1" }
    }
}

fn are_tensors(bounds: [Option<Operand<'_>>; 2]) -> bool {
    bounds.into_iter().flatten().any(|bound| bound.tensor().is_some())
}

/// The bounds that are tensors of another type, converted.
fn bounds_as(bounds: [Option<Operand<'_>>; 2], dtype: DType) -> Result<[Option<Tensor>; 2]> {
    let [min, max] = bounds.map(|bound| match bound.and_then(Operand::tensor) {
        Some(bound) => shown::converted(bound, dtype),
        None => Ok(None),
    });
    Ok([min?, max?])
}

/// The gradient of what lies inside of numbers.
fn within_numbers(grad: &Tensor, x: &Tensor, bounds: [Option<Operand<'_>>; 2]) -> Result<Tensor> {
    if bounds.iter().all(Option::is_none) {
        return Ok(grad.clone());
    }
    let zero = Tensor::scalar_tensor(0.0, (grad.dtype(), grad.device()))?;
    let inside = match bounds {
        [Some(min), Some(max)] => {
            let inside = x.gt(min)?;
            inside.logical_and_(&x.lt(max)?)?;
            inside
        }
        [Some(min), None] => x.gt(min)?,
        [None, Some(max)] => x.lt(max)?,
        [None, None] => return Ok(grad.clone()),
    };
    inside.choose(grad, &zero)
}

/// The gradient on one side of a bound, which takes half of it where it is met.
fn beyond(ctx: &Backward<'_>, bound: Operand<'_>, outside: Tensor) -> Result<Tensor> {
    let half = ctx.grad().div(2)?;
    let grad = ctx.saved(0).eq(bound)?.choose(&half, ctx.grad())?;
    grad.masked_fill_(&outside, 0)?;
    Ok(grad)
}

/// The gradients of an element and two bounds. An element at a bound shares the gradient with it; where the
/// bounds cross, the upper one has it all, and where they meet, either has what lies beyond it.
fn between(ctx: &Backward<'_>, min: Operand<'_>, max: Operand<'_>) -> Result<Grads> {
    let (x, grad) = (ctx.saved(0), ctx.grad());
    let (min, max) = (bound(min, x)?, bound(max, x)?);
    let (mut to_min, mut to_max, mut to_x) = (None, None, None);
    if ctx.needs(1) || ctx.needs(2) {
        let (apart, met) = (min.lt(&*max)?, min.eq(&*max)?);
        if ctx.needs(1) {
            let below = apart.logical_and(&x.le(&*min)?)?.logical_or(&met.logical_and(&x.lt(&*min)?)?)?;
            to_min = Some(halved(grad, &x.eq(&*min)?, &below.logical_not()?)?);
        }
        if ctx.needs(2) {
            let above = max.lt(&*min)?.logical_or(&apart.logical_and(&x.ge(&*max)?)?)?;
            let above = above.logical_or(&met.logical_and(&x.gt(&*max)?)?)?.logical_not()?;
            let half = grad.div(2)?;
            let shared = x.eq(&*max)?.logical_and(&apart)?.choose(&half, grad)?;
            shared.masked_fill_(&above, 0)?;
            to_max = Some(shared);
        }
    }
    if ctx.needs(0) {
        let apart = min.lt(&*max)?;
        let shares = x.eq(&*min)?.logical_or(&x.eq(&*max)?)?.logical_and(&apart)?;
        to_x = Some(halved(grad, &shares, &x.lt(&*min)?.logical_or(&x.gt(&*max)?)?)?);
    }
    Ok(Grads::from_iter([to_x, to_min, to_max]))
}

/// The gradient, half of it where it is shared, and none where others have it.
fn halved(grad: &Tensor, shared: &Tensor, none: &Tensor) -> Result<Tensor> {
    let half = grad.div(2)?;
    let grad = shared.choose(&half, grad)?;
    grad.masked_fill_(none, 0)?;
    Ok(grad)
}

/// A bound as a tensor.
fn bound<'a>(operand: Operand<'a>, x: &Tensor) -> Result<Cow<'a, Tensor>> {
    match operand {
        Operand::Tensor(tensor) => Ok(Cow::Borrowed(tensor)),
        Operand::Scalar(number) => x.new_full([], number, ()).map(Cow::Owned),
    }
}

impl Kernel for Clamp {
    const ELEMENTWISE: bool = true;
    kernel_table!(Clamp);

    fn infer(&self, (x, bounds): Bounded<'_>) -> Result<Spec> {
        if bounds.iter().all(Option::is_none) {
            return Err(Error::new(
                Cause::Argument,
                Self::NAME,
                "needs a bound: the least, the most, or both",
            ));
        }
        let mut shape = Dims::from_slice(x.shape());
        for bound in bounds.into_iter().flatten() {
            shape = broadcast(Self::NAME, &shape, bound.shape())?;
        }
        let operands = [Some(Operand::Tensor(x))].into_iter().chain(bounds).flatten();
        let spec = Spec { shape, dtype: common_type(operands) };
        // One bound that is a tensor compares, which truths can do.
        if bounds.iter().any(Option::is_none) && are_tensors(bounds) {
            Ok(spec)
        } else {
            no_truths(Self::NAME, spec)
        }
    }

    fn shown(&self, (x, bounds): Bounded<'_>) -> Result<Option<Tensor>> {
        let dtype = self.infer((x, bounds))?.dtype;
        if are_tensors(bounds) {
            let first = shown::converted(x, dtype)?;
            let kept = bounds_as(bounds, dtype)?;
            let bounds = std::array::from_fn(|i| kept[i].as_ref().map(Operand::Tensor).or(bounds[i]));
            return self.computed((first.as_ref().unwrap_or(x), bounds)).map(Some);
        }
        let converted = x.to(dtype)?;
        self.computed((&converted, bounds)).map(Some)
    }

    fn cpu(&self, (x, [min, max]): Bounded<'_>, out: &Tensor) -> Result<()> {
        let dtype = out.dtype();
        match min {
            Some(min) => cpu::map2(Operand::Tensor(x), min, dtype, out, |x, min, out| {
                elementwise::binary(functions::Maximum, x, min, out);
            })?,
            None => cpu::map(x, dtype, out, elementwise::copy)?,
        }
        match max {
            Some(max) => cpu::change(out, [max], |out, [max]| {
                elementwise::binary_in_place(functions::Minimum, out, max);
            }),
            None => Ok(()),
        }
    }
}

impl InPlace for Clamp {
    const IN_PLACE: &'static str = "aten::clamp_";
    kernel_table!(in place Clamp);

    fn cpu_in_place(&self, (x, bounds): Bounded<'_>) -> Result<()> {
        if self.infer((x, bounds))?.dtype != x.dtype() {
            return self.write_copy((x, bounds));
        }
        let [min, max] = bounds;
        if let Some(min) = min {
            cpu::change(x, [min], |x, [min]| elementwise::binary_in_place(functions::Maximum, x, min))?;
        }
        match max {
            Some(max) => {
                cpu::change(x, [max], |x, [max]| elementwise::binary_in_place(functions::Minimum, x, max))
            }
            None => Ok(()),
        }
    }

    fn shown_in_place(&self, (x, bounds): Bounded<'_>) -> Result<Shown> {
        let dtype = self.infer((x, bounds))?.dtype;
        if are_tensors(bounds) {
            return Ok(Shown::converting(bounds_as(bounds, dtype)?));
        }
        x.to(dtype)?;
        Ok(Shown::default())
    }
}

impl Tensor {
    /// The larger of each element and that of `other`, written over this tensor: torch's `maximum` with `out`.
    pub fn maximum_(&self, other: &Tensor) -> Result<()> {
        let inputs = (self, Operand::Tensor(other));
        let fits = Maximum.infer(inputs)? == Spec::like(self);
        if !fits || autograd::records_change(inputs.keys(), self) {
            return ClampMin.call_in_place(inputs);
        }
        shown::into_out(Maximum::NAME, [self, other], &[], self, || {
            let _below = shown::inside();
            ClampMin.change(inputs, self)
        })
    }

    /// Each element, but at least `min` and at most `max`, tensors or numbers. If the two cross, `max`
    /// it is. [`clamp_min`](Tensor::clamp_min) and [`clamp_max`](Tensor::clamp_max) take one of them.
    pub fn clamp<'a>(&'a self, min: impl Into<Operand<'a>>, max: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.clamp_between(Some(min.into()), Some(max.into()))
    }

    /// As [`clamp`](Tensor::clamp), where either bound may be missing.
    pub fn clamp_between<'a>(&'a self, min: Option<Operand<'a>>, max: Option<Operand<'a>>) -> Result<Tensor> {
        Clamp.call((self, [min, max]))
    }

    /// As [`clamp`](Tensor::clamp), in place.
    pub fn clamp_<'a>(&'a self, min: impl Into<Operand<'a>>, max: impl Into<Operand<'a>>) -> Result<()> {
        self.clamp_between_(Some(min.into()), Some(max.into()))
    }

    /// As [`clamp_between`](Tensor::clamp_between), in place.
    pub fn clamp_between_<'a>(&'a self, min: Option<Operand<'a>>, max: Option<Operand<'a>>) -> Result<()> {
        Clamp.call_in_place((self, [min, max]))
    }
}
