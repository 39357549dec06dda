//! Attention on the host without a tensor of all scores.

use super::formula::{shared, weights, widened};
use super::{Attention, shown};
use crate::autograd::Saves;
use crate::ops::SoftmaxBackward;
use crate::{Backward, Cause, DType, Error, Forward, Grads, Inputs as _, Key, Op, Result, Tensor, grads};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::attention::{self as kernel, Attended};
use cresset_kernels::{Dims, Layout};
use std::cmp::Reverse;

/// Attention in blocks, and the logarithm of each query's sum of exponentials: for
/// `[batch, heads, rows, width]` on the host, without dropout.
#[derive(Clone, Debug)]
pub struct FlashAttentionForCpu {
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// What scores are multiplied by; one over the root of the width unless given.
    pub scale: Option<f64>,
}

/// The gradients of [`FlashAttentionForCpu`] for query, key and value.
///
/// It takes the gradient, query, key, value, the result and the logarithms of sums, and a mask.
#[derive(Clone, Debug)]
pub struct FlashAttentionForCpuBackward {
    /// As the forward pass had it.
    pub causal: bool,
    /// As the forward pass had it.
    pub scale: Option<f64>,
}

/// The result of attention, if the host's kernel is for these tensors.
pub(super) fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    how: Attention<'_>,
) -> Result<Option<Tensor>> {
    if !suits(query, key, value, how) {
        return Ok(None);
    }
    let op = FlashAttentionForCpu { causal: how.causal, scale: how.scale };
    let [out, _] = op.call(([query, key, value], how.mask))?;
    Ok(Some(out))
}

/// Whether torch would take its kernel for these tensors.
pub(super) fn suits(query: &Tensor, key: &Tensor, value: &Tensor, how: Attention<'_>) -> bool {
    let tensors = [query, key, value];
    let rank = query.dim();
    if how.dropout.is_some()
        || rank != 4
        || tensors.iter().any(|x| {
            x.device().key != Key::CPU
                || x.dim() != rank
                || x.numel() == 0
                || x.strides()[rank - 1] != 1
                || x.shape()[rank - 1] != query.shape()[rank - 1]
        })
    {
        return false;
    }
    let heads = |x: &Tensor| x.shape()[rank - 3];
    let grouped = how.grouped && heads(query).is_multiple_of(heads(key));
    let fits = key.shape() == value.shape()
        && key.shape()[..rank - 3] == query.shape()[..rank - 3]
        && (heads(key) == heads(query) || grouped);
    fits && how.mask.is_none_or(|mask| {
        let scores: Dims =
            query.shape()[..rank - 1].iter().chain(&key.shape()[rank - 2..rank - 1]).copied().collect();
        let flat = mask.dim() == 2 || mask.dim() == 4 || (rank == 3 && mask.dim() == 3);
        let lead: Dims = std::iter::repeat_n(1, 4 - rank).chain(scores.iter().copied()).collect();
        flat && !mask.requires_grad()
            && mask.device().key == Key::CPU
            && mask.layout().broadcast_to(&lead).is_some()
    })
}

type Operands<'a> = ([&'a Tensor; 3], Option<&'a Tensor>);

impl Op for FlashAttentionForCpu {
    const NAME: &'static str = "aten::_scaled_dot_product_flash_attention_for_cpu";
    const BACKWARD: &'static str = "ScaledDotProductFlashAttentionForCpuBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Operands<'a>;
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [query, key, value, out, sums] = [0, 1, 2, 4, 5].map(|i| ctx.saved(i));
        let op = FlashAttentionForCpuBackward { causal: self.causal, scale: self.scale };
        let all = op.call(([ctx.grad(), query, key, value, out, sums], ctx.optional(3)))?;
        let mut grads: Grads =
            all.into_iter().zip(0..).map(|(grad, i)| ctx.needs(i).then_some(grad)).collect();
        grads.push(None);
        Ok(grads)
    }

    fn arguments(&self, (tensors, mask): Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        arguments(self.causal, self.scale, &tensors, mask, visit);
    }

    fn flops(&self, ([query, key, _], _): Operands<'_>) -> u64 {
        4 * query.numel() as u64 * key.shape()[key.dim() - 2] as u64
    }
}

fn arguments(
    causal: bool,
    scale: Option<f64>,
    tensors: &[&Tensor],
    mask: Option<&Tensor>,
    visit: &mut dyn FnMut(Argument<'_>),
) {
    tensors.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
    visit(Argument::Float(0.0));
    visit(Argument::Bool(causal));
    [mask].each(|mask| visit(mask.into_argument()));
    visit(scale.map_or(Argument::None, Argument::Float));
}

impl Forward for FlashAttentionForCpu {
    fn forward(&self, ([query, key, value], mask): Operands<'_>) -> Result<[Tensor; 2]> {
        check(Self::NAME, [query, key, value], mask)?;
        let (sums_dtype, watched) = (shown::sums_dtype(query), observe::is_watched());
        let (out, sums) = if watched {
            shown::room([query, key, value], mask)?
        } else {
            let out = allocate(Self::NAME, query.shape(), &order(query), query.dtype())?;
            (out, allocate(Self::NAME, &query.shape()[..3], &[0, 2, 1], sums_dtype)?)
        };
        let readings = [query, key, value].map(Tensor::read);
        let masking = mask.map(Tensor::read);
        let how = kernel::Attention {
            scale: scale(self.scale, query),
            causal: self.causal,
            mask: mask.zip(masking.as_ref()).map(|(mask, reading)| mask.elements(reading)),
        };
        kernel::attention(
            query.elements(&readings[0]),
            key.elements(&readings[1]),
            value.elements(&readings[2]),
            how,
            out.elements_mut(&mut out.write()),
            sums.elements_mut(&mut sums.write()),
        );
        if watched {
            shown::turn_back([&out, &sums])?;
        }
        Ok([out, sums])
    }
}

/// Refuses what [`Tensor::scaled_dot_product_attention`] would not have sent here.
fn check(op: &'static str, [query, key, value]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<()> {
    let how = Attention { mask, grouped: true, ..Attention::default() };
    if query.dim() == 4 && suits(query, key, value, how) {
        return super::check(query, key, value, how);
    }
    let text = format_args!(
        "expects [batch, heads, rows, width] on the host with rows side by side, not query {:?}, key {:?}, \
         value {:?} and mask {:?}",
        query.shape(),
        key.shape(),
        value.shape(),
        mask.map(Tensor::shape)
    );
    Err(Error::new(Cause::Shape, op, text))
}

fn scale(given: Option<f64>, query: &Tensor) -> f64 {
    Attention { scale: given, ..Attention::default() }.scale(query)
}

/// The dimensions from the outermost in memory to the innermost.
fn order(x: &Tensor) -> Dims {
    let mut dims: Dims = (0..x.dim()).collect();
    if !x.strides().contains(&0) {
        dims.sort_by_key(|&dim| Reverse(x.strides()[dim]));
    }
    dims
}

/// New memory on the host, the dimensions in this order.
fn allocate(op: &'static str, shape: &[usize], order: &[usize], dtype: DType) -> Result<Tensor> {
    let layout = Layout::ordered(shape, order).ok_or_else(|| {
        Error::new(Cause::Memory, op, format_args!("{shape:?} of {dtype} cannot be counted"))
    })?;
    Tensor::uninit_as(layout, dtype, crate::Device::CPU).map_err(|error| error.in_op(op))
}

type BackwardOperands<'a> = ([&'a Tensor; 6], Option<&'a Tensor>);

impl Op for FlashAttentionForCpuBackward {
    const NAME: &'static str = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
    const BACKWARD: &'static str = "ScaledDotProductFlashAttentionForCpuBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = BackwardOperands<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let scale = scale(self.scale, ctx.saved(1));
        let mut grads = second_gradients(ctx, ctx.optional(6), self.causal, scale)?;
        grads.extend([None, None, None]);
        Ok(grads)
    }

    fn arguments(&self, (tensors, mask): BackwardOperands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        arguments(self.causal, self.scale, &tensors, mask, visit);
    }

    fn flops(&self, ([_, query, key, ..], _): BackwardOperands<'_>) -> u64 {
        10 * query.numel() as u64 * key.shape()[key.dim() - 2] as u64
    }
}

/// The gradients of gradients of attention, for the gradient, query, key and value that lead the inputs.
///
/// With weights `P`, gradient `G` and the slopes `S = P (G V' - D)` of scores, where `D` is the sum of
/// `P G V'` along keys, the call gave `S K`, `S' Q` and `P' G`. What else it was given are functions of
/// these inputs, which get their share.
pub(super) fn second_gradients(
    ctx: &Backward<'_>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
) -> Result<Grads> {
    let [grad, query, key, value] = [0, 1, 2, 3].map(|i| widened(ctx.saved(i)));
    let (grad, query, key, value) = (grad?, query?, key?, value?);
    let (to_query, to_key, to_value) =
        (widened(ctx.grad_of(0))?, widened(ctx.grad_of(1))?, widened(ctx.grad_of(2))?);
    let group = key.shape().to_vec();
    let [key, value, to_key, to_value] = [&key, &value, &to_key, &to_value].map(|x| shared(&query, x));
    let (key, value, to_key, to_value) = (key?, value?, to_key?, to_value?);
    let turned = |x: &Tensor| x.transpose(-2, -1);
    let softmax = SoftmaxBackward { dim: 3 };
    let how = Attention { mask, causal, scale: Some(scale), ..Attention::default() };
    let weights = weights(&query, &key, how)?;
    let slopes = grad.matmul(&turned(&value)?)?;
    let pulls = to_query.matmul(&turned(&key)?)?.add(&query.matmul(&turned(&to_key)?)?)?.mul(scale)?;
    let sums = |x: &Tensor| weights.mul(x)?.sum_dims(&[3], true);
    let through = slopes.sub(&sums(&slopes)?)?.mul(&pulls)?.sub(&slopes.mul(&sums(&pulls)?)?)?;
    let through = softmax.clone().call([&through.add(&grad.matmul(&turned(&to_value)?)?)?, &weights])?;
    let (through, pulls) = (through.mul(scale)?, softmax.clone().call([&pulls, &weights])?);
    let slopes = softmax.call([&slopes, &weights])?.mul(scale)?;
    let dtype = ctx.saved(0).dtype();
    let gathered = |x: Tensor| ungrouped(x, &group)?.to_dtype(dtype);
    grads!(ctx;
        pulls.matmul(&value)?.add(&weights.matmul(&to_value)?)?.to_dtype(dtype)?,
        through.matmul(&key)?.add(&slopes.matmul(&to_key)?)?.to_dtype(dtype)?,
        gathered(turned(&through)?.matmul(&query)?.add(&turned(&slopes)?.matmul(&to_query)?)?)?,
        gathered(turned(&pulls)?.matmul(&grad)?)?,
    )
}

/// Gradients of heads that shared one of keys or values, added up.
fn ungrouped(x: Tensor, shape: &[usize]) -> Result<Tensor> {
    if x.shape() == shape {
        return Ok(x);
    }
    let &[batch, shared, rows, width] = shape else { unreachable!("heads of batches have four dimensions") };
    x.reshape([batch, shared, x.shape()[1] / shared, rows, width])?.sum_dims(&[2], false)
}

impl Forward for FlashAttentionForCpuBackward {
    fn forward(
        &self,
        ([grad, query, key, value, out, sums], mask): BackwardOperands<'_>,
    ) -> Result<[Tensor; 3]> {
        check(Self::NAME, [query, key, value], mask)?;
        let like_out = [grad, out].iter().all(|x| x.shape() == query.shape() && x.dtype() == query.dtype());
        if !like_out || sums.shape() != &query.shape()[..3] {
            let text = format_args!(
                "expects a gradient and a result of shape {:?}, not {:?} and {:?}",
                query.shape(),
                grad.shape(),
                out.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let fresh = |x: &Tensor| allocate(Self::NAME, x.shape(), &[0, 2, 1, 3], x.dtype());
        let watched = observe::is_watched();
        let grads = if watched {
            shown::gradient_room([grad, query, key, value, out, sums], mask)?
        } else {
            [fresh(query)?, fresh(key)?, fresh(value)?]
        };
        let [grad_read, query_read, key_read, value_read, out_read, sums_read] =
            [grad, query, key, value, out, sums].map(Tensor::read);
        let masking = mask.map(Tensor::read);
        let how = kernel::Attention {
            scale: scale(self.scale, query),
            causal: self.causal,
            mask: mask.zip(masking.as_ref()).map(|(mask, reading)| mask.elements(reading)),
        };
        let given = Attended {
            query: query.elements(&query_read),
            key: key.elements(&key_read),
            value: value.elements(&value_read),
            out: out.elements(&out_read),
            log_sum: sums.elements(&sums_read),
        };
        let [to_query, to_key, to_value] = &grads;
        let mut writing = grads.each_ref().map(|grad| grad.write());
        let [write_query, write_key, write_value] = &mut writing;
        let results = [
            to_query.elements_mut(write_query),
            to_key.elements_mut(write_key),
            to_value.elements_mut(write_value),
        ];
        kernel::attention_backward(grad.elements(&grad_read), given, how, results);
        drop(writing);
        if watched {
            shown::turn_back(grads.each_ref())?;
        }
        Ok(grads)
    }
}
