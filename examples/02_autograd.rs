//! Gradients: of leaves, of gradients, of functions of your own: `cargo run --example 02_autograd`.

use cresset::prelude::*;
use cresset::tensor::autograd::{Context, Function, GradCheck, Pass, grad, gradcheck, jacobian};
use cresset::tensor::{Backward, Grads, Result, grads};

/// `exp` whose slope is never more than 10.
struct GentleExp;

impl Function for GentleExp {
    const NAME: &'static str = "GentleExp";
    const BACKWARD: &'static str = "GentleExpBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let y = inputs[0].exp()?;
        ctx.save_for_backward(&[&y]);
        Ok(vec![y])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(&ctx.saved(0).minimum(&tensor![10.0]?)?)?)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // What is computed from a leaf remembers how; backward() leaves gradients at the leaves.
    let w = tensor![1.0, 2.0, 3.0]?.with_grad()?;
    let loss = w.pow(2)?.sum()?;
    println!("{} by {:?}", loss, loss.grad_fn().unwrap_or_default());
    loss.backward()?;
    println!("{}", w.grad().ok_or("no gradient")?);

    // They add up until they are cleared, as in torch.
    w.pow(2)?.sum()?.backward()?;
    println!("{}", w.grad().ok_or("no gradient")?);
    w.clear_grad();

    // A gradient that was recorded has a gradient itself: here 3w², then 6w.
    let recorded = Pass { create_graph: true, ..Pass::default() };
    let slope = grad(&[(&w.pow(3)?.sum()?, None)], &[&w], recorded)?.remove(0).ok_or("unused")?;
    let curvature = grad(&[(&slope.sum()?, None)], &[&w], Pass::default())?.remove(0).ok_or("unused")?;
    println!("{}\n{}", slope.detach()?, curvature);

    // A hook sees a gradient on its way, and may replace it.
    let hook = w.register_hook(|grad| Ok(Some(grad.clamp(-1.0, 1.0)?)))?;
    w.pow(2)?.sum()?.backward()?;
    println!("{}", w.grad().ok_or("no gradient")?);
    hook.remove();

    // A function of your own: forward, and what the chain rule needs.
    let x = tensor![0.0, 5.0]?.with_grad()?;
    GentleExp.apply(&[&x])?[0].sum()?.backward()?;
    println!("{}", x.grad().ok_or("no gradient")?);

    // Whole derivatives, and whether they are right.
    let x = Tensor::new([1.0f64, 2.0])?.with_grad()?;
    println!("{}", jacobian(|x| x[0].square(), &[&x], false)?[0][0]);
    gradcheck(|x| x[0].tanh(), &[&x], GradCheck::default())?;
    println!("tanh: agrees with finite differences");
    Ok(())
}
