//! Elements picked and changed by their numbers in row-major order.

use super::places::{Source, check_index, check_room, check_same_dtype, out_of_range, pick, start};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index::{Combine, Places};

fn flat(op: &'static str, x: &Tensor, index: &Tensor) -> Result<Places> {
    check_room(op, index.shape())?;
    let reading = index.read();
    Places::of_flat(x.layout(), index.elements(&reading)).map_err(out_of_range(op))
}

/// The elements with the given numbers in row-major order; negative ones count from the back.
#[derive(Clone, Debug)]
pub struct Take;

impl Op for Take {
    const NAME: &'static str = "aten::take";
    const BACKWARD: &'static str = "TakeBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let zeros = Tensor::zeros(ctx.shape(0), (ctx.grad().dtype(), ctx.grad().device()))?;
            zeros.put(ctx.saved(1), ctx.grad(), true)?
        })
    }
}

impl Kernel for Take {
    kernel_table!(Take);

    fn infer(&self, [x, index]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, index)?;
        Ok(Spec::new(index.shape(), x.dtype()))
    }

    fn cpu(&self, [x, index]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        pick(x, &flat(Self::NAME, x, index)?, out);
        Ok(())
    }
}

/// A tensor with elements of another at the given numbers in row-major order.
#[derive(Clone, Debug)]
pub struct Put {
    /// Whether elements are added to what is there.
    pub accumulate: bool,
}

impl Op for Put {
    const NAME: &'static str = "aten::put";
    const BACKWARD: &'static str = "PutBackward0";
    const SAVES: Saves = Saves::InputsFrom(2);
    /// The tensor, the source, and the index.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let index = ctx.saved(2);
        grads!(ctx;
            match self.accumulate {
                true => ctx.grad().clone(),
                false => {
                    let zeros = Tensor::zeros(index.shape(), (ctx.grad().dtype(), ctx.grad().device()))?;
                    ctx.grad().put(index, &zeros, false)?
                }
            },
            ctx.grad().take(index)?.reshape(ctx.shape(1))?
        )
    }

    fn arguments(&self, [x, source, index]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        [x, index, source].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Bool(self.accumulate));
    }
}

impl Kernel for Put {
    kernel_table!(Put);

    fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
        check_index(Self::NAME, index)?;
        check_same_dtype(Self::NAME, x, source)?;
        if source.numel() == index.numel() {
            return Ok(Spec::like(x));
        }
        let text = format_args!(
            "expects an element of the source per number, not shape {:?} for an index of {:?}",
            source.shape(),
            index.shape()
        );
        Err(Error::new(Cause::Shape, Self::NAME, text))
    }

    fn cpu(&self, [x, source, index]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        start(x, out)?;
        self.cpu_in_place([out, source, index])
    }
}

impl InPlace for Put {
    const IN_PLACE: &'static str = "aten::put_";
    kernel_table!(in place Put);

    fn cpu_in_place(&self, [x, source, index]: [&Tensor; 3]) -> Result<()> {
        let places = flat(Self::NAME, x, index)?;
        let how = if self.accumulate { Combine::Add } else { Combine::Replace };
        Source::all(source, x)?.put(x, &places, how, true);
        Ok(())
    }
}

impl Tensor {
    /// The elements with the given numbers in row-major order; negative ones count from the back.
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        Take.call([self, index])
    }

    /// This tensor with the elements of `source` at the given numbers in row-major order, or added to what
    /// is there.
    pub fn put(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        Put { accumulate }.call([self, source, index])
    }

    /// Puts the elements of `source` at the given numbers in row-major order, or adds them to what is there.
    pub fn put_(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<()> {
        Put { accumulate }.call_in_place([self, source, index])
    }
}
