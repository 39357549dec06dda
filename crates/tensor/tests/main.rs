//! Tensors, operators and gradients on the host, as a user of the crate sees them.

mod autograd;
mod changes;
mod gradients;
mod hooks;
mod modes;
mod operators;
mod outside_device;
