//! Choice by a condition.

use super::broadcast;
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::promote::common_type;
use crate::{Backward, Cause, DType, Error, Grads, Inputs, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::elementwise;

/// Elements of the first operand where the last one, a condition, is true, and of the second elsewhere.
#[derive(Clone, Debug)]
pub struct Where;

impl Op for Where {
    const NAME: &'static str = "aten::where";
    const BACKWARD: &'static str = "WhereBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    type Inputs<'a> = [Operand<'a>; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let condition = ctx.saved(2);
        grads!(ctx; condition.choose(ctx.grad(), 0)?, condition.choose(0, ctx.grad())?)
    }

    fn arguments(&self, [a, b, condition]: [Operand<'_>; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        [condition, a, b].each(|given| visit(given.into_argument()));
    }
}

/// The condition among the operands.
fn condition<'a>(operands: [Operand<'a>; 3]) -> Result<&'a Tensor> {
    let found = operands[2].tensor().filter(|condition| matches!(condition.dtype(), DType::Bool | DType::U8));
    found.ok_or_else(|| {
        let dtype = operands[2].tensor().map_or("a number", |condition| condition.dtype().name());
        Error::new(Cause::DType, Where::NAME, format_args!("expects a condition of bool, not {dtype}"))
    })
}

impl Kernel for Where {
    kernel_table!(Where);

    fn infer(&self, operands: [Operand<'_>; 3]) -> Result<Spec> {
        let condition = condition(operands)?;
        let [a, b, _] = operands;
        let shape = broadcast(Self::NAME, a.shape(), b.shape())?;
        Ok(Spec { shape: broadcast(Self::NAME, &shape, condition.shape())?, dtype: common_type([a, b]) })
    }

    fn cpu(&self, operands: [Operand<'_>; 3], out: &Tensor) -> Result<()> {
        let [a, b, _] = operands;
        let condition = condition(operands)?.converted(DType::Bool)?;
        let layout = cpu::spread(condition.layout(), out.shape());
        let reading = condition.read();
        let condition = cresset_kernels::View::new(reading.bytes(), DType::Bool, &layout);
        cpu::map2(a, b, out.dtype(), out, |a, b, out| elementwise::select(condition, a, b, out))
    }
}

impl Tensor {
    /// Elements of this tensor where `condition` is true, of `other` elsewhere; all broadcast.
    pub fn where_<'a>(&'a self, condition: &'a Tensor, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        condition.choose(self, other)
    }

    /// Elements of `a` where this condition is true, of `b` elsewhere; each a tensor or a number.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// assert_eq!(x.gt(0)?.choose(&x, 0)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn choose<'a>(&'a self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        Where.call([a.into(), b.into(), Operand::Tensor(self)])
    }

    /// This tensor with 0 wherever `condition` is true.
    pub(super) fn zero_where(&self, condition: &Tensor) -> Result<Tensor> {
        condition.choose(0, self)
    }
}
