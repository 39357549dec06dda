//! Images of another size.

use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{Kernel, Key, Result, Tensor};

/// One line per method and number of dimensions: what the library is told besides the sizes.
macro_rules! forward {
    ($npu:ident; $($op:ident: $call:ident($($align:ident)?; $($at:literal),*);)*) => {$(
        $op::table().register($npu, |op, [x], out| match out.numel() {
            0 => Ok(()),
            _ => aclnn::$call(x, &op.0.to, $(op.0.$align,)? $(scale(&op.0, $at),)* out),
        });
    )*};
}

macro_rules! backward {
    ($npu:ident; $($op:ident: $call:ident($($align:ident)?; $($at:literal),*);)*) => {$(
        $op::table().register($npu, |op, [grad], out| match out.numel() {
            0 => Ok(()),
            _ => {
                let how = &op.resizing;
                aclnn::$call(grad, &how.to, &op.from, $(how.$align,)? $(scale(how, $at),)* out)
            }
        });
    )*};
}

pub(super) fn register(npu: Key) {
    UpsampleNearest1d::table()
        .register(npu, |op, [x], out| nearest(aclnn::upsample_nearest1d, &op.0, x, out));
    UpsampleNearest2d::table()
        .register(npu, |op, [x], out| nearest(aclnn::upsample_nearest2d, &op.0, x, out));
    forward! { npu;
        UpsampleNearest3d: upsample_nearest3d(; 0, 1, 2);
        UpsampleNearestExact1d: upsample_nearest_exact1d(; 0);
        UpsampleNearestExact2d: upsample_nearest_exact2d(; 0, 1);
        UpsampleNearestExact3d: upsample_nearest_exact3d(; 0, 1, 2);
        UpsampleLinear1d: upsample_linear1d(align_corners; 0);
        UpsampleBilinear2d: upsample_bilinear2d(align_corners; 0, 1);
        UpsampleTrilinear3d: upsample_trilinear3d(align_corners; 0, 1, 2);
        UpsampleBicubic2d: upsample_bicubic2d(align_corners; 0, 1);
    }
    backward! { npu;
        UpsampleNearest1dBackward: upsample_nearest1d_backward(; 0);
        UpsampleNearest2dBackward: upsample_nearest2d_backward(; 0, 1);
        UpsampleNearest3dBackward: upsample_nearest3d_backward(; 0, 1, 2);
        UpsampleNearestExact1dBackward: upsample_nearest_exact1d_backward(; 0);
        UpsampleNearestExact2dBackward: upsample_nearest_exact2d_backward(; 0, 1);
        UpsampleNearestExact3dBackward: upsample_nearest_exact3d_backward(; 0, 1, 2);
        UpsampleLinear1dBackward: upsample_linear1d_backward(align_corners; 0);
        UpsampleBilinear2dBackward: upsample_bilinear2d_backward(align_corners; 0, 1);
        UpsampleTrilinear3dBackward: upsample_trilinear3d_backward(align_corners; 0, 1, 2);
        UpsampleBicubic2dBackward: upsample_bicubic2d_backward(align_corners; 0, 1);
    }
}

/// How many elements become of one; 0 if that is what the sizes say.
fn scale(how: &Resizing, dim: usize) -> f64 {
    how.scales.as_ref().map_or(0.0, |scales| scales[dim])
}

/// The library goes by the sizes alone here.
fn nearest(
    call: fn(&Tensor, &[usize], &Tensor) -> Result<()>,
    how: &Resizing,
    x: &Tensor,
    out: &Tensor,
) -> Result<()> {
    let (to, from) = (&how.to, &x.shape()[2..]);
    let told = |dim: usize| scale(how, dim) == to[dim] as f64 / from[dim] as f64;
    if out.numel() == 0 {
        return Ok(());
    }
    if how.scales.is_none() || (0..to.len()).all(told) {
        return call(x, to, out);
    }
    // By another factor, elements are picked by number.
    let mut picked = x.clone();
    for (dim, (&to, &from)) in to.iter().zip(from).enumerate() {
        let step = (1.0 / scale(how, dim)) as f32;
        let place = |at: usize| ((at as f32 * step).floor() as i64).min(from as i64 - 1);
        let places: Vec<i64> = (0..to).map(place).collect();
        let places = Tensor::from_slice(&places, [to])?.to(x.device())?;
        picked = picked.index_select(dim as isize + 2, &places)?;
    }
    aclnn::inplace_copy(out, &picked)
}
