//! A stack of recurrent layers.

use super::step::{Kind, State};
use super::weights::{Sizes, Weights};
use crate::check::{positive, within};
use crate::{Members, Parameter, Training, functional};
use cresset_dispatch::observe::Span;
use cresset_tensor::ops::{LstmLayer, StackOf, batch_first};
use cresset_tensor::{Argument, Autocast, Cause, Error, Result, Tensor, composite};

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
            let input = if layer == 0 {
                self.sizes.input
            } else {
                self.sizes.output().saturating_mul(self.directions())
            };
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
        let of_batch = if self.batch_first { 0 } else { 1 };
        let x = if is_batch { input.clone() } else { input.unsqueeze(of_batch)? };
        let start = self.start([hidden, memory], &x, x.shape()[of_batch as usize], is_batch)?;
        if x.shape()[..2].contains(&0) {
            let text = format_args!("input is {:?}, expected at least one step of one sample", input.shape());
            return Err(Error::new(Cause::Shape, self.name, text));
        }
        let (out, last) = self.operate(&x, &start)?;
        if is_batch {
            return Ok((out, last));
        }
        Ok((out.squeeze_dim(of_batch)?, last.map(|x| x.squeeze_dim(1))?))
    }

    /// The stack over a batch of sequences, as one call of torch's.
    fn operate(&self, input: &Tensor, start: &State) -> Result<(Tensor, State)> {
        let _span = self.told(input, start);
        drop(composite("aten::cudnn_is_acceptable", [input], |_| {}));
        let x = if self.batch_first { input.transpose(0, 1)? } else { input.clone() };
        if self.suits_operator(&x, start) {
            let (out, last) = self.climb_by_operator(x, start)?;
            let last = gathered(&last, false)?;
            return Ok((if self.batch_first { out.transpose(0, 1)? } else { out }, last));
        }
        let (out, last) = self.climb(
            x,
            start,
            |x| x.unbind(0),
            |steps, start, weights, reverse| self.pass(steps, start, weights, reverse),
        )?;
        let gathered = gathered(&last, true)?;
        drop(last);
        Ok((if self.batch_first { batch_first(out)? } else { out }, gathered))
    }

    /// Tells observers what the stack is called with.
    fn told(&self, input: &Tensor, start: &State) -> Option<Span> {
        composite(self.kind.operator(), [input], |visit| {
            match &start.memory {
                Some(memory) => {
                    visit(Argument::Tensors(&[start.hidden.argument(), memory.argument()]));
                }
                None => visit(Argument::Tensor(start.hidden.argument())),
            }
            let weights: Vec<_> = self.weights.iter().flatten().flat_map(Weights::each).collect();
            visit(Argument::Tensors(&weights.iter().map(Tensor::argument).collect::<Vec<_>>()));
            visit(Argument::Bool(self.sizes.bias));
            visit(Argument::Int(self.layers as i64));
            visit(Argument::Float(self.dropout));
            [self.training.is_on(), self.bidirectional, self.batch_first]
                .iter()
                .for_each(|truth| visit(Argument::Bool(*truth)));
        })
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

    /// Whether the host has one operator for each layer.
    fn suits_operator(&self, x: &Tensor, start: &State) -> bool {
        let all = |weights: &Weights<Parameter>| {
            let Weights { ih, hh, bias_ih, bias_hh, .. } = weights.tensors();
            let memory = start.memory.as_ref();
            let biases = [bias_ih.as_ref(), bias_hh.as_ref()];
            let [a, b] = biases;
            LstmLayer::takes([Some(x), Some(&ih), Some(&hh), a, b, Some(&start.hidden), memory])
        };
        self.kind == Kind::Lstm
            && self.sizes.projection == 0
            && !Autocast::here().is_enabled()
            && self.weights.iter().flatten().all(all)
    }

    /// As [`climb`](Stack::climb), each layer in one direction by one operator.
    fn climb_by_operator(&self, mut x: Tensor, start: &State) -> Result<(Tensor, Vec<State>)> {
        let stack = StackOf {
            layers: self.layers,
            bidirectional: self.bidirectional,
            batch_first: self.batch_first,
            train: self.training.is_on(),
        };
        let mut last = Vec::new();
        x = x.contiguous()?;
        for (layer, directions) in self.weights.iter().enumerate() {
            let mut outputs = Vec::new();
            for (direction, weights) in directions.iter().enumerate() {
                let at = last.len() as isize;
                let State { hidden, memory } = start.map(|x| x.select(0, at))?;
                let Weights { ih, hh, bias_ih, bias_hh, .. } = weights.tensors();
                let biases = [bias_ih.as_ref(), bias_hh.as_ref()];
                let inputs =
                    [Some(&x), Some(&ih), Some(&hh), biases[0], biases[1], Some(&hidden), memory.as_ref()];
                let [output, hidden, memory] = LstmLayer::run(stack, direction == 1, inputs)?;
                outputs.push(output);
                last.push(State { hidden, memory: Some(memory) });
            }
            x = if outputs.len() == 1 { outputs.remove(0) } else { Tensor::cat(&refs(&outputs), -1)? };
            x = self.dropped(x, layer)?;
        }
        Ok((x, last))
    }

    /// What a layer gives to the next, some of it dropped while the stack is trained.
    fn dropped(&self, x: Tensor, layer: usize) -> Result<Tensor> {
        if layer + 1 < self.layers && self.dropout > 0.0 && self.training.is_on() {
            return functional::dropout(&x, self.dropout, true);
        }
        Ok(x)
    }

    /// From layer to layer. `cut` makes steps of what the weights of the input made of all, and `pass` runs a layer
    /// over them in one direction. Gives the last layer's outputs, and the last states of all.
    pub(super) fn climb(
        &self,
        mut x: Tensor,
        start: &State,
        cut: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
        pass: impl Fn(&[Tensor], State, &Weights<Tensor>, bool) -> Result<(Tensor, State)>,
    ) -> Result<(Tensor, Vec<State>)> {
        let hidden = start.hidden.unbind(0)?;
        let memories = start.memory.as_ref().map(|memory| memory.unbind(0)).transpose()?;
        let mut last = Vec::new();
        for (layer, directions) in self.weights.iter().enumerate() {
            // Steps are held until those of the other direction are there, as torch does.
            let (mut _steps, mut outputs) = (Vec::new(), Vec::new());
            for (direction, weights) in directions.iter().enumerate() {
                let (at, weights) = (last.len(), weights.tensors());
                let memory = memories.as_ref().map(|memories| memories[at].clone());
                let start = State { hidden: hidden[at].clone(), memory };
                _steps = cut(&x.linear(&weights.ih, weights.bias_ih.as_ref())?)?;
                let (output, end) = pass(&_steps, start, &weights, direction == 1)?;
                outputs.push(output);
                last.push(end);
            }
            let along = x.dim() as isize - 1;
            x = if outputs.len() == 1 { outputs.remove(0) } else { Tensor::cat(&refs(&outputs), along)? };
            drop(outputs);
            drop(_steps);
            x = self.dropped(x, layer)?;
        }
        Ok((x, last))
    }

    /// One layer over all steps in one direction.
    fn pass(
        &self,
        steps: &[Tensor],
        mut state: State,
        weights: &Weights<Tensor>,
        reverse: bool,
    ) -> Result<(Tensor, State)> {
        let mut outputs = Vec::with_capacity(steps.len());
        for i in 0..steps.len() {
            let step = if reverse { &steps[steps.len() - 1 - i] } else { &steps[i] };
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
        let count = self.layers.saturating_mul(self.directions());
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

/// States of layers and directions as one; memories first where torch does so.
pub(super) fn gathered(states: &[State], memories_first: bool) -> Result<State> {
    let memories: Vec<&Tensor> = states.iter().filter_map(|state| state.memory.as_ref()).collect();
    let hidden: Vec<&Tensor> = states.iter().map(|state| &state.hidden).collect();
    let stacked = |memories: &[&Tensor]| match memories {
        [] => Ok(None),
        memories => Tensor::stack(memories, 0).map(Some),
    };
    if memories_first {
        let memory = stacked(&memories)?;
        return Ok(State { hidden: Tensor::stack(&hidden, 0)?, memory });
    }
    Ok(State { hidden: Tensor::stack(&hidden, 0)?, memory: stacked(&memories)? })
}
