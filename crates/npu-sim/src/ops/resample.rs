//! Images of another size, and their gradients.

use super::cast::{FLOATS, expect_dtype};
use super::shape::expect;
use super::windows::each;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::DType;
use cresset_kernels::resample::{self, Line, Method};
use std::ffi::CStr;

/// One line per method and number of dimensions: the numbers that it and its gradient take, and kernels.
macro_rules! sizes {
    ($($method:ident: $name:ident($($align:ident)?; $($scale:ident),*) = $kernel:literal,
        $back:ident($($back_scale:ident),*) = $back_kernel:literal;)*) => {$(
        pub(crate) fn $name(
            x: Tensor,
            size: Vec<i64>,
            $($align: bool,)?
            $($scale: f64,)*
            out: Tensor,
        ) -> Planned {
            let how = How { method: Method::$method, align: false $(|| $align)?, scales: vec![$($scale),*] };
            resize($kernel, &how, x, &size, out)
        }

        #[allow(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $back(
            grad: Tensor,
            size: Vec<i64>,
            from: Vec<i64>,
            $($align: bool,)?
            $($back_scale: f64,)*
            out: Tensor,
        ) -> Planned {
            let scales = vec![$($back_scale),*];
            let how = How { method: Method::$method, align: false $(|| $align)?, scales };
            resize_backward($back_kernel, &how, grad, &size, &from, out)
        }
    )*};
}

sizes! {
    Nearest: upsample_nearest1d(;) = c"ResizeNearestNeighborV2",
        upsample_nearest1d_backward(scale) = c"ResizeNearestNeighborV2Grad";
    Nearest: upsample_nearest2d(;) = c"ResizeNearestNeighborV2",
        upsample_nearest2d_backward(high, wide) = c"ResizeNearestNeighborV2Grad";
    Nearest: upsample_nearest3d(; deep, high, wide) = c"UpsampleNearest3d",
        upsample_nearest3d_backward(deep, high, wide) = c"UpsampleNearest3dGrad";
    NearestExact: upsample_nearest_exact1d(; scale) = c"UpsampleNearest",
        upsample_nearest_exact1d_backward(scale) = c"UpsampleNearestExact2dGrad";
    NearestExact: upsample_nearest_exact2d(; high, wide) = c"UpsampleNearest",
        upsample_nearest_exact2d_backward(high, wide) = c"UpsampleNearestExact2dGrad";
    NearestExact: upsample_nearest_exact3d(; deep, high, wide) = c"UpsampleNearestExact3d",
        upsample_nearest_exact3d_backward(deep, high, wide) = c"UpsampleNearestExact3dGrad";
    Linear: upsample_linear1d(align; scale) = c"UpsampleLinear1d",
        upsample_linear1d_backward(scale) = c"UpsampleBilinear2dGrad";
    Linear: upsample_bilinear2d(align; high, wide) = c"UpsampleBilinear2d",
        upsample_bilinear2d_backward(high, wide) = c"UpsampleBilinear2dGrad";
    Linear: upsample_trilinear3d(align; deep, high, wide) = c"UpsampleTrilinear3d",
        upsample_trilinear3d_backward(deep, high, wide) = c"UpsampleTrilinear3dGrad";
    Cubic: upsample_bicubic2d(align; high, wide) = c"UpsampleBicubic2d",
        upsample_bicubic2d_backward(high, wide) = c"UpsampleBicubic2dGrad";
}

pub(crate) fn upsample_bilinear2d_backward_v2(
    grad: Tensor,
    size: Vec<i64>,
    from: Vec<i64>,
    align: bool,
    high: f64,
    wide: f64,
    out: Tensor,
) -> Planned {
    upsample_bilinear2d_backward(grad, size, from, align, high, wide, out)
}

pub(crate) fn upsample_nearest1d_v2(x: Tensor, size: Vec<i64>, scale: f32, out: Tensor) -> Planned {
    let how = How { method: Method::Nearest, align: false, scales: vec![scale.into()] };
    resize(c"ResizeNearestNeighborV2", &how, x, &size, out)
}

pub(crate) fn upsample_nearest2d_v2(x: Tensor, size: Vec<i64>, high: f32, wide: f32, out: Tensor) -> Planned {
    let how = How { method: Method::Nearest, align: false, scales: vec![high.into(), wide.into()] };
    resize(c"ResizeNearestNeighborV2", &how, x, &size, out)
}

/// How elements between those that there are come about. A scale of 0 is that of the sizes.
struct How {
    method: Method,
    align: bool,
    scales: Vec<f64>,
}

impl How {
    fn lines(&self, from: &[usize], to: &[usize], dtype: DType) -> Vec<Line> {
        let scale = |dim: usize| self.scales.get(dim).copied().filter(|&scale| scale > 0.0);
        let line = |dim| Line::new(self.method, from[dim], to[dim], self.align, scale(dim), dtype);
        (0..to.len()).map(line).collect()
    }
}

fn resize(kernel: &'static CStr, how: &How, x: Tensor, size: &[i64], out: Tensor) -> Planned {
    let (samples, from, to) = check(&x, x.shape(), size)?;
    expect("out", &out, &[samples, &to[..]].concat())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let lines = how.lines(from, &to, x.dtype());
    Plan::new(kernel, [x], [out], move |[x], [out]| {
        resample::resize(x, &lines, out);
        Ok(())
    })
}

fn resize_backward(
    kernel: &'static CStr,
    how: &How,
    grad: Tensor,
    size: &[i64],
    from: &[i64],
    out: Tensor,
) -> Planned {
    let whole = each("from", from, size.len() + 2)?;
    let (samples, from, to) = check(&grad, &whole, size)?;
    expect("grad", &grad, &[samples, &to[..]].concat())?;
    expect("out", &out, &whole)?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    let lines = how.lines(from, &to, grad.dtype());
    let plan = Plan::new(kernel, [grad], [out], move |[grad], [out]| {
        resample::resize_backward(grad, &lines, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Samples and channels, the sizes that there are, and those that are wanted.
fn check<'a>(x: &Tensor, shape: &'a [usize], size: &[i64]) -> Result<(&'a [usize], &'a [usize], Vec<usize>)> {
    expect_dtype("x", x, FLOATS)?;
    let to = each("size", size, size.len())?;
    if shape.len() != to.len() + 2 || shape.iter().chain(&to).any(|&size| size == 0) {
        fail!(code::NN_PARAM_INVALID, "x of shape {shape:?} cannot become of size {size:?}");
    }
    Ok((&shape[..2], &shape[2..], to))
}
