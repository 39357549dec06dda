//! The kinds of functions: which element types they take and give, and how they are computed.

use crate::promote::float_type;
use crate::{Cause, DType, Error, Kernel, Op, Result, Spec, Tensor, cpu, shown};
use cresset_kernels::{elementwise, functions};

/// What torch's kernel calls on its way, per kind: see [`Kernel::shown`].
type Seen = Result<Option<Tensor>>;

/// A function of one operand.
pub(in crate::ops) trait Function:
    Kernel + for<'a> Op<Inputs<'a> = [&'a Tensor; 1], Output = Tensor>
{
}

impl<O: Kernel + for<'a> Op<Inputs<'a> = [&'a Tensor; 1], Output = Tensor>> Function for O {}

/// Nothing is called.
pub(in crate::ops) fn straight<O: Function>(_op: &O, _x: &Tensor) -> Seen {
    Ok(None)
}

/// Functions that only floats have: other types are converted.
pub(in crate::ops) mod float {
    use super::*;

    pub(in crate::ops) fn shown<O: Function>(op: &O, x: &Tensor) -> Seen {
        match shown::converted(x, float_type(x.dtype()))? {
            Some(converted) => op.computed([&converted]).map(Some),
            None => Ok(None),
        }
    }

    pub(in crate::ops) fn infer(_op: &'static str, x: &Tensor) -> Result<Spec> {
        Ok(Spec::new(x.shape(), float_type(x.dtype())))
    }

    pub(in crate::ops) fn map(f: impl functions::Unary, x: &Tensor, out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::unary(f, x, out))
    }

    pub(in crate::ops) fn change(f: impl functions::Unary, x: &Tensor) -> Result<()> {
        cpu::change(x, [], |x, []| elementwise::unary_in_place(f, x))
    }
}

/// Functions that take nothing but floats.
pub(in crate::ops) mod only_float {
    use super::*;

    pub(in crate::ops) use super::float::{change, map};
    pub(in crate::ops) use super::straight as shown;

    pub(in crate::ops) fn infer(op: &'static str, x: &Tensor) -> Result<Spec> {
        crate::ops::check_float(op, x)?;
        Ok(Spec::like(x))
    }
}

/// Functions of all numbers, each within its type.
pub(in crate::ops) mod number {
    use super::*;

    pub(in crate::ops) use super::straight as shown;

    pub(in crate::ops) fn infer(op: &'static str, x: &Tensor) -> Result<Spec> {
        if x.dtype() == DType::Bool {
            return Err(Error::new(Cause::DType, op, "not defined for bool; convert with to_dtype() first"));
        }
        Ok(Spec::like(x))
    }

    pub(in crate::ops) fn map(f: impl functions::NumberUnary, x: &Tensor, out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::number_unary(f, x, out))
    }

    pub(in crate::ops) fn change(f: impl functions::NumberUnary, x: &Tensor) -> Result<()> {
        cpu::change(x, [], |x, []| elementwise::number_unary_in_place(f, x))
    }
}

/// As [`number`], by a kernel that torch hands its output.
pub(in crate::ops) mod number_into {
    use super::*;

    pub(in crate::ops) use super::number::{change, infer, map};

    pub(in crate::ops) fn shown<O: Function>(op: &O, x: &Tensor) -> Seen {
        shown::into_empty(O::NAME, [x], op.infer([x])?.dtype, || op.computed([x])).map(Some)
    }
}

/// Functions of all numbers that leave truth values as they are.
pub(in crate::ops) mod number_or_bool {
    use super::*;

    pub(in crate::ops) use super::straight as shown;

    pub(in crate::ops) fn infer(_op: &'static str, x: &Tensor) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    pub(in crate::ops) fn map(f: impl functions::NumberUnary, x: &Tensor, out: &Tensor) -> Result<()> {
        if x.dtype() == DType::Bool {
            cpu::map(x, DType::Bool, out, elementwise::copy)
        } else {
            number::map(f, x, out)
        }
    }

    pub(in crate::ops) fn change(f: impl functions::NumberUnary, x: &Tensor) -> Result<()> {
        if x.dtype() == DType::Bool { Ok(()) } else { number::change(f, x) }
    }
}

/// Functions that leave integers as they are.
pub(in crate::ops) mod rounding {
    use super::*;

    pub(in crate::ops) use super::number::infer;

    pub(in crate::ops) fn shown<O: Function>(op: &O, x: &Tensor) -> Seen {
        if x.dtype().is_float() {
            return Ok(None);
        }
        let out = op.room([x])?;
        out.copy_(x)?;
        Ok(Some(out))
    }

    pub(in crate::ops) fn map(f: impl functions::Unary, x: &Tensor, out: &Tensor) -> Result<()> {
        if x.dtype().is_float() {
            float::map(f, x, out)
        } else {
            cpu::map(x, x.dtype(), out, elementwise::copy)
        }
    }

    pub(in crate::ops) fn change(f: impl functions::Unary, x: &Tensor) -> Result<()> {
        if x.dtype().is_float() { float::change(f, x) } else { Ok(()) }
    }
}
