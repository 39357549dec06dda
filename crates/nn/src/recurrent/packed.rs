//! Sequences of different lengths as one tensor: the elements of all that go on, step after step.

use super::stack::{Stack, gathered, refs};
use super::step::State;
use super::weights::Weights;
use cresset_tensor::{Argument, Cause, Error, Result, Tensor, composite};

/// Sequences of different lengths, the longest first, packed: no element stands for nothing.
///
/// Made by [`pack_padded_sequence`] and [`pack_sequence`]; recurrent layers run over it by `call_packed`.
///
/// ```
/// use cresset_nn::{Gru, Tensor, pack_padded_sequence, pad_packed_sequence};
///
/// let padded = Tensor::ones([4, 3, 2], ())?;
/// let packed = pack_padded_sequence(&padded, &[2, 4, 1], false, false)?;
/// assert_eq!(packed.batch_sizes(), [3, 2, 1, 1]);
/// let (output, state) = Gru::new(2, 5)?.call_packed(&packed, None)?;
/// let (padded, lengths) = pad_packed_sequence(&output, false, 0.0, None)?;
/// assert_eq!((padded.shape(), state.shape()), (&[4, 3, 5][..], &[1, 3, 5][..]));
/// assert_eq!(lengths, [2, 4, 1]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackedSequence {
    data: Tensor,
    batch_sizes: Vec<usize>,
    /// Where each sequence was before it was sorted; none if all were in order.
    sorted: Option<Vec<usize>>,
}

impl PackedSequence {
    /// All elements, those of a step together.
    pub fn data(&self) -> &Tensor {
        &self.data
    }

    /// How many sequences have each step.
    pub fn batch_sizes(&self) -> &[usize] {
        &self.batch_sizes
    }

    /// Which sequence stands at each place; `None` if they are in the order they were given in.
    pub fn sorted_indices(&self) -> Option<&[usize]> {
        self.sorted.as_deref()
    }

    /// At which place each sequence stands; `None` likewise.
    pub fn unsorted_indices(&self) -> Option<Vec<usize>> {
        self.sorted.as_ref().map(|sorted| inverse(sorted))
    }

    /// How long each sequence is, in the order they were given in.
    fn lengths(&self) -> Vec<usize> {
        let length = |place: usize| self.batch_sizes.iter().filter(|&&size| size > place).count();
        let places = self.unsorted_indices().unwrap_or_else(|| (0..self.batch()).collect());
        places.into_iter().map(length).collect()
    }

    fn batch(&self) -> usize {
        self.batch_sizes.first().copied().unwrap_or(0)
    }

    fn with_data(&self, data: Tensor) -> PackedSequence {
        PackedSequence { data, ..self.clone() }
    }
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &sequence)| places[sequence] = place);
    places
}

/// The tensor in the order `order` along `dim`.
fn ordered(x: &Tensor, dim: isize, order: Option<&[usize]>) -> Result<Tensor> {
    let Some(order) = order else { return Ok(x.clone()) };
    let order: Vec<i64> = order.iter().map(|&place| place as i64).collect();
    x.index_select(dim, &Tensor::new(order)?.to(x.device())?)
}

fn refused<T>(cause: Cause, op: &'static str, text: impl std::fmt::Display) -> Result<T> {
    Err(Error::new(cause, op, text))
}

/// Packs sequences `[steps, batch, ..]`, or `[batch, steps, ..]` if the batch is first, of which `lengths` count.
/// With `enforce_sorted` the longest must come first; without, they are sorted, and recurrent layers give
/// states back in the order they were in.
///
/// # Errors
/// For lengths that are 0, more than there are steps, of another number than sequences, or in another order.
pub fn pack_padded_sequence(
    input: &Tensor,
    lengths: &[usize],
    batch_first: bool,
    enforce_sorted: bool,
) -> Result<PackedSequence> {
    const NAME: &str = "pack_padded_sequence";
    if input.dim() < 2 || input.numel() == 0 {
        let text = format_args!("input is {:?}, expected at least one step of one sequence", input.shape());
        return refused(Cause::Shape, NAME, text);
    }
    let x = if batch_first { input.transpose(0, 1)? } else { input.clone() };
    let (steps, batch) = (x.shape()[0], x.shape()[1]);
    let fits = lengths.len() == batch && lengths.iter().all(|length| (1..=steps).contains(length));
    if !fits {
        let text = format_args!("lengths are {lengths:?}, expected {batch} of them, each from 1 to {steps}");
        return refused(Cause::Argument, NAME, text);
    }
    let mut order: Vec<usize> = (0..batch).collect();
    order.sort_by_key(|&sequence| std::cmp::Reverse(lengths[sequence]));
    if enforce_sorted && !lengths.is_sorted_by(|a, b| a >= b) {
        let text =
            format_args!("lengths are {lengths:?}, expected the longest first, or enforce_sorted to be off");
        return refused(Cause::Argument, NAME, text);
    }
    let sorted = (!enforce_sorted).then_some(order);
    let x = ordered(&x, 1, sorted.as_deref())?;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let batch_sizes: Vec<usize> =
        (0..longest).map(|step| lengths.iter().filter(|&&length| length > step).count()).collect();
    let _span = composite("aten::_pack_padded_sequence", [&x], |visit| visit(Argument::Bool(false)));
    let row = |(step, &size): (usize, &usize)| x.select(0, step as isize)?.narrow(0, 0, size);
    let rows = batch_sizes.iter().enumerate().map(row).collect::<Result<Vec<_>>>()?;
    Ok(PackedSequence { data: Tensor::cat(&refs(&rows), 0)?, batch_sizes, sorted })
}

/// Packs sequences `[steps, ..]` of different lengths.
///
/// # Errors
/// As [`pack_padded_sequence`], for sequences that differ in more than their length, and if there are none.
pub fn pack_sequence(sequences: &[&Tensor], enforce_sorted: bool) -> Result<PackedSequence> {
    const NAME: &str = "pack_sequence";
    let lengths: Vec<usize> = sequences.iter().map(|x| x.shape().first().copied().unwrap_or(0)).collect();
    let Some(longest) = lengths.iter().copied().max().filter(|&longest| longest > 0) else {
        return refused(
            Cause::Argument,
            NAME,
            "there are no elements, expected at least one sequence with some",
        );
    };
    let pad = |(x, &length): (&&Tensor, &usize)| {
        let mut rest = x.shape().to_vec();
        rest[0] = longest - length;
        Tensor::cat(&[x, &Tensor::zeros(rest, (x.dtype(), x.device()))?], 0)
    };
    let padded = sequences.iter().zip(&lengths).map(pad).collect::<Result<Vec<_>>>()?;
    pack_padded_sequence(&Tensor::stack(&refs(&padded), 1)?, &lengths, false, enforce_sorted)
}

/// Sequences `[steps, batch, ..]`, or `[batch, steps, ..]` if the batch is first, as they were before they were packed,
/// with `padding` behind their ends up to the longest or to `total_length`; and their lengths.
///
/// # Errors
/// If `total_length` is below the longest.
pub fn pad_packed_sequence(
    packed: &PackedSequence,
    batch_first: bool,
    padding: f64,
    total_length: Option<usize>,
) -> Result<(Tensor, Vec<usize>)> {
    const NAME: &str = "pad_packed_sequence";
    let PackedSequence { data, batch_sizes, .. } = packed;
    let (steps, batch) = (batch_sizes.len(), packed.batch());
    let total = total_length.unwrap_or(steps);
    if total < steps {
        let text = format_args!("total_length is {total}, expected at least {steps}, the longest sequence");
        return refused(Cause::Argument, NAME, text);
    }
    let _span = composite("aten::_pad_packed_sequence", [data], |visit| visit(Argument::Bool(batch_first)));
    let filler = |rows: usize| {
        let mut shape = data.shape().to_vec();
        shape[0] = rows;
        Tensor::full(shape, padding, (data.dtype(), data.device()))
    };
    let mut padded = Vec::with_capacity(total);
    for step in data.split_with_sizes(&batch_sizes[..], 0)? {
        let missing = batch - step.shape()[0];
        padded.push(if missing == 0 { step } else { Tensor::cat(&[&step, &filler(missing)?], 0)? });
    }
    for _ in steps..total {
        padded.push(filler(batch)?);
    }
    let places = packed.unsorted_indices();
    let padded = ordered(&Tensor::stack(&refs(&padded), 0)?, 1, places.as_deref())?;
    let padded = if batch_first { padded.transpose(0, 1)? } else { padded };
    Ok((padded, packed.lengths()))
}

impl Stack {
    /// As [`run`](Stack::run), over packed sequences.
    pub(super) fn run_packed(
        &self,
        packed: &PackedSequence,
        hidden: Option<&Tensor>,
        memory: Option<&Tensor>,
    ) -> Result<(PackedSequence, State)> {
        let data = &packed.data;
        self.check_rows(data)?;
        let start = self.start([hidden, memory], data, packed.batch(), true)?;
        let start = start.map(|x| ordered(x, 1, packed.sorted_indices()))?;
        let sizes = &packed.batch_sizes;
        let (data, last) = self.climb(
            data.clone(),
            &start,
            |x| x.split_with_sizes(&sizes[..], 0),
            |steps, start, weights, reverse| self.pass_packed(steps, start, weights, reverse),
        )?;
        let places = packed.unsorted_indices();
        let last = gathered(&last, true)?.map(|x| ordered(x, 1, places.as_deref()))?;
        Ok((packed.with_data(data), last))
    }

    /// One layer over all steps in one direction. Forwards sequences end, and their states are put by;
    /// backwards they begin, with the states that they were given.
    fn pass_packed(
        &self,
        steps: &[Tensor],
        start: State,
        weights: &Weights<Tensor>,
        reverse: bool,
    ) -> Result<(Tensor, State)> {
        let mut steps: Vec<&Tensor> = steps.iter().collect();
        if reverse {
            steps.reverse();
        }
        let rows =
            |state: &State, from: usize, to: usize| state.map(|x| x.narrow(0, from as isize, to - from));
        let mut running = steps[0].shape()[0];
        let mut state = rows(&start, 0, running)?;
        let mut ended: Option<State> = None;
        let mut outputs = Vec::with_capacity(steps.len());
        for step in steps {
            let size = step.shape()[0];
            if size < running {
                let end = rows(&state, size, running)?;
                ended = Some(ended.map_or(Ok(end.clone()), |ended| end.join(&ended))?);
                state = rows(&state, 0, size)?;
            } else if size > running {
                state = state.join(&rows(&start, running, size)?)?;
            }
            running = size;
            state = self.kind.step(step, &state, weights)?;
            outputs.push(state.hidden.clone());
        }
        if reverse {
            outputs.reverse();
        }
        let last = ended.map_or(Ok(state.clone()), |ended| state.join(&ended))?;
        Ok((Tensor::cat(&refs(&outputs), 0)?, last))
    }
}
