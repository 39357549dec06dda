//! One half of a tensor, gated by the other.

use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::dim_index;
use crate::{Backward, Cause, Error, Grads, Kernel, Layout, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::functions::{self, FloatBinary, FloatTernary, Unary as _};
use cresset_kernels::{Float, View, ViewMut, elementwise};

/// The first half along a dimension times the sigmoid of the second.
#[derive(Clone, Copy, Debug)]
pub struct Glu {
    /// The dimension that is halved; negative ones count from the back.
    pub dim: isize,
}

impl Op for Glu {
    const NAME: &'static str = "aten::glu";
    const BACKWARD: &'static str = "GluBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; GluBackward { dim: self.dim }.call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
    }
}

impl Kernel for Glu {
    kernel_table!(Glu);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        infer(Self::NAME, x, self.dim)
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let out = self.room([x])?;
        show_halves(x, self.dim)?;
        self.fill([x], &out, out.device())?;
        Ok(Some(out))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let (reading, mut writing) = (x.read(), out.write());
        let [a, b] = halves(x.layout(), dim_index(Self::NAME, self.dim, x.dim())?);
        let view = |layout| View::new(reading.bytes(), x.dtype(), layout);
        elementwise::float_binary(Gated, view(&a), view(&b), out.elements_mut(&mut writing));
        Ok(())
    }
}

/// The gradient of [`Glu`].
#[derive(Clone, Copy, Debug)]
pub struct GluBackward {
    /// The dimension that was halved; negative ones count from the back.
    pub dim: isize,
}

impl Op for GluBackward {
    const NAME: &'static str = "aten::glu_backward";
    const BACKWARD: &'static str = "GluBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (again, grad, x) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
        grads!(ctx;
            {
                let dim = dim_index(Self::NAME, self.dim, x.dim())?;
                let (size, along) = (grad.shape()[dim], dim as isize);
                let slopes = GluBackward { dim: along }
                    .call([&Tensor::ones(grad.shape(), (grad.dtype(), grad.device()))?, x])?;
                let through = again.mul(&slopes)?;
                let second = through.narrow(along, size as isize, size)?;
                through.narrow(along, 0, size)?.add(&second)?
            },
            self.bend(again, grad, x)?,
        )
    }

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        super::visit(inputs, &[], visit);
        visit(Argument::Int(self.dim as i64));
    }
}

impl GluBackward {
    /// What the input gets of `again`, the gradient of its gradient.
    fn bend(&self, again: &Tensor, grad: &Tensor, x: &Tensor) -> Result<Tensor> {
        let size = grad.shape()[dim_index(Self::NAME, self.dim, x.dim())?];
        let halves = |x: &Tensor| {
            Ok::<_, Error>((x.narrow(self.dim, 0, size)?, x.narrow(self.dim, size as isize, size)?))
        };
        let (a, b) = halves(x)?;
        let gate = b.sigmoid()?;
        let rest = shown::less(1, &gate)?;
        let slope = gate.mul(&rest)?;
        let (first, second) = halves(again)?;
        let along = second.mul(&a)?;
        let to_a = second.mul(grad)?.mul(&slope)?;
        let falling = gate.mul(&slope)?;
        let bend = slope.mul(&rest)?.sub(&falling)?;
        let from_first = first.mul(grad)?.mul(&slope)?;
        let to_b = along.mul(grad)?.mul(&bend)?.add(&from_first)?;
        Tensor::cat(&[&to_a, &to_b], self.dim)
    }
}

impl Kernel for GluBackward {
    kernel_table!(GluBackward);

    fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
        let expected = infer(Self::NAME, x, self.dim)?;
        if expected != Spec::like(grad) {
            let text = format_args!("gradient {:?} for {expected:?}", Spec::like(grad));
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn shown(&self, [grad, x]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        self.infer([grad, x])?;
        let out = shown::grown_as(&shown::empty_output(x.dtype())?, x, Argument::None)?;
        let [_, second] = show_halves(x, self.dim)?;
        let [first_out, _second_out] = show_halves(&out, self.dim)?;
        shown::into_out("aten::sigmoid", [&second], &[], &first_out, || Ok(()))?;
        self.fill([grad, x], &out, out.device())?;
        shown::within("aten::mul_", [&first_out, grad], &[], || Ok(first_out.clone()))?;
        Ok(Some(out))
    }

    fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, of_grad, mut writing) = (x.read(), grad.read(), out.write());
        let [a, b] = halves(x.layout(), dim_index(Self::NAME, self.dim, x.dim())?);
        let [first, second] = halves(out.layout(), dim_index(Self::NAME, self.dim, x.dim())?);
        let view = |layout| View::new(reading.bytes(), x.dtype(), layout);
        let grad = grad.elements(&of_grad);
        elementwise::float_binary(Gated, grad, view(&b), ViewMut::new(writing.bytes(), out.dtype(), &first));
        let second = ViewMut::new(writing.bytes(), out.dtype(), &second);
        elementwise::float_ternary(GateSlope, grad, view(&a), view(&b), second);
        Ok(())
    }
}

fn infer(op: &'static str, x: &Tensor, dim: isize) -> Result<Spec> {
    let dim = dim_index(op, dim, x.dim())?;
    crate::ops::check_float(op, x)?;
    let mut spec = Spec::like(x);
    match spec.shape.get_mut(dim) {
        Some(size) if *size % 2 == 0 => *size /= 2,
        size => {
            let text = match size {
                Some(size) => format!("cannot halve dimension {dim} of size {size}"),
                None => format!("shape {:?} has no dimension {dim} to halve", x.shape()),
            };
            return Err(Error::new(Cause::Shape, op, text));
        }
    }
    Ok(spec)
}

/// Both halves as torch looks at them.
fn show_halves(x: &Tensor, dim: isize) -> Result<[Tensor; 2]> {
    let dim = dim_index(Glu::NAME, dim, x.dim())?;
    let size = x.shape()[dim] / 2;
    Ok([x.narrow(dim as isize, 0, size)?, x.narrow(dim as isize, size as isize, size)?])
}

fn halves(layout: &Layout, dim: usize) -> [Layout; 2] {
    let size = layout.shape()[dim] / 2;
    [layout.narrow(dim, 0, size), layout.narrow(dim, size, size)]
}

/// `a * sigmoid(b)`
#[derive(Clone, Copy)]
struct Gated;

impl FloatBinary for Gated {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T) -> T {
        a * functions::Sigmoid.apply(b)
    }
}

/// `grad * a * sigmoid'(b)`
#[derive(Clone, Copy)]
struct GateSlope;

impl FloatTernary for GateSlope {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, a: T, b: T) -> T {
        let gate = functions::Sigmoid.apply(b);
        grad * a * gate * (T::ONE - gate)
    }
}

impl Tensor {
    /// The first half along `dim` times the sigmoid of the second.
    pub fn glu(&self, dim: isize) -> Result<Tensor> {
        Glu { dim }.call([self])
    }
}
