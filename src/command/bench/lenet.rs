//! Training steps of a small convolutional network, after LeNet-5.

use super::Outcome;
use super::harness::{Harness, Work};
use super::training::{classes, sgd, step};
use cresset::Result;
use cresset::nn::{Conv2d, Flatten, MaxPool2d};
use cresset::prelude::*;

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
        .push(Conv2d::new(1, 6, 5)?)
        .push(Relu)
        .push(MaxPool2d::new(2)?)
        .push(Conv2d::new(6, 16, 5)?)
        .push(Relu)
        .push(MaxPool2d::new(2)?)
        .push(Flatten::default())
        .push(Linear::new(256, 120)?)
        .push(Relu)
        .push(Linear::new(120, 84)?)
        .push(Relu)
        .push(Linear::new(84, 10)?))
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
