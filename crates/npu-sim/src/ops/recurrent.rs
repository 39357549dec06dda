//! Long short-term memory: layers of cells in one or both directions of time, and their gradients.

use super::cast::{FLOATS, expect_dtype};
use super::numbers::{singles, store};
use super::optional::{placed, present};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{Layout, View, ViewMut, matrix};

/// Parts of a cell, in the order of its weights: input gate, forget gate, new values, output gate.
const PARTS: usize = 4;
/// What a layer keeps for its gradient, in the order of the operator's lists.
const KEPT: usize = 7;

/// The sizes and numbers of a network, checked.
#[derive(Clone, Copy)]
struct Network {
    steps: usize,
    batch: usize,
    width: usize,
    hidden: usize,
    layers: usize,
    directions: usize,
    biased: bool,
    batch_first: bool,
}

impl Network {
    #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
    fn new(
        x: &Tensor,
        parameters: &[Tensor],
        sizes: Option<&Tensor>,
        biased: bool,
        layers: i64,
        dropout: f64,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Result<Network> {
        if sizes.is_some() || dropout != 0.0 && train {
            fail!(code::NN_PARAM_INVALID, "packed sequences and dropout between layers are not simulated");
        }
        let (layers, directions) = (layers.max(0) as usize, 1 + bidirectional as usize);
        let per_cell = if biased { 4 } else { 2 };
        let (&[first, second, width], Some(recurrent)) = (x.shape(), parameters.get(1)) else {
            fail!(
                code::NN_PARAM_INVALID,
                "x of shape {:?} is no sequence, or there are no weights",
                x.shape()
            );
        };
        if layers == 0 || parameters.len() != layers * directions * per_cell {
            fail!(code::NN_PARAM_INVALID, "{} weights for {layers} layers", parameters.len());
        }
        let hidden = recurrent.shape().last().copied().unwrap_or(0);
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let network = Network { steps, batch, width, hidden, layers, directions, biased, batch_first };
        for (at, parameter) in parameters.iter().enumerate() {
            let inner = if at / per_cell < directions { width } else { directions * hidden };
            match at % per_cell {
                0 => expect("a weight", parameter, &[PARTS * hidden, inner])?,
                1 => expect("a weight", parameter, &[PARTS * hidden, hidden])?,
                _ => expect("a bias", parameter, &[PARTS * hidden])?,
            }
            expect_dtype("a weight", parameter, FLOATS)?;
        }
        Ok(network)
    }

    fn cells(self) -> usize {
        self.layers * self.directions
    }

    fn per_cell(self) -> usize {
        if self.biased { 4 } else { 2 }
    }

    /// Elements of one layer's input at one time.
    fn inner(self, layer: usize) -> usize {
        if layer == 0 { self.width } else { self.directions * self.hidden }
    }

    fn state(self) -> usize {
        self.batch * self.hidden
    }

    /// A sequence with time first, whatever the client has first.
    fn by_time(self, x: View<'_>) -> Vec<f32> {
        if !self.batch_first {
            return singles(x);
        }
        let turned = x.layout().permute(&[1, 0, 2]);
        singles(x.with_layout(&turned))
    }

    fn store_by_time(self, values: &[f32], mut out: ViewMut<'_>) {
        if !self.batch_first {
            return store(values, out);
        }
        let turned = out.layout().permute(&[1, 0, 2]);
        store(values, out.with_layout(&turned));
    }

    fn expect_states(self, states: &[Tensor]) -> Result {
        if !states.is_empty() && states.len() != 2 {
            fail!(code::NN_PARAM_INVALID, "{} initial states, expected two", states.len());
        }
        states.iter().try_for_each(|state| expect("a state", state, &[self.cells(), self.batch, self.hidden]))
    }

    fn expect_kept(self, kept: &[Vec<Tensor>; KEPT]) -> Result {
        for list in kept {
            if list.len() != self.cells() {
                fail!(code::NN_PARAM_INVALID, "{} tensors for {} cells", list.len(), self.cells());
            }
            list.iter()
                .try_for_each(|x| expect("what is kept", x, &[self.steps, self.batch, self.hidden]))?;
        }
        Ok(())
    }

    /// Times in the order in which a direction meets them.
    fn times(self, cell: usize) -> Vec<usize> {
        let forwards = cell.is_multiple_of(self.directions);
        (0..self.steps).map(|step| if forwards { step } else { self.steps - 1 - step }).collect()
    }
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `out += a @ b` of row-major matrices; either may be turned, and `out` is `[m, n]`.
fn add_product(a: (&[f32], bool), b: (&[f32], bool), [m, k, n]: [usize; 3], out: &mut [f32]) {
    let layout = |rows, columns, turned| {
        let sizes = if turned { [columns, rows] } else { [rows, columns] };
        let layout = Layout::contiguous(&sizes).expect("as many elements as there are");
        if turned { layout.transpose(0, 1) } else { layout }
    };
    let (left, right, result) = (layout(m, k, a.1), layout(k, n, b.1), layout(m, n, false));
    matrix::gemm(1.0, View::of(a.0, &left), View::of(b.0, &right), 1.0, ViewMut::of(out, &result));
}

/// What one direction of one layer computes, `[steps, batch, hidden]` each.
struct Trace {
    /// Input gate, new values, forget gate, output gate, hidden state, memory, and that bent by `tanh`.
    kept: [Vec<f32>; KEPT],
}

fn run_cell(
    network: Network,
    cell: usize,
    x: &[f32],
    parameters: &[Vec<f32>],
    mut hidden: Vec<f32>,
    mut memory: Vec<f32>,
) -> Trace {
    let Network { batch, hidden: size, .. } = network;
    let inner = network.inner(cell / network.directions);
    let mut kept: [Vec<f32>; KEPT] = std::array::from_fn(|_| vec![0.0; network.steps * network.state()]);
    for time in network.times(cell) {
        let mut sums = vec![0.0; batch * PARTS * size];
        if network.biased {
            for row in sums.chunks_mut(PARTS * size) {
                let biases = parameters[2].iter().zip(&parameters[3]);
                row.iter_mut().zip(biases).for_each(|(sum, (a, b))| *sum = a + b);
            }
        }
        let now = &x[time * batch * inner..][..batch * inner];
        add_product((now, false), (&parameters[0], true), [batch, inner, PARTS * size], &mut sums);
        add_product((&hidden, false), (&parameters[1], true), [batch, size, PARTS * size], &mut sums);
        for at in 0..batch * size {
            let (row, column) = (at / size, at % size);
            let part = |part: usize| sums[row * PARTS * size + part * size + column];
            let (input, forget, new, output) =
                (logistic(part(0)), logistic(part(1)), part(2).tanh(), logistic(part(3)));
            memory[at] = forget * memory[at] + input * new;
            let bent = memory[at].tanh();
            hidden[at] = output * bent;
            let values = [input, new, forget, output, hidden[at], memory[at], bent];
            for (kept, value) in kept.iter_mut().zip(values) {
                kept[time * network.state() + at] = value;
            }
        }
    }
    Trace { kept }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn lstm(
    x: Tensor,
    parameters: Vec<Tensor>,
    states: Option<Vec<Tensor>>,
    sizes: Option<Tensor>,
    biased: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    out: Tensor,
    hidden: Tensor,
    memory: Tensor,
    input_gates: Vec<Tensor>,
    new_values: Vec<Tensor>,
    forget_gates: Vec<Tensor>,
    output_gates: Vec<Tensor>,
    hiddens: Vec<Tensor>,
    memories: Vec<Tensor>,
    bent_memories: Vec<Tensor>,
) -> Planned {
    let network = Network::new(
        &x,
        &parameters,
        sizes.as_ref(),
        biased,
        layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )?;
    let states = states.unwrap_or_default();
    network.expect_states(&states)?;
    let kept = [input_gates, new_values, forget_gates, output_gates, hiddens, memories, bent_memories];
    let keeps = train && kept.iter().any(|list| !list.is_empty());
    if keeps {
        network.expect_kept(&kept)?;
    }
    for (name, state) in [("hidden", &hidden), ("memory", &memory)] {
        expect(name, state, &[network.cells(), network.batch, network.hidden])?;
    }
    let (given, count) = (!states.is_empty(), parameters.len());
    let reads = [vec![x], parameters, states].concat();
    let more = if keeps { kept.concat() } else { vec![] };
    let plan = Plan::lists(
        c"DynamicRNN",
        reads,
        [vec![out, hidden, memory], more].concat(),
        move |reads, writes| {
            let parameters: Vec<Vec<f32>> = reads[1..1 + count].iter().map(|x| singles(*x)).collect();
            let initial: [Vec<f32>; 2] = std::array::from_fn(|at| match given {
                true => singles(reads[1 + count + at]),
                false => vec![0.0; network.cells() * network.state()],
            });
            let mut values = network.by_time(reads[0]);
            let (mut traces, mut last) = (Vec::new(), [Vec::new(), Vec::new()]);
            for layer in 0..network.layers {
                for direction in 0..network.directions {
                    let cell = layer * network.directions + direction;
                    let own = |states: &[f32]| states[cell * network.state()..][..network.state()].to_vec();
                    let weights = &parameters[cell * network.per_cell()..][..network.per_cell()];
                    traces.push(run_cell(
                        network,
                        cell,
                        &values,
                        weights,
                        own(&initial[0]),
                        own(&initial[1]),
                    ));
                    let end = *network.times(cell).last().unwrap_or(&0);
                    for (last, kept) in last.iter_mut().zip([4, 5]) {
                        let trace: &Trace = &traces[cell];
                        last.extend_from_slice(&trace.kept[kept][end * network.state()..][..network.state()]);
                    }
                }
                let hidden: Vec<&[f32]> =
                    traces[layer * network.directions..].iter().map(|trace| &trace.kept[4][..]).collect();
                values = side_by_side(network, &hidden);
            }
            let mut writes = writes.into_iter();
            let mut next = || writes.next().expect("one per result");
            network.store_by_time(&values, next());
            store(&last[0], next());
            store(&last[1], next());
            if keeps {
                for kept in 0..KEPT {
                    traces.iter().for_each(|trace| store(&trace.kept[kept], next()));
                }
            }
            Ok(())
        },
    );
    plan.map(Plan::on_cube)
}

/// Gradients of one direction of one layer.
struct Slopes {
    x: Vec<f32>,
    hidden: Vec<f32>,
    memory: Vec<f32>,
    parameters: Vec<Vec<f32>>,
}

#[expect(clippy::too_many_arguments, reason = "all that a cell saw")]
fn run_cell_backward(
    network: Network,
    cell: usize,
    x: &[f32],
    parameters: &[Vec<f32>],
    kept: &[Vec<f32>; KEPT],
    initial: [&[f32]; 2],
    grad: &[f32],
    mut to_hidden: Vec<f32>,
    mut to_memory: Vec<f32>,
) -> Slopes {
    let Network { batch, hidden: size, .. } = network;
    let (inner, state) = (network.inner(cell / network.directions), network.state());
    let mut to_x = vec![0.0; network.steps * batch * inner];
    let mut to_parameters: Vec<Vec<f32>> =
        parameters.iter().map(|weights| vec![0.0; weights.len()]).collect();
    let times = network.times(cell);
    for (step, &time) in times.iter().enumerate().rev() {
        let now = |kept: &[f32]| kept[time * state..][..state].to_vec();
        let [input, new, forget, output, _, _, bent] = kept.each_ref().map(|kept| now(kept));
        let (old_hidden, old_memory) = match step {
            0 => (initial[0].to_vec(), initial[1].to_vec()),
            step => {
                let at = times[step - 1] * state;
                (kept[4][at..][..state].to_vec(), kept[5][at..][..state].to_vec())
            }
        };
        let mut slopes = vec![0.0; batch * PARTS * size];
        for at in 0..state {
            let (row, column) = (at / size, at % size);
            let grad_hidden = to_hidden[at] + grad[time * state + at];
            let to_bent = grad_hidden * output[at] * (1.0 - bent[at] * bent[at]);
            let grad_memory = to_memory[at] + to_bent;
            let gates = [
                grad_memory * new[at] * input[at] * (1.0 - input[at]),
                grad_memory * old_memory[at] * forget[at] * (1.0 - forget[at]),
                grad_memory * input[at] * (1.0 - new[at] * new[at]),
                grad_hidden * bent[at] * output[at] * (1.0 - output[at]),
            ];
            for (part, gate) in gates.into_iter().enumerate() {
                slopes[row * PARTS * size + part * size + column] = gate;
            }
            to_memory[at] = grad_memory * forget[at];
        }
        let wide = PARTS * size;
        let row = time * batch * inner..(time + 1) * batch * inner;
        add_product((&slopes, false), (&parameters[0], false), [batch, wide, inner], &mut to_x[row.clone()]);
        to_hidden = vec![0.0; state];
        add_product((&slopes, false), (&parameters[1], false), [batch, wide, size], &mut to_hidden);
        add_product((&slopes, true), (&x[row], false), [wide, batch, inner], &mut to_parameters[0]);
        add_product((&slopes, true), (&old_hidden, false), [wide, batch, size], &mut to_parameters[1]);
        for bias in to_parameters.iter_mut().skip(2) {
            for row in slopes.chunks(wide) {
                bias.iter_mut().zip(row).for_each(|(bias, slope)| *bias += slope);
            }
        }
    }
    Slopes { x: to_x, hidden: to_hidden, memory: to_memory, parameters: to_parameters }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn lstm_backward(
    x: Tensor,
    states: Option<Vec<Tensor>>,
    parameters: Vec<Tensor>,
    grad: Option<Tensor>,
    grad_hidden: Option<Tensor>,
    grad_memory: Option<Tensor>,
    input_gates: Vec<Tensor>,
    new_values: Vec<Tensor>,
    forget_gates: Vec<Tensor>,
    output_gates: Vec<Tensor>,
    hiddens: Vec<Tensor>,
    memories: Vec<Tensor>,
    bent_memories: Vec<Tensor>,
    sizes: Option<Tensor>,
    biased: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    _mask: Option<Vec<bool>>,
    to_x: Option<Tensor>,
    to_hidden: Option<Tensor>,
    to_memory: Option<Tensor>,
    to_parameters: Vec<Tensor>,
) -> Planned {
    let network = Network::new(
        &x,
        &parameters,
        sizes.as_ref(),
        biased,
        layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )?;
    let states = states.unwrap_or_default();
    network.expect_states(&states)?;
    let kept = [input_gates, new_values, forget_gates, output_gates, hiddens, memories, bent_memories];
    network.expect_kept(&kept)?;
    if to_parameters.len() != parameters.len() {
        fail!(code::NN_PARAM_INVALID, "{} gradients for {} weights", to_parameters.len(), parameters.len());
    }
    let (count, given) = (parameters.len(), !states.is_empty());
    let (grads, graded) = present([grad, grad_hidden, grad_memory]);
    let (results, wanted) = present([to_x, to_hidden, to_memory]);
    let reads = [vec![x], parameters, kept.concat(), states, grads].concat();
    let writes = [results, to_parameters].concat();
    let plan = Plan::lists(c"DynamicRNNGrad", reads, writes, move |reads, mut writes| {
        let (cells, state) = (network.cells(), network.state());
        let parameters: Vec<Vec<f32>> = reads[1..1 + count].iter().map(|x| singles(*x)).collect();
        let (kept, rest) = reads[1 + count..].split_at(KEPT * cells);
        let kept: Vec<[Vec<f32>; KEPT]> =
            (0..cells).map(|cell| std::array::from_fn(|part| singles(kept[part * cells + cell]))).collect();
        let (states, grads) = rest.split_at(if given { 2 } else { 0 });
        let initial: [Vec<f32>; 2] = std::array::from_fn(|at| match given {
            true => singles(states[at]),
            false => vec![0.0; cells * state],
        });
        let [grad, grad_hidden, grad_memory] = placed(graded, grads.iter().copied());
        let mut above = match grad {
            Some(grad) => network.by_time(grad),
            None => vec![0.0; network.steps * state * network.directions],
        };
        let ends =
            [grad_hidden, grad_memory].map(|grad| grad.map_or_else(|| vec![0.0; cells * state], singles));
        let mut slopes: Vec<Option<Slopes>> = (0..cells).map(|_| None).collect();
        for layer in (0..network.layers).rev() {
            let below = match layer {
                0 => network.by_time(reads[0]),
                layer => {
                    let below = &kept[(layer - 1) * network.directions..][..network.directions];
                    let hidden: Vec<&[f32]> = below.iter().map(|kept| &kept[4][..]).collect();
                    side_by_side(network, &hidden)
                }
            };
            let mut next = vec![0.0; below.len()];
            for direction in 0..network.directions {
                let cell = layer * network.directions + direction;
                let own = |states: &[f32]| states[cell * state..][..state].to_vec();
                let weights = &parameters[cell * network.per_cell()..][..network.per_cell()];
                let before = [own(&initial[0]), own(&initial[1])];
                let part = side(network, &above, direction);
                let found = run_cell_backward(
                    network,
                    cell,
                    &below,
                    weights,
                    &kept[cell],
                    [&before[0], &before[1]],
                    &part,
                    own(&ends[0]),
                    own(&ends[1]),
                );
                next.iter_mut().zip(&found.x).for_each(|(next, x)| *next += x);
                slopes[cell] = Some(found);
            }
            above = next;
        }
        let slopes: Vec<Slopes> = slopes.into_iter().flatten().collect();
        let to_parameters = writes.split_off(writes.len() - count);
        let [to_x, to_hidden, to_memory] = placed(wanted, writes);
        if let Some(to_x) = to_x {
            network.store_by_time(&above, to_x);
        }
        let all = |part: fn(&Slopes) -> &[f32]| slopes.iter().flat_map(part).copied().collect::<Vec<f32>>();
        if let Some(to_hidden) = to_hidden {
            store(&all(|slopes| &slopes.hidden), to_hidden);
        }
        if let Some(to_memory) = to_memory {
            store(&all(|slopes| &slopes.memory), to_memory);
        }
        let found = slopes.iter().flat_map(|slopes| &slopes.parameters);
        found.zip(to_parameters).for_each(|(slope, out)| store(slope, out));
        Ok(())
    });
    plan.map(Plan::on_cube)
}

/// The hidden states of all directions of a layer, side by side.
fn side_by_side(network: Network, hidden: &[&[f32]]) -> Vec<f32> {
    let size = network.hidden;
    let row = |row: usize| hidden.iter().flat_map(move |hidden| &hidden[row * size..][..size]);
    (0..network.steps * network.batch).flat_map(row).copied().collect()
}

/// One direction's part of what lies side by side.
fn side(network: Network, values: &[f32], direction: usize) -> Vec<f32> {
    let size = network.hidden;
    let rows = values.chunks(network.directions * size);
    rows.flat_map(|row| &row[direction * size..][..size]).copied().collect()
}
