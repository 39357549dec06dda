//! Operators: one short function each, which checks its arguments and plans a kernel.

mod arithmetic;
mod cast;
mod compare;
mod fill;
mod index;
mod loss;
mod matrix;
mod optimizer;
mod reduce;
mod shape;
mod softmax;
mod unary;

pub(crate) use arithmetic::*;
pub(crate) use compare::*;
pub(crate) use fill::*;
pub(crate) use index::*;
pub(crate) use loss::*;
pub(crate) use matrix::*;
pub(crate) use optimizer::*;
pub(crate) use reduce::*;
pub(crate) use softmax::*;
pub(crate) use unary::*;
