//! Training that goes on where it was.
//!
//! A checkpoint is a directory of four files: the weights by torch's names, what optimizer and schedule keep, all
//! other numbers, and checksums of these three. It appears whole or not at all, and what was damaged
//! since is refused.
//!
//! ```
//! use cresset_checkpoint::{Checkpoints, TrainingState};
//! use cresset_nn::{Linear, Module};
//! use cresset_optim::{Adam, AdamOptions, Optimizer};
//!
//! # let directory = std::env::temp_dir().join(format!("cresset-checkpoint-{}", std::process::id()));
//! let model = Linear::new(4, 2)?;
//! let optimizer = Adam::new(model.parameters(), AdamOptions::default())?;
//! let checkpoints = Checkpoints::new(&directory)?.keep(3);
//! checkpoints.save(&model, &TrainingState::of(50, &optimizer)?)?;
//!
//! let newest = checkpoints.newest()?.expect("one was just saved");
//! let fresh = Linear::new(4, 2)?;
//! let mut optimizer = Adam::new(fresh.parameters(), AdamOptions::default())?;
//! let state = newest.restore(&fresh, &mut optimizer)?;
//! assert_eq!(state.step, 50);
//! # std::fs::remove_dir_all(directory).unwrap();
//! # Ok::<(), cresset_checkpoint::Error>(())
//! ```
//!
//! - `state` is what is kept besides the weights;
//! - `json` is how it is written;
//! - `store` is the directory of checkpoints: which there are, and which are kept;
//! - `durable` puts files where no loss of power finds half of them.

#![forbid(unsafe_code)]

mod durable;
mod json;
mod state;
mod store;

pub use cresset_tensor::{Error, Result};
pub use state::TrainingState;
pub use store::{Checkpoint, Checkpoints};
