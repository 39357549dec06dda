//! Tensors, operators and gradients on the host, as a user of the crate sees them.

mod autocast;
mod autograd;
mod changes;
mod checkpoints;
mod display;
mod extremes;
mod functional;
mod functions;
mod gradients;
mod hooks;
mod indexing;
mod modes;
mod operators;
mod outside_device;
mod promotion;
mod properties;
mod rules;
mod threads;
mod threads_agree;
