//! Activations, and the derivatives that have operators of their own.

mod clip;
mod gelu;
mod glu;
mod log_sigmoid;
mod prelu;
mod rectifier;
mod shrink;
mod smooth;

pub use clip::*;
pub use gelu::*;
pub use glu::*;
pub use log_sigmoid::*;
pub use prelu::*;
pub use rectifier::*;
pub use shrink::*;
pub use smooth::*;

use super::{check_float, scalar_argument};
use crate::op::Operand;
use crate::{Cause, Error, Result, Scalar, Spec, Tensor, cpu};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, functions};

/// Declares an operator's attributes.
macro_rules! attributes {
    ($(#[$doc:meta])* $op:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op;
    };
    ($(#[$doc:meta])* $op:ident $($field:ident: $ty:ty),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op {
            $(#[doc = concat!("`", stringify!($field), "` of the formula above.")] pub $field: $ty,)+
        }
    };
}

/// Declares the in-place form of an operator that has one.
macro_rules! in_place {
    ($op:ident = $name:literal, $kind:ident, $method:ident; $($rest:tt)*) => {};
    ($op:ident = $name:literal, $kind:ident, $method:ident, $change:ident $(, through $shown:ident)?; $($field:ident: $ty:ty),*) => {
        impl InPlace for $op {
            const IN_PLACE: &'static str = concat!($name, "_");
            kernel_table!(in place $op);

            fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
                kind::$kind::change(*self, x)
            }

            $(
                fn shown_in_place(&self, [x]: [&Tensor; 1]) -> Result<Shown> {
                    Ok($shown(x).into())
                }
            )?
        }

        impl Tensor {
            #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") in place.")]
            pub fn $change(&self $(, $field: impl Into<$ty>)*) -> Result<()> {
                $op { $($field: $field.into()),* }.call_in_place([self])
            }
        }
    };
}

/// A few lines per activation: the operator with its attributes, its name, its method and in-place method, what
/// its derivative is given; its value; its derivative.
///
/// After `shows` stands the function that finds the output with the calls that torch's kernel makes, and after `and
/// in place` the one that opens the call by which torch changes elements.
///
/// The head says how element types are treated (see `unary::kind`) and which functions of elements
/// these are.
macro_rules! activations {
    ($kind:ident, $function:ident of $number:ident:
        $($(#[$doc:meta])* $op:ident $({ $($field:ident: $ty:ty),+ })? = $name:literal, $method:ident $(, $change:ident)?:
            saves $saves:ident $(, if $check:ident)?,
            $(shows $shown:ident $(and in place $shown_in_place:ident)?,)?
            |$x:ident| $value:expr,
            |$grad:ident, $saved:ident| $derivative:expr;)*) => {$(
        attributes!($(#[$doc])* $op $($($field: $ty),+)?);

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = concat!(stringify!($op), "Backward0");
            const SAVES: Saves = Saves::$saves;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                $($(let $field = self.$field;)+ let _ = ($($field,)+);)?
                let ($grad, $saved) = (ctx.grad(), ctx.saved(0));
                grads!(ctx; $derivative?)
            }

            fn arguments(&self, inputs: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                super::visit(inputs, &[$($(self.$field.into()),+)?], visit);
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                $(self.$check(x)?;)?
                kind::$kind::infer(Self::NAME, x)
            }

            $(
                fn shown(&self, inputs: [&Tensor; 1]) -> Result<Option<Tensor>> {
                    $shown(self, inputs).map(Some)
                }
            )?

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                kind::$kind::map(*self, x, out)
            }
        }

        impl functions::$function for $op {
            #[inline(always)]
            fn apply<T: $number>(self, $x: T) -> T {
                $($(let $field = T::from_scalar(self.$field.into());)+)?
                $value
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self $($(, $field: impl Into<$ty>)+)?) -> Result<Tensor> {
                $op { $($($field: $field.into()),+)? }.call([self])
            }
        }

        in_place!($op = $name, $kind, $method $(, $change)? $($(, through $shown_in_place)?)?; $($($field: $ty),+)?);
    )*};
}

/// A few lines per derivative of an activation, given the gradient and what was kept: its value, and how
/// that changes with what was kept. How it changes with the gradient, in which it is linear, goes
/// without saying.
///
/// After `visits` stands the function that visits the arguments, where they are not the tensors and then the
/// attributes; after `shows` the same as for activations.
macro_rules! derivatives {
    ($($(#[$doc:meta])* $op:ident $({ $($field:ident: $ty:ty),+ })? = $name:literal,
        $(visits $visits:ident,)?
        $(shows $shown:ident,)?
        |$grad:ident, $x:ident| $value:expr,
        |$upstream:ident, $first:ident, $kept:ident| $second:expr;)*) => {$(
        attributes!($(#[$doc])* $op $($($field: $ty),+)?);

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = concat!(stringify!($op), "Backward0");
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = [&'a Tensor; 2];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                $($(let $field = self.$field;)+ let _ = ($($field,)+);)?
                let ($upstream, $first, $kept) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
                grads!(ctx; self.call([$upstream, $kept])?, $second?)
            }

            fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
                $(return $visits(self, inputs, visit);)?
                #[allow(unreachable_code)]
                super::visit(inputs, &[$($(self.$field.into()),+)?], visit);
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
                super::infer_like(Self::NAME, grad, x)
            }

            $(
                fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
                    $shown(self, inputs).map(Some)
                }
            )?

            fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
                super::map2(*self, grad, x, out)
            }
        }

        impl functions::FloatBinary for $op {
            #[inline(always)]
            fn apply<T: Float>(self, $grad: T, $x: T) -> T {
                $($(let $field = T::from_scalar(self.$field.into());)+)?
                $value
            }
        }
    )*};
}

use {activations, attributes, derivatives, in_place};

fn visit<const N: usize>(inputs: [&Tensor; N], scalars: &[Scalar], visit: &mut dyn FnMut(Argument<'_>)) {
    inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
    scalars.iter().for_each(|scalar| visit(scalar_argument(*scalar)));
}

fn infer_like(op: &'static str, grad: &Tensor, saved: &Tensor) -> Result<Spec> {
    if grad.shape() != saved.shape() {
        let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), saved.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    check_float(op, grad)?;
    Ok(Spec::like(grad))
}

fn map2(f: impl functions::FloatBinary, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    let (a, b) = (Operand::Tensor(a), Operand::Tensor(b));
    cpu::map2(a, b, out.dtype(), out, |a, b, out| elementwise::float_binary(f, a, b, out))
}
