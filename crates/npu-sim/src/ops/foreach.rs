//! One operator on every tensor of a list.

use super::cast::{FLOATS, expect_dtype};
use super::numbers::{numbers, store};
use super::shape::{expect, expect_one};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::*;
use cresset_kernels::{Scalar, View, ViewMut, elementwise, reduce};
use std::ffi::CStr;

/// A kernel over `lists` of the same length, each of whose tensors are the operands of one of `out`.
fn foreach<const N: usize, F>(
    kernel: &'static CStr,
    lists: [Vec<Tensor>; N],
    further: Vec<Tensor>,
    out: Vec<Tensor>,
    f: F,
) -> Planned
where
    F: Fn(usize, [View<'_>; N], &[View<'_>], ViewMut<'_>) + Send + 'static,
{
    for list in &lists {
        if list.len() != out.len() {
            fail!(code::NN_PARAM_INVALID, "lists of {} and {} tensors", list.len(), out.len());
        }
        for (x, out) in list.iter().zip(&out) {
            expect("a tensor", x, out.shape())?;
            expect_dtype("a tensor", x, &[out.dtype()])?;
        }
    }
    let count = out.len();
    let reads = lists.concat().into_iter().chain(further).collect();
    Plan::lists(kernel, reads, out, move |reads, writes| {
        let (lists, further) = reads.split_at(N * count);
        for (at, out) in writes.into_iter().enumerate() {
            f(at, std::array::from_fn(|list| lists[list * count + at]), further, out);
        }
        Ok(())
    })
}

/// A number that is on the device.
fn only(x: &View<'_>) -> Scalar {
    Scalar::Float(numbers(*x)[0])
}

/// One line per function of one operand.
macro_rules! unary {
    ($($name:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $name(x: Vec<Tensor>, out: Vec<Tensor>) -> Planned {
            expect_floats(&x)?;
            foreach($kernel, [x], vec![], out, |_, [x], _, out| elementwise::unary($function, x, out))
        }
    )*};
}

unary! {
    foreach_sqrt = c"ForeachSqrt", Sqrt;
    foreach_reciprocal = c"ForeachReciprocal", Reciprocal;
    foreach_exp = c"ForeachExp", Exp;
}

fn expect_floats(list: &[Tensor]) -> Result {
    list.iter().try_for_each(|x| expect_dtype("a tensor", x, FLOATS))
}

pub(crate) fn foreach_neg(x: Vec<Tensor>, out: Vec<Tensor>) -> Planned {
    foreach(c"ForeachNeg", [x], vec![], out, |_, [x], _, out| elementwise::number_unary(Neg, x, out))
}

pub(crate) fn foreach_copy(x: Vec<Tensor>, out: Vec<Tensor>) -> Planned {
    Plan::lists(c"ForeachCopy", x, out, |reads, writes| {
        reads.iter().zip(writes).for_each(|(x, out)| elementwise::copy(*x, out));
        Ok(())
    })
}

pub(crate) fn foreach_zero_inplace(x: Vec<Tensor>) -> Planned {
    Plan::lists(c"ForeachZeroInplace", vec![], x, |_, writes| {
        writes.into_iter().for_each(|x| elementwise::fill(Scalar::Int(0), x));
        Ok(())
    })
}

/// One line per function of two lists.
macro_rules! binary {
    ($($name:ident($($alpha:ident: $ty:ty)?) = $kernel:literal, $run:ident, $function:expr;)*) => {$(
        pub(crate) fn $name(
            x: Vec<Tensor>,
            other: Vec<Tensor>,
            $($alpha: $ty,)?
            out: Vec<Tensor>,
        ) -> Planned {
            foreach($kernel, [x, other], vec![], out, move |_, [x, other], _, out| {
                elementwise::$run($function, x, other, out)
            })
        }
    )*};
}

binary! {
    foreach_add_list_v2(alpha: Scalar) = c"ForeachAddList", binary, Add { alpha };
    foreach_sub_list_v2(alpha: Scalar) = c"ForeachSubList", binary, Sub { alpha };
    foreach_mul_list() = c"ForeachMulList", binary, Mul;
    foreach_div_list() = c"ForeachDivList", float_binary, Div;
    foreach_maximum_list() = c"ForeachMaximumList", binary, Maximum;
}

pub(crate) fn foreach_add_list(
    x: Vec<Tensor>,
    other: Vec<Tensor>,
    alpha: Tensor,
    out: Vec<Tensor>,
) -> Planned {
    expect_one("alpha", &alpha)?;
    foreach(c"ForeachAddList", [x, other], vec![alpha], out, |_, [x, other], alpha, out| {
        elementwise::binary(Add { alpha: only(&alpha[0]) }, x, other, out);
    })
}

pub(crate) fn foreach_sub_list(
    x: Vec<Tensor>,
    other: Vec<Tensor>,
    alpha: Tensor,
    out: Vec<Tensor>,
) -> Planned {
    expect_one("alpha", &alpha)?;
    foreach(c"ForeachSubList", [x, other], vec![alpha], out, |_, [x, other], alpha, out| {
        elementwise::binary(Sub { alpha: only(&alpha[0]) }, x, other, out);
    })
}

/// What is done with a number and every element of a tensor.
#[derive(Clone, Copy)]
enum Scaling {
    Add,
    Multiply,
    Divide,
}

impl Scaling {
    fn run(self, x: View<'_>, number: Scalar, out: ViewMut<'_>) {
        let dtype = x.dtype();
        super::cast::Temporary::filled(number, dtype, x.shape()).read(|number| match self {
            Scaling::Add => elementwise::binary(Add { alpha: Scalar::Int(1) }, x, number, out),
            Scaling::Multiply => elementwise::binary(Mul, x, number, out),
            Scaling::Divide => elementwise::float_binary(Div, x, number, out),
        });
    }
}

/// One line per function of a list and a number: on the device, on the host, one per tensor.
macro_rules! scaling {
    (device: $($name:ident = $kernel:literal, $scaling:ident;)*) => {$(
        pub(crate) fn $name(x: Vec<Tensor>, other: Tensor, out: Vec<Tensor>) -> Planned {
            expect_one("other", &other)?;
            foreach($kernel, [x], vec![other], out, |_, [x], other, out| {
                Scaling::$scaling.run(x, only(&other[0]), out)
            })
        }
    )*};
    (host: $($name:ident = $kernel:literal, $scaling:ident;)*) => {$(
        pub(crate) fn $name(x: Vec<Tensor>, other: Scalar, out: Vec<Tensor>) -> Planned {
            foreach($kernel, [x], vec![], out, move |_, [x], _, out| Scaling::$scaling.run(x, other, out))
        }
    )*};
    (list: $($name:ident = $kernel:literal, $scaling:ident;)*) => {$(
        pub(crate) fn $name(x: Vec<Tensor>, others: Vec<Scalar>, out: Vec<Tensor>) -> Planned {
            expect_count(others.len(), &x)?;
            foreach($kernel, [x], vec![], out, move |at, [x], _, out| Scaling::$scaling.run(x, others[at], out))
        }
    )*};
}

scaling! { device:
    foreach_add_scalar = c"ForeachAddScalar", Add;
    foreach_mul_scalar = c"ForeachMulScalar", Multiply;
    foreach_div_scalar = c"ForeachDivScalar", Divide;
}

scaling! { host:
    foreach_add_scalar_v2 = c"ForeachAddScalar", Add;
    foreach_mul_scalar_v2 = c"ForeachMulScalar", Multiply;
}

scaling! { list:
    foreach_add_scalar_list = c"ForeachAddScalarList", Add;
    foreach_mul_scalar_list = c"ForeachMulScalarList", Multiply;
}

fn expect_count(count: usize, list: &[Tensor]) -> Result {
    if count != list.len() {
        fail!(code::NN_PARAM_INVALID, "{count} numbers for {} tensors", list.len());
    }
    Ok(())
}

/// One line per function of three lists and a number.
macro_rules! ternary {
    (host: $($name:ident = $kernel:literal, $function:ident;)*) => {$(
        pub(crate) fn $name(
            x: Vec<Tensor>,
            a: Vec<Tensor>,
            b: Vec<Tensor>,
            value: Scalar,
            out: Vec<Tensor>,
        ) -> Planned {
            expect_floats(&x)?;
            foreach($kernel, [x, a, b], vec![], out, move |_, [x, a, b], _, out| {
                elementwise::float_ternary($function { value }, x, a, b, out)
            })
        }
    )*};
    (device: $($name:ident = $kernel:literal, $function:ident;)*) => {$(
        pub(crate) fn $name(
            x: Vec<Tensor>,
            a: Vec<Tensor>,
            b: Vec<Tensor>,
            value: Tensor,
            out: Vec<Tensor>,
        ) -> Planned {
            expect_floats(&x)?;
            expect_one("value", &value)?;
            foreach($kernel, [x, a, b], vec![value], out, |_, [x, a, b], value, out| {
                elementwise::float_ternary($function { value: only(&value[0]) }, x, a, b, out)
            })
        }
    )*};
    (list: $($name:ident = $kernel:literal, $function:ident;)*) => {$(
        pub(crate) fn $name(
            x: Vec<Tensor>,
            a: Vec<Tensor>,
            b: Vec<Tensor>,
            values: Tensor,
            out: Vec<Tensor>,
        ) -> Planned {
            expect_floats(&x)?;
            expect_count(values.layout().len(), &x)?;
            foreach($kernel, [x, a, b], vec![values], out, |at, [x, a, b], values, out| {
                let value = Scalar::Float(numbers(values[0])[at]);
                elementwise::float_ternary($function { value }, x, a, b, out)
            })
        }
    )*};
}

ternary! { host:
    foreach_addcmul_scalar_v2 = c"ForeachAddcmulScalar", Addcmul;
    foreach_addcdiv_scalar_v2 = c"ForeachAddcdivScalar", Addcdiv;
}

ternary! { device:
    foreach_addcmul_scalar = c"ForeachAddcmulScalar", Addcmul;
    foreach_addcdiv_scalar = c"ForeachAddcdivScalar", Addcdiv;
}

ternary! { list:
    foreach_addcmul_scalar_list = c"ForeachAddcmulScalarList", Addcmul;
    foreach_addcmul_list = c"ForeachAddcmulList", Addcmul;
    foreach_addcdiv_scalar_list = c"ForeachAddcdivScalarList", Addcdiv;
}

pub(crate) fn foreach_lerp_scalar(
    x: Vec<Tensor>,
    end: Vec<Tensor>,
    weight: Scalar,
    out: Vec<Tensor>,
) -> Planned {
    expect_floats(&x)?;
    foreach(c"ForeachLerpScalar", [x, end], vec![], out, move |_, [x, end], _, out| {
        super::cast::Temporary::filled(weight, x.dtype(), x.shape())
            .read(|weight| elementwise::float_ternary(Lerp, x, end, weight, out));
    })
}

pub(crate) fn foreach_lerp_list(
    x: Vec<Tensor>,
    end: Vec<Tensor>,
    weights: Vec<Tensor>,
    out: Vec<Tensor>,
) -> Planned {
    expect_floats(&x)?;
    foreach(c"ForeachLerpList", [x, end, weights], vec![], out, |_, [x, end, weight], _, out| {
        elementwise::float_ternary(Lerp, x, end, weight, out);
    })
}

pub(crate) fn foreach_norm(x: Vec<Tensor>, order: Scalar, out: Vec<Tensor>) -> Planned {
    expect_floats(&x)?;
    expect_count(out.len(), &x)?;
    out.iter().try_for_each(|out| expect_one("out", out))?;
    let order = order.as_f64();
    Plan::lists(c"ForeachNorm", x, out, move |reads, writes| {
        for (x, mut out) in reads.iter().zip(writes) {
            let dims: Vec<usize> = (0..x.shape().len()).collect();
            let ones = cresset_kernels::Layout::contiguous(&vec![1; dims.len()]).expect("one element");
            reduce::norm(order, *x, &dims, out.with_layout(&ones));
        }
        Ok(())
    })
}

/// Gradients divided by what losses were multiplied with, and whether any is not finite.
pub(crate) fn foreach_non_finite_check_and_unscale(x: Vec<Tensor>, found: Tensor, scale: Tensor) -> Planned {
    expect_floats(&x)?;
    expect_one("found", &found)?;
    expect_one("scale", &scale)?;
    let writes = [vec![found], x].concat();
    Plan::lists(c"ForeachNonFiniteCheckAndUnscale", vec![scale], writes, |reads, writes| {
        let scale = numbers(reads[0])[0];
        let mut writes = writes.into_iter();
        let found = writes.next().expect("it comes first");
        let mut any = false;
        for x in writes {
            let values = numbers(x.as_view());
            any |= values.iter().any(|value| !value.is_finite());
            store(&values.iter().map(|value| value * scale).collect::<Vec<f64>>(), x);
        }
        if any {
            elementwise::fill(Scalar::Int(1), found);
        }
        Ok(())
    })
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn amp_update_scale(
    scale: Tensor,
    tracker: Tensor,
    found: Tensor,
    growth: f64,
    backoff: f64,
    interval: i64,
    out: Tensor,
    out_tracker: Tensor,
) -> Planned {
    for (name, number) in [
        ("scale", &scale),
        ("tracker", &tracker),
        ("found", &found),
        ("out", &out),
        ("out_tracker", &out_tracker),
    ] {
        expect_one(name, number)?;
    }
    let reads = [scale, tracker, found];
    Plan::new(
        c"AmpUpdateScale",
        reads,
        [out, out_tracker],
        move |[scale, tracker, found], [out, out_tracker]| {
            let (scale, good) = (numbers(scale)[0], numbers(tracker)[0] + 1.0);
            let (scale, good) = match numbers(found)[0] != 0.0 {
                true => (scale * backoff, 0.0),
                false if good == interval as f64 => (scale * growth, 0.0),
                false => (scale, good),
            };
            store(&[scale], out);
            store(&[good], out_tracker);
            Ok(())
        },
    )
}
