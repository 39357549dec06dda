//! One step of a recurrent layer.

use super::weights::Weights;
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

    /// The state after a step. `input` is what the weights of the input made of this step's.
    pub(super) fn step(self, input: &Tensor, state: &State, weights: &Weights<Tensor>) -> Result<State> {
        let recalled = state.hidden.linear(&weights.hh, weights.bias_hh.as_ref())?;
        let mut next = match self {
            Kind::Plain(bend) => {
                let sum = input.add(&recalled)?;
                let hidden = if bend == Nonlinearity::Tanh { sum.tanh()? } else { sum.relu()? };
                State { hidden, memory: None }
            }
            Kind::Lstm => lstm(&input.add(&recalled)?, state)?,
            Kind::Gru => gru(input, &recalled, &state.hidden)?,
        };
        if let Some(projection) = &weights.hr {
            next.hidden = next.hidden.linear(projection, None)?;
        }
        Ok(next)
    }
}

fn lstm(gates: &Tensor, state: &State) -> Result<State> {
    let gates = gates.chunk(4, -1)?;
    let (input, forget) = (gates[0].sigmoid()?, gates[1].sigmoid()?);
    let (fresh, output) = (gates[2].tanh()?, gates[3].sigmoid()?);
    let fresh = input.mul(&fresh)?;
    let memory = match &state.memory {
        Some(memory) => forget.mul(memory)?.add(&fresh)?,
        None => fresh,
    };
    Ok(State { hidden: output.mul(&memory.tanh()?)?, memory: Some(memory) })
}

fn gru(input: &Tensor, recalled: &Tensor, hidden: &Tensor) -> Result<State> {
    let (input, recalled) = (input.chunk(3, -1)?, recalled.chunk(3, -1)?);
    let reset = input[0].add(&recalled[0])?.sigmoid()?;
    let keep = input[1].add(&recalled[1])?.sigmoid()?;
    let fresh = input[2].add(&reset.mul(&recalled[2])?)?.tanh()?;
    let hidden = hidden.sub(&fresh)?.mul(&keep)?.add(&fresh)?;
    Ok(State { hidden, memory: None })
}
