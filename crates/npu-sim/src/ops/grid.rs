//! Samples of images at places that a grid names, and their gradients.

use super::cast::{FLOATS, Temporary, expect_dtype};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::ViewMut;
use cresset_kernels::resample::{self, Border, Method, Sampling};
use std::ffi::CStr;

/// One line per number of dimensions: the operator and its gradient.
macro_rules! grids {
    ($($name:ident = $kernel:literal, $back:ident = $back_kernel:literal, over $rank:literal;)*) => {$(
        pub(crate) fn $name(x: Tensor, grid: Tensor, mode: i64, padding: i64, align: bool, out: Tensor) -> Planned {
            let how = check(&x, &grid, [mode, padding], align, $rank)?;
            expect("out", &out, &sampled(&x, &grid))?;
            expect_dtype("out", &out, &[x.dtype()])?;
            Plan::new($kernel, [x, grid], [out], move |[x, grid], [out]| {
                resample::sample(x, grid, how, out);
                Ok(())
            })
        }

        #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $back(
            grad: Tensor,
            x: Tensor,
            grid: Tensor,
            mode: i64,
            padding: i64,
            align: bool,
            mask: Vec<bool>,
            to_x: Option<Tensor>,
            to_grid: Option<Tensor>,
        ) -> Planned {
            let how = check(&x, &grid, [mode, padding], align, $rank)?;
            expect("grad", &grad, &sampled(&x, &grid))?;
            gradient($back_kernel, how, [grad, x, grid], mask, [to_x, to_grid])
        }
    )*};
}

grids! {
    grid_sampler2_d = c"GridSampler2D", grid_sampler2_d_backward = c"GridSampler2DGrad", over 2;
    grid_sampler3_d = c"GridSampler3D", grid_sampler3_d_backward = c"GridSampler3DGrad", over 3;
}

fn check(x: &Tensor, grid: &Tensor, [mode, padding]: [i64; 2], align: bool, rank: usize) -> Result<Sampling> {
    expect_dtype("x", x, FLOATS)?;
    expect_dtype("grid", grid, &[x.dtype()])?;
    let (shape, places) = (x.shape(), grid.shape());
    let fits = shape.len() == rank + 2 && places.len() == rank + 2 && places[rank + 1] == rank;
    if !fits || places[0] != shape[0] {
        fail!(code::NN_PARAM_INVALID, "x of shape {shape:?} at places of shape {places:?}");
    }
    let method = match mode {
        0 => Method::Linear,
        1 => Method::Nearest,
        2 if rank == 2 => Method::Cubic,
        _ => fail!(code::NN_PARAM_INVALID, "there is no interpolation {mode}"),
    };
    let border = match padding {
        0 => Border::Zeros,
        1 => Border::Nearest,
        2 => Border::Mirrored,
        _ => fail!(code::NN_PARAM_INVALID, "there is no padding {padding}"),
    };
    Ok(Sampling { method, border, align_corners: align })
}

/// The shape of the samples.
fn sampled(x: &Tensor, grid: &Tensor) -> Vec<usize> {
    let places = grid.shape();
    [&x.shape()[..2], &places[1..places.len() - 1]].concat()
}

fn gradient(
    kernel: &'static CStr,
    how: Sampling,
    [grad, x, grid]: [Tensor; 3],
    mask: Vec<bool>,
    to: [Option<Tensor>; 2],
) -> Planned {
    let mut writes = Vec::new();
    let mut wanted = [false; 2];
    for (at, (to, like)) in to.into_iter().zip([&x, &grid]).enumerate() {
        let Some(to) = to.filter(|_| mask.get(at).copied().unwrap_or(true)) else { continue };
        expect("a gradient", &to, like.shape())?;
        expect_dtype("a gradient", &to, &[like.dtype()])?;
        wanted[at] = true;
        writes.push(to);
    }
    let plan = Plan::lists(kernel, vec![grad, x, grid], writes, move |reads, writes| {
        let &[grad, x, grid] = reads else { unreachable!("three are read") };
        // The kernel makes both gradients; one that nobody wants goes nowhere.
        let spare = [x, grid].map(|like| Temporary::new(like.dtype(), like.shape()));
        let mut writes = writes.into_iter();
        let [to_x, to_grid] = wanted.map(|wanted| wanted.then(|| writes.next().expect("one per output")));
        either(to_x, &spare[0], |to_x| {
            either(to_grid, &spare[1], |to_grid| {
                resample::sample_backward(grad, x, grid, how, [to_x, to_grid])
            });
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Runs `body` with an output, or with memory that is thrown away.
fn either(out: Option<ViewMut<'_>>, spare: &Temporary, body: impl FnOnce(ViewMut<'_>)) {
    match out {
        Some(out) => body(out),
        None => spare.write(body),
    }
}
