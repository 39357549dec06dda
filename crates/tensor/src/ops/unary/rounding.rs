//! Integers near each element. Their slope is 0 wherever they have one.

use super::{functions, kind};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_kernels::functions;

functions! {
    /// The next integer below each element.
    Floor, floor, floor_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The next integer above each element.
    Ceil, ceil, ceil_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The integer nearest to each element, halves to the even one.
    Round, round, round_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The next integer from each element towards 0.
    Trunc, trunc, trunc_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// What [`trunc`](Tensor::trunc) cuts off.
    Frac, frac, frac_: only_float, saves Nothing, |grad, _x| Ok(grad.clone());
}
