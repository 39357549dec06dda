//! Sums, products, extremes, truths, moments and norms.

use super::cast::{FLOATS, INDICES, Temporary, converted, expect_castable, expect_dtype, stored};
use super::numbers::{numbers, store};
use super::shape::{dim, dims, expect_one, kept};
use crate::error::{Result, fail};
use crate::objects::{Tensor, dtype_of};
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::reduce::{self, Moments};
use cresset_kernels::{DType, Layout, Scalar, View, ViewMut, elementwise, histogram, order};
use std::ffi::CStr;

type Reduce = fn(View<'_>, &[usize], ViewMut<'_>);
type Along = fn(View<'_>, usize, ViewMut<'_>, ViewMut<'_>);
type Place = fn(View<'_>, usize, ViewMut<'_>);

/// A reduction over some dimensions that needs workspace.
fn over(kernel: &'static CStr, x: Tensor, dims: Vec<usize>, out: Tensor, reduce: Reduce) -> Planned {
    let plan = Plan::new(kernel, [x], [out], move |[x], [out]| {
        reduce(x, &dims, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn reduce_sum(x: Tensor, given: Vec<i64>, keep: bool, dtype: i32, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    expect_result(&out, dtype)?;
    if out.dtype() == DType::Bool {
        fail!(code::NN_PARAM_INVALID, "a sum cannot be stored as bool");
    }
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    over(c"ReduceSum", x, dims, out, reduce::sum)
}

/// A sum that passes over what is not a number.
pub(crate) fn reduce_nansum(x: Tensor, given: Vec<i64>, keep: bool, dtype: i32, out: Tensor) -> Planned {
    if !x.dtype().is_float() {
        return reduce_sum(x, given, keep, dtype, out);
    }
    expect_castable(x.dtype(), &out)?;
    expect_result(&out, dtype)?;
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"ReduceNansum", [x], [out], move |[x], [out]| {
        let mut elements = numbers(x);
        elements.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        let layout = Layout::contiguous(x.shape()).expect("as many elements");
        stored(out, DType::F64, |out| reduce::sum(View::of(&elements, &layout), &dims, out));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn mean(x: Tensor, given: Vec<i64>, keep: bool, dtype: i32, out: Tensor) -> Planned {
    expect_dtype("out", &out, FLOATS)?;
    expect_result(&out, dtype)?;
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    over(c"ReduceMean", x, dims, out, reduce::mean)
}

pub(crate) fn mean_v2(x: Tensor, given: Vec<i64>, keep: bool, noop: bool, out: Tensor) -> Planned {
    if given.is_empty() && noop {
        return super::inplace_copy(out, x);
    }
    let dtype = out.told().dtype;
    mean(x, given, keep, dtype, out)
}

pub(crate) fn max_v2(x: Tensor, given: Vec<i64>, keep: bool, noop: bool, out: Tensor) -> Planned {
    if given.is_empty() && noop {
        return super::inplace_copy(out, x);
    }
    amax(x, given, keep, out)
}

pub(crate) fn prod(x: Tensor, dtype: i32, out: Tensor) -> Planned {
    let dims: Vec<usize> = (0..x.shape().len()).collect();
    expect_one("out", &out)?;
    product(x, dims.clone(), dtype, ones(&out, dims.len()))
}

pub(crate) fn prod_dim(x: Tensor, given: i64, keep: bool, dtype: i32, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &[dim], keep)?;
    product(x, vec![dim], dtype, out)
}

fn product(x: Tensor, dims: Vec<usize>, dtype: i32, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    expect_result(&out, dtype)?;
    if out.dtype() == DType::Bool {
        fail!(code::NN_PARAM_INVALID, "a product cannot be stored as bool");
    }
    over(c"ReduceProd", x, dims, out, reduce::prod)
}

/// One line per extreme of all elements.
macro_rules! of_all {
    ($($name:ident = $kernel:literal, $reduce:path;)*) => {$(
        pub(crate) fn $name(x: Tensor, out: Tensor) -> Planned {
            expect_dtype("out", &out, &[x.dtype()])?;
            expect_one("out", &out)?;
            expect_some(&x, None)?;
            let dims: Vec<usize> = (0..x.shape().len()).collect();
            let out = ones(&out, dims.len());
            over($kernel, x, dims, out, $reduce)
        }
    )*};
}

of_all! {
    max = c"ReduceMax", reduce::amax;
    min = c"ReduceMin", reduce::amin;
}

/// One line per extreme over some dimensions.
macro_rules! over_dims {
    ($($name:ident = $kernel:literal, $reduce:path;)*) => {$(
        pub(crate) fn $name(x: Tensor, given: Vec<i64>, keep: bool, out: Tensor) -> Planned {
            expect_dtype("out", &out, &[x.dtype()])?;
            let dims = dims(&given, x.shape().len())?;
            dims.iter().try_for_each(|&dim| expect_some(&x, Some(dim)))?;
            let out = kept("out", &out, x.shape(), &dims, keep)?;
            over($kernel, x, dims, out, $reduce)
        }
    )*};
}

over_dims! {
    amax = c"ReduceMax", reduce::amax;
    amin = c"ReduceMin", reduce::amin;
}

pub(crate) fn aminmax(x: Tensor, given: Vec<i64>, keep: bool, low: Tensor, high: Tensor) -> Planned {
    expect_dtype("low", &low, &[x.dtype()])?;
    expect_dtype("high", &high, &[x.dtype()])?;
    let dims = dims(&given, x.shape().len())?;
    dims.iter().try_for_each(|&dim| expect_some(&x, Some(dim)))?;
    let low = kept("low", &low, x.shape(), &dims, keep)?;
    let high = kept("high", &high, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"ReduceMinMax", [x], [low, high], move |[x], [low, high]| {
        reduce::amin(x, &dims, low);
        reduce::amax(x, &dims, high);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn log_sum_exp(x: Tensor, given: Vec<i64>, keep: bool, out: Tensor) -> Planned {
    expect_dtype("out", &out, FLOATS)?;
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"LogSumExp", [x], [out], move |[x], [out]| {
        let small: Vec<usize> = out.shape().to_vec();
        let largest = Temporary::new(DType::F64, &small);
        Temporary::of(x, DType::F64).read(|x| {
            match x.layout().is_empty() {
                true => largest.write(|to| elementwise::fill(Scalar::Int(0), to)),
                false => largest.write(|to| reduce::amax(x, &dims, to)),
            }
            let shifts: Vec<f64> = largest.read(numbers);
            let shifts: Vec<f64> = shifts.into_iter().map(|x| if x.is_finite() { x } else { 0.0 }).collect();
            let flat = Layout::contiguous(&small).expect("as many elements");
            let spread = flat.broadcast_to(x.shape()).expect("a reduction of it");
            let shift = numbers(View::of(&shifts, &flat).with_layout(&spread));
            let powers: Vec<f64> =
                numbers(x).iter().zip(&shift).map(|(x, shift)| (x - shift).exp()).collect();
            let whole = Layout::contiguous(x.shape()).expect("as many elements");
            largest.write(|to| reduce::sum(View::of(&powers, &whole), &dims, to));
            let sums = largest.read(numbers);
            let logs: Vec<f64> = sums.iter().zip(&shifts).map(|(sum, shift)| sum.ln() + shift).collect();
            store(&logs, out);
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// One line per question about all elements over some dimensions.
macro_rules! truths {
    ($($name:ident = $kernel:literal, $reduce:path;)*) => {$(
        pub(crate) fn $name(x: Tensor, given: Vec<i64>, keep: bool, out: Tensor) -> Planned {
            expect_dtype("out", &out, &[DType::Bool, DType::U8])?;
            let dims = dims(&given, x.shape().len())?;
            let out = kept("out", &out, x.shape(), &dims, keep)?;
            over($kernel, x, dims, out, $reduce)
        }
    )*};
}

truths! {
    all = c"ReduceAll", reduce::all;
    any = c"ReduceAny", reduce::any;
}

pub(crate) fn max_dim(x: Tensor, given: i64, keep: bool, out: Tensor, indices: Tensor) -> Planned {
    along(c"ArgMaxWithValue", reduce::max, x, given, keep, [out, indices])
}

pub(crate) fn min_dim(x: Tensor, given: i64, keep: bool, out: Tensor, indices: Tensor) -> Planned {
    along(c"ArgMinWithValue", reduce::min, x, given, keep, [out, indices])
}

fn along(
    kernel: &'static CStr,
    reduce: Along,
    x: Tensor,
    given: i64,
    keep: bool,
    [out, indices]: [Tensor; 2],
) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    let (dim, indices) = place_of(&x, given, keep, &indices)?;
    let out = kept("out", &out, x.shape(), &[dim], keep)?;
    let plan = Plan::new(kernel, [x], [out, indices], move |[x], [out, indices]| {
        stored(indices, DType::I64, |indices| reduce(x, dim, out, indices));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn arg_max(x: Tensor, given: i64, keep: bool, out: Tensor) -> Planned {
    place(c"ArgMaxV2", reduce::argmax, x, given, keep, out)
}

pub(crate) fn arg_min(x: Tensor, given: i64, keep: bool, out: Tensor) -> Planned {
    place(c"ArgMin", reduce::argmin, x, given, keep, out)
}

fn place(kernel: &'static CStr, reduce: Place, x: Tensor, given: i64, keep: bool, out: Tensor) -> Planned {
    let (dim, out) = place_of(&x, given, keep, &out)?;
    let plan = Plan::new(kernel, [x], [out], move |[x], [out]| {
        stored(out, DType::I64, |out| reduce(x, dim, out));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// The dimension, and where indices along it go.
fn place_of(x: &Tensor, given: i64, keep: bool, indices: &Tensor) -> Result<(usize, Tensor)> {
    expect_dtype("indices", indices, INDICES)?;
    let dim = dim(given, x.shape().len())?;
    expect_some(x, Some(dim))?;
    Ok((dim, kept("indices", indices, x.shape(), &[dim], keep)?))
}

/// One line per operator that chooses an element along a dimension.
macro_rules! chosen {
    ($($name:ident($($k:ident)?) = $kernel:literal, |$x:ident, $dim:ident, $out:ident| $choose:expr;)*) => {$(
        pub(crate) fn $name(
            x: Tensor,
            $($k: i64,)?
            given: i64,
            keep: bool,
            out: Tensor,
            indices: Tensor,
        ) -> Planned {
            expect_dtype("out", &out, &[x.dtype()])?;
            let (dim, indices) = place_of(&x, given, keep, &indices)?;
            let out = kept("out", &out, x.shape(), &[dim], keep)?;
            $(let $k = rank_of($k, &x, dim)?;)?
            let plan = Plan::new($kernel, [x], [out, indices], move |[x], [out, indices]| {
                stored(indices, DType::I64, |mut indices| {
                    let ($x, $dim, $out) = (x, dim, indices.reborrow());
                    $choose;
                    order::pick(x, dim, indices.as_view(), out);
                });
                Ok(())
            });
            plan.map(Plan::with_workspace)
        }
    )*};
}

chosen! {
    kthvalue(k) = c"Kthvalue", |x, dim, out| order::kth(x, dim, k, out);
    median_dim() = c"Median", |x, dim, out| order::median(x, dim, out);
    nan_median_dim() = c"NanMedian", |x, dim, out| order::nan_median(x, dim, out);
}

/// The place of the `k`-th smallest, counted from 1.
fn rank_of(k: i64, x: &Tensor, dim: usize) -> Result<usize> {
    let size = x.shape().get(dim).copied().unwrap_or(1) as i64;
    if !(1..=size).contains(&k) {
        fail!(code::NN_PARAM_INVALID, "k is {k}, expected 1 to {size}");
    }
    Ok(k as usize - 1)
}

pub(crate) fn median(x: Tensor, out: Tensor) -> Planned {
    middle(c"Median", order::median, x, out)
}

pub(crate) fn nan_median(x: Tensor, out: Tensor) -> Planned {
    middle(c"NanMedian", order::nan_median, x, out)
}

fn middle(kernel: &'static CStr, choose: Place, x: Tensor, out: Tensor) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_one("out", &out)?;
    expect_some(&x, None)?;
    let plan = Plan::new(kernel, [x.clone()], [ones(&out, 1)], move |[x], [out]| {
        let line = Layout::contiguous(&[x.layout().len()]).expect("as many elements");
        Temporary::of(x, x.dtype()).read(|x| {
            let x = x.with_layout(&line);
            let index = Temporary::new(DType::I64, &[1]);
            index.write(|index| choose(x, 0, index));
            index.read(|index| order::pick(x, 0, index, out));
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn var_correction(
    x: Tensor,
    given: Vec<i64>,
    correction: i64,
    keep: bool,
    out: Tensor,
) -> Planned {
    spread(c"ReduceVar", Moments { correction: correction as f64, root: false }, x, &given, keep, out)
}

pub(crate) fn var(x: Tensor, given: Vec<i64>, unbiased: bool, keep: bool, out: Tensor) -> Planned {
    var_correction(x, given, unbiased as i64, keep, out)
}

pub(crate) fn deviation(x: Tensor, given: Vec<i64>, correction: i64, keep: bool, out: Tensor) -> Planned {
    spread(c"ReduceStd", Moments { correction: correction as f64, root: true }, x, &given, keep, out)
}

fn spread(kernel: &'static CStr, how: Moments, x: Tensor, given: &[i64], keep: bool, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, FLOATS)?;
    let dims = dims(given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(kernel, [x], [out], move |[x], [out]| {
        reduce::moments(how, x, &dims, out, None);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn var_mean(
    x: Tensor,
    given: Vec<i64>,
    correction: i64,
    keep: bool,
    out: Tensor,
    mean: Tensor,
) -> Planned {
    with_mean(c"ReduceVarMean", false, x, given, correction, keep, [out, mean])
}

pub(crate) fn std_mean_correction(
    x: Tensor,
    given: Vec<i64>,
    correction: i64,
    keep: bool,
    out: Tensor,
    mean: Tensor,
) -> Planned {
    with_mean(c"ReduceStdWithMean", true, x, given, correction, keep, [out, mean])
}

fn with_mean(
    kernel: &'static CStr,
    root: bool,
    x: Tensor,
    given: Vec<i64>,
    correction: i64,
    keep: bool,
    [out, mean]: [Tensor; 2],
) -> Planned {
    for (name, tensor) in [("x", &x), ("out", &out), ("mean", &mean)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let mean = kept("mean", &mean, x.shape(), &dims, keep)?;
    let how = Moments { correction: correction as f64, root };
    let plan = Plan::new(kernel, [x], [out, mean], move |[x], [out, mean]| {
        reduce::moments(how, x, &dims, out, Some(mean));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn linalg_vector_norm(
    x: Tensor,
    order: Scalar,
    given: Vec<i64>,
    keep: bool,
    dtype: i32,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, FLOATS)?;
    expect_result(&out, dtype)?;
    let (dims, order) = (dims(&given, x.shape().len())?, order.as_f64());
    if order.is_infinite() {
        dims.iter().try_for_each(|&dim| expect_some(&x, Some(dim)))?;
    }
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"LpNormV2", [x], [out], move |[x], [out]| {
        reduce::norm(order, x, &dims, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn norm(x: Tensor, order: Scalar, given: Vec<i64>, keep: bool, out: Tensor) -> Planned {
    let dtype = out.told().dtype;
    linalg_vector_norm(x, order, given, keep, dtype, out)
}

pub(crate) fn histc(x: Tensor, bins: i64, low: Scalar, high: Scalar, out: Tensor) -> Planned {
    super::shape::expect("out", &out, &[bins.max(0) as usize])?;
    let (low, high, dtype) = (low.as_f64(), high.as_f64(), out.dtype());
    if bins <= 0 || low >= high {
        fail!(code::NN_PARAM_INVALID, "{bins} ranges from {low} to {high} are none");
    }
    let plan = Plan::new(c"HistogramV2", [x], [out], move |[x], [out]| {
        converted(x, dtype, |x| histogram::histogram(x, low, high, out));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// One element with so many dimensions.
fn ones(out: &Tensor, rank: usize) -> Tensor {
    out.with_layout(Layout::contiguous(&vec![1; rank]).expect("one element"))
}

/// Fails unless the type asked for is the one of `out`.
fn expect_result(out: &Tensor, dtype: i32) -> Result {
    expect_dtype("out", out, &[dtype_of(dtype)?])
}

/// Fails if there is nothing to find an extreme of.
fn expect_some(x: &Tensor, dim: Option<usize>) -> Result {
    let empty = match dim {
        Some(dim) => x.shape().get(dim) == Some(&0),
        None => x.layout().is_empty(),
    };
    if empty {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no element to choose", x.shape());
    }
    Ok(())
}
