//! One step of each kind of recurrent layer.

use super::pieces::gates;
use crate::{Argument, Cause, Error, Result, Tensor, composite};

/// What a step multiplies the state before it by.
#[derive(Clone, Copy)]
pub struct Recall<'a> {
    /// From the state before to the gates: `[gates * hidden, hidden or projection]`.
    pub weight: &'a Tensor,
    /// Added to the gates.
    pub bias: Option<&'a Tensor>,
    /// From hidden numbers to fewer that are given out: `[projection, hidden]`.
    pub projection: Option<&'a Tensor>,
}

impl Recall<'_> {
    fn gates(&self, hidden: &Tensor) -> Result<Tensor> {
        hidden.linear(self.weight, self.bias)
    }
}

/// Refuses weights whose rows are not so many gates of one size.
fn check_gates(op: &'static str, sums: &Tensor, gates: usize) -> Result<()> {
    if sums.dim() == 2 && sums.shape()[1] > 0 && sums.shape()[1].is_multiple_of(gates) {
        return Ok(());
    }
    let text = format_args!("the gates are {:?}, expected [batch, {gates} * hidden]", sums.shape());
    Err(Error::new(Cause::Shape, op, text))
}

/// One step of long short-term memory: what is given out and remembered after it. `input` is what the weights of
/// the input make of this step's.
///
/// # Errors
/// If sizes do not fit together.
pub fn lstm_step(
    input: impl FnOnce() -> Result<Tensor>,
    [hidden, memory]: [&Tensor; 2],
    recall: Recall<'_>,
) -> Result<[Tensor; 2]> {
    let sums = recall.gates(hidden)?;
    sums.add_(&input()?)?;
    check_gates("aten::lstm_cell", &sums, 4)?;
    let [input, forget, fresh, output] = gates(&sums)?;
    input.sigmoid_()?;
    forget.sigmoid_()?;
    fresh.tanh_()?;
    output.sigmoid_()?;
    let memory = forget.mul(memory)?;
    memory.add_(&input.mul(&fresh)?)?;
    let hidden = output.mul(&memory.tanh()?)?;
    let hidden = match recall.projection {
        Some(projection) => hidden.matmul(&projection.t()?)?,
        None => hidden,
    };
    Ok([hidden, memory])
}

/// One step of gated recurrent units: what is given out after it. `input` as for [`lstm_step`].
///
/// # Errors
/// If sizes do not fit together.
pub fn gru_step(
    input: impl FnOnce() -> Result<Tensor>,
    hidden: &Tensor,
    recall: Recall<'_>,
) -> Result<Tensor> {
    const NAME: &str = "aten::gru_cell";
    let input = input()?;
    check_gates(NAME, &input, 3)?;
    let [input_reset, input_keep, input_fresh] = gates(&input)?;
    let recalled = recall.gates(hidden)?;
    check_gates(NAME, &recalled, 3)?;
    let [reset, keep, fresh] = gates(&recalled)?;
    reset.add_(&input_reset)?;
    reset.sigmoid_()?;
    keep.add_(&input_keep)?;
    keep.sigmoid_()?;
    fresh.mul_(&reset)?;
    let fresh = input_fresh.add(&fresh)?;
    fresh.tanh_()?;
    let hidden = hidden.sub(&fresh)?;
    hidden.mul_(&keep)?;
    hidden.add_(&fresh)?;
    Ok(hidden)
}

/// One step of a plain recurrent layer, bent by `bend`: what is given out after it. `input` as for [`lstm_step`].
///
/// # Errors
/// If sizes do not fit together.
pub fn rnn_step(
    input: impl FnOnce() -> Result<Tensor>,
    hidden: &Tensor,
    recall: Recall<'_>,
    bend: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let sums = recall.gates(hidden)?;
    sums.add_(&input()?)?;
    bend(&sums)
}

/// What a cell multiplies by: the weights of the input, of the state before, and their biases.
pub type CellWeights<'a> = ([&'a Tensor; 2], [Option<&'a Tensor>; 2]);

fn recall<'a>(([_, weight], [_, bias]): CellWeights<'a>) -> Recall<'a> {
    Recall { weight, bias, projection: None }
}

fn visit_weights((weights, biases): CellWeights<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
    weights.iter().for_each(|weight| visit(Argument::Tensor(weight.argument())));
    biases
        .iter()
        .for_each(|bias| visit(bias.map_or(Argument::None, |bias| Argument::Tensor(bias.argument()))));
}

impl Tensor {
    /// A step of long short-term memory, from `[batch, input]`, and what was given out and remembered before it,
    /// to both after it.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn lstm_cell(&self, states: [&Tensor; 2], weights: CellWeights<'_>) -> Result<[Tensor; 2]> {
        let _span = composite("aten::lstm_cell", [self], |visit| {
            visit(Argument::Tensors(&states.map(Tensor::argument)));
            visit_weights(weights, visit);
        });
        lstm_step(|| self.linear(weights.0[0], weights.1[0]), states, recall(weights))
    }

    /// A step of gated recurrent units, from `[batch, input]` and what was given out before it.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn gru_cell(&self, hidden: &Tensor, weights: CellWeights<'_>) -> Result<Tensor> {
        let _span = composite("aten::gru_cell", [self, hidden], |visit| visit_weights(weights, visit));
        gru_step(|| self.linear(weights.0[0], weights.1[0]), hidden, recall(weights))
    }

    /// A step of a plain recurrent layer, bent by the hyperbolic tangent.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn rnn_tanh_cell(&self, hidden: &Tensor, weights: CellWeights<'_>) -> Result<Tensor> {
        let _span = composite("aten::rnn_tanh_cell", [self, hidden], |visit| visit_weights(weights, visit));
        rnn_step(|| self.linear(weights.0[0], weights.1[0]), hidden, recall(weights), Tensor::tanh)
    }

    /// A step of a plain recurrent layer, bent at zero.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn rnn_relu_cell(&self, hidden: &Tensor, weights: CellWeights<'_>) -> Result<Tensor> {
        let _span = composite("aten::rnn_relu_cell", [self, hidden], |visit| visit_weights(weights, visit));
        rnn_step(|| self.linear(weights.0[0], weights.1[0]), hidden, recall(weights), Tensor::relu)
    }
}
