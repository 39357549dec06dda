//! Functions of two and three tensors, comparison, choice.

use super::Entry;
use crate::arguments::{KEYWORD, Term};
use cresset_tensor::{Scalar, Tensor};

pub(super) const OPS: &[Entry] = &[
    Entry::one("add", |a| {
        let (x, other): (Tensor, Term) = (a.get(0, "input")?, a.get(1, "other")?);
        x.add_scaled(&other, a.or(KEYWORD, "alpha", Scalar::Int(1))?)
    })
    .in_place(|x, a| x.add_scaled_(&a.get::<Term>(1, "other")?, a.or(KEYWORD, "alpha", Scalar::Int(1))?)),
    Entry::one("mul", |a| a.get::<Tensor>(0, "input")?.mul(&a.get::<Term>(1, "other")?))
        .in_place(|x, a| x.mul_(&a.get::<Term>(1, "other")?)),
];
