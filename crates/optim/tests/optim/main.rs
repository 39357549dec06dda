//! Optimizers from outside.

mod common;
mod optimizers;
mod options;
mod scaler;
mod schedules;
mod state;
mod steps;
