//! Positions as angles by which pairs of elements are turned, and softmax of masked scores.

use super::super::cast::{FLOATS, expect_dtype};
use super::super::numbers::{numbers, store};
use super::super::shape::{broadcast_to, expect};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::DType;

/// Which elements of a row are turned together.
#[derive(Clone, Copy)]
enum Pairs {
    /// One of the first half and one of the second.
    Halves,
    /// Neighbours.
    Neighbours,
}

impl Pairs {
    /// The partner of an element, and the sign with which it counts.
    fn partner(self, at: usize, width: usize) -> (usize, f64) {
        match self {
            Pairs::Halves if at < width / 2 => (at + width / 2, -1.0),
            Pairs::Halves => (at - width / 2, 1.0),
            Pairs::Neighbours if at.is_multiple_of(2) => (at + 1, -1.0),
            Pairs::Neighbours => (at - 1, 1.0),
        }
    }

    /// A row times cosines, plus the row of partners times sines.
    fn turn(self, x: &[f64], cos: &[f64], sin: &[f64], width: usize) -> Vec<f64> {
        let turned = |(at, x_at): (usize, &f64)| {
            let (partner, sign) = self.partner(at % width, width);
            x_at * cos[at] + sign * x[at / width * width + partner] * sin[at]
        };
        x.iter().enumerate().map(turned).collect()
    }
}

fn width(x: &Tensor) -> Result<usize> {
    match x.shape().last() {
        Some(&width) if width % 2 == 0 && width > 0 => Ok(width),
        _ => fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no pairs in its rows", x.shape()),
    }
}

pub(crate) fn rotary_position_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    mode: i64,
    out: Tensor,
) -> Planned {
    let pairs = match mode {
        0 => Pairs::Halves,
        1 => Pairs::Neighbours,
        _ => fail!(code::NN_PARAM_INVALID, "mode {mode} is not simulated"),
    };
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let width = width(&x)?;
    let (cos, sin) = (broadcast_to("cos", &cos, x.shape())?, broadcast_to("sin", &sin, x.shape())?);
    Plan::new(c"RotaryPositionEmbedding", [x, cos, sin], [out], move |[x, cos, sin], [out]| {
        store(&pairs.turn(&numbers(x), &numbers(cos), &numbers(sin), width), out);
        Ok(())
    })
}

pub(crate) fn apply_rotary_pos_emb(
    query: Tensor,
    key: Tensor,
    cos: Tensor,
    sin: Tensor,
    layout: i64,
) -> Planned {
    if layout != 1 {
        fail!(code::NN_PARAM_INVALID, "layout {layout} is not simulated");
    }
    let width = width(&query)?;
    let spread =
        |x: &Tensor| Ok([broadcast_to("cos", &cos, x.shape())?, broadcast_to("sin", &sin, x.shape())?]);
    let ([query_cos, query_sin], [key_cos, key_sin]) = (spread(&query)?, spread(&key)?);
    let reads = [query_cos, query_sin, key_cos, key_sin];
    Plan::new(
        c"ApplyRotaryPosEmb",
        reads,
        [query, key],
        move |[query_cos, query_sin, key_cos, key_sin], [query, key]| {
            for (x, cos, sin) in [(query, query_cos, query_sin), (key, key_cos, key_sin)] {
                let turned = Pairs::Halves.turn(&numbers(x.as_view()), &numbers(cos), &numbers(sin), width);
                store(&turned, x);
            }
            Ok(())
        },
    )
}

pub(crate) fn scaled_masked_softmax(
    x: Tensor,
    mask: Tensor,
    scale: f64,
    triangle: bool,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("mask", &mask, &[DType::Bool])?;
    expect("out", &out, x.shape())?;
    let &[.., rows, columns] = x.shape() else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no rows", x.shape());
    };
    let mask = broadcast_to("mask", &mask, x.shape())?;
    let plan = Plan::new(c"ScaledMaskedSoftmax", [x, mask], [out], move |[x, mask], [out]| {
        /// What stands for a score that is hidden.
        const HIDDEN: f64 = -10000.0;
        let (mut scores, hidden) = (numbers(x), numbers(mask));
        for (at, score) in scores.iter_mut().enumerate() {
            let above = triangle && at % columns > at / columns % rows;
            *score = if above || !triangle && hidden[at] != 0.0 { HIDDEN } else { *score * scale };
        }
        for row in scores.chunks_mut(columns.max(1)) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|score| *score = (*score - largest).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|score| *score /= sum);
        }
        store(&scores, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}
