//! `+ - * / % & | ^ !` on tensors and numbers.
//!
//! Operators return `Result` and take one on either side of a tensor, so that a whole expression needs
//! one `?`: `(&x * &w + &b)?`. Beside a number or another `Result`, Rust does not let us define them;
//! such an expression needs a second `?`.
//!
//! Sums, differences, products and quotients take a left operand that is given away, and that nobody else
//! has, as room for the result (see [`reuse`]).

use crate::op::Operand;
use crate::{Result, Scalar, Tensor, ops, reuse};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

/// One row per operator: its trait, the tensor's method, the same for a left operand that is given away,
/// the numbers it takes, and what it means with a number to the left.
macro_rules! operators {
    ($($trait:ident, $method:ident: $call:ident, $given:ident, $numbers:tt, |$number:ident, $tensor:ident| $reversed:expr;)*) => {$(
        operators!(@pair $trait, $method, $call, &Tensor, &Tensor, |a| a, |b| b);
        operators!(@pair $trait, $method, $call, &Tensor, Tensor, |a| a, |b| &b);
        operators!(@pair $trait, $method, $given, Tensor, &Tensor, |a| a, |b| b);
        operators!(@pair $trait, $method, $given, Tensor, Tensor, |a| a, |b| &b);
        operators!(@pair $trait, $method, $given, Result<Tensor>, &Tensor, |a| a?, |b| b);
        operators!(@pair $trait, $method, $given, Result<Tensor>, Tensor, |a| a?, |b| &b);
        operators!(@pair $trait, $method, $call, &Tensor, Result<Tensor>, |a| a, |b| &b?);
        operators!(@pair $trait, $method, $given, Tensor, Result<Tensor>, |a| a, |b| &b?);
        operators!(@numbers $trait, $method, $call, $given, $numbers, |$number, $tensor| $reversed);
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
    (@numbers $trait:ident, $method:ident, $call:ident, $given:ident, ($($ty:ty)*), |$number:ident, $tensor:ident| $reversed:expr) => {$(
        operators!(@pair $trait, $method, $call, &Tensor, $ty, |a| a, |b| b);
        operators!(@pair $trait, $method, $given, Tensor, $ty, |a| a, |b| b);

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
    Add, add: add, given_add, (f64 i64), |number, tensor| tensor.add(number);
    Sub, sub: sub, given_sub, (f64 i64), |number, tensor| tensor.rsub(number);
    Mul, mul: mul, given_mul, (f64 i64), |number, tensor| tensor.mul(number);
    Div, div: div, given_div, (f64 i64), |number, tensor| tensor.rdiv(number);
    Rem, rem: remainder, given_rem, (f64 i64), |number, tensor| beside(number, tensor)?.remainder(tensor);
    BitAnd, bitand: bitwise_and, given_bitand, (i64 bool), |number, tensor| tensor.bitwise_and(number);
    BitOr, bitor: bitwise_or, given_bitor, (i64 bool), |number, tensor| tensor.bitwise_or(number);
    BitXor, bitxor: bitwise_xor, given_bitxor, (i64 bool), |number, tensor| tensor.bitwise_xor(number);
}

/// One row per operator: what becomes of a left operand that is given away.
macro_rules! given {
    ($($name:ident: |$a:ident, $b:ident| $result:expr;)*) => {
        impl Tensor {
            $(fn $name<'a>(self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                let ($a, $b) = (self, other.into());
                $result
            })*
        }
    };
}

const ONE: Scalar = Scalar::Int(1);

given! {
    given_add: |a, b| reuse::over(ops::Add { alpha: ONE }, a, b);
    given_sub: |a, b| reuse::over(ops::Sub { alpha: ONE }, a, b);
    given_mul: |a, b| reuse::over(ops::Mul, a, b);
    given_div: |a, b| reuse::over(ops::Div, a, b);
    given_rem: |a, b| a.remainder(b);
    given_bitand: |a, b| a.bitwise_and(b);
    given_bitor: |a, b| a.bitwise_or(b);
    given_bitxor: |a, b| a.bitwise_xor(b);
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
