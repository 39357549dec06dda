//! An operator of your own on the NPU: a kernel made of the vendor's functions, beside the one for the
//! host. Nothing in Cresset knows of it: `cargo run --example 10_custom_op_on_npu`.

use cresset::kernels::{Float, elementwise, functions};
use cresset::npu::aclnn;
use cresset::prelude::*;
use cresset::tensor::op::kernel_table;
use cresset::tensor::{Backward, Grads, Kernel, Key, Op, Output, Result, Saves, Spec, cpu, grads};

/// `x * exp(-x²)`
#[derive(Clone, Copy)]
struct Ripple;

impl functions::Unary for Ripple {
    fn apply<T: Float>(self, x: T) -> T {
        x * (-x * x).exp()
    }
}

impl Op for Ripple {
    const NAME: &'static str = "mine::ripple";
    const BACKWARD: &'static str = "RippleBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// `(1 - 2x²) exp(-x²)`, of operators that every device has.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let square = ctx.saved(0).square()?;
        let slope = (square.mul(-2.0)?.add(1.0)? * square.neg()?.exp()?)?;
        grads!(ctx; ctx.grad().mul(&slope)?)
    }
}

impl Kernel for Ripple {
    kernel_table!(Ripple);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::unary(*self, x, out))
    }
}

/// On the NPU, five calls of its library, queued one after the other. `out` is there already.
fn on_npu(_: &Ripple, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
    let room = Tensor::allocate(Spec::like(x), x.device())?;
    aclnn::mul(x, x, out)?;
    aclnn::neg(out, &room)?;
    aclnn::exp(&room, out)?;
    aclnn::mul(x, out, &room)?;
    aclnn::inplace_copy(out, &room)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let npu = device("npu")?;
    let numbers = [-1.0f32, 0.0, 0.5, 2.0];

    // Before there is a kernel, asking for one says so.
    println!("{}", Ripple.call([&Tensor::new(numbers)?.to(npu)?]).unwrap_err());
    Ripple::table().register(Key::find("npu").ok_or("no npu")?, on_npu);

    let mut profiler = Profiler::builder().start()?;
    for place in [Device::CPU, npu] {
        let x = Tensor::new(numbers)?.to(place)?.with_grad()?;
        let y = Ripple.call([&x])?;
        y.sum()?.backward()?;
        println!("{}\n{}", y.detach()?.to(Device::CPU)?, x.grad().ok_or("no gradient")?.to(Device::CPU)?);
    }
    profiler.stop()?;
    for event in profiler.events()?.filter(|event| event.name() == "mine::ripple") {
        println!("{} on {}: {} calls inside", event.name(), event.device(), event.children().count());
    }
    Ok(())
}
