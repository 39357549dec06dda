//! Activations.

use super::Entry;
use crate::arguments::Arguments;
use cresset_nn::functional;
use cresset_tensor::ops::Approximate;
use cresset_tensor::{Cause, Error, Result, Scalar, Tensor};

fn input(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

fn approximate(a: &Arguments<'_>) -> Result<Approximate> {
    match a.or(1, "approximate", "none".to_owned())?.as_str() {
        "none" => Ok(Approximate::None),
        "tanh" => Ok(Approximate::Tanh),
        other => {
            let text = format_args!("approximate is {other:?}, expected \"none\" or \"tanh\"");
            Err(Error::new(Cause::Argument, "", text))
        }
    }
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("nn.functional.celu", |a| input(a)?.celu(a.or(1, "alpha", Scalar::Float(1.0))?))
        .in_place(|x, a| x.celu_(a.or(1, "alpha", Scalar::Float(1.0))?)),
    Entry::one("nn.functional.dropout", |a| {
        functional::dropout(&input(a)?, a.or(1, "p", 0.5)?, a.or(2, "training", true)?)
    })
    .in_place(|x, a| functional::dropout_(x, a.or(1, "p", 0.5)?, a.or(2, "training", true)?)),
    Entry::one("nn.functional.elu", |a| input(a)?.elu(a.or(1, "alpha", Scalar::Float(1.0))?))
        .in_place(|x, a| x.elu_(a.or(1, "alpha", Scalar::Float(1.0))?)),
    Entry::one("nn.functional.gelu", |a| input(a)?.gelu(approximate(a)?)),
    Entry::one("nn.functional.glu", |a| input(a)?.glu(a.or(1, "dim", -1)?)),
    Entry::one("nn.functional.hardshrink", |a| input(a)?.hardshrink(a.or(1, "lambd", Scalar::Float(0.5))?)),
    Entry::one("nn.functional.hardsigmoid", |a| input(a)?.hardsigmoid()).in_place(|x, _| x.hardsigmoid_()),
    Entry::one("nn.functional.hardswish", |a| input(a)?.hardswish()).in_place(|x, _| x.hardswish_()),
    Entry::one("nn.functional.hardtanh", |a| {
        input(a)?.hardtanh(a.or(1, "min_val", Scalar::Float(-1.0))?, a.or(2, "max_val", Scalar::Float(1.0))?)
    })
    .in_place(|x, a| {
        x.hardtanh_(a.or(1, "min_val", Scalar::Float(-1.0))?, a.or(2, "max_val", Scalar::Float(1.0))?)
    }),
    Entry::one("nn.functional.leaky_relu", |a| {
        input(a)?.leaky_relu(a.or(1, "negative_slope", Scalar::Float(0.01))?)
    })
    .in_place(|x, a| x.leaky_relu_(a.or(1, "negative_slope", Scalar::Float(0.01))?)),
    Entry::one("nn.functional.logsigmoid", |a| input(a)?.logsigmoid()),
    Entry::one("nn.functional.mish", |a| input(a)?.mish()).in_place(|x, _| x.mish_()),
    Entry::one("nn.functional.prelu", |a| input(a)?.prelu(&a.get(1, "weight")?)),
    Entry::one("nn.functional.relu", |a| input(a)?.relu()).in_place(|x, _| x.relu_()),
    Entry::one("nn.functional.relu6", |a| input(a)?.relu6()).in_place(|x, _| x.relu6_()),
    Entry::one("nn.functional.selu", |a| input(a)?.selu()).in_place(|x, _| x.selu_()),
    Entry::one("nn.functional.silu", |a| input(a)?.silu()).in_place(|x, _| x.silu_()),
    Entry::one("nn.functional.softplus", |a| {
        input(a)?.softplus(a.or(1, "beta", Scalar::Int(1))?, a.or(2, "threshold", Scalar::Int(20))?)
    }),
    Entry::one("nn.functional.softshrink", |a| input(a)?.softshrink(a.or(1, "lambd", Scalar::Float(0.5))?)),
    Entry::one("nn.functional.softsign", |a| input(a)?.softsign()),
    Entry::one("nn.functional.tanhshrink", |a| input(a)?.tanhshrink()),
    Entry::one("nn.functional.threshold", |a| {
        input(a)?.threshold(a.get::<Scalar>(1, "threshold")?, a.get::<Scalar>(2, "value")?)
    })
    .in_place(|x, a| x.threshold_(a.get::<Scalar>(1, "threshold")?, a.get::<Scalar>(2, "value")?)),
];
