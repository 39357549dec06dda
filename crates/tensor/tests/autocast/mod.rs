//! Autocast: what torch computes inside it, which operators it casts, and what it leaves alone.

mod lists;
mod recorded;
mod regions;

use cresset_tensor::{Result, Tensor};

/// A tensor of f32 that is easy to make elsewhere.
fn wave(phase: f64, shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product();
    let elements: Vec<f32> =
        (0..count).map(|i: usize| ((i as f64 * 0.7 + phase).sin() * 0.5) as f32).collect();
    Tensor::from_vec(elements, shape)
}

/// As [`wave`], a parameter.
fn parameter(phase: f64, shape: &[usize]) -> Result<Tensor> {
    wave(phase, shape)?.with_grad()
}
