//! Elements between elements: other sizes, and samples at any place.

mod grid;
mod size;

pub use grid::{Border, Sampling, sample, sample_backward, sample_double_backward};
pub use size::{Line, resize, resize_backward};

/// How elements between elements are made of their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The element before, counted from the corner of the first.
    Nearest,
    /// The nearest by the middle of elements.
    NearestExact,
    /// A straight line between the two around.
    Linear,
    /// A cubic through the two around, with slopes of the four around.
    Cubic,
}

/// How much the slopes of cubics lean; torch's constant.
const LEAN: f64 = -0.75;

/// Weights of the four elements around a place that lies `t` after the second, with their first and
/// second derivatives.
fn cubic(t: f64) -> [[f64; 3]; 4] {
    // Within one of the element, and from one to two.
    let near = |x: f64| {
        let (a, b) = (LEAN + 2.0, LEAN + 3.0);
        [(a * x - b) * x * x + 1.0, (3.0 * a * x - 2.0 * b) * x, 6.0 * a * x - 2.0 * b]
    };
    let far = |x: f64| {
        [
            ((x - 5.0) * x + 8.0) * x * LEAN - 4.0 * LEAN,
            (3.0 * x * x - 10.0 * x + 8.0) * LEAN,
            (6.0 * x - 10.0) * LEAN,
        ]
    };
    // Those after the place come closer as it moves on.
    let after = |[value, slope, bend]: [f64; 3]| [value, -slope, bend];
    [far(t + 1.0), near(t), after(near(1.0 - t)), after(far(2.0 - t))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_weights_add_up_to_one_and_their_derivatives_to_none() {
        for t in [0.0, 0.3, 0.9] {
            let sum = |order: usize| cubic(t).iter().map(|weights| weights[order]).sum::<f64>();
            assert!((sum(0) - 1.0).abs() < 1e-12 && sum(1).abs() < 1e-12 && sum(2).abs() < 1e-12);
        }
        assert_eq!(cubic(0.0).map(|weights| weights[0]), [0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn cubic_derivatives_are_those_of_the_weights() {
        let (t, step) = (0.4, 1e-6);
        for k in 0..4 {
            for order in 0..2 {
                let rise = cubic(t + step)[k][order] - cubic(t - step)[k][order];
                assert!((rise / (2.0 * step) - cubic(t)[k][order + 1]).abs() < 1e-6);
            }
        }
    }
}
