//! `+ - * /` on tensors and numbers.
//!
//! Operators return `Result` and take one on either side, so that a whole expression needs
//! one `?`: `(&x * &w + &b)?`. A number beside a `Result` is the one combination that Rust
//! does not let us define; such an expression needs a second `?`.

use crate::{Result, Tensor};
use std::ops::{Add, Div, Mul, Neg, Sub};

macro_rules! operator {
    ($trait:ident, $method:ident, |$number:ident, $tensor:ident| $reversed:expr) => {
        impl $trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self, other: &Tensor) -> Result<Tensor> {
                Tensor::$method(self, other)
            }
        }

        impl $trait<&Tensor> for Result<Tensor> {
            type Output = Result<Tensor>;

            fn $method(self, other: &Tensor) -> Result<Tensor> {
                Tensor::$method(&self?, other)
            }
        }

        impl $trait<Result<Tensor>> for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self, other: Result<Tensor>) -> Result<Tensor> {
                Tensor::$method(self, &other?)
            }
        }

        operator!(@numbers $trait, $method, |$number, $tensor| $reversed; f64 i64);
    };
    (@numbers $trait:ident, $method:ident, |$number:ident, $tensor:ident| $reversed:expr; $($ty:ty)*) => {$(
        impl $trait<$ty> for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self, other: $ty) -> Result<Tensor> {
                Tensor::$method(self, other)
            }
        }

        impl $trait<&Tensor> for $ty {
            type Output = Result<Tensor>;

            fn $method(self, $tensor: &Tensor) -> Result<Tensor> {
                let $number = self;
                $reversed
            }
        }
    )*};
}

operator!(Add, add, |number, tensor| tensor.add(number));
operator!(Sub, sub, |number, tensor| tensor.rsub(number));
operator!(Mul, mul, |number, tensor| tensor.mul(number));
operator!(Div, div, |number, tensor| tensor.reciprocal()?.mul(number));

impl Neg for &Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
