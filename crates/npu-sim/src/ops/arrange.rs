//! Elements moved to other places: joined, turned, cut to triangles, and repeated around the edges.

use super::cast::{FLOATS, expect_dtype};
use super::shape::{dim, dims, expect};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::arrange::{self, Sources};
use cresset_kernels::elementwise;
use std::ffi::CStr;

pub(crate) fn cat(tensors: Vec<Tensor>, given: i64, out: Tensor) -> Planned {
    let dim = dim(given, out.shape().len())?;
    let mut sizes = Vec::new();
    for tensor in &tensors {
        expect_dtype("a tensor", tensor, &[out.dtype()])?;
        let mut shape = out.shape().to_vec();
        let Some(&size) = tensor.shape().get(dim) else {
            fail!(code::NN_PARAM_INVALID, "a tensor of shape {:?} has no dimension {dim}", tensor.shape());
        };
        shape[dim] = size;
        expect("a tensor", tensor, &shape)?;
        sizes.push(size);
    }
    if sizes.iter().sum::<usize>() != out.shape()[dim] {
        fail!(code::NN_PARAM_INVALID, "sizes {sizes:?} do not make out of shape {:?}", out.shape());
    }
    Plan::listed(c"ConcatD", tensors, [out], move |tensors, [mut out]| {
        let mut start = 0;
        for (tensor, &size) in tensors.iter().zip(&sizes) {
            let part = out.layout().narrow(dim, start, size);
            elementwise::copy(*tensor, out.with_layout(&part));
            start += size;
        }
        Ok(())
    })
}

pub(crate) fn flip(x: Tensor, given: Vec<i64>, out: Tensor) -> Planned {
    // Here no dimensions mean none, not all.
    let dims = if given.is_empty() { Vec::new() } else { dims(&given, x.shape().len())? };
    same(&x, &out)?;
    Plan::new(c"ReverseV2", [x], [out], move |[x], [out]| {
        arrange::flip(x, &dims, out);
        Ok(())
    })
}

pub(crate) fn tril(x: Tensor, diagonal: i64, out: Tensor) -> Planned {
    same(&x, &out)?;
    Plan::new(c"Tril", [x], [out], move |[x], [out]| {
        arrange::lower(x, diagonal as isize, out);
        Ok(())
    })
}

pub(crate) fn triu(x: Tensor, diagonal: i64, out: Tensor) -> Planned {
    same(&x, &out)?;
    Plan::new(c"Triu", [x], [out], move |[x], [out]| {
        arrange::upper(x, diagonal as isize, out);
        Ok(())
    })
}

fn same(x: &Tensor, out: &Tensor) -> Result {
    expect_dtype("out", out, &[x.dtype()])?;
    expect("out", out, x.shape())
}

/// Which element is repeated beyond an edge.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Mirror,
    Nearest,
}

/// One line per padding and its gradient.
macro_rules! edges {
    ($($name:ident = $kernel:literal, $back:ident = $back_kernel:literal, $edge:ident, $dims:literal;)*) => {$(
        pub(crate) fn $name(x: Tensor, padding: Vec<i64>, out: Tensor) -> Planned {
            pad($kernel, Edge::$edge, $dims, x, &padding, out)
        }

        pub(crate) fn $back(grad: Tensor, x: Tensor, padding: Vec<i64>, out: Tensor) -> Planned {
            pad_backward($back_kernel, Edge::$edge, $dims, grad, &x, &padding, out)
        }
    )*};
}

edges! {
    reflection_pad1d = c"MirrorPad", reflection_pad1d_backward = c"PadV3Grad", Mirror, 1;
    reflection_pad2d = c"MirrorPad", reflection_pad2d_backward = c"PadV3Grad", Mirror, 2;
    reflection_pad3d = c"MirrorPad", reflection_pad3d_backward = c"PadV3Grad", Mirror, 3;
    replication_pad1d = c"PadV3", replication_pad1d_backward = c"PadV3Grad", Nearest, 1;
    replication_pad2d = c"PadV3", replication_pad2d_backward = c"PadV3Grad", Nearest, 2;
    replication_pad3d = c"PadV3", replication_pad3d_backward = c"PadV3Grad", Nearest, 3;
}

fn pad(kernel: &'static CStr, edge: Edge, dims: usize, x: Tensor, padding: &[i64], out: Tensor) -> Planned {
    let (shape, sources) = edge.sources(dims, x.shape(), padding)?;
    expect("out", &out, &shape)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    Plan::new(kernel, [x], [out], move |[x], [out]| {
        arrange::gather_edges(x, &sources, out);
        Ok(())
    })
}

fn pad_backward(
    kernel: &'static CStr,
    edge: Edge,
    dims: usize,
    grad: Tensor,
    x: &Tensor,
    padding: &[i64],
    out: Tensor,
) -> Planned {
    let (shape, sources) = edge.sources(dims, x.shape(), padding)?;
    expect("grad", &grad, &shape)?;
    expect_dtype("grad", &grad, FLOATS)?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    expect("out", &out, x.shape())?;
    let plan = Plan::new(kernel, [grad], [out], move |[grad], [out]| {
        arrange::add_edges(grad, &sources, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

impl Edge {
    /// The padded shape, and where the elements along each padded dimension come from.
    fn sources(self, dims: usize, shape: &[usize], padding: &[i64]) -> Result<(Vec<usize>, Vec<Sources>)> {
        let rank = shape.len();
        if padding.len() != 2 * dims || rank < dims {
            fail!(code::NN_PARAM_INVALID, "padding {padding:?} does not fit x of shape {shape:?}");
        }
        let (mut padded, mut sources) = (shape.to_vec(), Vec::new());
        for (at, pair) in padding.chunks_exact(2).enumerate() {
            let dim = rank - 1 - at;
            let last = shape[dim] as i64 - 1;
            if last < 0 || self == Edge::Mirror && pair.iter().any(|&pad| pad > last) {
                fail!(code::NN_PARAM_INVALID, "padding {pair:?} for a size of {}", shape[dim]);
            }
            let size = shape[dim] as i64 + pair[0] + pair[1];
            if size < 0 {
                fail!(code::NN_PARAM_INVALID, "padding {pair:?} for a size of {}", shape[dim]);
            }
            padded[dim] = size as usize;
            let source = |at: i64| match self {
                Edge::Nearest => at.clamp(0, last),
                Edge::Mirror if at > last => 2 * last - at,
                Edge::Mirror => at.abs(),
            };
            sources.insert(0, (-pair[0]..=last + pair[1]).map(|at| source(at) as usize).collect());
        }
        Ok((padded, sources))
    }
}
