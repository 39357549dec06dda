//! Tensors, indexing and gradients: `cargo run --example 01_tensors`.

use cresset::prelude::*;
use cresset::tensor::autograd::{hessian, without_grad};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]?;
    println!("{x}");

    // Views share memory; what is written through one is seen by all.
    let column = x.get((.., 1))?;
    column.mul_(10.0)?;
    x.set(x.gt(30.0)?, 0.0)?;
    println!("{x}\n{}", x.get((0, NewAxis, 1..))?);

    // Operators work on references, with numbers on either side, and chain with one `?`.
    let centered = (&x - x.mean_dims(&[0], true) + &x)?;
    println!("{}", (1.0 - &centered)?);

    // Types meet as in torch, and what cannot work says why.
    println!("{}", (tensor![1, 2, 3]? / 2)?);
    println!("{}", x.matmul(&x).unwrap_err());

    // Gradients, gradients of gradients, and none at all.
    let w = tensor![0.5, -1.0, 2.0]?.with_grad()?;
    let loss = x.mv(&w)?.pow(2)?.mean()?;
    loss.backward()?;
    println!("{loss}\n{}", w.grad().expect("backward() leaves it there"));
    println!("{}", hessian(|w| w[0].pow(3)?.sum(), &[&w], false)?[0][0]);
    println!("{}", without_grad(|| &w * 2.0)?);
    Ok(())
}
