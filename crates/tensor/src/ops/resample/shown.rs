//! The calls that torch makes while it brings images to another size.

use super::{Method, Resizing};
use crate::op::Output as _;
use crate::{Device, MemoryFormat, Result, Spec, Tensor, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Height and width together of the planes up to which torch goes by pixels rather than by channels.
const SMALL: usize = 128;

/// What `fill` computes into memory for an output of `spec`.
pub(super) fn forward(
    resizing: &Resizing,
    method: Method,
    x: &Tensor,
    spec: Spec,
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let out = Tensor::allocate(spec, Device::CPU)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let by_pixels = || x.is_contiguous_in(MemoryFormat::ChannelsLast) && x.shape()[1] > 3;
    let is_small = || resizing.to.iter().sum::<usize>() <= SMALL;
    if resizing.to.len() == 2 && method != Method::Cubic && (by_pixels() || is_small()) {
        let _x = x.contiguous_in(MemoryFormat::ChannelsLast)?;
        let turned = out.contiguous_in(MemoryFormat::ChannelsLast)?;
        if !out.is_contiguous_in(MemoryFormat::ChannelsLast) {
            let more = [Argument::Bool(false)];
            shown::within("aten::copy_", [&out, &turned], &more, || Ok(out.clone()))?;
        }
        fill(&out)?;
        return Ok(out);
    }
    let mut strides = Dims::from_slice(&x.strides()[..2]);
    strides.resize(out.dim(), 0);
    x.as_strided(out.shape(), &strides, x.layout().offset())?;
    let _tables = tables(resizing, method, x)?;
    fill(&out)?;
    Ok(out)
}

/// Places of neighbours and what they weigh, for each dimension.
fn tables(resizing: &Resizing, method: Method, x: &Tensor) -> Result<Vec<Tensor>> {
    let neighbours = match method {
        Method::Nearest | Method::NearestExact => 1,
        Method::Linear => 2,
        Method::Cubic => 4,
    };
    let mut tables = Vec::new();
    for (dim, &size) in resizing.to.iter().enumerate() {
        let mut shape = Dims::from_elem(1, x.dim());
        shape[dim + 2] = size;
        for _ in 0..neighbours {
            tables.push(shown::empty_open(&shape, crate::DType::I64)?);
            tables.push(match neighbours {
                1 => shown::ones_open(&shape, x.dtype())?,
                _ => shown::empty_open(&shape, x.dtype())?,
            });
        }
    }
    Ok(tables)
}

/// What `fill` computes into zeros for a gradient of `spec`.
pub(super) fn backward(
    grad: &Tensor,
    spec: Spec,
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let out = Tensor::allocate(spec, Device::CPU)?;
    out.zero_()?;
    let _grad = grad.contiguous()?;
    fill(&out)?;
    Ok(out)
}
