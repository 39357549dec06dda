//! Comparison, logic and bits of two operands, the second possibly a number.

use super::pair::{self, Pair, pairs};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, Operand, kernel_table};
use crate::promote::{float_type, result_type};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::elementwise::{self, Comparison};
use cresset_kernels::functions;

/// One line per comparison. Answers have no gradient; what is overwritten by one gets zeros.
macro_rules! comparisons {
    ($($(#[$doc:meta])* $op:ident, $method:ident / $method_:ident: $name:literal, $in_place:literal, $backward:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const DIFFERENTIABLE: usize = 0;
            type Inputs<'a> = Pair<'a>;
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?)
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
                pair::truths::infer(Self::NAME, inputs)
            }

            fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
                match shown::meet(Self::NAME, inputs, result_type(inputs.0, inputs.1), None)? {
                    Some(shown) => self.computed(shown.pair(inputs)).map(Some),
                    None => Ok(None),
                }
            }

            fn cpu(&self, (a, b): Pair<'_>, out: &Tensor) -> Result<()> {
                let dtype = result_type(a, b);
                cpu::map2(Operand::Tensor(a), b, dtype, out, |a, b, out| {
                    elementwise::compare(Comparison::$op, a, b, out);
                })
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            kernel_table!(in place $op);
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                $op.call((self, other.into()))
            }

            $(#[$doc])*
            ///
            /// Overwrites this tensor with 1 for true and 0 for false.
            pub fn $method_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
                $op.call_in_place((self, other.into()))
            }
        }
    )*};
}

comparisons! {
    /// Whether each element equals that of the other, a tensor or a number.
    Equal, eq / eq_: "aten::eq", "aten::eq_", "EqBackward0";
    /// Whether each element differs from that of the other, a tensor or a number.
    NotEqual, ne / ne_: "aten::ne", "aten::ne_", "NeBackward0";
    /// Whether each element is less than that of the other, a tensor or a number.
    Less, lt / lt_: "aten::lt", "aten::lt_", "LtBackward0";
    /// Whether each element is at most that of the other, a tensor or a number.
    LessEqual, le / le_: "aten::le", "aten::le_", "LeBackward0";
    /// Whether each element is greater than that of the other, a tensor or a number.
    Greater, gt / gt_: "aten::gt", "aten::gt_", "GtBackward0";
    /// Whether each element is at least that of the other, a tensor or a number.
    GreaterEqual, ge / ge_: "aten::ge", "aten::ge_", "GeBackward0";
}

pairs! {
    /// Whether both elements are true, which all but 0 are.
    LogicalAnd, logical_and / logical_and_: "aten::logical_and_"; "aten::logical_and", "LogicalAndBackward0",
        saves Saves::Nothing, differentiable 0, truths(functions::And), |ctx| zeros(ctx);
    /// Whether either element is true, which all but 0 are.
    LogicalOr, logical_or / logical_or_: "aten::logical_or_"; "aten::logical_or", "LogicalOrBackward0",
        saves Saves::Nothing, differentiable 0, truths(functions::Or), |ctx| zeros(ctx);
    /// Whether just one of the elements is true, which all but 0 are.
    LogicalXor, logical_xor / logical_xor_: "aten::logical_xor_"; "aten::logical_xor", "LogicalXorBackward0",
        saves Saves::Nothing, differentiable 0, truths(functions::Xor), |ctx| zeros(ctx);
    /// The bits that both integers have. For truths, whether both are true.
    BitwiseAnd, bitwise_and / bitwise_and_: "aten::bitwise_and_"; "aten::bitwise_and", "NotImplemented",
        saves Saves::Nothing, differentiable 0, bits(functions::And), |ctx| zeros(ctx);
    /// The bits that either integer has. For truths, whether either is true.
    BitwiseOr, bitwise_or / bitwise_or_: "aten::bitwise_or_"; "aten::bitwise_or", "NotImplemented",
        saves Saves::Nothing, differentiable 0, bits(functions::Or), |ctx| zeros(ctx);
    /// The bits that just one of the integers has. For truths, whether they differ.
    BitwiseXor, bitwise_xor / bitwise_xor_: "aten::bitwise_xor_"; "aten::bitwise_xor", "NotImplemented",
        saves Saves::Nothing, differentiable 0, bits(functions::Xor), |ctx| zeros(ctx);
}

fn zeros(ctx: &Backward<'_>) -> Result<Grads> {
    grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?)
}

/// How far apart two elements may be that are called close: `absolute + relative * |other|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closeness {
    /// The allowed difference as a share of the other element.
    pub relative: f64,
    /// The allowed difference that does not depend on the elements.
    pub absolute: f64,
    /// Whether NaN is close to NaN.
    pub equal_nan: bool,
}

impl Default for Closeness {
    fn default() -> Closeness {
        Closeness { relative: 1e-5, absolute: 1e-8, equal_nan: false }
    }
}

impl Tensor {
    /// Whether each element is close to that of `other`, a tensor of the same element type.
    pub fn isclose(&self, other: &Tensor, closeness: Closeness) -> Result<Tensor> {
        const NAME: &str = "aten::isclose";
        let Closeness { relative, absolute, equal_nan } = closeness;
        let _span = composite(NAME, [self, other], |visit| {
            visit(Argument::Float(relative));
            visit(Argument::Float(absolute));
            visit(Argument::Bool(equal_nan));
        });
        if self.dtype() != other.dtype() {
            let text = format_args!("expects one dtype, not {} and {}", self.dtype(), other.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        if !(relative >= 0.0 && absolute >= 0.0) {
            let text = format_args!("differences of {absolute} and a share of {relative} are below 0");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let mut close = self.eq(other)?;
        if equal_nan && self.dtype().is_float() {
            close = close.logical_or(&self.isnan()?.logical_and(&other.isnan()?)?)?;
        }
        if relative == 0.0 && absolute == 0.0 {
            return Ok(close);
        }
        // Whole numbers are compared as floats; only truths cannot be subtracted as they are.
        let floats = other.to_dtype(float_type(other.dtype()))?;
        let elements =
            if self.dtype() == DType::Bool { self.to_dtype(floats.dtype())? } else { self.clone() };
        let allowed = floats.mul(relative)?.abs()?.add(absolute)?;
        let actual = elements.sub(&floats)?.abs()?;
        close.logical_or(&actual.isfinite()?.logical_and(&actual.le(&allowed)?)?)
    }
}
