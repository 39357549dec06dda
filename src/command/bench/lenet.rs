//! Training steps of a small convolutional network, after LeNet-5.

use super::Outcome;
use super::harness::{Harness, Work};
use super::training::{classes, sgd, step};
use cresset::Result;
use cresset::nn::{Parameter, init};
use cresset::prelude::*;
use cresset::tensor::ops::{Convolving, Pooling};

const BATCH: usize = 64;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    harness.bench("w5/lenet_b64_sgd", Work::Step, || {
        let model = model()?;
        let (x, classes) = (Tensor::randn([BATCH, 1, 28, 28], ())?, classes(10, [BATCH])?);
        step(sgd(&model, 1e-2)?, move || model.call(&x)?.cross_entropy(&classes))
    })
}

fn model() -> Result<Sequential> {
    Ok(Sequential::new()
        .push(Convolution::new(1, 6, 5)?)
        .push(Relu)
        .push(MaxPool)
        .push(Convolution::new(6, 16, 5)?)
        .push(Relu)
        .push(MaxPool)
        .push(Flatten)
        .push(Linear::new(256, 120)?)
        .push(Relu)
        .push(Linear::new(120, 84)?)
        .push(Relu)
        .push(Linear::new(84, 10)?))
}

/// Square windows at every place.
#[derive(Module)]
struct Convolution {
    weight: Parameter,
    bias: Parameter,
}

impl Convolution {
    fn new(inputs: usize, outputs: usize, side: usize) -> Result<Convolution> {
        let places = inputs * side * side;
        let weight = Parameter::new(init::fan_in_uniform([outputs, inputs, side, side], places)?)?;
        let bias = Parameter::new(init::fan_in_uniform([outputs], places)?)?;
        Ok(Convolution { weight, bias })
    }
}

impl Forward for Convolution {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.conv2d(&self.weight.tensor(), Some(&self.bias.tensor()), &Convolving::default())
    }
}

/// The largest of each 2×2 window.
#[derive(Module)]
struct MaxPool;

impl Forward for MaxPool {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.max_pool2d(&Pooling::new([2, 2]))
    }
}

/// All features of a sample in a row.
#[derive(Module)]
struct Flatten;

impl Forward for Flatten {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.flatten(1, -1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_has_the_parameters_of_its_peers() {
        let shapes: Vec<Vec<usize>> =
            model().unwrap().parameters().iter().map(|x| x.shape().to_vec()).collect();
        let expected: [&[usize]; 10] = [
            &[6, 1, 5, 5],
            &[6],
            &[16, 6, 5, 5],
            &[16],
            &[120, 256],
            &[120],
            &[84, 120],
            &[84],
            &[10, 84],
            &[10],
        ];
        assert_eq!(shapes, expected);
    }
}
