//! Recurrent layers and cells.

use super::{Entry, Made};
use crate::arguments::{Arguments, Either};
use cresset_nn::*;
use cresset_tensor::{Cause, Error, Result};

/// Steps and layers of a sequence: each is dozens of calls, all kept for the gradient and the profile.
const MOST_STEPS: usize = 1 << 16;

/// The options that all recurrent layers have. Plain ones have one more in the fourth place.
macro_rules! stacked {
    ($a:ident, $layer:ident, $shift:literal) => {{
        let a = $a;
        let layer = $layer::new(a.size(0, "input_size")?, a.size(1, "hidden_size")?)?;
        let layers = a.get::<Option<i64>>(2, "num_layers")?.map_or(Ok(1), |_| a.size(2, "num_layers"))?;
        within("num_layers", layers)?;
        let layer = layer.num_layers(layers)?.bias(a.or(3 + $shift, "bias", true)?)?;
        let layer = layer.batch_first(a.or(4 + $shift, "batch_first", false)?)?;
        layer.dropout(a.or(5 + $shift, "dropout", 0.0)?)?.bidirectional(a.or(
            6 + $shift,
            "bidirectional",
            false,
        )?)?
    }};
}

pub(super) const MODULES: &[Entry] = &[
    Entry::new("RNN", |a| {
        let layer = stacked!(a, Rnn, 1).nonlinearity(nonlinearity(a)?)?;
        Made::with(layer, |layer, a| layer.call((&sequence(a)?, hidden(a)?.as_ref())))
    }),
    Entry::new("LSTM", |a| {
        let projection = a.get::<Option<i64>>(7, "proj_size")?.map_or(Ok(0), |_| a.size(7, "proj_size"))?;
        let layer = stacked!(a, Lstm, 0).proj_size(projection)?;
        Made::with(layer, |layer, a| {
            let states = states(a)?;
            layer.call((&sequence(a)?, states.as_ref().map(|[hidden, memory]| (hidden, memory))))
        })
    }),
    Entry::new("GRU", |a| {
        let layer = stacked!(a, Gru, 0);
        Made::with(layer, |layer, a| layer.call((&sequence(a)?, hidden(a)?.as_ref())))
    }),
    Entry::new("RNNCell", |a| {
        let cell = RnnCell::new(a.size(0, "input_size")?, a.size(1, "hidden_size")?)?.bias(bias(a)?)?;
        let cell = cell.nonlinearity(nonlinearity(a)?)?;
        Made::with(cell, |cell, a| cell.call((&a.get(0, "input")?, hidden(a)?.as_ref())))
    }),
    Entry::new("LSTMCell", |a| {
        let cell = LstmCell::new(a.size(0, "input_size")?, a.size(1, "hidden_size")?)?.bias(bias(a)?)?;
        Made::with(cell, |cell, a| {
            let states = states(a)?;
            cell.call((&a.get(0, "input")?, states.as_ref().map(|[hidden, memory]| (hidden, memory))))
        })
    }),
    Entry::new("GRUCell", |a| {
        let cell = GruCell::new(a.size(0, "input_size")?, a.size(1, "hidden_size")?)?.bias(bias(a)?)?;
        Made::with(cell, |cell, a| cell.call((&a.get(0, "input")?, hidden(a)?.as_ref())))
    }),
];

/// The input of a layer, whose steps are in the first or the second dimension.
fn sequence(a: &Arguments<'_>) -> Result<Tensor> {
    let input: Tensor = a.get(0, "input")?;
    let dims = input.dim().saturating_sub(1);
    input.shape().iter().take(dims).try_for_each(|&steps| within("steps", steps))?;
    Ok(input)
}

/// Refuses more layers or steps than a recorded call may have.
pub(super) fn within(what: &str, count: usize) -> Result<()> {
    if count <= MOST_STEPS {
        return Ok(());
    }
    let text = format_args!("{what} are {count}, expected at most {MOST_STEPS} in a recorded call");
    Err(Error::new(Cause::Argument, "", text))
}

fn nonlinearity(a: &Arguments<'_>) -> Result<Nonlinearity> {
    match &*a.or(3, "nonlinearity", "tanh".to_owned())? {
        "tanh" => Ok(Nonlinearity::Tanh),
        "relu" => Ok(Nonlinearity::Relu),
        other => {
            let text = format_args!("nonlinearity is {other:?}, expected \"tanh\" or \"relu\"");
            Err(Error::new(Cause::Argument, "", text))
        }
    }
}

/// The bias of a cell, where torch takes any text for true.
fn bias(a: &Arguments<'_>) -> Result<bool> {
    Ok(match a.get::<Option<Either<bool, String>>>(2, "bias")? {
        Some(Either::One(bias)) => bias,
        Some(Either::Other(text)) => !text.is_empty(),
        None => true,
    })
}

fn hidden(a: &Arguments<'_>) -> Result<Option<Tensor>> {
    a.get(1, "hx")
}

/// Hidden states and memories, as a tuple.
fn states(a: &Arguments<'_>) -> Result<Option<[Tensor; 2]>> {
    let Some(states) = a.get::<Option<Vec<Tensor>>>(1, "hx")? else { return Ok(None) };
    let states: std::result::Result<[Tensor; 2], _> = states.try_into();
    states.map(Some).map_err(|states| {
        Error::new(Cause::Argument, "", format_args!("hx has {} tensors, expected 2", states.len()))
    })
}
