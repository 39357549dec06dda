//! Cresset from outside, as one program: what a user sees, and what the architecture promises.

mod allocations;
mod architecture;
mod checkpoint;
mod command;
mod distributed;
mod examples;
mod execution_trace;
mod faults;
mod memory_timeline;
mod mixed_precision;
mod optimizer_steps;
mod parity;
mod profile;
mod tracing;
mod training;
