//! A layer of long short-term memory over a whole sequence, in one direction, as one operator of the host.

use super::library::Sizes;
use super::shown;
use super::step::{Recall, lstm_step};
use crate::autograd::{self, Pass, Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::ops::Alias;
use crate::{Backward, Cause, DType, Error, Grads, Inputs as _, Kernel, Layout, Op, Result, Spec, Tensor};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::recurrent::{Lstm, LstmGradients, lstm, lstm_backward};

/// Input `[steps, batch, inputs]`, weights of the input and of the step before, their biases, and what was given out
/// and remembered before the first step.
pub type LayerInputs<'a> = [Option<&'a Tensor>; 7];

/// The mode by which torch tells LSTMs from others.
const LSTM: Argument<'static> = Argument::Int(2);

/// A layer of long short-term memory in one direction, over `f32` in row-major order: what is given out at every step and
/// at the last, what is remembered then, and what the derivative needs of the steps.
#[derive(Clone, Debug)]
pub struct LstmLayer {
    /// Whether the sequence is read from its end.
    pub reverse: bool,
    /// Whether the biases count.
    pub biases: bool,
    /// Whether what the derivative needs is kept.
    pub keeps: bool,
    /// What the stack that the layer belongs to is like; only told.
    pub stack: StackOf,
}

/// What a stack of recurrent layers is like.
#[derive(Clone, Copy, Debug)]
pub struct StackOf {
    /// How many layers there are.
    pub layers: usize,
    /// Whether each reads in both directions.
    pub bidirectional: bool,
    /// Whether sequences have the batch first.
    pub batch_first: bool,
    /// Whether the stack is being trained.
    pub train: bool,
}

/// An argument that a layer cannot do without.
fn given(tensor: Option<&Tensor>) -> &Tensor {
    tensor.expect("a layer is given its input, weights and states")
}

fn sizes([x, _, hh, ..]: LayerInputs<'_>) -> Sizes {
    let (x, hidden) = (given(x).shape(), given(hh).shape()[1]);
    Sizes { steps: x[0], batch: x[1], inputs: x[2], hidden }
}

impl LstmLayer {
    fn check(&self, inputs: LayerInputs<'_>) -> Result<()> {
        let shapes: Vec<_> = inputs.iter().flatten().map(|tensor| tensor.shape()).collect();
        let [x, ih, hh, bias_ih, bias_hh, hidden, memory] = inputs;
        let (&[_, batch, features], &[_, size]) = (given(x).shape(), given(hh).shape()) else {
            let text = format_args!("expects a sequence of 3 dimensions and weights of 2, not {shapes:?}");
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        let rows = 4 * size;
        let states = [hidden, memory].iter().all(|state| given(*state).shape() == [batch, size]);
        let weights = given(ih).shape() == [rows, features] && given(hh).shape()[0] == rows;
        let biases = [bias_ih, bias_hh].iter().all(|bias| bias.is_some_and(|bias| bias.shape() == [rows]));
        if !states || !weights || (self.biases && !biases) {
            let text = format_args!(
                "expects [steps, batch, inputs], [4 * hidden, inputs], [4 * hidden, hidden], two biases [4 * hidden] and two states [batch, hidden], not {shapes:?}"
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let fits = |tensor: &&Tensor| tensor.dtype() == DType::F32 && tensor.is_contiguous();
        match inputs.iter().flatten().find(|tensor| !fits(tensor)) {
            None => Ok(()),
            Some(other) => {
                let text = format_args!(
                    "expects {} in row-major order, not {} with strides {:?}",
                    DType::F32,
                    other.dtype(),
                    other.strides()
                );
                Err(Error::new(Cause::DType, Self::NAME, text))
            }
        }
    }

    /// How many bytes are kept, at least.
    fn kept(sizes: Sizes) -> usize {
        4 * Lstm::kept(sizes.steps, sizes.batch, sizes.hidden)
    }

    /// The layer's arguments after the tensors, in the order of torch's call.
    fn visit_numbers(&self, inputs: LayerInputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        let StackOf { layers, bidirectional, batch_first, train } = self.stack;
        visit(Argument::Bool(self.reverse));
        visit(Argument::Ints(&[]));
        visit(LSTM);
        visit(Argument::Int(sizes(inputs).hidden as i64));
        visit(Argument::Int(layers as i64));
        [self.biases, bidirectional, batch_first, train]
            .iter()
            .for_each(|truth| visit(Argument::Bool(*truth)));
    }

    /// The same by calls that have derivatives: what is given out at every step and at the last, and what is
    /// remembered then.
    fn step_by_step(&self, inputs: LayerInputs<'_>) -> Result<[Tensor; 3]> {
        let [x, ih, hh, bias_ih, bias_hh, hidden, memory] = inputs;
        let [bias_ih, bias] = [bias_ih, bias_hh].map(|bias| bias.filter(|_| self.biases));
        let mut steps = given(x).linear(given(ih), bias_ih)?.unbind(0)?;
        if self.reverse {
            steps.reverse();
        }
        let recall = Recall { weight: given(hh), bias, projection: None };
        let mut state = [given(hidden).clone(), given(memory).clone()];
        let mut outputs = Vec::with_capacity(steps.len());
        for step in steps {
            state = lstm_step(|| Ok(step), state.each_ref(), recall)?;
            outputs.push(state[0].clone());
        }
        if self.reverse {
            outputs.reverse();
        }
        let out = Tensor::stack(&outputs.iter().collect::<Vec<_>>(), 0)?;
        let [hidden, memory] = state;
        Ok([out, hidden, memory])
    }

    /// Gradients that have gradients: those of the same, computed again step by step.
    fn gradients_again(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mut inputs = [const { None }; 7];
        for (i, input) in inputs.iter_mut().enumerate() {
            *input = ctx.optional(i).map(|tensor| Alias.call([tensor])).transpose()?;
        }
        let outputs = self.step_by_step(inputs.each_ref().map(Option::as_ref))?;
        let grads = (0..3).map(|i| ctx.grad_if_any(i));
        let roots: Vec<_> = outputs.iter().zip(grads).filter(|(_, grad)| grad.is_some()).collect();
        let wanted: Vec<_> = (0..7).filter(|&i| ctx.needs(i)).collect();
        let tensors: Vec<_> = wanted.iter().filter_map(|&i| inputs[i].as_ref()).collect();
        let pass = Pass { create_graph: true, allow_unused: true, ..Pass::default() };
        let mut grads: Grads = (0..7).map(|_| None).collect();
        for (i, grad) in wanted.into_iter().zip(autograd::grad(&roots, &tensors, pass)?) {
            grads[i] = grad;
        }
        Ok(grads)
    }
}

impl Op for LstmLayer {
    const NAME: &'static str = "aten::mkldnn_rnn_layer";
    const BACKWARD: &'static str = "MkldnnRnnLayerBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 3;
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = LayerInputs<'a>;
    type Output = [Tensor; 4];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        if is_grad_enabled() {
            return self.gradients_again(ctx);
        }
        let gradients = self.gradients(ctx)?;
        Ok(gradients.into_iter().enumerate().map(|(i, grad)| Some(grad).filter(|_| ctx.needs(i))).collect())
    }

    fn arguments(&self, inputs: LayerInputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|tensor| visit(tensor.into_argument()));
        self.visit_numbers(inputs, visit);
    }
}

impl LstmLayer {
    /// The gradients of all inputs, as one call of the host.
    fn gradients(&self, ctx: &Backward<'_>) -> Result<[Tensor; 7]> {
        let _span = shown::backward_call(self, ctx);
        let inputs: LayerInputs<'_> = std::array::from_fn(|i| ctx.optional(i));
        let [x, ih, hh, _, _, hidden, memory] = inputs;
        let (out, workspace) = (ctx.saved(7), ctx.saved(10));
        let incoming = shown::incoming(ctx, [out, given(hidden), given(memory)])?;
        let bias_sum = shown::bias_sum(self.biases, inputs)?;
        let [of_x, of_hidden, of_memory, of_ih, of_hh] =
            [x, hidden, memory, ih, hh].map(|tensor| shown::room(given(tensor).shape()));
        let (of_x, of_hidden, of_memory, of_ih, of_hh) = (of_x?, of_hidden?, of_memory?, of_ih?, of_hh?);
        let of_bias = shown::room(&[4 * sizes(inputs).hidden])?;
        let mut taken = if observe::is_watched() { sizes(inputs).backward()? } else { Vec::new() };
        self.undo(
            inputs,
            [out, workspace],
            &incoming,
            [&of_x, &of_ih, &of_hh, &of_bias, &of_hidden, &of_memory],
        );
        while taken.pop().is_some() {}
        let other_bias = crate::shown::cloned(&of_bias, Argument::None)?;
        drop(bias_sum);
        incoming.into_iter().rev().for_each(drop);
        Ok([of_x, of_ih, of_hh, of_bias, other_bias, of_hidden, of_memory])
    }

    fn undo(
        &self,
        inputs: LayerInputs<'_>,
        [out, workspace]: [&Tensor; 2],
        incoming: &[Tensor; 3],
        into: [&Tensor; 6],
    ) {
        let kept = kept_numbers(workspace, sizes(inputs));
        let (reading_out, reading_kept) = (out.read(), kept.read());
        let readings = incoming.each_ref().map(|grad| grad.read());
        let grads = std::array::from_fn(|i| incoming[i].elements(&readings[i]));
        let mut writings = into.map(Tensor::write);
        let [x, ih, hh, bias, hidden, memory] = into;
        let [in_x, in_ih, in_hh, in_bias, in_hidden, in_memory] = &mut writings;
        let into = LstmGradients {
            x: x.elements_mut(in_x),
            ih: ih.elements_mut(in_ih),
            hh: hh.elements_mut(in_hh),
            bias: bias.elements_mut(in_bias),
            hidden: hidden.elements_mut(in_hidden),
            memory: memory.elements_mut(in_memory),
        };
        self.with_layer(inputs, |layer| {
            lstm_backward(layer, out.elements(&reading_out), kept.elements(&reading_kept), grads, into);
        });
    }

    /// Calls `run` with the layer as kernels see it.
    fn with_layer(&self, inputs: LayerInputs<'_>, run: impl FnOnce(&Lstm<'_>)) {
        let readings = inputs.map(|tensor| tensor.map(Tensor::read));
        let views: [_; 7] = std::array::from_fn(|i| {
            inputs[i].zip(readings[i].as_ref()).map(|(tensor, read)| tensor.elements(read))
        });
        let [Some(x), Some(ih), Some(hh), bias_ih, bias_hh, Some(hidden), Some(memory)] = views else {
            unreachable!("a layer is given its input, weights and states");
        };
        let biases = bias_ih.zip(bias_hh).filter(|_| self.biases).map(|(a, b)| [a, b]);
        run(&Lstm { x, ih, hh, biases, hidden, memory, reverse: self.reverse });
    }
}

/// What a workspace holds, as numbers.
fn kept_numbers(workspace: &Tensor, sizes: Sizes) -> Tensor {
    let count = Lstm::kept(sizes.steps, sizes.batch, sizes.hidden);
    let layout = Layout::contiguous(&[count]).expect("one dimension can be counted");
    workspace.alias().reinterpreted(layout, DType::F32)
}

impl Kernel for LstmLayer {
    kernel_table!(LstmLayer);

    fn infer(&self, inputs: LayerInputs<'_>) -> Result<[Spec; 4]> {
        self.check(inputs)?;
        let sizes = sizes(inputs);
        let state = Spec::new([sizes.batch, sizes.hidden], DType::F32);
        let out = Spec::new([sizes.steps, sizes.batch, sizes.hidden], DType::F32);
        let bytes = if self.keeps { Self::kept(sizes) } else { 0 };
        Ok([out, state.clone(), state, Spec::new([bytes], DType::U8)])
    }

    fn shown(&self, inputs: LayerInputs<'_>) -> Result<Option<[Tensor; 4]>> {
        let [out, hidden, memory, _] = self.infer(inputs)?;
        let (sizes, room) = (sizes(inputs), |spec: Spec| shown::room(&spec.shape));
        let (out, hidden, memory) = (room(out)?, room(hidden)?, room(memory)?);
        let bias_sum = shown::bias_sum(self.biases, inputs)?;
        let workspace = shown::workspace(self.keeps.then(|| sizes.workspace().max(Self::kept(sizes))))?;
        let mut taken = sizes.forward(self.keeps)?;
        let outputs = [out, hidden, memory, workspace];
        self.cpu(inputs, &outputs)?;
        while taken.pop().is_some() {}
        drop(bias_sum);
        Ok(Some(outputs))
    }

    fn cpu(&self, inputs: LayerInputs<'_>, [out, hidden, memory, workspace]: &[Tensor; 4]) -> Result<()> {
        let kept = self.keeps.then(|| kept_numbers(workspace, sizes(inputs)));
        let mut keeping = kept.as_ref().map(Tensor::write);
        let kept = kept.as_ref().zip(keeping.as_mut()).map(|(kept, writing)| kept.elements_mut(writing));
        let (mut in_out, mut in_hidden, mut in_memory) = (out.write(), hidden.write(), memory.write());
        let last = [hidden.elements_mut(&mut in_hidden), memory.elements_mut(&mut in_memory)];
        self.with_layer(inputs, |layer| lstm(layer, out.elements_mut(&mut in_out), last, kept));
        Ok(())
    }
}

impl LstmLayer {
    /// Whether the operator runs a layer of these; others are run step by step.
    pub fn takes(inputs: LayerInputs<'_>) -> bool {
        let fits = |tensor: &&Tensor| tensor.device().is_cpu() && tensor.dtype() == DType::F32;
        let [x, ..] = inputs;
        inputs.iter().flatten().all(fits) && x.is_some_and(|x| x.numel() > 0)
    }

    /// Runs a layer of a stack: what it gives out at every step and at the last, and what it remembers then.
    ///
    /// # Errors
    /// If sizes do not fit together, or not all are `f32` on the host.
    pub fn run(stack: StackOf, reverse: bool, inputs: LayerInputs<'_>) -> Result<[Tensor; 3]> {
        let [x, ih, hh, bias_ih, bias_hh, hidden, memory] = inputs;
        let biases = bias_ih.is_some() && bias_hh.is_some();
        let (bias_ih, bias_hh) = if biases { (None, None) } else { shown::missing_biases(ih, hh)? };
        let [a, b] = match biases {
            true => [inputs[3], inputs[4]],
            false => [bias_ih.as_ref(), bias_hh.as_ref()],
        };
        let layer = LstmLayer { reverse, biases, keeps: is_grad_enabled(), stack };
        let inputs = [x, ih, hh, a, b, hidden, memory];
        // Where elements lie is of no interest to who calls.
        let rows = inputs.map(|tensor| tensor.map(Tensor::contiguous));
        let mut owned = [const { None }; 7];
        for (place, tensor) in owned.iter_mut().zip(rows) {
            *place = tensor.transpose()?;
        }
        let [out, hidden, memory, _] = layer.call(owned.each_ref().map(Option::as_ref))?;
        Ok([out, hidden, memory])
    }
}
