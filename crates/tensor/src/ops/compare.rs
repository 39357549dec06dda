//! Comparison, logic and bits of two operands, the second possibly a number.

use super::pair::{self, Pair, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::promote::result_type;
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
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
            kernel_table!($op);

            fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
                pair::truths::infer(Self::NAME, inputs)
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
