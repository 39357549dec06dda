//! A stack of recurrent layers.

use super::step::{Kind, State};
use super::weights::{Sizes, Weights};
use crate::check::{positive, within};
use crate::{Members, Parameter, Training, functional};
use cresset_tensor::{Autocast, Cause, Error, Result, Tensor};

/// Layers on top of each other, each in one direction or in both.
pub(super) struct Stack {
    /// What messages call it.
    name: &'static str,
    pub(super) kind: Kind,
    sizes: Sizes,
    layers: usize,
    bidirectional: bool,
    batch_first: bool,
    dropout: f64,
    /// Of each layer, for each direction.
    weights: Vec<Vec<Weights<Parameter>>>,
    training: Training,
}

impl Stack {
    pub(super) fn new(name: &'static str, kind: Kind, input: usize, hidden: usize) -> Result<Stack> {
        positive(name, &[("input_size", input), ("hidden_size", hidden)])?;
        let sizes = Sizes { input, hidden, gates: kind.gates(), projection: 0, bias: true };
        let (weights, training) = (Vec::new(), Training::default());
        let stack = Stack {
            name,
            kind,
            sizes,
            layers: 1,
            bidirectional: false,
            batch_first: false,
            dropout: 0.0,
            weights,
            training,
        };
        stack.rebuilt()
    }

    pub(super) fn layers(self, layers: usize) -> Result<Stack> {
        positive(self.name, &[("num_layers", layers)])?;
        Stack { layers, ..self }.rebuilt()
    }

    pub(super) fn bidirectional(self, bidirectional: bool) -> Result<Stack> {
        Stack { bidirectional, ..self }.rebuilt()
    }

    pub(super) fn bias(self, bias: bool) -> Result<Stack> {
        Stack { sizes: Sizes { bias, ..self.sizes }, ..self }.rebuilt()
    }

    /// Of another kind with as many gates.
    pub(super) fn of_kind(self, kind: Kind) -> Stack {
        Stack { kind, ..self }
    }

    pub(super) fn batch_first(self, batch_first: bool) -> Stack {
        Stack { batch_first, ..self }
    }

    pub(super) fn dropout(self, dropout: f64) -> Result<Stack> {
        within(self.name, "dropout", dropout, (0.0..=1.0).contains(&dropout), "from 0 to 1")?;
        Ok(Stack { dropout, ..self })
    }

    pub(super) fn projection(self, projection: usize) -> Result<Stack> {
        let expected = format_args!("below the hidden_size of {}", self.sizes.hidden);
        within(self.name, "proj_size", projection, projection < self.sizes.hidden, expected)?;
        Stack { sizes: Sizes { projection, ..self.sizes }, ..self }.rebuilt()
    }

    fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// With the weights that its sizes ask for; those that fit stay.
    fn rebuilt(mut self) -> Result<Stack> {
        let mut earlier = std::mem::take(&mut self.weights).into_iter();
        for layer in 0..self.layers {
            let input = if layer == 0 { self.sizes.input } else { self.directions() * self.sizes.output() };
            let sizes = Sizes { input, ..self.sizes };
            let mut earlier = earlier.next().into_iter().flatten();
            let directions = 0..self.directions();
            self.weights
                .push(directions.map(|_| Weights::new(sizes, earlier.next())).collect::<Result<_>>()?);
        }
        Ok(self)
    }

    pub(super) fn name<'a>(&'a self, members: &mut Members<'a>) {
        for (layer, directions) in self.weights.iter().enumerate() {
            for (weights, direction) in directions.iter().zip(["", "_reverse"]) {
                weights.name(&format!("_l{layer}{direction}"), members);
            }
        }
        members.training(&self.training);
    }

    /// Runs over `[steps, batch, size]`, `[batch, steps, size]` if the batch is first, or `[steps, size]`;
    /// gives the last layer's output of every step, and every layer's last state.
    pub(super) fn run(
        &self,
        input: &Tensor,
        hidden: Option<&Tensor>,
        memory: Option<&Tensor>,
    ) -> Result<(Tensor, State)> {
        self.check_input(input)?;
        let is_batch = input.dim() == 3;
        let batched = |x: &Tensor| if is_batch { Ok(x.clone()) } else { x.unsqueeze(1) };
        let swaps = is_batch && self.batch_first;
        let x = if swaps { input.transpose(0, 1)? } else { batched(input)? };
        let batch = x.shape()[1];
        let start = self.start([hidden, memory], &x, batch, is_batch)?;
        if x.shape()[0] == 0 || batch == 0 {
            let text = format_args!("input is {:?}, expected at least one step of one sample", input.shape());
            return Err(Error::new(Cause::Shape, self.name, text));
        }
        let (x, last) =
            self.climb(x, &start, |x, start, weights, reverse| self.pass(x, start, weights, reverse))?;
        let x = if swaps {
            x.transpose(0, 1)?
        } else if is_batch {
            x
        } else {
            x.squeeze_dim(1)?
        };
        Ok((x, gathered(&last, is_batch)?))
    }

    /// The states to start from.
    pub(super) fn start(
        &self,
        [hidden, memory]: [Option<&Tensor>; 2],
        x: &Tensor,
        batch: usize,
        is_batch: bool,
    ) -> Result<State> {
        let hidden = self.initial(("h_0", self.sizes.output()), hidden, x, batch, is_batch)?;
        let memory = match self.kind {
            Kind::Lstm => Some(self.initial(("c_0", self.sizes.hidden), memory, x, batch, is_batch)?),
            _ => None,
        };
        Ok(State { hidden, memory })
    }

    /// From layer to layer; `pass` runs one in one direction. Gives the last layer's outputs, and the last
    /// states of all.
    pub(super) fn climb(
        &self,
        mut x: Tensor,
        start: &State,
        pass: impl Fn(&Tensor, State, &Weights<Tensor>, bool) -> Result<(Tensor, State)>,
    ) -> Result<(Tensor, Vec<State>)> {
        let mut last = Vec::new();
        for (layer, directions) in self.weights.iter().enumerate() {
            let mut outputs = Vec::new();
            for (direction, weights) in directions.iter().enumerate() {
                let at = last.len() as isize;
                let start = start.map(|x| x.select(0, at))?;
                let (output, end) = pass(&x, start, &weights.tensors(), direction == 1)?;
                outputs.push(output);
                last.push(end);
            }
            x = if outputs.len() == 1 { outputs.remove(0) } else { Tensor::cat(&refs(&outputs), -1)? };
            if layer + 1 < self.layers && self.dropout > 0.0 {
                x = functional::dropout(&x, self.dropout, self.training.is_on())?;
            }
        }
        Ok((x, last))
    }

    /// One layer over all steps in one direction.
    fn pass(
        &self,
        x: &Tensor,
        mut state: State,
        weights: &Weights<Tensor>,
        reverse: bool,
    ) -> Result<(Tensor, State)> {
        let mut steps = x.linear(&weights.ih, weights.bias_ih.as_ref())?.unbind(0)?;
        if reverse {
            steps.reverse();
        }
        let mut outputs = Vec::with_capacity(steps.len());
        for step in &steps {
            state = self.kind.step(step, &state, weights)?;
            outputs.push(state.hidden.clone());
        }
        if reverse {
            outputs.reverse();
        }
        Ok((Tensor::stack(&refs(&outputs), 0)?, state))
    }

    /// Refuses rows of another size than the weights'.
    pub(super) fn check_rows(&self, rows: &Tensor) -> Result<()> {
        if rows.dim() != 2 {
            let text = format_args!(
                "the packed elements are {:?}, expected [elements, {}]",
                rows.shape(),
                self.sizes.input
            );
            return Err(Error::new(Cause::Shape, self.name, text));
        }
        self.check_input(rows)
    }

    fn check_input(&self, input: &Tensor) -> Result<()> {
        if !(2..=3).contains(&input.dim()) || input.shape().last() != Some(&self.sizes.input) {
            let order = if self.batch_first { "batch, steps" } else { "steps, batch" };
            let text = format_args!(
                "input is {:?}, expected [{order}, {1}] or [steps, {1}]",
                input.shape(),
                self.sizes.input
            );
            return Err(Error::new(Cause::Shape, self.name, text));
        }
        let dtype = self.weights[0][0].ih.tensor().dtype();
        // Inside autocast products take what comes.
        if input.dtype() != dtype && !Autocast::here().is_enabled() {
            let text = format_args!("input is of {}, expected {dtype} as the weights are", input.dtype());
            return Err(Error::new(Cause::DType, self.name, text));
        }
        Ok(())
    }

    /// The given states as `[layers and directions, batch, size]`, or zeros.
    fn initial(
        &self,
        (name, size): (&str, usize),
        given: Option<&Tensor>,
        x: &Tensor,
        batch: usize,
        is_batch: bool,
    ) -> Result<Tensor> {
        let count = self.layers * self.directions();
        let Some(given) = given else {
            return Tensor::zeros([count, batch, size], (x.dtype(), x.device()));
        };
        let expected: &[usize] = if is_batch { &[count, batch, size] } else { &[count, size] };
        let fits = given.dtype() == x.dtype() || Autocast::here().is_enabled();
        if given.shape() != expected || !fits {
            let text = format_args!(
                "{name} is {} {:?}, expected {} {expected:?}",
                given.dtype(),
                given.shape(),
                x.dtype()
            );
            return Err(Error::new(Cause::Shape, self.name, text));
        }
        if is_batch { Ok(given.clone()) } else { given.unsqueeze(1) }
    }
}

pub(super) fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

/// States of layers and directions as one.
pub(super) fn gathered(states: &[State], is_batch: bool) -> Result<State> {
    let gather = |tensors: Vec<&Tensor>| {
        let all = Tensor::stack(&tensors, 0)?;
        if is_batch { Ok(all) } else { all.squeeze_dim(1) }
    };
    let memories: Vec<&Tensor> = states.iter().filter_map(|state| state.memory.as_ref()).collect();
    Ok(State {
        hidden: gather(states.iter().map(|state| &state.hidden).collect())?,
        memory: (!memories.is_empty()).then(|| gather(memories)).transpose()?,
    })
}
