//! Layers that read a sequence step by step: plain, LSTM and GRU, as cells and stacked.
//!
//! - `step` is one step of each kind;
//! - `weights` are the parameters of a stack, under torch's names;
//! - `stack` runs over a sequence, layer by layer and in both directions;
//! - `packed` is sequences of different lengths, and how a stack runs over them;
//! - `layers` and `cells` are the modules.

mod cells;
mod layers;
mod packed;
mod stack;
mod step;
mod weights;

pub use cells::{GruCell, LstmCell, RnnCell};
pub use layers::{Gru, Lstm, Rnn};
pub use packed::{PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence};
pub use step::Nonlinearity;
