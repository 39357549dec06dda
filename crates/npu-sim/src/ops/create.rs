//! Numbers from nothing: ranges, ones along a diagonal, one value everywhere.

use super::cast::{expect_dtype, promote};
use super::fill::inplace_copy;
use super::numbers::{integers, numbers, store};
use super::shape::{broadcast_to, dim, expect, expect_one};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, Layout, Scalar, elementwise};
use std::ffi::CStr;

pub(crate) fn inplace_fill_tensor(x: Tensor, value: Tensor) -> Planned {
    expect_one("value", &value)?;
    let one = value.with_layout(Layout::contiguous(&[]).expect("one element"));
    inplace_copy(x.clone(), broadcast_to("value", &one, x.shape())?)
}

pub(crate) fn inplace_one(x: Tensor) -> Planned {
    super::inplace_fill_scalar(x, Scalar::Int(1))
}

pub(crate) fn arange(start: Scalar, end: Scalar, step: Scalar, out: Tensor) -> Planned {
    let count = (end.as_f64() - start.as_f64()) / step.as_f64();
    steps(c"Range", start, step, count.ceil(), out)
}

pub(crate) fn range(start: Scalar, end: Scalar, step: Scalar, out: Tensor) -> Planned {
    let count = (end.as_f64() - start.as_f64()) / step.as_f64();
    steps(c"Range", start, step, count.floor() + 1.0, out)
}

fn steps(kernel: &'static CStr, start: Scalar, step: Scalar, count: f64, out: Tensor) -> Planned {
    if step.as_f64() == 0.0 || !count.is_finite() || count < 0.0 {
        fail!(code::NN_PARAM_INVALID, "steps of {step} from {start} do not end");
    }
    expect("out", &out, &[count as usize])?;
    let whole = matches!((start, step), (Scalar::Int(_) | Scalar::Bool(_), Scalar::Int(_) | Scalar::Bool(_)));
    Plan::new(kernel, [], [out], move |[], [out]| {
        if whole {
            let (start, step) = (start.as_i64(), step.as_i64());
            let values: Vec<i64> = (0..count as i64).map(|at| start + at * step).collect();
            store(&values, out);
        } else {
            let (start, step) = (start.as_f64(), step.as_f64());
            let values: Vec<f64> = (0..count as i64).map(|at| start + at as f64 * step).collect();
            store(&values, out);
        }
        Ok(())
    })
}

pub(crate) fn linspace(start: Scalar, end: Scalar, count: i64, out: Tensor) -> Planned {
    let (start, end, count) = (start.as_f64(), end.as_f64(), count.max(0) as usize);
    expect("out", &out, &[count])?;
    Plan::new(c"LinSpace", [], [out], move |[], [out]| {
        let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
        // From both ends, so that the last is met exactly.
        let value = |at: usize| match at < count / 2 {
            true => start + step * at as f64,
            false => end - step * (count - 1 - at) as f64,
        };
        let values: Vec<f64> = (0..count).map(|at| if count == 1 { start } else { value(at) }).collect();
        store(&values, out);
        Ok(())
    })
}

pub(crate) fn eye(n: i64, m: i64, out: Tensor) -> Planned {
    let (n, m) = (n.max(0) as usize, m.max(0) as usize);
    expect("out", &out, &[n, m])?;
    Plan::new(c"Eye", [], [out], move |[], [out]| {
        let values: Vec<u8> = (0..n * m).map(|at| (at / m == at % m) as u8).collect();
        store(&values, out);
        Ok(())
    })
}

pub(crate) fn one_hot(x: Tensor, classes: i32, on: Tensor, off: Tensor, axis: i64, out: Tensor) -> Planned {
    expect_one("on", &on)?;
    expect_one("off", &off)?;
    expect_dtype("x", &x, &[DType::I64, DType::I32, DType::U8])?;
    let rank = x.shape().len();
    let axis = dim(axis, rank + 1)?;
    let classes = classes.max(0) as usize;
    let mut shape = x.shape().to_vec();
    shape.insert(axis, classes);
    expect("out", &out, &shape)?;
    let inner: usize = x.shape()[axis..].iter().product();
    Plan::new(c"OneHot", [x, on, off], [out], move |[x, on, off], [out]| {
        let (on, off) = (numbers(on)[0], numbers(off)[0]);
        let mut values = vec![off; out.layout().len()];
        for (at, class) in integers(x).into_iter().enumerate() {
            let Some(class) = usize::try_from(class).ok().filter(|class| *class < classes) else { continue };
            values[(at / inner * classes + class) * inner + at % inner] = on;
        }
        store(&values, out);
        Ok(())
    })
}

pub(crate) fn cast(x: Tensor, dtype: i32, out: Tensor) -> Planned {
    expect("out", &out, x.shape())?;
    expect_result(&out, dtype)?;
    inplace_copy(out, x)
}

fn expect_result(out: &Tensor, dtype: i32) -> Result {
    if out.told().dtype != dtype {
        fail!(code::NN_PARAM_INVALID, "out is of element type {}, expected {dtype}", out.told().dtype);
    }
    Ok(())
}

pub(crate) fn sum(tensors: Vec<Tensor>, out: Tensor) -> Planned {
    let Some(dtype) = tensors.iter().map(Tensor::dtype).reduce(promote) else {
        fail!(code::NN_PARAM_INVALID, "there is no tensor to add");
    };
    super::cast::expect_castable(dtype, &out)?;
    let tensors =
        tensors.iter().map(|x| broadcast_to("a tensor", x, out.shape())).collect::<Result<Vec<Tensor>>>()?;
    Plan::listed(c"AddN", tensors, [out], |tensors, [mut out]| {
        elementwise::fill(Scalar::Int(0), out.reborrow());
        let mut total = numbers(out.as_view());
        for x in tensors {
            total.iter_mut().zip(numbers(*x)).for_each(|(total, x)| *total += x);
        }
        store(&total, out);
        Ok(())
    })
}
