//! Every optimizer, made in every implementation.

use cresset_optim::*;

pub(crate) const ALL: [Implementation; 3] =
    [Implementation::Fused, Implementation::Foreach, Implementation::Single];

pub(crate) type Make = Box<dyn Fn(Vec<Tensor>) -> Box<dyn Optimizer>>;

/// Options that keep as much as they can.
macro_rules! each_with {
    ($list:ident, $($name:ident, $options:expr;)*) => {$(
        for implementation in ALL {
            let make = move |parameters| -> Box<dyn Optimizer> {
                let mut options = $options;
                options.implementation = Some(implementation);
                Box::new($name::new(parameters, options).unwrap())
            };
            $list.push((format!("{} {implementation:?}", stringify!($name)), Box::new(make)));
        }
    )*};
}

/// All optimizers that take steps without a closure, for matrices in double precision.
pub(crate) fn all() -> Vec<(String, Make)> {
    let mut list: Vec<(String, Make)> = Vec::new();
    each_with!(list,
        Sgd, SgdOptions { lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01, ..Default::default() };
        Adam, AdamOptions { lr: 0.1, amsgrad: true, weight_decay: 0.01, ..Default::default() };
        AdamW, AdamWOptions { lr: 0.1, ..Default::default() };
        Nadam, NadamOptions { weight_decay: 0.01, ..Default::default() };
        Radam, RadamOptions { lr: 0.1, ..Default::default() };
        Adamax, AdamaxOptions { lr: 0.1, maximize: true, ..Default::default() };
        Adagrad, AdagradOptions { lr: 0.1, lr_decay: 0.01, ..Default::default() };
        Adadelta, AdadeltaOptions { weight_decay: 0.01, ..Default::default() };
        Rmsprop, RmspropOptions { centered: true, momentum: 0.5, ..Default::default() };
        Rprop, RpropOptions { maximize: true, ..Default::default() };
        Asgd, AsgdOptions { t0: 20.0, lambd: 0.01, ..Default::default() };
    );
    for implementation in [Implementation::Foreach, Implementation::Single] {
        let options = AdafactorOptions { implementation: Some(implementation), ..Default::default() };
        let make = move |parameters| -> Box<dyn Optimizer> {
            Box::new(Adafactor::new(parameters, options.clone()).unwrap())
        };
        list.push((format!("Adafactor {implementation:?}"), Box::new(make)));
    }
    list.push((
        "Muon".to_owned(),
        Box::new(|parameters| Box::new(Muon::new(parameters, MuonOptions::default()).unwrap())),
    ));
    list
}

/// Two matrices to be changed.
pub(crate) fn parameters() -> Vec<Tensor> {
    let numbers: Vec<f64> = (0..6).map(|i| f64::from(i) / 3.0 - 1.0).collect();
    let shapes = [[2, 3], [3, 2]];
    shapes.map(|shape| Tensor::from_slice(&numbers, shape).unwrap().with_grad().unwrap()).to_vec()
}

/// Gives all parameters the gradients of a step.
pub(crate) fn give(parameters: &[Tensor], step: usize) {
    for (i, parameter) in parameters.iter().enumerate() {
        let grads: Vec<f64> = (0..6).map(|j| ((step * 7 + i * 3 + j) as f64).sin()).collect();
        parameter.set_grad(Tensor::from_slice(&grads, parameter.shape()).unwrap()).unwrap();
    }
}

pub(crate) fn bits(parameters: &[Tensor]) -> Vec<u64> {
    let numbers = parameters.iter().flat_map(|parameter| parameter.to_vec::<f64>().unwrap());
    numbers.map(f64::to_bits).collect()
}
