//! Models: layers, parameters by name, files that torch reads: `cargo run --example 03_modules`.

use cresset::nn::{self, BatchNorm2d, Conv2d, Dropout};
use cresset::prelude::*;

/// A convolution and a linear layer. The derive finds parameters, buffers and inner modules.
#[derive(Module)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm2d,
    dropout: Dropout,
    out: Linear,
}

impl Net {
    fn new(classes: usize) -> cresset::Result<Net> {
        Ok(Net {
            conv: Conv2d::new(1, 4, 3)?.padding(1)?,
            norm: BatchNorm2d::new(4)?,
            dropout: Dropout::new(0.5)?,
            out: Linear::new(4 * 8 * 8, classes)?,
        })
    }
}

impl Forward for Net {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> cresset::Result<Tensor> {
        let x = self.norm.call(&self.conv.call(x)?)?.relu()?;
        self.out.call(&self.dropout.call(&x.flatten(1, -1)?)?)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    manual_seed(0);
    let net = Net::new(10)?;
    for (name, tensor) in net.state_dict() {
        println!("{name:25} {:?} {:?}", tensor.dtype(), tensor.shape());
    }
    println!("{} parameters", net.num_parameters());

    // Training and judging differ: dropout is off in the second, and batch norm uses what it has seen.
    let x = Tensor::randn([2, 1, 8, 8], ())?;
    net.eval();
    let before = net.call(&x)?;
    println!("{:?}", before.shape());

    // Safetensors with the names that torch's state_dict has.
    let file = std::env::temp_dir().join(format!("cresset-03-{}.safetensors", std::process::id()));
    nn::save(&net, &file)?;
    let other = Net::new(10)?;
    nn::load(&other, &file)?;
    other.eval();
    println!("same after loading: {}", other.call(&x)?.to_vec::<f32>()? == before.to_vec::<f32>()?);

    // What does not fit is told at once and whole, and changes nothing.
    println!("{}", nn::load(&Net::new(7)?, &file).unwrap_err());
    std::fs::remove_file(file)?;

    // Part of a model, held still.
    net.conv.requires_grad_(false)?;
    println!("{} of {} to be trained", net.num_trainable_parameters(), net.num_parameters());
    Ok(())
}
