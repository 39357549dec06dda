//! Elements moved to other places: joined, turned, cut to triangles, and repeated around the edges.

use super::{beside, converted};
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{Kernel, Key, Result, Tensor};

/// One line per padding and its gradient.
macro_rules! edges {
    ($npu:ident; $($op:ident: $call:ident, $back:ident: $back_call:ident;)*) => {$(
        $op::table().register($npu, |op, [x], out| {
            let edges = Edges::new(&op.padding, x);
            edges.filled(out, |out| aclnn::$call(x, &edges.added, out))
        });
        $back::table().register($npu, |op, [grad, x], out| {
            let edges = Edges::new(&op.padding, x);
            aclnn::$back_call(&edges.whole(grad)?, x, &edges.added, out)
        });
    )*};
}

pub(super) fn register(npu: Key) {
    Cat::table().register(npu, |op, tensors, out| {
        let parts = tensors.iter().zip(&op.sizes).filter(|(tensor, size)| **size > 0 && tensor.numel() > 0);
        let parts = parts.map(|(x, _)| converted(x, out.dtype())).collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Ok(());
        }
        aclnn::cat(&parts.iter().collect::<Vec<_>>(), *op.dim as i64, out)
    });
    Flip::table().register(npu, |op, [x], out| {
        let dims: Vec<usize> = op.dims.iter().copied().filter(|&dim| dim < x.dim()).collect();
        match &dims[..] {
            [] => aclnn::inplace_copy(out, x),
            dims => aclnn::flip(x, dims, out),
        }
    });
    Tril::table().register(npu, |op, [x], out| aclnn::tril(x, op.diagonal as i64, out));
    Triu::table().register(npu, |op, [x], out| aclnn::triu(x, op.diagonal as i64, out));
    edges! { npu;
        ReflectionPad1d: reflection_pad1d, ReflectionPad1dBackward: reflection_pad1d_backward;
        ReflectionPad2d: reflection_pad2d, ReflectionPad2dBackward: reflection_pad2d_backward;
        ReflectionPad3d: reflection_pad3d, ReflectionPad3dBackward: reflection_pad3d_backward;
        ReplicationPad1d: replication_pad1d, ReplicationPad1dBackward: replication_pad1d_backward;
        ReplicationPad2d: replication_pad2d, ReplicationPad2dBackward: replication_pad2d_backward;
        ReplicationPad3d: replication_pad3d, ReplicationPad3dBackward: replication_pad3d_backward;
    }
}

/// What is added around a tensor, and cut off where the padding is negative, which the library does not
/// know: the last dimension first, before and after.
struct Edges {
    added: Vec<usize>,
    cut: Vec<usize>,
    padded: Vec<usize>,
}

impl Edges {
    fn new(padding: &[isize], x: &Tensor) -> Edges {
        let added: Vec<usize> = padding.iter().map(|&pad| pad.max(0) as usize).collect();
        let cut = padding.iter().map(|&pad| (-pad).max(0) as usize).collect();
        let mut padded = x.shape().to_vec();
        let rank = padded.len();
        for (at, pair) in added.chunks_exact(2).enumerate() {
            padded[rank - 1 - at] += pair[0] + pair[1];
        }
        Edges { added, cut, padded }
    }

    /// What is left of a padded tensor when all that is negative is cut off.
    fn inner(&self, whole: &Tensor) -> Result<Tensor> {
        let mut inner = whole.clone();
        for (at, pair) in self.cut.chunks_exact(2).enumerate() {
            let dim = whole.dim() - 1 - at;
            let left = inner.shape()[dim] - pair[0] - pair[1];
            inner = inner.narrow(dim as isize, pair[0] as isize, left)?;
        }
        Ok(inner)
    }

    fn filled(&self, out: &Tensor, fill: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
        if self.padded == out.shape() {
            return fill(out);
        }
        let whole = beside(out, &self.padded, out.dtype())?;
        fill(&whole)?;
        aclnn::inplace_copy(out, &self.inner(&whole)?)
    }

    /// A gradient with zeros where elements were cut off.
    fn whole(&self, grad: &Tensor) -> Result<Tensor> {
        if self.padded == grad.shape() {
            return Ok(grad.clone());
        }
        let whole = beside(grad, &self.padded, grad.dtype())?;
        aclnn::inplace_zero(&whole)?;
        aclnn::inplace_copy(&self.inner(&whole)?, grad)?;
        Ok(whole)
    }
}
