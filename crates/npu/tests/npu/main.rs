//! The backend over the simulator: what it computes equals the host's, and it keeps its books.

mod activity;
mod allocator;
mod collective;
mod faults;
mod layers;
mod library;
mod operators;
mod places;
mod random;
mod soak;
mod streams;
mod support;
mod training;
mod transfers;
