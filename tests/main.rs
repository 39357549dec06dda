//! Cresset from outside, as one program: what a user sees, and what the architecture promises.

mod allocations;
mod architecture;
mod command;
mod profile;
mod training;
