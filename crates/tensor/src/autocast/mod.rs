//! Mixed precision: inside a region, products compute in half precision and what needs digits in
//! `f32`, whatever they are given.
//!
//! [`table`] says which operators are cast to what. Casts are calls like any other: they are
//! recorded, have gradients and are seen in traces. A parameter is cast once per region.

mod region;
mod table;

pub(crate) use region::is_on;
pub use region::{Autocast, AutocastGuard, autocast, without_autocast};

use crate::op::{Given, Inputs};
use crate::{Cause, DType, Error, Forward, Result, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::key::{self, ThreadKeys};
use table::Policy;

/// Whether autocast knows the operator called `name`.
pub(crate) const fn is_listed(name: &str) -> bool {
    !matches!(table::policy(name), Policy::AsGiven)
}

/// Calls `op` again with its inputs cast, below autocast.
#[cold]
pub(crate) fn call<O: Forward>(op: O, inputs: O::Inputs<'_>) -> Result<O::Output> {
    cast_all(O::NAME, table::policy(O::NAME), inputs, |inputs| op.call(inputs))
}

/// What `again` gives, below autocast, for the inputs of the operator `name`, cast as torch's list
/// says. `None` where autocast is off or does not know the operator.
///
/// For operators made of others, right after their span has begun. All others are cast by
/// [`Op::call`](crate::Op::call).
#[inline]
pub fn casting<I: Inputs, R>(
    name: &'static str,
    inputs: I,
    again: impl FnOnce(I::For<'_>) -> Result<R>,
) -> Option<Result<R>> {
    if !is_on() {
        return None;
    }
    match table::policy(name) {
        Policy::AsGiven => None,
        policy => Some(cast_all(name, policy, inputs, again)),
    }
}

/// Nothing is cast until the guard drops. For operators that torch does not make of products.
pub(crate) fn below() -> ThreadKeys {
    key::exclude(KeySet::AUTOCAST)
}

#[cold]
fn cast_all<I: Inputs, R>(
    name: &'static str,
    policy: Policy,
    inputs: I,
    again: impl FnOnce(I::For<'_>) -> Result<R>,
) -> Result<R> {
    let _below = below();
    let lower = region::lower();
    let to = match policy {
        Policy::AsGiven => return inputs.swapped(&mut |_| Ok(None), again),
        Policy::Lower => lower,
        Policy::Single => DType::F32,
        Policy::Widest => widest(name, lower, inputs)?,
    };
    inputs.swapped(&mut |tensor| cast(tensor, to), again)
}

/// Only floats up to `f32` are cast: who computes in `f64` means it.
fn is_cast(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// The widest of the inputs that are cast at all.
fn widest<I: Inputs>(name: &'static str, lower: DType, inputs: I) -> Result<DType> {
    let (mut widest, mut other) = (lower, None);
    inputs.each(|given| match given {
        Given::Tensor(tensor) if tensor.dtype() == DType::F32 => widest = DType::F32,
        // Unless something wider came before: that decides then.
        Given::Tensor(tensor) if widest == lower && is_cast(tensor.dtype()) && tensor.dtype() != lower => {
            other.get_or_insert(tensor.dtype());
        }
        _ => {}
    });
    match other {
        None => Ok(widest),
        Some(other) => {
            let text = format_args!(
                "a tensor of {other} inside autocast to {lower}: tensors to be joined are of {lower} or f32 there; convert it with to()"
            );
            Err(Error::new(Cause::DType, name, text))
        }
    }
}

/// The tensor as `to`, if it is cast.
fn cast(tensor: &Tensor, to: DType) -> Result<Option<Tensor>> {
    if !is_cast(tensor.dtype()) || tensor.dtype() == to {
        return Ok(None);
    }
    region::kept(tensor, to, || tensor.to(to)).map(Some)
}
