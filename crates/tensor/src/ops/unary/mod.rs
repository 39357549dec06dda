//! Functions of one operand, as tables: the function, its in-place form, its derivative.

mod analysis;
pub(super) mod kind;
mod logit;
mod nan;
mod rounding;
mod sign;
mod special;
mod tests_of_value;

pub use analysis::*;
pub use logit::*;
pub use nan::*;
pub use rounding::*;
pub use sign::*;
pub use special::*;
pub use tests_of_value::*;

use crate::autograd::Saves;
use crate::{Backward, Tensor};

/// One line per function: the operator, its method and in-place method, the kind of its kernel (see
/// [`kind`]) and what the derivative is given besides the gradient. The host kernel is the function of
/// the same name in `cresset_kernels::functions`.
macro_rules! functions {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $change:ident: $kind:ident, saves $saves:ident,
        |$grad:ident, $saved:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", stringify!($method));
            const BACKWARD: &'static str = super::node_name(concat!(stringify!($op), "Backward0"));
            const SAVES: Saves = Saves::$saves;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let ($grad, $saved) = (ctx.grad(), super::saved(ctx, Self::SAVES));
                let derivative = || -> Result<Tensor> { $derivative };
                grads!(ctx; derivative()?)
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                kind::$kind::infer(Self::NAME, x)
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                kind::$kind::shown(self, x)
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                kind::$kind::map(functions::$op, x, out)
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = concat!("aten::", stringify!($change));
            kernel_table!(in place $op);

            fn shown_in_place(&self, [x]: [&Tensor; 1]) -> Result<$crate::op::Shown> {
                Ok($crate::shown::changed_by(Self::IN_PLACE, x))
            }

            fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
                kind::$kind::change(functions::$op, x)
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self) -> Result<Tensor> {
                $op.call([self])
            }

            #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") in place.")]
            pub fn $change(&self) -> Result<()> {
                $op.call_in_place([self])
            }
        }
    )*};
}
use functions;

/// The name of a node, which torch writes with a capital letter after a digit.
const fn node_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        b"Log1pBackward0" => "Log1PBackward0",
        _ => name,
    }
}

/// What the derivative of a function is given: the input or output kept, if it asked for one.
fn saved<'a>(ctx: &'a Backward<'_>, saves: Saves) -> &'a Tensor {
    if saves == Saves::Nothing { ctx.grad() } else { ctx.saved(0) }
}
