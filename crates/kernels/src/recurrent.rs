//! A layer of long short-term memory over a sequence, and its derivative.
//!
//! What the input adds to the gates of all steps is one product; what the step before adds is one per step.

use crate::matrix::{added_gemm, gemm};
use crate::scratch::Scratch;
use crate::special::single::{sigmoid, tanh};
use crate::threads::each_of;
use crate::wide::wide;
use crate::{Layout, View, ViewMut};

/// Samples whose gates one thread computes at a time.
const SAMPLES: usize = 16;

/// Roughly how many nanoseconds the gates of one hidden number take.
const NANOSECONDS: usize = 8;

/// A layer in one direction, and what it reads. All are `f32` in row-major order.
#[derive(Clone, Copy)]
pub struct Lstm<'a> {
    /// `[steps, batch, inputs]`
    pub x: View<'a>,
    /// From the input to the gates, `[4 * hidden, inputs]`: of input, of forgetting, of what is new, of output.
    pub ih: View<'a>,
    /// From the step before to the gates, `[4 * hidden, hidden]`.
    pub hh: View<'a>,
    /// Both are added to the gates, `[4 * hidden]`.
    pub biases: Option<[View<'a>; 2]>,
    /// What was given out before the first step, `[batch, hidden]`.
    pub hidden: View<'a>,
    /// What was remembered before the first step, `[batch, hidden]`.
    pub memory: View<'a>,
    /// Whether the sequence is read from its end.
    pub reverse: bool,
}

/// Where gradients go: each of the shape of what it is the gradient of.
pub struct LstmGradients<'a> {
    /// Of the input.
    pub x: ViewMut<'a>,
    /// Of the weights from the input.
    pub ih: ViewMut<'a>,
    /// Of the weights from the step before.
    pub hh: ViewMut<'a>,
    /// Of either bias.
    pub bias: ViewMut<'a>,
    /// Of what was given out before the first step.
    pub hidden: ViewMut<'a>,
    /// Of what was remembered before the first step.
    pub memory: ViewMut<'a>,
}

impl Lstm<'_> {
    fn sizes(&self) -> Sizes {
        let (&[steps, batch, inputs], &[_, hidden]) = (self.x.shape(), self.hh.shape()) else {
            panic!("lstm: {:?} and {:?} are no sequence and weights", self.x.shape(), self.hh.shape());
        };
        Sizes { steps, batch, inputs, hidden }
    }

    /// How many numbers [`lstm`] keeps for the derivative: the gates and memories of all steps.
    pub fn kept(steps: usize, batch: usize, hidden: usize) -> usize {
        5 * steps * batch * hidden
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    inputs: usize,
    hidden: usize,
}

impl Sizes {
    /// Hidden numbers of one step.
    fn state(self) -> usize {
        self.batch * self.hidden
    }

    /// Each step in the order in which they are read, and the one before it.
    fn order(self, reverse: bool) -> impl DoubleEndedIterator<Item = (usize, Option<usize>)> {
        let place = move |step: usize| if reverse { self.steps - 1 - step } else { step };
        (0..self.steps).map(move |step| (place(step), step.checked_sub(1).map(place)))
    }
}

fn matrix(rows: usize, columns: usize) -> Layout {
    Layout::contiguous(&[rows, columns]).expect("operands of these sizes exist")
}

fn numbers<'a>(view: View<'a>) -> &'a [f32] {
    view.slice().expect("lstm reads f32 in row-major order")
}

fn numbers_mut<'a>(view: &'a mut ViewMut<'_>) -> &'a mut [f32] {
    view.slice().expect("lstm writes f32 in row-major order")
}

/// Runs a layer. `out` is what it gives out at every step, `last` that of the last step and what is remembered
/// then, and `kept`, of [`Lstm::kept`] numbers, what [`lstm_backward`] will need.
pub fn lstm(layer: &Lstm<'_>, mut out: ViewMut<'_>, last: [ViewMut<'_>; 2], kept: Option<ViewMut<'_>>) {
    let sizes = layer.sizes();
    let Sizes { steps, batch, hidden, .. } = sizes;
    let (mut given, mut scratch) = (kept, None);
    let kept = match &mut given {
        Some(kept) => numbers_mut(kept),
        None => &mut **scratch.insert(Scratch::new(Lstm::kept(steps, batch, hidden))),
    };
    let (gates, memories) = kept.split_at_mut(4 * steps * sizes.state());
    sum_of_input(layer, gates);
    let out = numbers_mut(&mut out);
    let recall = matrix(4 * hidden, hidden).transpose(0, 1);
    let (state, sums) = (matrix(batch, hidden), matrix(batch, 4 * hidden));
    let mut end = None;
    for (step, before) in sizes.order(layer.reverse) {
        let (out, hidden_before) = beside(out, sizes.state(), step, before);
        let (memory, memory_before) = beside(memories, sizes.state(), step, before);
        let hidden_before = hidden_before.unwrap_or(numbers(layer.hidden));
        let memory_before = memory_before.unwrap_or(numbers(layer.memory));
        let gates = &mut gates[4 * step * sizes.state()..][..4 * sizes.state()];
        let recalled = View::of(numbers(layer.hh), &recall);
        gemm(1.0, View::of(hidden_before, &state), recalled, 1.0, ViewMut::of(gates, &sums));
        let block = SAMPLES * hidden.max(1);
        let samples = gates.chunks_mut(4 * block).zip(memory_before.chunks(block));
        let samples = samples.zip(memory.chunks_mut(block).zip(out.chunks_mut(block))).collect();
        each_of(samples, NANOSECONDS * sizes.state(), |((gates, before), (memory, out))| {
            run_step(gates, before, memory, out, hidden);
        });
        end = Some(step);
    }
    for (mut last, (all, start)) in last.into_iter().zip([(&*out, layer.hidden), (&*memories, layer.memory)])
    {
        let at_end = end.map_or(numbers(start), |step| &all[step * sizes.state()..][..sizes.state()]);
        numbers_mut(&mut last).copy_from_slice(at_end);
    }
}

/// What the input and the biases add to the gates of all steps.
fn sum_of_input(layer: &Lstm<'_>, gates: &mut [f32]) {
    let Sizes { steps, batch, inputs, hidden } = layer.sizes();
    let (rows, columns) = (matrix(steps * batch, inputs), matrix(4 * hidden, inputs).transpose(0, 1));
    let (x, ih) = (View::of(numbers(layer.x), &rows), View::of(numbers(layer.ih), &columns));
    let all = matrix(steps * batch, 4 * hidden);
    let Some([a, b]) = layer.biases.map(|biases| biases.map(numbers)) else {
        return gemm(1.0, x, ih, 0.0, ViewMut::of(gates, &all));
    };
    let mut bias = Scratch::new(4 * hidden);
    bias.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = a + b);
    added_gemm(1.0, x, ih, 1.0, View::of(&bias, &matrix(1, 4 * hidden)), ViewMut::of(gates, &all));
}

/// The rows of one step to write, and those of the step before.
fn beside(rows: &mut [f32], size: usize, step: usize, before: Option<usize>) -> (&mut [f32], Option<&[f32]>) {
    match before {
        None => (&mut rows[step * size..][..size], None),
        Some(before) if before < step => {
            let (early, late) = rows.split_at_mut(step * size);
            (&mut late[..size], Some(&early[before * size..][..size]))
        }
        Some(before) => {
            let (early, late) = rows.split_at_mut(before * size);
            (&mut early[step * size..][..size], Some(&late[..size]))
        }
    }
}

/// The four gates of one sample.
fn four(gates: &mut [f32], hidden: usize) -> [&mut [f32]; 4] {
    let (first, second) = gates.split_at_mut(2 * hidden);
    let ((input, forget), (fresh, output)) = (first.split_at_mut(hidden), second.split_at_mut(hidden));
    [input, forget, fresh, output]
}

wide! {
    /// One step of some samples. `gates` are sums, and become what they let through.
    fn run_step[](gates: &mut [f32], before: &[f32], memory: &mut [f32], out: &mut [f32], hidden: usize), heavy if true {
        let states = before.chunks_exact(hidden).zip(memory.chunks_exact_mut(hidden));
        for ((gates, out), (before, memory)) in
            gates.chunks_exact_mut(4 * hidden).zip(out.chunks_exact_mut(hidden)).zip(states)
        {
            let [input, forget, fresh, output] = four(gates, hidden);
            for i in 0..hidden {
                input[i] = sigmoid(input[i]);
                forget[i] = sigmoid(forget[i]);
                fresh[i] = tanh(fresh[i]);
                output[i] = sigmoid(output[i]);
                memory[i] = forget[i] * before[i] + input[i] * fresh[i];
                out[i] = output[i] * tanh(memory[i]);
            }
        }
    }
}

/// The gradients of a layer that [`lstm`] ran, giving `out` and `kept`, given those of `out`, of what was given out
/// at the last step and of what was remembered then.
pub fn lstm_backward(
    layer: &Lstm<'_>,
    out: View<'_>,
    kept: View<'_>,
    [grad_out, grad_hidden, grad_memory]: [View<'_>; 3],
    into: LstmGradients<'_>,
) {
    let sizes = layer.sizes();
    let Sizes { steps, batch, inputs, hidden } = sizes;
    let LstmGradients { mut x, mut ih, mut hh, mut bias, hidden: mut of_hidden, memory: mut of_memory } =
        into;
    let (of_hidden, of_memory) = (numbers_mut(&mut of_hidden), numbers_mut(&mut of_memory));
    of_hidden.copy_from_slice(numbers(grad_hidden));
    of_memory.copy_from_slice(numbers(grad_memory));
    let (gates, memories) = numbers(kept).split_at(4 * steps * sizes.state());
    let mut of_gates = Scratch::new(gates.len());
    of_gates.copy_from_slice(gates);
    let (state, sums) = (matrix(batch, hidden), matrix(batch, 4 * hidden));
    for (step, before) in sizes.order(layer.reverse).rev() {
        let rows = |all: &[f32]| -> usize { step * (all.len() / steps) };
        let at = |all: &'_ [f32]| rows(all)..rows(all) + all.len() / steps;
        let memory = &memories[at(memories)];
        let memory_before = before
            .map_or(numbers(layer.memory), |before| &memories[before * sizes.state()..][..sizes.state()]);
        let grad_out = numbers(grad_out);
        of_hidden.iter_mut().zip(&grad_out[at(grad_out)]).for_each(|(sum, grad)| *sum += grad);
        let range = at(&of_gates);
        let of_gates = &mut of_gates[range];
        let block = SAMPLES * hidden.max(1);
        let samples =
            of_gates.chunks_mut(4 * block).zip(memory.chunks(block).zip(memory_before.chunks(block)));
        let samples = samples.zip(of_hidden.chunks(block).zip(of_memory.chunks_mut(block))).collect();
        each_of(samples, NANOSECONDS * sizes.state(), |((gates, memories), (of_hidden, of_memory))| {
            undo_step(gates, memories, of_hidden, of_memory, hidden);
        });
        gemm(1.0, View::of(of_gates, &sums), layer.hh, 0.0, ViewMut::of(of_hidden, &state));
    }
    let (all, turned) =
        (matrix(steps * batch, 4 * hidden), matrix(steps * batch, 4 * hidden).transpose(0, 1));
    let rows = matrix(steps * batch, inputs);
    gemm(1.0, View::of(&of_gates, &turned), View::of(numbers(layer.x), &rows), 0.0, ih.reborrow());
    gemm(1.0, View::of(&of_gates, &all), layer.ih, 0.0, ViewMut::of(numbers_mut(&mut x), &rows));
    weights_of_recall(layer, numbers(out), &of_gates, hh.reborrow());
    let bias = numbers_mut(&mut bias);
    bias.fill(0.0);
    for row in of_gates.chunks_exact(bias.len().max(1)) {
        bias.iter_mut().zip(row).for_each(|(sum, grad)| *sum += grad);
    }
}

/// The gradient of the weights from the step before: all steps but the first saw what another gave out.
fn weights_of_recall(layer: &Lstm<'_>, out: &[f32], of_gates: &[f32], mut hh: ViewMut<'_>) {
    let sizes = layer.sizes();
    let Sizes { steps, batch, hidden, .. } = sizes;
    let Some(more) = steps.checked_sub(1) else { return numbers_mut(&mut hh).fill(0.0) };
    let (first, later, earlier) = if layer.reverse { (more, 0, 1) } else { (0, 1, 0) };
    let turned = |steps: usize| matrix(steps * batch, 4 * hidden).transpose(0, 1);
    let first = &of_gates[4 * first * sizes.state()..][..4 * sizes.state()];
    gemm(1.0, View::of(first, &turned(1)), layer.hidden, 0.0, hh.reborrow());
    if more > 0 {
        let later = &of_gates[4 * later * sizes.state()..][..4 * more * sizes.state()];
        let earlier = &out[earlier * sizes.state()..][..more * sizes.state()];
        let states = matrix(more * batch, hidden);
        gemm(1.0, View::of(later, &turned(more)), View::of(earlier, &states), 1.0, hh);
    }
}

wide! {
    /// One step of some samples backwards. `gates` are what they let through, and become the gradients of their sums.
    fn undo_step[](
        gates: &mut [f32],
        memories: (&[f32], &[f32]),
        of_hidden: &[f32],
        of_memory: &mut [f32],
        hidden: usize,
    ), heavy if true {
        let states = memories.0.chunks_exact(hidden).zip(memories.1.chunks_exact(hidden));
        let grads = of_hidden.chunks_exact(hidden).zip(of_memory.chunks_exact_mut(hidden));
        for ((gates, (memory, before)), (of_hidden, of_memory)) in
            gates.chunks_exact_mut(4 * hidden).zip(states).zip(grads)
        {
            let [input, forget, fresh, output] = four(gates, hidden);
            for k in 0..hidden {
                let (i, f, n, o) = (input[k], forget[k], fresh[k], output[k]);
                let shown = tanh(memory[k]);
                let of_state = of_memory[k] + of_hidden[k] * o * (1.0 - shown * shown);
                input[k] = of_state * n * i * (1.0 - i);
                forget[k] = of_state * before[k] * f * (1.0 - f);
                fresh[k] = of_state * i * (1.0 - n * n);
                output[k] = of_hidden[k] * shown * o * (1.0 - o);
                of_memory[k] = of_state * f;
            }
        }
    }
}
