//! Comparison and choice.

use super::broadcast;
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::promote::result_type;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::elementwise::{self, Comparison};

/// One line per comparison.
macro_rules! comparisons {
    ($($(#[$doc:meta])* $op:ident, $method:ident: $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = (&'a Tensor, Operand<'a>);
            type Output = Tensor;
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, (a, b): Self::Inputs<'_>) -> Result<Spec> {
                Ok(Spec { shape: broadcast(Self::NAME, a.shape(), b.shape())?, dtype: DType::Bool })
            }

            fn cpu(&self, (a, b): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
                let dtype = result_type(a, b);
                cpu::map2(Operand::Tensor(a), b, dtype, out, |a, b, out| {
                    elementwise::compare(Comparison::$op, a, b, out);
                })
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                $op.call((self, other.into()))
            }
        }
    )*};
}

comparisons! {
    /// Whether each element equals that of the other, a tensor or a number.
    Equal, eq: "aten::eq";
    /// Whether each element is greater than that of the other, a tensor or a number.
    Greater, gt: "aten::gt";
}

/// Elements of the first tensor where the last one, a condition, is true, and of the second
/// elsewhere. All three have the same shape.
#[derive(Clone, Debug)]
pub struct Where;

impl Op for Where {
    const NAME: &'static str = "aten::where";
    const BACKWARD: &'static str = "WhereBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (condition, zeros) = (ctx.saved(2), ctx.grad().zeros_like()?);
        grads!(ctx; Where.call([ctx.grad(), &zeros, condition])?, Where.call([&zeros, ctx.grad(), condition])?)
    }

    fn arguments(&self, [a, b, condition]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        [condition, a, b].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
    }
}

impl Kernel for Where {
    kernel_table!(Where);

    fn infer(&self, [a, b, condition]: [&Tensor; 3]) -> Result<Spec> {
        if condition.dtype() != DType::Bool || a.dtype() != b.dtype() {
            let text = format_args!(
                "expects bool and two of one dtype, not {}, {} and {}",
                condition.dtype(),
                a.dtype(),
                b.dtype()
            );
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        if condition.shape() != a.shape() || a.shape() != b.shape() {
            let text =
                format_args!("shapes {:?}, {:?} and {:?} differ", condition.shape(), a.shape(), b.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(a))
    }

    fn cpu(&self, [a, b, condition]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        let (reading_condition, reading_a, reading_b) = (condition.read(), a.read(), b.read());
        let mut writing = out.write();
        elementwise::select(
            condition.elements(&reading_condition),
            a.elements(&reading_a),
            b.elements(&reading_b),
            out.elements_mut(&mut writing),
        );
        Ok(())
    }
}

impl Tensor {
    /// Elements of this tensor where `condition` is true, of `other` elsewhere; all broadcast.
    pub fn where_(&self, condition: &Tensor, other: &Tensor) -> Result<Tensor> {
        let shape = broadcast(Where::NAME, self.shape(), other.shape())?;
        let shape = broadcast(Where::NAME, &shape, condition.shape())?;
        Where.call([&self.expand(&shape)?, &other.expand(&shape)?, &condition.expand(&shape)?])
    }

    /// This tensor with 0 wherever `other` equals `value`.
    pub(super) fn zero_where_equal(&self, other: &Tensor, value: f64) -> Result<Tensor> {
        self.zeros_like()?.where_(&other.eq(value)?, self)
    }
}
