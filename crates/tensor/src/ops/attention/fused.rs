//! Attention by one kernel of a device, where it has one.

use super::flash::second_gradients;
use super::{Attention, check};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor};
use cresset_dispatch::observe::Argument;
use cresset_kernels::View;
use cresset_kernels::attention::{self as kernel, Attended};

/// How often devices repeat the maximum and the sum of each query.
const COPIES: usize = 8;

/// Attention for `[batch, heads, rows, width]`, and for each query the largest score and the sum of
/// exponentials beyond it, each eight times. A mask says with bool which keys a query sees.
#[derive(Clone, Debug)]
pub struct FusedAttention {
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// What scores are multiplied by.
    pub scale: f64,
}

/// The gradients of [`FusedAttention`] for query, key and value.
///
/// It takes the gradient, query, key, value, the result, the largest scores and the sums, and a mask.
#[derive(Clone, Debug)]
pub struct FusedAttentionBackward(pub FusedAttention);

/// The result of attention, if the tensors are on a device that has a kernel for them.
pub(super) fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    how: Attention<'_>,
) -> Result<Option<Tensor>> {
    if !suits(query, key, value, how) {
        return Ok(None);
    }
    let op = FusedAttention { causal: how.causal, scale: how.scale(query) };
    if query.dim() == 4 {
        let [out, _, _] = op.call(([query, key, value], how.mask))?;
        return Ok(Some(out));
    }
    let [query, key, value] = [query.unsqueeze(0)?, key.unsqueeze(0)?, value.unsqueeze(0)?];
    let [out, _, _] = op.call(([&query, &key, &value], how.mask))?;
    out.squeeze_dim(0).map(Some)
}

fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

fn suits(query: &Tensor, key: &Tensor, value: &Tensor, how: Attention<'_>) -> bool {
    let rank = query.dim();
    let known = |x: &&Tensor| FusedAttention::table().get(x.device().key).is_some();
    let alike =
        |x: &&Tensor| x.dim() == rank && x.numel() > 0 && x.shape()[rank - 1] == query.shape()[rank - 1];
    if how.dropout.is_some()
        || !matches!(rank, 3 | 4)
        || !is_single(query.dtype())
        || ![query, key, value].iter().all(|x| known(x) && alike(x))
    {
        return false;
    }
    let heads = |x: &Tensor| x.shape()[rank - 3];
    let grouped = how.grouped && heads(query).is_multiple_of(heads(key));
    key.shape() == value.shape()
        && key.shape()[..rank - 3] == query.shape()[..rank - 3]
        && (heads(key) == heads(query) || grouped)
        && how.mask.is_none_or(|mask| {
            let scores = [query.shape()[rank - 2], key.shape()[rank - 2]];
            mask.dtype() == DType::Bool && mask.shape() == scores && known(&mask)
        })
}

type Operands<'a> = ([&'a Tensor; 3], Option<&'a Tensor>);
type BackwardOperands<'a> = ([&'a Tensor; 7], Option<&'a Tensor>);

impl Op for FusedAttention {
    const NAME: &'static str = "aten::_scaled_dot_product_fused_attention_overrideable";
    const BACKWARD: &'static str = "ScaledDotProductFusedAttentionOverrideableBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Operands<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [query, key, value, out, largest, sums] = [0, 1, 2, 4, 5, 6].map(|i| ctx.saved(i));
        let given = [ctx.grad(), query, key, value, out, largest, sums];
        let all = FusedAttentionBackward(self.clone()).call((given, ctx.optional(3)))?;
        let mut grads: Grads =
            all.into_iter().zip(0..).map(|(grad, i)| ctx.needs(i).then_some(grad)).collect();
        grads.push(None);
        Ok(grads)
    }

    fn arguments(&self, (tensors, mask): Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        self.visit(&tensors, mask, visit);
    }

    fn flops(&self, ([query, key, _], _): Operands<'_>) -> u64 {
        4 * query.numel() as u64 * key.shape()[key.dim() - 2] as u64
    }
}

impl FusedAttention {
    fn visit(&self, tensors: &[&Tensor], mask: Option<&Tensor>, visit: &mut dyn FnMut(Argument<'_>)) {
        tensors.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        [mask].each(|mask| visit(mask.into_argument()));
        visit(Argument::Float(0.0));
        visit(Argument::Bool(self.causal));
        visit(Argument::Float(self.scale));
    }

    fn kernel<'a>(&self, mask: Option<View<'a>>) -> kernel::Attention<'a> {
        kernel::Attention { scale: self.scale, causal: self.causal, mask }
    }
}

impl Kernel for FusedAttention {
    kernel_table!(FusedAttention);

    fn infer(&self, ([query, key, value], mask): Operands<'_>) -> Result<[Spec; 3]> {
        let how = Attention { mask, grouped: true, causal: self.causal, ..Attention::default() };
        check(query, key, value, how)?;
        let &[batch, heads, rows, _] = query.shape() else {
            let text = format_args!("expects [batch, heads, rows, width], not {:?}", query.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if !is_single(query.dtype()) {
            let text =
                format_args!("computes in single precision, which is not enough for {}", query.dtype());
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        let each = Spec::new([batch, heads, rows, COPIES], DType::F32);
        Ok([Spec::like(query), each.clone(), each])
    }

    fn cpu(&self, ([query, key, value], mask): Operands<'_>, outputs: &[Tensor; 3]) -> Result<()> {
        let [out, largest, sums] = outputs;
        let logarithms = Tensor::uninit(&query.shape()[..3], DType::F32, query.device())?;
        let readings = [query, key, value].map(Tensor::read);
        let masking = mask.map(Tensor::read);
        kernel::attention(
            query.elements(&readings[0]),
            key.elements(&readings[1]),
            value.elements(&readings[2]),
            self.kernel(mask.zip(masking.as_ref()).map(|(mask, reading)| mask.elements(reading))),
            out.elements_mut(&mut out.write()),
            logarithms.elements_mut(&mut logarithms.write()),
        );
        // The sum of all exponentials as a power: nothing is left beyond it.
        largest.copy_(&logarithms.unsqueeze(-1)?)?;
        sums.fill_(1)
    }
}

impl Op for FusedAttentionBackward {
    const NAME: &'static str = "aten::_scaled_dot_product_fused_attention_overrideable_backward";
    const BACKWARD: &'static str = "ScaledDotProductFusedAttentionOverrideableBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = BackwardOperands<'a>;
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mut grads = second_gradients(ctx, ctx.optional(7), self.0.causal, self.0.scale)?;
        grads.extend([None, None, None, None]);
        Ok(grads)
    }

    fn arguments(&self, (tensors, mask): BackwardOperands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        self.0.visit(&tensors, mask, visit);
    }

    fn flops(&self, ([_, query, key, ..], _): BackwardOperands<'_>) -> u64 {
        10 * query.numel() as u64 * key.shape()[key.dim() - 2] as u64
    }
}

impl Kernel for FusedAttentionBackward {
    kernel_table!(FusedAttentionBackward);

    fn infer(&self, (tensors, mask): BackwardOperands<'_>) -> Result<[Spec; 3]> {
        let [grad, query, key, value, out, largest, sums] = tensors;
        let [expected, each, _] = self.0.infer(([query, key, value], mask))?;
        let fits = [grad, out].iter().all(|x| Spec::like(x) == expected)
            && [largest, sums].iter().all(|x| Spec::like(x) == each);
        if !fits {
            let text = format_args!(
                "expects a gradient and a result of shape {:?}, not {:?} and {:?}",
                query.shape(),
                grad.shape(),
                out.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok([Spec::like(query), Spec::like(key), Spec::like(value)])
    }

    fn cpu(&self, (tensors, mask): BackwardOperands<'_>, grads: &[Tensor; 3]) -> Result<()> {
        let [grad, query, key, value, out, largest, sums] = tensors;
        let logarithms = largest.add(&sums.log()?)?.select(3, 0)?.contiguous()?;
        let [grad_read, query_read, key_read, value_read, out_read, sums_read] =
            [grad, query, key, value, out, &logarithms].map(Tensor::read);
        let masking = mask.map(Tensor::read);
        let given = Attended {
            query: query.elements(&query_read),
            key: key.elements(&key_read),
            value: value.elements(&value_read),
            out: out.elements(&out_read),
            log_sum: logarithms.elements(&sums_read),
        };
        let how = self.0.kernel(mask.zip(masking.as_ref()).map(|(mask, reading)| mask.elements(reading)));
        let mut writing = grads.each_ref().map(|grad| grad.write());
        let [to_query, to_key, to_value] = grads;
        let [write_query, write_key, write_value] = &mut writing;
        let results = [
            to_query.elements_mut(write_query),
            to_key.elements_mut(write_key),
            to_value.elements_mut(write_value),
        ];
        kernel::attention_backward(grad.elements(&grad_read), given, how, results);
        Ok(())
    }
}
