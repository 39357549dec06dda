//! An operator of your own: shape rule, host kernel and derivative in one place. The profiler,
//! autograd and `meta` tensors know it from then on: `cargo run --example 09_custom_op`.

use cresset::kernels::{Float, elementwise, functions};
use cresset::prelude::*;
use cresset::tensor::op::kernel_table;
use cresset::tensor::{Backward, Grads, Kernel, Op, Result, Saves, Spec, cpu, grads};

/// `x * sigmoid(x)`
#[derive(Clone, Copy)]
struct Swish;

impl functions::Unary for Swish {
    fn apply<T: Float>(self, x: T) -> T {
        x / (T::one() + (-x).exp())
    }
}

impl Op for Swish {
    const NAME: &'static str = "mine::swish";
    const BACKWARD: &'static str = "SwishBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, sigmoid) = (ctx.saved(0), ctx.saved(0).sigmoid()?);
        let slope = (&sigmoid + x.mul(&sigmoid)?.mul(&sigmoid.rsub(1.0)?))?;
        grads!(ctx; ctx.grad().mul(&slope)?)
    }
}

impl Kernel for Swish {
    kernel_table!(Swish);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::unary(*self, x, out))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x = Tensor::new([-1.0f64, 0.0, 2.0])?.with_grad()?;
    let mut profiler = Profiler::builder().start()?;
    let y = Swish.call([&x])?;
    y.sum()?.backward()?;
    profiler.stop()?;
    let grad = x.grad().ok_or("no gradient")?;
    println!("{y}\n{grad}");
    assert!((grad.to_vec::<f64>()?[1] - 0.5).abs() < 1e-12, "the slope at 0 is a half");
    println!("{}", profiler.key_averages()?.table().row_limit(5));
    Ok(())
}
