//! Choice by a condition.

use super::broadcast;
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::promote::common_type;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Inputs, Kernel, Op, Result, Spec, Tensor, composite, cpu,
    shown,
};
use cresset_dispatch::observe::{self, Argument};
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
        // Torch begins with the other.
        let other = if ctx.needs(1) { Some(condition.choose(0, ctx.grad())?) } else { None };
        let first = if ctx.needs(0) { Some(condition.choose(ctx.grad(), 0)?) } else { None };
        Ok(Grads::from_iter([first, other]))
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
    const ELEMENTWISE: bool = true;
    kernel_table!(Where);

    fn infer(&self, operands: [Operand<'_>; 3]) -> Result<Spec> {
        let condition = condition(operands)?;
        let [a, b, _] = operands;
        let shape = broadcast(Self::NAME, a.shape(), b.shape())?;
        Ok(Spec { shape: broadcast(Self::NAME, &shape, condition.shape())?, dtype: common_type([a, b]) })
    }

    /// Torch makes its output of nothing, and converts what is of another type than the result.
    fn shown(&self, operands: [Operand<'_>; 3]) -> Result<Option<Tensor>> {
        let spec = self.infer(operands)?;
        Tensor::empty([0], (spec.dtype, Device::CPU))?;
        let convert = |operand: Operand<'_>, dtype: DType| match operand.tensor() {
            Some(tensor) => shown::converted(tensor, dtype),
            None => Ok(None),
        };
        let [a, b, condition] = operands;
        let kept = [convert(a, spec.dtype)?, convert(b, spec.dtype)?, convert(condition, DType::Bool)?];
        let [a, b, condition] =
            std::array::from_fn(|i| kept[i].as_ref().map_or(operands[i], Operand::Tensor));
        self.computed([a, b, condition]).map(Some)
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
        let (a, b) = (a.into(), b.into());
        if observe::is_watched() && self.device().is_cpu() && (a.tensor().is_none() || b.tensor().is_none()) {
            return self.choose_shown(a, b);
        }
        Where.call([a, b, Operand::Tensor(self)])
    }

    /// As torch chooses where an operand is a number: that becomes a tensor first.
    fn choose_shown(&self, a: Operand<'_>, b: Operand<'_>) -> Result<Tensor> {
        let _span = composite(Where::NAME, [self], |visit| {
            [a, b].iter().for_each(|operand| match operand {
                Operand::Tensor(tensor) => visit(Argument::Tensor(tensor.argument())),
                Operand::Scalar(number) => visit(shown::plain(*number)),
            });
        });
        let dtype = common_type([a, b]);
        let number = |operand: Operand<'_>| match operand {
            Operand::Scalar(number) => Tensor::scalar_tensor(number, (dtype, self.device())).map(Some),
            Operand::Tensor(_) => Ok(None),
        };
        let other = number(b)?;
        let first = number(a)?;
        let tensor = |operand: Operand<'_>, number: Option<Tensor>| match operand.tensor() {
            Some(tensor) => tensor.to(dtype),
            None => Ok(number.expect("a number was made a tensor")),
        };
        let (first, other) = (tensor(a, first)?, tensor(b, other)?);
        Where.call([(&first).into(), (&other).into(), Operand::Tensor(self)])
    }

    /// This tensor with 0 wherever `condition` is true.
    pub(super) fn zero_where(&self, condition: &Tensor) -> Result<Tensor> {
        condition.choose(0, self)
    }
}
