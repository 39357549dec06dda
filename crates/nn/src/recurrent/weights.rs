//! The parameters of recurrent layers, under torch's names.

use crate::{Members, Parameter};
use cresset_tensor::{Result, Tensor};

/// What one direction of one layer learns: parameters, or the tensors that they are now.
#[derive(Clone)]
pub(super) struct Weights<T> {
    /// From the input: `[gates * hidden, input]`.
    pub(super) ih: T,
    /// From the step before: `[gates * hidden, hidden or projection]`.
    pub(super) hh: T,
    pub(super) bias_ih: Option<T>,
    pub(super) bias_hh: Option<T>,
    /// From hidden numbers to fewer that are given out: `[projection, hidden]`.
    pub(super) hr: Option<T>,
}

/// The sizes that shapes of weights follow from.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) input: usize,
    pub(super) hidden: usize,
    pub(super) gates: usize,
    /// 0 for none.
    pub(super) projection: usize,
    pub(super) bias: bool,
}

impl Sizes {
    /// How many numbers are given out per step.
    pub(super) fn output(self) -> usize {
        if self.projection > 0 { self.projection } else { self.hidden }
    }
}

impl Weights<Parameter> {
    /// Takes what fits from `earlier`, and starts the rest as torch does: uniform within
    /// `1 / sqrt(hidden)` of 0.
    pub(super) fn new(sizes: Sizes, earlier: Option<Weights<Parameter>>) -> Result<Self> {
        // A size that cannot be is refused where its memory is asked for.
        let rows = sizes.gates.saturating_mul(sizes.hidden);
        let [ih, hh, bias_ih, bias_hh, hr] = match earlier {
            Some(Weights { ih, hh, bias_ih, bias_hh, hr }) => [Some(ih), Some(hh), bias_ih, bias_hh, hr],
            None => [None, None, None, None, None],
        };
        let make = |shape: &[usize], earlier: Option<Parameter>| {
            let fits = |parameter: &Parameter| parameter.tensor().shape() == shape;
            earlier.filter(fits).map_or_else(|| start(shape, sizes.hidden), Ok)
        };
        let biases = sizes.bias.then_some([rows]);
        let projection = [sizes.projection, sizes.hidden];
        Ok(Weights {
            ih: make(&[rows, sizes.input], ih)?,
            hh: make(&[rows, sizes.output()], hh)?,
            bias_ih: biases.map(|shape| make(&shape, bias_ih)).transpose()?,
            bias_hh: biases.map(|shape| make(&shape, bias_hh)).transpose()?,
            hr: (sizes.projection > 0).then(|| make(&projection, hr)).transpose()?,
        })
    }

    /// The tensors that the parameters are now.
    pub(super) fn tensors(&self) -> Weights<Tensor> {
        let optional = |parameter: &Option<Parameter>| parameter.as_ref().map(Parameter::tensor);
        Weights {
            ih: self.ih.tensor(),
            hh: self.hh.tensor(),
            bias_ih: optional(&self.bias_ih),
            bias_hh: optional(&self.bias_hh),
            hr: optional(&self.hr),
        }
    }

    /// The tensors that there are, in torch's order.
    pub(super) fn each(&self) -> Vec<Tensor> {
        let Weights { ih, hh, bias_ih, bias_hh, hr } = self.tensors();
        [Some(ih), Some(hh), bias_ih, bias_hh, hr].into_iter().flatten().collect()
    }

    /// Names the parameters, each with `suffix` behind it, e.g. `weight_ih_l0_reverse`.
    pub(super) fn name<'a>(&'a self, suffix: &str, members: &mut Members<'a>) {
        let optional = [("bias_ih", &self.bias_ih), ("bias_hh", &self.bias_hh), ("weight_hr", &self.hr)];
        let given = optional.into_iter().filter_map(|(name, parameter)| Some((name, parameter.as_ref()?)));
        for (name, parameter) in [("weight_ih", &self.ih), ("weight_hh", &self.hh)].into_iter().chain(given) {
            members.parameter(&format!("{name}{suffix}"), parameter);
        }
    }
}

fn start(shape: &[usize], hidden: usize) -> Result<Parameter> {
    let bound = 1.0 / (hidden as f64).sqrt();
    Parameter::new(Tensor::uniform(-bound, bound, shape, ())?)
}
