//! Stacked recurrent layers as modules.

use super::packed::PackedSequence;
use super::stack::Stack;
use super::step::{Kind, Nonlinearity};
use crate::call::InCall;
use crate::{Forward, Hooks, Members, Module};
use cresset_dispatch::observe::{self, Span};
use cresset_tensor::{Result, Tensor, composite};

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            stack: Stack,
            hooks: Hooks,
        }

        impl $name {
            /// One layer from inputs of `input_size` to `hidden_size` numbers, in one direction, with
            /// biases.
            ///
            /// # Errors
            /// If either is 0.
            pub fn new(input_size: usize, hidden_size: usize) -> Result<$name> {
                let stack = Stack::new(stringify!($name), $kind, input_size, hidden_size)?;
                Ok($name { stack, hooks: Hooks::default() })
            }

            /// How many layers there are, each reading what the one before gives.
            pub fn num_layers(self, num_layers: usize) -> Result<$name> {
                Ok($name { stack: self.stack.layers(num_layers)?, ..self })
            }

            /// With biases, or without.
            pub fn bias(self, bias: bool) -> Result<$name> {
                Ok($name { stack: self.stack.bias(bias)?, ..self })
            }

            /// Whether sequences are `[batch, steps, size]` instead of `[steps, batch, size]`. States are
            /// `[layers, batch, size]` in either case.
            pub fn batch_first(self, batch_first: bool) -> Result<$name> {
                Ok($name { stack: self.stack.batch_first(batch_first), ..self })
            }

            /// How likely each number between two layers is dropped while the module is trained.
            pub fn dropout(self, dropout: f64) -> Result<$name> {
                Ok($name { stack: self.stack.dropout(dropout)?, ..self })
            }

            /// Whether each layer also reads from the end to the start.
            pub fn bidirectional(self, bidirectional: bool) -> Result<$name> {
                Ok($name { stack: self.stack.bidirectional(bidirectional)?, ..self })
            }
        }

        impl Module for $name {
            fn members<'a>(&'a self, members: &mut Members<'a>) {
                self.stack.name(members);
            }

            fn hooks(&self) -> Option<&Hooks> {
                Some(&self.hooks)
            }
        }
    )*};
}

layers! {
    /// The plain recurrent layer: `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`.
    ///
    /// Called with a sequence, and with the states to start from or `None` for zeros; gives the
    /// last layer's output of every step, and every layer's last state.
    Rnn = Kind::Plain(Nonlinearity::Tanh);
    /// Long short-term memory.
    ///
    /// Called with a sequence, and with hidden states and memories to start from or `None` for zeros;
    /// gives the last layer's output of every step, and every layer's last state and memory.
    ///
    /// ```
    /// use cresset_nn::{Forward, Lstm, Tensor};
    ///
    /// let lstm = Lstm::new(5, 8)?.num_layers(2)?.bidirectional(true)?.batch_first(true)?;
    /// let (output, (hidden, memory)) = lstm.call((&Tensor::ones([3, 7, 5], ())?, None))?;
    /// assert_eq!(output.shape(), [3, 7, 16]);
    /// assert_eq!((hidden.shape(), memory.shape()), (&[4, 3, 8][..], &[4, 3, 8][..]));
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    Lstm = Kind::Lstm;
    /// Gated recurrent units.
    ///
    /// Called with a sequence, and with the states to start from or `None` for zeros; gives the
    /// last layer's output of every step, and every layer's last state.
    Gru = Kind::Gru;
}

impl Rnn {
    /// What bends the sums: [`Nonlinearity::Tanh`] unless said otherwise.
    pub fn nonlinearity(self, nonlinearity: Nonlinearity) -> Result<Rnn> {
        Ok(Rnn { stack: self.stack.of_kind(Kind::Plain(nonlinearity)), ..self })
    }
}

impl Lstm {
    /// To how many numbers what is given out is projected; 0 for no projection.
    ///
    /// # Errors
    /// If it is not below the `hidden_size`.
    pub fn proj_size(self, proj_size: usize) -> Result<Lstm> {
        Ok(Lstm { stack: self.stack.projection(proj_size)?, ..self })
    }
}

impl Forward<(Tensor, Option<Tensor>)> for Rnn {
    type Output = (Tensor, Tensor);

    fn forward(&self, (input, hidden): (&Tensor, Option<&Tensor>)) -> Result<(Tensor, Tensor)> {
        let (output, state) = self.stack.run(input, hidden, None)?;
        Ok((output, state.hidden))
    }
}

impl Forward<(Tensor, Option<Tensor>)> for Gru {
    type Output = (Tensor, Tensor);

    fn forward(&self, (input, hidden): (&Tensor, Option<&Tensor>)) -> Result<(Tensor, Tensor)> {
        let (output, state) = self.stack.run(input, hidden, None)?;
        Ok((output, state.hidden))
    }
}

impl Forward<(Tensor, Option<(Tensor, Tensor)>)> for Lstm {
    type Output = (Tensor, (Tensor, Tensor));

    fn forward(
        &self,
        (input, states): (&Tensor, Option<(&Tensor, &Tensor)>),
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let (hidden, memory) = (states.map(|states| states.0), states.map(|states| states.1));
        let (output, state) = self.stack.run(input, hidden, memory)?;
        let memory = state.memory.expect("an LSTM has a memory");
        Ok((output, (state.hidden, memory)))
    }
}

/// A call with packed sequences: seen by profiles, and faults told in the layer's name. Hooks are for
/// calls with tensors.
fn packed_call<M: Module, R>(layer: &M, run: impl FnOnce() -> Result<R>) -> Result<R> {
    let span = observe::span(&InCall(layer));
    let output = run();
    Span::end(span, &output);
    output.map_err(|error| error.in_layer(layer.class()))
}

impl Rnn {
    /// As [`call`](Forward::call), over packed sequences.
    ///
    /// # Errors
    /// If their elements or the states do not fit.
    pub fn call_packed(
        &self,
        input: &PackedSequence,
        hidden: Option<&Tensor>,
    ) -> Result<(PackedSequence, Tensor)> {
        packed_call(self, || {
            let _span = composite(self.stack.kind.operator(), [Some(input.data()), hidden], |_| {});
            let (output, state) = self.stack.run_packed(input, hidden, None)?;
            Ok((output, state.hidden))
        })
    }
}

impl Gru {
    /// As [`call`](Forward::call), over packed sequences.
    ///
    /// # Errors
    /// If their elements or the states do not fit.
    pub fn call_packed(
        &self,
        input: &PackedSequence,
        hidden: Option<&Tensor>,
    ) -> Result<(PackedSequence, Tensor)> {
        packed_call(self, || {
            let _span = composite("aten::gru", [Some(input.data()), hidden], |_| {});
            let (output, state) = self.stack.run_packed(input, hidden, None)?;
            Ok((output, state.hidden))
        })
    }
}

impl Lstm {
    /// As [`call`](Forward::call), over packed sequences.
    ///
    /// # Errors
    /// If their elements or the states do not fit.
    pub fn call_packed(
        &self,
        input: &PackedSequence,
        states: Option<(&Tensor, &Tensor)>,
    ) -> Result<(PackedSequence, (Tensor, Tensor))> {
        let (hidden, memory) = (states.map(|states| states.0), states.map(|states| states.1));
        packed_call(self, || {
            let _span = composite("aten::lstm", [Some(input.data()), hidden, memory], |_| {});
            let (output, state) = self.stack.run_packed(input, hidden, memory)?;
            let memory = state.memory.expect("an LSTM has a memory");
            Ok((output, (state.hidden, memory)))
        })
    }
}
