//! Single steps of recurrent layers as modules.

use super::step::{Kind, Nonlinearity, State};
use super::weights::{Sizes, Weights};
use crate::check::positive;
use crate::{Forward, Hooks, Members, Module, Parameter};
use cresset_tensor::{Cause, Error, Result, Tensor};

/// What all cells are.
struct Cell {
    name: &'static str,
    kind: Kind,
    sizes: Sizes,
    weights: Weights<Parameter>,
}

impl Cell {
    fn new(name: &'static str, kind: Kind, input: usize, hidden: usize) -> Result<Cell> {
        positive(name, &[("input_size", input), ("hidden_size", hidden)])?;
        let sizes = Sizes { input, hidden, gates: kind.gates(), projection: 0, bias: true };
        Ok(Cell { name, kind, sizes, weights: Weights::new(sizes, None)? })
    }

    fn bias(self, bias: bool) -> Result<Cell> {
        let sizes = Sizes { bias, ..self.sizes };
        Ok(Cell { sizes, weights: Weights::new(sizes, Some(self.weights))?, ..self })
    }

    fn step(&self, input: &Tensor, hidden: Option<&Tensor>, memory: Option<&Tensor>) -> Result<State> {
        let given = [("input", Some(input), self.sizes.input)];
        let states = [("hidden", hidden, self.sizes.hidden), ("memory", memory, self.sizes.hidden)];
        for (name, tensor, size) in given.into_iter().chain(states) {
            if let Some(tensor) = tensor {
                self.check(name, tensor, size, input)?;
            }
        }
        let is_batch = input.dim() == 2;
        let batched = |x: &Tensor| if is_batch { Ok(x.clone()) } else { x.unsqueeze(0) };
        let batch = batched(input)?;
        let state = |given: Option<&Tensor>| match given {
            Some(given) => batched(given),
            None => Tensor::zeros([batch.shape()[0], self.sizes.hidden], (input.dtype(), input.device())),
        };
        let before = match (self.kind, hidden) {
            (Kind::Lstm, None) => {
                let zeros = state(None)?;
                State { hidden: zeros.clone(), memory: Some(zeros) }
            }
            (Kind::Lstm, hidden) => State { hidden: state(hidden)?, memory: Some(state(memory)?) },
            (_, hidden) => State { hidden: state(hidden)?, memory: None },
        };
        let after = self.kind.cell(&batch, &before, &self.weights.tensors())?;
        if is_batch {
            return Ok(after);
        }
        after.map(|x| x.squeeze_dim(0))
    }

    fn check(&self, name: &str, tensor: &Tensor, size: usize, input: &Tensor) -> Result<()> {
        let shape = tensor.shape();
        let fits = match (shape, input.shape()) {
            (&[many, last], &[batch, _]) => many == batch && last == size,
            (&[last], &[_]) => last == size,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let text = format_args!(
            "{name} is {shape:?} with an input of {:?}, expected [batch, {size}] or [{size}]",
            input.shape()
        );
        Err(Error::new(Cause::Shape, self.name, text))
    }
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            cell: Cell,
            hooks: Hooks,
        }

        impl $name {
            /// A cell from `input_size` to `hidden_size` numbers, with biases.
            ///
            /// # Errors
            /// If either is 0.
            pub fn new(input_size: usize, hidden_size: usize) -> Result<$name> {
                let cell = Cell::new(stringify!($name), $kind, input_size, hidden_size)?;
                Ok($name { cell, hooks: Hooks::default() })
            }

            /// With biases, or without.
            pub fn bias(self, bias: bool) -> Result<$name> {
                Ok($name { cell: self.cell.bias(bias)?, ..self })
            }
        }

        impl Module for $name {
            fn members<'a>(&'a self, members: &mut Members<'a>) {
                self.cell.weights.name("", members);
            }

            fn hooks(&self) -> Option<&Hooks> {
                Some(&self.hooks)
            }
        }
    )*};
}

cells! {
    /// One step of [`Rnn`](crate::Rnn): called with `[batch, input_size]` or `[input_size]`, and the
    /// state before or `None` for zeros; gives the state after.
    RnnCell = Kind::Plain(Nonlinearity::Tanh);
    /// One step of [`Lstm`](crate::Lstm): called with `[batch, input_size]` or `[input_size]`, and state
    /// and memory before or `None` for zeros; gives those after.
    LstmCell = Kind::Lstm;
    /// One step of [`Gru`](crate::Gru): called with `[batch, input_size]` or `[input_size]`, and the
    /// state before or `None` for zeros; gives the state after.
    GruCell = Kind::Gru;
}

impl RnnCell {
    /// What bends the sums: [`Nonlinearity::Tanh`] unless said otherwise.
    pub fn nonlinearity(self, nonlinearity: Nonlinearity) -> Result<RnnCell> {
        Ok(RnnCell { cell: Cell { kind: Kind::Plain(nonlinearity), ..self.cell }, ..self })
    }
}

macro_rules! steps {
    ($($name:ident)*) => {$(
        impl Forward<(Tensor, Option<Tensor>)> for $name {
            type Output = Tensor;

            fn forward(&self, (input, hidden): (&Tensor, Option<&Tensor>)) -> Result<Tensor> {
                Ok(self.cell.step(input, hidden, None)?.hidden)
            }
        }
    )*};
}

steps! { RnnCell GruCell }

impl Forward<(Tensor, Option<(Tensor, Tensor)>)> for LstmCell {
    type Output = (Tensor, Tensor);

    fn forward(&self, (input, states): (&Tensor, Option<(&Tensor, &Tensor)>)) -> Result<(Tensor, Tensor)> {
        let after = self.cell.step(input, states.map(|states| states.0), states.map(|states| states.1))?;
        let memory = after.memory.expect("an LSTM has a memory");
        Ok((after.hidden, memory))
    }
}
