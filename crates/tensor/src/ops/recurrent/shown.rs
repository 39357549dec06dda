//! The calls that torch makes around a layer of long short-term memory, and the memory it takes for them.

use super::layer::{LayerInputs, LstmLayer, StackOf};
use crate::{Backward, DType, Device, Inputs as _, Result, Tensor, composite, shown};
use cresset_dispatch::observe::{self, Argument, Span};

/// Memory for an output.
pub(super) fn room(shape: &[usize]) -> Result<Tensor> {
    shown::empty(shape, DType::F32)
}

/// Memory for what the derivative needs, or none.
pub(super) fn workspace(bytes: Option<usize>) -> Result<Tensor> {
    match bytes {
        Some(bytes) => shown::empty(&[bytes], DType::U8),
        None => Tensor::uninit(&[0], DType::U8, Device::CPU),
    }
}

/// Both biases as one, which torch's library is given; our kernel adds them itself.
pub(super) fn bias_sum(biases: bool, [_, ih, _, a, b, ..]: LayerInputs<'_>) -> Result<Option<Tensor>> {
    if !observe::is_watched() {
        return Ok(None);
    }
    match (biases, a, b, ih) {
        (true, Some(a), Some(b), _) => a.add(b).map(Some),
        (_, _, _, Some(ih)) => Tensor::zeros(&ih.shape()[..1], (DType::F32, Device::CPU)).map(Some),
        _ => Ok(None),
    }
}

/// Zeros that torch has in the place of biases, of the shapes of the weights.
pub(super) fn missing_biases(
    ih: Option<&Tensor>,
    hh: Option<&Tensor>,
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let (true, Some(ih), Some(hh)) = (observe::is_watched(), ih, hh) else { return Ok((None, None)) };
    let second = Tensor::zeros(hh.shape(), (hh.dtype(), hh.device()))?;
    let first = Tensor::zeros(ih.shape(), (ih.dtype(), ih.device()))?;
    Ok((Some(first), Some(second)))
}

/// The gradients that came, zeros of the shape of `like` where none did.
pub(super) fn incoming(ctx: &Backward<'_>, like: [&Tensor; 3]) -> Result<[Tensor; 3]> {
    let one = |i: usize| match ctx.grad_if_any(i) {
        Some(grad) => grad.contiguous(),
        None => zeros(like[i]),
    };
    Ok([one(0)?, one(1)?, one(2)?])
}

fn zeros(like: &Tensor) -> Result<Tensor> {
    let none = Argument::None;
    shown::within("aten::zeros_like", [like], &[none, none, none, none, shown::CONTIGUOUS], || {
        let out = shown::empty_like_as(like, like.dtype())?;
        out.zero_()?;
        Ok(out)
    })
}

/// The call that computes the gradients of a layer.
pub(super) fn backward_call(op: &LstmLayer, ctx: &Backward<'_>) -> Option<Span> {
    let kept: [Option<&Tensor>; 10] = std::array::from_fn(|i| ctx.optional(i));
    composite("aten::mkldnn_rnn_layer_backward", kept, |visit| {
        let StackOf { layers, bidirectional, batch_first, train } = op.stack;
        let grads: [Option<&Tensor>; 3] = std::array::from_fn(|i| ctx.grad_if_any(i));
        grads.each(|grad| visit(grad.into_argument()));
        visit(Argument::Bool(op.reverse));
        visit(Argument::Int(2));
        visit(Argument::Int(ctx.saved(2).shape()[1] as i64));
        visit(Argument::Int(layers as i64));
        [op.biases, train, bidirectional].iter().for_each(|truth| visit(Argument::Bool(*truth)));
        visit(Argument::Ints(&[]));
        visit(Argument::Bool(batch_first));
        visit(Argument::Tensor(ctx.saved(10).argument()));
    })
}
