//! The backend over the simulator: what it computes equals the host's, and it keeps its books.

mod activity;
mod allocator;
mod library;
mod operators;
mod streams;
mod support;
mod training;
