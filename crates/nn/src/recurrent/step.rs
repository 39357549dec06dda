//! One step of a recurrent layer.

use super::weights::Weights;
use cresset_tensor::ops::{Recall, gru_step, lstm_step, rnn_step};
use cresset_tensor::{Result, Tensor};

/// What a plain recurrent layer bends its sums with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nonlinearity {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The larger of each sum and 0.
    Relu,
}

/// The kinds of recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain(Nonlinearity),
    Lstm,
    Gru,
}

/// What goes on from step to step: what is given out, and the memory of an LSTM.
#[derive(Clone)]
pub(super) struct State {
    pub(super) hidden: Tensor,
    pub(super) memory: Option<Tensor>,
}

impl State {
    /// The same of hidden numbers and memory.
    pub(super) fn map(&self, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<State> {
        Ok(State { hidden: f(&self.hidden)?, memory: self.memory.as_ref().map(f).transpose()? })
    }

    /// States of other samples behind these.
    pub(super) fn join(&self, others: &State) -> Result<State> {
        let join = |a: &Tensor, b: &Tensor| Tensor::cat(&[a, b], 0);
        let memory = match (&self.memory, &others.memory) {
            (Some(a), Some(b)) => Some(join(a, b)?),
            _ => None,
        };
        Ok(State { hidden: join(&self.hidden, &others.hidden)?, memory })
    }
}

impl Kind {
    /// How many sums there are per hidden number.
    pub(super) fn gates(self) -> usize {
        match self {
            Kind::Plain(_) => 1,
            Kind::Gru => 3,
            Kind::Lstm => 4,
        }
    }

    /// What torch calls a stack of this kind.
    pub(super) fn operator(self) -> &'static str {
        match self {
            Kind::Plain(Nonlinearity::Tanh) => "aten::rnn_tanh",
            Kind::Plain(Nonlinearity::Relu) => "aten::rnn_relu",
            Kind::Lstm => "aten::lstm",
            Kind::Gru => "aten::gru",
        }
    }

    /// The state after a step. `input` is what the weights of the input made of this step's.
    pub(super) fn step(self, input: &Tensor, state: &State, weights: &Weights<Tensor>) -> Result<State> {
        let (hidden, input) = (&state.hidden, || Ok(input.clone()));
        let recall =
            Recall { weight: &weights.hh, bias: weights.bias_hh.as_ref(), projection: weights.hr.as_ref() };
        let hidden = match (self, &state.memory) {
            (Kind::Lstm, memory) => {
                let memory = memory.as_ref().expect("an LSTM has a memory");
                let [hidden, memory] = lstm_step(input, [hidden, memory], recall)?;
                return Ok(State { hidden, memory: Some(memory) });
            }
            (Kind::Gru, _) => gru_step(input, hidden, recall)?,
            (Kind::Plain(Nonlinearity::Tanh), _) => rnn_step(input, hidden, recall, Tensor::tanh)?,
            (Kind::Plain(Nonlinearity::Relu), _) => rnn_step(input, hidden, recall, Tensor::relu)?,
        };
        Ok(State { hidden, memory: None })
    }

    /// The state after a step of a cell.
    pub(super) fn cell(self, input: &Tensor, state: &State, weights: &Weights<Tensor>) -> Result<State> {
        let hidden = &state.hidden;
        let weights = ([&weights.ih, &weights.hh], [weights.bias_ih.as_ref(), weights.bias_hh.as_ref()]);
        let hidden = match (self, &state.memory) {
            (Kind::Lstm, memory) => {
                let memory = memory.as_ref().expect("an LSTM has a memory");
                let [hidden, memory] = input.lstm_cell([hidden, memory], weights)?;
                return Ok(State { hidden, memory: Some(memory) });
            }
            (Kind::Gru, _) => input.gru_cell(hidden, weights)?,
            (Kind::Plain(Nonlinearity::Tanh), _) => input.rnn_tanh_cell(hidden, weights)?,
            (Kind::Plain(Nonlinearity::Relu), _) => input.rnn_relu_cell(hidden, weights)?,
        };
        Ok(State { hidden, memory: None })
    }
}
