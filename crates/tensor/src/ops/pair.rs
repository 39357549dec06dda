//! The form that operators of two operands share: the second may be a number.

use super::broadcast;
use crate::op::{InPlace, Operand, Shown};
use crate::promote::{float_type, result_type};
use crate::{Cause, DType, Error, Forward, Kernel, Op, Result, Spec, Tensor, cpu, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::{View, ViewMut, elementwise, functions};

/// A tensor, and a tensor or a number.
pub(super) type Pair<'a> = (&'a Tensor, Operand<'a>);

/// The shape that both broadcast to, and the element type that they meet at.
#[inline]
pub(super) fn meet(op: &'static str, (a, b): Pair<'_>) -> Result<Spec> {
    Ok(Spec { shape: broadcast(op, a.shape(), b.shape())?, dtype: result_type(a, b) })
}

/// Refuses results of bool.
pub(super) fn no_truths(op: &'static str, spec: Spec) -> Result<Spec> {
    if spec.dtype != DType::Bool {
        return Ok(spec);
    }
    Err(Error::new(Cause::DType, op, "not defined for bool; convert with to_dtype() first"))
}

/// Fills `out` from both operands. Half precision meets numbers in single precision, so that these are
/// not rounded before they count.
#[inline]
pub(super) fn map2(
    a: Operand<'_>,
    b: Operand<'_>,
    out: &Tensor,
    run: impl FnOnce(View<'_>, View<'_>, ViewMut<'_>),
) -> Result<()> {
    cpu::map2_unrounded(a, b, out.dtype(), out, run)
}

/// What an operator is differentiated by: torch has a second one for numbers that operators bring.
pub(super) fn overload((_, b): Pair<'_>, by_tensor: &'static str, by_number: &'static str) -> &'static str {
    if b.tensor().is_none() && observe::depth() > 1 { by_number } else { by_tensor }
}

/// Calls an operator whose numbers are tensors where a program writes them.
#[inline]
pub(super) fn call<O>(op: O, a: &Tensor, b: Operand<'_>) -> Result<Tensor>
where
    for<'a> O: Forward + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    match shown::written(a, b)? {
        Some(number) => op.call((a, Operand::Tensor(&number))),
        None => op.call((a, b)),
    }
}

/// As [`call`], in place.
pub(super) fn call_in_place<O>(op: O, a: &Tensor, b: Operand<'_>) -> Result<()>
where
    for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>>,
{
    match shown::written(a, b)? {
        Some(number) => op.call_in_place((a, Operand::Tensor(&number))),
        None => op.call_in_place((a, b)),
    }
}

/// The result, with the calls that torch makes for operands that are not yet what they meet as.
pub(super) fn shown<O>(op: &O, inputs: Pair<'_>, more: &[Argument<'_>]) -> Result<Option<Tensor>>
where
    for<'a> O: Kernel + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    if meet_as_they_are(inputs) {
        return Ok(None);
    }
    let common = op.infer(inputs)?.dtype;
    match shown::meet(O::NAME, inputs, common, Some(more))? {
        Some(shown) => op.computed(shown.pair(inputs)).map(Some),
        None => Ok(None),
    }
}

/// Whether two floats of one type meet, which most do: nothing is converted then.
#[inline]
fn meet_as_they_are((a, b): Pair<'_>) -> bool {
    b.tensor().is_some_and(|b| a.dtype() == b.dtype() && a.dtype().is_float())
}

/// As [`shown`], for operators without other arguments.
fn meeting<O>(op: &O, inputs: Pair<'_>) -> Result<Option<Tensor>>
where
    for<'a> O: Kernel + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    shown(op, inputs, &[])
}

fn meeting_in_place<O>(op: &O, inputs: Pair<'_>) -> Result<Shown>
where
    for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    shown_in_place(op, inputs, &[])
}

/// As [`shown`], before a change in place.
pub(super) fn shown_in_place<O>(op: &O, inputs: Pair<'_>, more: &[Argument<'_>]) -> Result<Shown>
where
    for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
{
    let common = op.infer(inputs)?.dtype;
    Ok(shown::meet(O::IN_PLACE, inputs, common, Some(more))?.unwrap_or_default())
}

/// One row per kind of function: the element types it is for, and what it makes of them.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident: $function:ident, $kernel:ident, $in_place:ident,
        |$op:ident, $inputs:ident, $met:ident| $infer:expr, refuses $refuses:expr, divides $divides:literal, shown $shown:ident / $in_place_shown:ident;)*) => {$(
        $(#[doc = $doc])*
        pub(super) mod $kind {
            use super::*;

            #[inline]
            pub(in crate::ops) fn infer($op: &'static str, $inputs: Pair<'_>) -> Result<Spec> {
                let $met = meet($op, $inputs)?;
                $infer
            }

            pub(in crate::ops) fn shown<O>(op: &O, inputs: Pair<'_>) -> Result<Option<Tensor>>
            where
                for<'a> O: Kernel + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
            {
                $shown(op, inputs)
            }

            #[allow(dead_code, reason = "not every kind has operators with a form in place")]
            pub(in crate::ops) fn shown_in_place<O>(op: &O, inputs: Pair<'_>) -> Result<Shown>
            where
                for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
            {
                $in_place_shown(op, inputs)
            }

            #[inline]
            pub(in crate::ops) fn run(
                op: &'static str,
                f: impl functions::$function,
                (a, b): Pair<'_>,
                out: &Tensor,
            ) -> Result<()> {
                let mut refused = false;
                map2(Operand::Tensor(a), b, out, |a, b, out| {
                    refused = $refuses(b);
                    if !refused {
                        elementwise::$kernel(f, a, b, out);
                    }
                })?;
                if refused { Err(division_by_zero(op)) } else { Ok(()) }
            }

            /// Computes in place if the result is of the type that the target has; otherwise apart,
            /// to be rounded once.
            pub(in crate::ops) fn change<O>(
                op: &O,
                f: impl functions::$function,
                (a, b): Pair<'_>,
            ) -> Result<()>
            where
                for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>>,
            {
                let b = b.plain();
                // A divisor in the same memory is looked at as a whole before anything is changed.
                if infer(O::IN_PLACE, (a, b))?.dtype != a.dtype() || $divides && cpu::shares_memory(a, b) {
                    return op.write_copy((a, b));
                }
                let mut refused = false;
                cpu::change_unrounded(a, [b], |a, [b]| {
                    refused = $refuses(b);
                    if !refused {
                        elementwise::$in_place(f, a, b);
                    }
                })?;
                if refused { Err(division_by_zero(O::IN_PLACE)) } else { Ok(()) }
            }
        }
    )*};
}

kinds! {
    /// Functions of all element types, each within its own.
    elements: Binary, binary, binary_in_place, |_op, _inputs, met| Ok(met), refuses nothing, divides false, shown meeting / meeting_in_place;
    /// Functions of all element types that do not mix them.
    alike: Binary, binary, binary_in_place, |op, inputs, met| no_mixture(op, inputs, met), refuses nothing, divides false, shown meeting / meeting_in_place;
    /// Functions that divide: for all but bool.
    quotients: DivideBinary, divide_binary, divide_binary_in_place,
        |op, _inputs, met| no_truths(op, met), refuses whole_zeros, divides true, shown meeting / meeting_in_place;
    /// Functions that only floats have: others are converted.
    floats: FloatBinary, float_binary, float_binary_in_place,
        |_op, _inputs, met| Ok(Spec { dtype: float_type(met.dtype), ..met }), refuses nothing, divides false, shown meeting / meeting_in_place;
    /// Functions that only floats have, and nobody else may ask for.
    only_floats: FloatBinary, float_binary, float_binary_in_place,
        |op, _inputs, met| must_be_float(op, met), refuses nothing, divides false, shown meeting / meeting_in_place;
    /// Functions of the bits of integers and bool.
    bits: BitsBinary, bits_binary, bits_binary_in_place,
        |op, _inputs, met| no_floats(op, met), refuses nothing, divides false, shown meeting / meeting_in_place;
}

/// Functions of truths: what is not 0 is true.
pub(super) mod truths {
    use super::*;

    #[inline]
    pub(in crate::ops) fn infer(op: &'static str, inputs: Pair<'_>) -> Result<Spec> {
        Ok(Spec { dtype: DType::Bool, ..meet(op, inputs)? })
    }

    /// Computed by a kernel that torch hands its output, which takes tensors only.
    pub(in crate::ops) fn shown<O>(op: &O, (a, b): Pair<'_>) -> Result<Option<Tensor>>
    where
        for<'a> O: Kernel + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
    {
        let number = match b {
            Operand::Tensor(_) => None,
            Operand::Scalar(value) => Some(shown::number(value)?),
        };
        let b = number.as_ref().map_or(b, Operand::Tensor);
        shown::into_empty(O::NAME, (a, b), DType::Bool, || {
            let met = shown::meet(O::NAME, (a, b), result_type(a, b), None)?;
            op.computed(met.as_ref().map_or((a, b), |met| met.pair((a, b))))
        })
        .map(Some)
    }

    /// As [`shown`], over the first operand.
    pub(in crate::ops) fn shown_in_place<O>(_op: &O, (a, b): Pair<'_>) -> Result<Shown>
    where
        for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>, Output = Tensor>,
    {
        Ok(shown::call(O::NAME, (a, b), &[Argument::Tensor(a.argument())]).into())
    }

    #[inline]
    pub(in crate::ops) fn run(
        _op: &'static str,
        f: impl functions::BitsBinary,
        (a, b): Pair<'_>,
        out: &Tensor,
    ) -> Result<()> {
        cpu::map2(Operand::Tensor(a), b, result_type(a, b), out, |a, b, out| elementwise::logic(f, a, b, out))
    }

    /// Computes in place if both meet at the type that the target has, otherwise apart.
    pub(in crate::ops) fn change<O>(op: &O, f: impl functions::BitsBinary, (a, b): Pair<'_>) -> Result<()>
    where
        for<'a> O: InPlace + Op<Inputs<'a> = Pair<'a>>,
    {
        let b = b.plain();
        if result_type(a, b) != a.dtype() {
            return op.write_copy((a, b));
        }
        cpu::change(a, [b], |a, [b]| elementwise::logic_in_place(f, a, b))
    }
}

#[inline(always)]
fn nothing(_divisor: View<'_>) -> bool {
    false
}

/// Integers have no infinity to answer with.
fn whole_zeros(divisor: View<'_>) -> bool {
    !divisor.dtype().is_float() && elementwise::has_zero(divisor)
}

fn division_by_zero(op: &'static str) -> Error {
    Error::new(Cause::Argument, op, "an integer is divided by zero; floats would give infinity")
}

fn no_mixture(op: &'static str, (a, b): Pair<'_>, spec: Spec) -> Result<Spec> {
    match b.tensor() {
        Some(b) if b.dtype() != a.dtype() => {
            let text = format_args!("expects one dtype, not {} and {}", a.dtype(), b.dtype());
            Err(Error::new(Cause::DType, op, text))
        }
        _ => Ok(spec),
    }
}

fn must_be_float(op: &'static str, spec: Spec) -> Result<Spec> {
    if spec.dtype.is_float() {
        return Ok(spec);
    }
    let text = format_args!("expects floats, not {}; convert with to_dtype() first", spec.dtype);
    Err(Error::new(Cause::DType, op, text))
}

fn no_floats(op: &'static str, spec: Spec) -> Result<Spec> {
    if !spec.dtype.is_float() {
        return Ok(spec);
    }
    let text = format_args!("expects integers or bool, not {}; convert with to_dtype() first", spec.dtype);
    Err(Error::new(Cause::DType, op, text))
}

/// One line per operator without attributes: its method, perhaps an in-place form, its names, what the
/// derivative needs, which elements it is for, and the derivative.
macro_rules! pairs {
    ($($(#[$doc:meta])* $op:ident, $method:ident $(/ $method_:ident: $in_place:literal)?;
        $name:literal, $backward:literal $(by number $by_number:literal)?, saves $saves:expr, differentiable $differentiable:expr,
        $kind:ident($function:expr), |$ctx:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = $saves;
            const DIFFERENTIABLE: usize = $differentiable;
            type Inputs<'a> = Pair<'a>;
            type Output = Tensor;

            fn backward(&self, $ctx: &Backward<'_>) -> Result<Grads> {
                $derivative
            }

            $(
                fn backward_name(&self, (_, b): Pair<'_>) -> &'static str {
                    if b.tensor().is_some() { Self::BACKWARD } else { $by_number }
                }
            )?
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
                pair::$kind::infer(Self::NAME, inputs)
            }

            fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
                pair::$kind::shown(self, inputs)
            }

            fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
                pair::$kind::run(Self::NAME, $function, inputs, out)
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                $op.call((self, other.into()))
            }

            $(
                #[doc = concat!("As [`", stringify!($method), "`](Tensor::", stringify!($method), "), in place.")]
                pub fn $method_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
                    $op.call_in_place((self, other.into()))
                }
            )?
        }

        $(
            impl InPlace for $op {
                const IN_PLACE: &'static str = $in_place;
                kernel_table!(in place $op);

                fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
                    pair::$kind::change(self, $function, inputs)
                }

                fn shown_in_place(&self, inputs: Pair<'_>) -> Result<$crate::op::Shown> {
                    pair::$kind::shown_in_place(self, inputs)
                }
            }
        )?
    )*};
}
pub(super) use pairs;
