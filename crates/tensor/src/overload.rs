//! `+ - * / % & | ^ !` on tensors and numbers.
//!
//! Operators return `Result` and take one on either side of a tensor, so that a whole expression needs
//! one `?`: `(&x * &w + &b)?`. Beside a number or another `Result`, Rust does not let us define them;
//! such an expression needs a second `?`.

use crate::{Result, Scalar, Tensor};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

/// One row per operator: its trait, the tensor's method, the numbers it takes, and what it means with a
/// number to the left.
macro_rules! operators {
    ($($trait:ident, $method:ident: $call:ident, $numbers:tt, |$number:ident, $tensor:ident| $reversed:expr;)*) => {$(
        operators!(@pair $trait, $method, $call, &Tensor, &Tensor, |a| a, |b| b);
        operators!(@pair $trait, $method, $call, &Tensor, Tensor, |a| a, |b| &b);
        operators!(@pair $trait, $method, $call, Tensor, &Tensor, |a| &a, |b| b);
        operators!(@pair $trait, $method, $call, Tensor, Tensor, |a| &a, |b| &b);
        operators!(@pair $trait, $method, $call, Result<Tensor>, &Tensor, |a| &a?, |b| b);
        operators!(@pair $trait, $method, $call, Result<Tensor>, Tensor, |a| &a?, |b| &b);
        operators!(@pair $trait, $method, $call, &Tensor, Result<Tensor>, |a| a, |b| &b?);
        operators!(@pair $trait, $method, $call, Tensor, Result<Tensor>, |a| &a, |b| &b?);
        operators!(@numbers $trait, $method, $call, $numbers, |$number, $tensor| $reversed);
    )*};
    (@pair $trait:ident, $method:ident, $call:ident, $left:ty, $right:ty, |$a:ident| $first:expr, |$b:ident| $second:expr) => {
        impl $trait<$right> for $left {
            type Output = Result<Tensor>;

            fn $method(self, other: $right) -> Result<Tensor> {
                let ($a, $b) = (self, other);
                Tensor::$call($first, $second)
            }
        }
    };
    (@numbers $trait:ident, $method:ident, $call:ident, ($($ty:ty)*), |$number:ident, $tensor:ident| $reversed:expr) => {$(
        operators!(@pair $trait, $method, $call, &Tensor, $ty, |a| a, |b| b);
        operators!(@pair $trait, $method, $call, Tensor, $ty, |a| &a, |b| b);

        impl $trait<&Tensor> for $ty {
            type Output = Result<Tensor>;

            fn $method(self, $tensor: &Tensor) -> Result<Tensor> {
                let $number = self;
                $reversed
            }
        }

        impl $trait<Tensor> for $ty {
            type Output = Result<Tensor>;

            fn $method(self, tensor: Tensor) -> Result<Tensor> {
                $trait::$method(self, &tensor)
            }
        }
    )*};
}

operators! {
    Add, add: add, (f64 i64), |number, tensor| tensor.add(number);
    Sub, sub: sub, (f64 i64), |number, tensor| tensor.rsub(number);
    Mul, mul: mul, (f64 i64), |number, tensor| tensor.mul(number);
    Div, div: div, (f64 i64), |number, tensor| tensor.rdiv(number);
    Rem, rem: remainder, (f64 i64), |number, tensor| beside(number, tensor)?.remainder(tensor);
    BitAnd, bitand: bitwise_and, (i64 bool), |number, tensor| tensor.bitwise_and(number);
    BitOr, bitor: bitwise_or, (i64 bool), |number, tensor| tensor.bitwise_or(number);
    BitXor, bitxor: bitwise_xor, (i64 bool), |number, tensor| tensor.bitwise_xor(number);
}

/// A number as a tensor of the type that it meets `tensor` at.
fn beside(number: impl Into<Scalar>, tensor: &Tensor) -> Result<Tensor> {
    let number = number.into();
    tensor.new_full([], number, tensor.result_type(number))
}

/// One row per operator of one tensor.
macro_rules! signs {
    ($($trait:ident, $method:ident: $call:ident;)*) => {$(
        impl $trait for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self) -> Result<Tensor> {
                Tensor::$call(self)
            }
        }

        impl $trait for Tensor {
            type Output = Result<Tensor>;

            fn $method(self) -> Result<Tensor> {
                Tensor::$call(&self)
            }
        }
    )*};
}

signs! {
    Neg, neg: neg;
    Not, not: bitwise_not;
}
