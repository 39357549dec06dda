//! Optimizers from outside.

mod common;
mod optimizers;
mod scaler;
mod state;
mod steps;
