//! Attention for training, and its gradients.

use super::super::cast::expect_dtype;
use super::super::optional::{placed, present};
use super::super::shape::expect;
use super::TYPES;
use super::heads::Order;
use super::seen::{Sparse, added, mask_of, plane};
use super::weigh::{COPIES, Drop, backward, backward_dropped, forward, keep, log_sums};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, View};

/// What both directions are told, checked.
struct How {
    order: Order,
    sparse: Option<Sparse>,
    scale: f64,
    /// What a shift is multiplied by before it is added to scaled scores.
    shift_scale: f64,
    keep: f64,
    heads: usize,
    shared: usize,
    scores: [usize; 4],
    flops: u64,
}

/// The numbers of the operators, as they come.
struct Numbers {
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    sparse: i64,
    /// 1 adds a shift to scores before they are scaled, 0 after.
    shift_kind: i64,
}

impl How {
    /// Refuses what is not simulated, and what does not fit together; gives query, key and value by heads.
    fn new(numbers: &Numbers, masked: bool, [query, key, value]: [&Tensor; 3]) -> Result<(How, [Tensor; 3])> {
        let order = Order::new(&numbers.layout)?;
        for (name, x) in [("query", query), ("key", key), ("value", value)] {
            expect_dtype(name, x, TYPES)?;
            expect_dtype(name, x, &[query.dtype()])?;
        }
        if !(numbers.keep > 0.0 && numbers.keep <= 1.0) {
            fail!(code::NN_PARAM_INVALID, "keep is {}, expected above 0 and up to 1", numbers.keep);
        }
        if !(0..=1).contains(&numbers.shift_kind) {
            fail!(code::NN_PARAM_INVALID, "shifts of kind {} are not simulated", numbers.shift_kind);
        }
        let heads = numbers.heads.max(0) as usize;
        let query = order.heads("query", query, heads)?;
        let &[batch, _, rows, width] = query.shape() else { unreachable!("of rank 4") };
        let shared = order.count(key, width)?;
        if shared == 0 || !heads.is_multiple_of(shared) {
            fail!(code::NN_PARAM_INVALID, "{heads} heads of queries for {shared} of keys");
        }
        let (key, value) = (order.heads("key", key, shared)?, order.heads("value", value, shared)?);
        let keys = key.shape()[2];
        expect("key", &key, &[batch, shared, keys, width])?;
        expect("value", &value, &[batch, shared, keys, value.shape()[3]])?;
        // Without a mask nothing is hidden, whatever the rule.
        let sparse = Sparse::new(numbers.sparse, numbers.before, numbers.after)?;
        let how = How {
            order,
            sparse: masked.then_some(sparse),
            scale: numbers.scale,
            shift_scale: if numbers.shift_kind == 1 { numbers.scale } else { 1.0 },
            keep: numbers.keep,
            heads,
            shared,
            scores: [batch, heads, rows, keys],
            flops: 4 * (batch * heads * rows * keys * width) as u64,
        };
        Ok((how, [query, key, value]))
    }

    /// Mask, shift and bits of weights that survive, if they count.
    fn extras(
        &self,
        mask: Option<Tensor>,
        shift: Option<Tensor>,
        drop_mask: Option<Tensor>,
    ) -> Result<[Option<Tensor>; 3]> {
        let mask = match self.sparse {
            Some(sparse) => mask_of(mask, sparse, self.scores)?,
            None => None,
        };
        let shift = shift.map(|shift| plane("shift", &shift, self.scores)).transpose()?;
        let drop_mask = drop_mask.filter(|_| self.keep < 1.0);
        if self.keep < 1.0 {
            let bytes = self.scores.iter().product::<usize>().div_ceil(8);
            match &drop_mask {
                Some(bits) if bits.layout().len() >= bytes => expect_dtype("drop_mask", bits, &[DType::U8])?,
                _ => fail!(
                    code::NN_PARAM_INVALID,
                    "keep is {}, but drop_mask has not {bytes} bytes",
                    self.keep
                ),
            }
        }
        Ok([mask, shift, drop_mask])
    }

    /// Fails unless what is kept of each query has its shape.
    fn expect_statistics(&self, largest: Option<&Tensor>, sums: Option<&Tensor>) -> Result {
        let [batch, heads, rows, _] = self.scores;
        for (name, x) in [("largest", largest), ("sums", sums)] {
            let Some(x) = x else { continue };
            expect(name, x, &[batch, heads, rows, COPIES])?;
            expect_dtype(name, x, &[DType::F32])?;
        }
        Ok(())
    }

    fn drop(&self, bits: Option<View<'_>>) -> Option<Drop> {
        bits.map(|bits| Drop { bits: bits.array::<u8>().iter().copied().collect(), keep: self.keep })
    }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
fn score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    mask: Option<Tensor>,
    numbers: Numbers,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    out: Tensor,
) -> Planned {
    let (how, [query, key, value]) = How::new(&numbers, mask.is_some(), [&query, &key, &value])?;
    expect_dtype("out", &out, &[query.dtype()])?;
    let out = how.order.heads("out", &out, how.heads)?;
    expect("out", &out, &[&query.shape()[..3], &value.shape()[3..]].concat())?;
    how.expect_statistics(largest.as_ref(), sums.as_ref())?;
    let (extras, given) = present(how.extras(mask, shift, drop_mask)?);
    let (kept, wanted) = present([largest, sums]);
    let reads = [vec![query, key, value], extras].concat();
    let flops = how.flops;
    let plan =
        Plan::lists(c"FlashAttentionScore", reads, [vec![out], kept].concat(), move |reads, writes| {
            let [mask, shift, bits] = placed(given, reads[3..].iter().copied());
            let shift = shift.map(|shift| (shift, how.shift_scale));
            let added = added(how.scores, mask, how.sparse, shift, None);
            let mut writes = writes.into_iter();
            let out = writes.next().expect("the result comes first");
            let drop = how.drop(bits);
            let log_sums = forward([reads[0], reads[1], reads[2]], how.scale, &added, drop.as_ref(), out);
            let [largest, sums] = placed(wanted, writes);
            keep(&log_sums, largest, sums);
            Ok(())
        });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    largest: Tensor,
    sums: Tensor,
    _weights: Option<Tensor>,
    out: Tensor,
) -> Planned {
    let numbers = Numbers { scale, keep, before, after, heads, layout, sparse, shift_kind: 1 };
    score(query, key, value, shift, drop_mask, mask, numbers, Some(largest), Some(sums), out)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    _query_start: Option<Vec<i64>>,
    _key_start: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    shift_kind: i64,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    _weights: Option<Tensor>,
    out: Tensor,
) -> Planned {
    let numbers = Numbers { scale, keep, before, after, heads, layout, sparse, shift_kind };
    score(query, key, value, shift, drop_mask, mask, numbers, largest, sums, out)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
fn score_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    mask: Option<Tensor>,
    [largest, sums, output]: [Option<Tensor>; 3],
    numbers: Numbers,
    [to_query, to_key, to_value]: [Tensor; 3],
    to_shift: Option<Tensor>,
) -> Planned {
    let (how, [query, key, value]) = How::new(&numbers, mask.is_some(), [&query, &key, &value])?;
    let (Some(largest), Some(sums), Some(output)) = (largest, sums, output) else {
        fail!(code::NN_PARAM_NULLPTR, "the results of the forward pass are null");
    };
    how.expect_statistics(Some(&largest), Some(&sums))?;
    let by_heads = |name: &str, x: &Tensor, heads: usize, like: &[usize]| {
        expect_dtype(name, x, &[query.dtype()])?;
        let x = how.order.heads(name, x, heads)?;
        expect(name, &x, like)?;
        Ok(x)
    };
    let result = [&query.shape()[..3], &value.shape()[3..]].concat();
    let grad = by_heads("grad", &grad, how.heads, &result)?;
    let output = by_heads("output", &output, how.heads, &result)?;
    let to_query = by_heads("to_query", &to_query, how.heads, query.shape())?;
    let to_key = by_heads("to_key", &to_key, how.shared, key.shape())?;
    let to_value = by_heads("to_value", &to_value, how.shared, value.shape())?;
    let to_shift = match (&shift, to_shift.filter(|to_shift| !to_shift.layout().is_empty())) {
        (Some(_), Some(to_shift)) => Some(plane("to_shift", &to_shift, how.scores)?),
        _ => None,
    };
    let (extras, given) = present(how.extras(mask, shift, drop_mask)?);
    let (shifts, wants_shift) = present([to_shift]);
    let reads = [vec![grad, query, key, value, output, largest, sums], extras].concat();
    let flops = how.flops * 5 / 2;
    let writes = [vec![to_query, to_key, to_value], shifts].concat();
    let plan = Plan::lists(c"FlashAttentionScoreGrad", reads, writes, move |reads, writes| {
        let [mask, shift, bits] = placed(given, reads[7..].iter().copied());
        let shift = shift.map(|shift| (shift, how.shift_scale));
        let added = added(how.scores, mask, how.sparse, shift, None);
        let mut writes = writes.into_iter();
        let gradients = std::array::from_fn(|_| writes.next().expect("three gradients"));
        let [to_shift] = placed(wants_shift, writes);
        let drop = how.drop(bits);
        if drop.is_none() && to_shift.is_none() {
            log_sums(reads[5], reads[6]).read(|log_sum| {
                let given = [reads[1], reads[2], reads[3], reads[4]];
                backward(reads[0], given, log_sum, how.scale, &added, gradients);
            });
        } else {
            let given = [reads[1], reads[2], reads[3]];
            let to_shift = to_shift.map(|to_shift| (to_shift, how.shift_scale));
            backward_dropped(reads[0], given, how.scale, &added, drop.as_ref(), gradients, to_shift);
        }
        Ok(())
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    _weights: Option<Tensor>,
    output: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    to_query: Tensor,
    to_key: Tensor,
    to_value: Tensor,
    to_shift: Option<Tensor>,
) -> Planned {
    let numbers = Numbers { scale, keep, before, after, heads, layout, sparse, shift_kind: 1 };
    let (kept, gradients) = ([largest, sums, output], [to_query, to_key, to_value]);
    score_grad(query, key, value, grad, shift, drop_mask, mask, kept, numbers, gradients, to_shift)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score_grad_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    _weights: Option<Tensor>,
    output: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    _query_start: Option<Vec<i64>>,
    _key_start: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    shift_kind: i64,
    to_query: Tensor,
    to_key: Tensor,
    to_value: Tensor,
    to_shift: Option<Tensor>,
) -> Planned {
    let numbers = Numbers { scale, keep, before, after, heads, layout, sparse, shift_kind };
    let (kept, gradients) = ([largest, sums, output], [to_query, to_key, to_value]);
    score_grad(query, key, value, grad, shift, drop_mask, mask, kept, numbers, gradients, to_shift)
}
