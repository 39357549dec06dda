//! One step of a random program, as a tensor takes it.

use cresset_tensor::{DType, Result, Tensor};
use proptest::prelude::*;

/// Numbers are choices: they become dimensions and indices of whatever shape a step meets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Transpose(usize, usize),
    Slice { dim: usize, start: usize, stop: usize, step: usize },
    Select(usize, usize),
    Unsqueeze(usize),
    Expand,
    Diagonal,
    Flatten,
    Flip(usize),
    Doubled(usize),
    Neg,
    Add(i64),
    Mul(i64),
    Square,
    Tanh,
    Sigmoid,
    Relu,
    Centered(usize),
    Softmax(usize),
    Sum(usize, bool),
    Mean(usize),
    Maximum(usize),
    Cumsum(usize),
    Sorted(usize),
    Gram,
}

/// Steps that only look at the elements in another way.
pub(super) fn looks() -> impl Strategy<Value = Step> + Clone {
    let choice = 0..12usize;
    prop_oneof![
        (choice.clone(), choice.clone()).prop_map(|(a, b)| Step::Transpose(a, b)),
        (choice.clone(), choice.clone(), choice.clone(), 1..4usize)
            .prop_map(|(dim, start, stop, step)| Step::Slice { dim, start, stop, step }),
        (choice.clone(), choice.clone()).prop_map(|(dim, index)| Step::Select(dim, index)),
        choice.prop_map(Step::Unsqueeze),
        Just(Step::Expand),
        Just(Step::Diagonal),
    ]
}

/// Steps whose derivatives are smooth, so that finite differences can tell them.
pub(super) fn smooth() -> impl Strategy<Value = Step> + Clone {
    let choice = 0..12usize;
    prop_oneof![
        3 => looks(),
        1 => Just(Step::Flatten),
        1 => choice.clone().prop_map(Step::Flip),
        1 => choice.clone().prop_map(Step::Doubled),
        1 => Just(Step::Neg),
        1 => (-2..3i64).prop_map(Step::Add),
        1 => (-2..3i64).prop_map(Step::Mul),
        1 => Just(Step::Square),
        1 => Just(Step::Tanh),
        1 => Just(Step::Sigmoid),
        1 => choice.clone().prop_map(Step::Centered),
        1 => choice.clone().prop_map(Step::Softmax),
        1 => (choice.clone(), any::<bool>()).prop_map(|(dim, keep)| Step::Sum(dim, keep)),
        1 => choice.clone().prop_map(Step::Mean),
        1 => choice.prop_map(Step::Cumsum),
        1 => Just(Step::Gram),
    ]
}

/// All steps.
pub(super) fn steps() -> impl Strategy<Value = Step> + Clone {
    let choice = 0..12usize;
    prop_oneof![
        5 => smooth(),
        1 => Just(Step::Relu),
        1 => choice.clone().prop_map(Step::Maximum),
        1 => choice.prop_map(Step::Sorted),
    ]
}

impl Step {
    /// Whether the step is defined for these elements, and small numbers stay exact in it.
    pub(super) fn suits(self, dtype: DType, shape: &[usize]) -> bool {
        let (float, narrow) = (dtype.is_float(), matches!(dtype, DType::Bool | DType::U8 | DType::I8));
        match self {
            Step::Neg | Step::Add(_) | Step::Mul(_) | Step::Relu => !narrow,
            Step::Square => float,
            Step::Tanh | Step::Sigmoid | Step::Centered(_) | Step::Softmax(_) | Step::Mean(_) => float,
            Step::Maximum(choice) => shape.is_empty() || shape[choice % shape.len()] > 0,
            Step::Gram => float && (2..4).contains(&shape.len()),
            _ => true,
        }
    }

    /// Whether half-precision elements come out exactly.
    pub(super) fn is_exact(self) -> bool {
        use Step::*;
        matches!(
            self,
            Transpose(..) | Slice { .. } | Select(..) | Unsqueeze(_) | Expand | Diagonal | Flatten | Flip(_)
        ) || matches!(self, Doubled(_) | Neg | Relu | Maximum(_) | Sorted(_))
    }

    /// Takes the step.
    pub(super) fn run(self, x: &Tensor) -> Result<Tensor> {
        let rank = x.dim();
        let dim = |choice: usize| (choice % rank.max(1)) as isize;
        match self {
            Step::Transpose(a, b) => x.transpose(dim(a), dim(b)),
            Step::Slice { dim: along, start, stop, step } if rank > 0 => {
                let size = x.shape()[along % rank];
                let [start, stop] = [start, stop].map(|choice| (choice % (size + 1)) as isize);
                x.slice(dim(along), start..stop, step)
            }
            Step::Select(along, index) if rank > 0 && x.shape()[along % rank] > 0 => {
                // Counted from the end.
                let size = x.shape()[along % rank];
                x.select(dim(along), (index % size) as isize - size as isize)
            }
            Step::Unsqueeze(choice) if rank < 6 => x.unsqueeze((choice % (rank + 1)) as isize),
            Step::Expand if rank < 6 => {
                let shape: Vec<usize> = [2].iter().chain(x.shape()).copied().collect();
                x.expand(shape)
            }
            Step::Diagonal if rank > 1 => x.diagonal(0, 0, -1),
            Step::Slice { .. } | Step::Select(..) | Step::Unsqueeze(_) | Step::Expand | Step::Diagonal => {
                Ok(x.clone())
            }
            Step::Flatten => x.reshape([x.numel()]),
            Step::Flip(along) if rank > 0 => x.flip(&[dim(along)]),
            Step::Doubled(along) if rank > 0 => Tensor::cat(&[x, x], dim(along)),
            Step::Flip(_) | Step::Doubled(_) => Ok(x.clone()),
            Step::Neg => -x,
            Step::Add(number) => x + number,
            Step::Mul(number) => number * x,
            Step::Square => (x * x)?.tanh(),
            Step::Tanh => x.tanh(),
            Step::Sigmoid => x.sigmoid(),
            Step::Relu => x.relu(),
            Step::Centered(along) => x - &x.mean_dims(&[dim(along)], true)?,
            Step::Softmax(along) => x.softmax(dim(along)),
            Step::Sum(along, keep) => x.sum_dims(&[dim(along)], keep),
            Step::Mean(along) => x.mean_dims(&[dim(along)], false),
            Step::Maximum(along) => x.amax(&[dim(along)], false),
            Step::Cumsum(along) => x.cumsum(dim(along), None),
            Step::Sorted(along) => Ok(x.sort(dim(along), true, false)?[0].clone()),
            Step::Gram => x.matmul(&x.transpose(-1, -2)?)?.tanh(),
        }
    }
}
