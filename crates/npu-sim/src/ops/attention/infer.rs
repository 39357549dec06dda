//! Attention for inference: no gradients, and sequences of which only a part counts.

use super::super::cast::expect_dtype;
use super::super::optional::{placed, present};
use super::super::shape::expect;
use super::TYPES;
use super::heads::Order;
use super::seen::{Sparse, added, mask_of, plane};
use super::weigh::forward;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, Layout, elementwise};

/// What the operators of inference share.
struct How {
    shift: Option<Tensor>,
    mask: Option<Tensor>,
    key_lengths: Option<Vec<i64>>,
    heads: i64,
    scale: f64,
    sparse: [i64; 3],
    layout: String,
    key_heads: i64,
    log_sum: Option<Tensor>,
}

fn attend(query: Tensor, key: Tensor, value: Tensor, how: How, out: Tensor) -> Planned {
    // The result may have its dimensions in another order than what goes in.
    let (order, out_order) = match how.layout.split_once('_') {
        Some((input, output)) => (Order::new(input)?, Order::new(output)?),
        None => (Order::new(&how.layout)?, Order::new(&how.layout)?),
    };
    for (name, x) in [("query", &query), ("key", &key), ("value", &value), ("out", &out)] {
        expect_dtype(name, x, TYPES)?;
        expect_dtype(name, x, &[query.dtype()])?;
    }
    let heads = how.heads.max(0) as usize;
    let shared = if how.key_heads > 0 { how.key_heads as usize } else { heads };
    if shared == 0 || !heads.is_multiple_of(shared) {
        fail!(code::NN_PARAM_INVALID, "{heads} heads of queries for {shared} of keys");
    }
    let query = order.heads("query", &query, heads)?;
    let (key, value) = (order.heads("key", &key, shared)?, order.heads("value", &value, shared)?);
    let out = out_order.heads("out", &out, heads)?;
    let (&[batch, _, rows, width], keys) = (query.shape(), key.shape()[2]) else { unreachable!("of rank 4") };
    expect("key", &key, &[batch, shared, keys, width])?;
    expect("value", &value, &[batch, shared, keys, value.shape()[3]])?;
    expect("out", &out, &[batch, heads, rows, value.shape()[3]])?;
    let scores = [batch, heads, rows, keys];
    let [mode, before, after] = how.sparse;
    let rule = Sparse::new(mode, before, after)?;
    let masked = how.mask.is_some();
    let mask = mask_of(how.mask, rule, scores)?;
    let shift = how.shift.map(|shift| plane("shift", &cut(&shift, rows, keys), scores)).transpose()?;
    let lengths = lengths(how.key_lengths, batch, keys)?;
    if let Some(log_sum) = &how.log_sum {
        expect("log_sum", log_sum, &[batch, heads, rows, 1])?;
        expect_dtype("log_sum", log_sum, &[DType::F32])?;
    }
    let (extras, given) = present([mask, shift]);
    let (kept, wanted) = present([how.log_sum]);
    let (scale, flops) = (how.scale, 4 * (scores.iter().product::<usize>() * width) as u64);
    let reads = [vec![query, key, value], extras].concat();
    let plan =
        Plan::lists(c"FusedInferAttentionScore", reads, [vec![out], kept].concat(), move |reads, writes| {
            let [mask, shift] = placed(given, reads[3..].iter().copied());
            let shift = shift.map(|shift| (shift, 1.0));
            let added = added(scores, mask, masked.then_some(rule), shift, lengths.as_deref());
            let mut writes = writes.into_iter();
            let out = writes.next().expect("the result comes first");
            let logs = forward([reads[0], reads[1], reads[2]], scale, &added, None, out);
            let [log_sum] = placed(wanted, writes);
            if let Some(log_sum) = log_sum {
                logs.read(|logs| {
                    let column = Layout::contiguous(log_sum.shape()).expect("as many elements");
                    elementwise::copy(logs.with_layout(&column), log_sum);
                });
            }
            Ok(())
        });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

/// A shift may be larger than the scores: its first rows and keys count.
fn cut(shift: &Tensor, rows: usize, keys: usize) -> Tensor {
    let rank = shift.shape().len();
    let mut layout = shift.layout().clone();
    for (dim, size) in [(rank.wrapping_sub(2), rows), (rank.wrapping_sub(1), keys)] {
        if layout.shape().get(dim).is_some_and(|&have| have > size) {
            layout = layout.narrow(dim, 0, size);
        }
    }
    shift.with_layout(layout)
}

/// How many keys of each sample count; one length may stand for all.
fn lengths(given: Option<Vec<i64>>, batch: usize, keys: usize) -> Result<Option<Vec<usize>>> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(None) };
    let given: Vec<usize> = given.iter().map(|&length| length.max(0) as usize).collect();
    let lengths = if given.len() == 1 { vec![given[0]; batch] } else { given };
    if lengths.len() != batch || lengths.iter().any(|&length| length > keys) {
        fail!(code::NN_PARAM_INVALID, "lengths {lengths:?} of {batch} samples with {keys} keys");
    }
    Ok(Some(lengths))
}

/// The only tensor of a list: caches in pieces are not simulated.
fn only(name: &str, list: Vec<Tensor>) -> Result<Tensor> {
    match <[Tensor; 1]>::try_from(list) {
        Ok([tensor]) => Ok(tensor),
        Err(list) => fail!(code::NN_PARAM_INVALID, "{} tensors as {name} are not simulated", list.len()),
    }
}

/// Refuses numbers that are quantised, caches in pages, and prefixes.
fn expect_plain(extras: &[&Option<Tensor>]) -> Result {
    if extras.iter().any(|extra| extra.is_some()) {
        fail!(code::NN_PARAM_INVALID, "quantised numbers, pages and prefixes are not simulated");
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn fused_infer_attention_score(
    query: Tensor,
    key: Vec<Tensor>,
    value: Vec<Tensor>,
    shift: Option<Tensor>,
    mask: Option<Tensor>,
    _query_lengths: Option<Vec<i64>>,
    key_lengths: Option<Vec<i64>>,
    dequant_scale1: Option<Tensor>,
    quant_scale1: Option<Tensor>,
    dequant_scale2: Option<Tensor>,
    quant_scale2: Option<Tensor>,
    quant_offset2: Option<Tensor>,
    antiquant_scale: Option<Tensor>,
    antiquant_offset: Option<Tensor>,
    block_table: Option<Tensor>,
    query_padding: Option<Tensor>,
    key_padding: Option<Tensor>,
    heads: i64,
    scale: f64,
    before: i64,
    after: i64,
    layout: String,
    key_heads: i64,
    sparse: i64,
    _precise: i64,
    _block: i64,
    _antiquant_mode: i64,
    with_log_sum: bool,
    out: Tensor,
    log_sum: Option<Tensor>,
) -> Planned {
    expect_plain(&[
        &dequant_scale1,
        &quant_scale1,
        &dequant_scale2,
        &quant_scale2,
        &quant_offset2,
        &antiquant_scale,
        &antiquant_offset,
        &block_table,
        &query_padding,
        &key_padding,
    ])?;
    let log_sum = log_sum.filter(|_| with_log_sum);
    let sparse = [sparse, before, after];
    let how = How { shift, mask, key_lengths, heads, scale, sparse, layout, key_heads, log_sum };
    attend(query, only("key", key)?, only("value", value)?, how, out)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn fused_infer_attention_score_v2(
    query: Tensor,
    key: Vec<Tensor>,
    value: Vec<Tensor>,
    shift: Option<Tensor>,
    mask: Option<Tensor>,
    query_lengths: Option<Vec<i64>>,
    key_lengths: Option<Vec<i64>>,
    dequant_scale1: Option<Tensor>,
    quant_scale1: Option<Tensor>,
    dequant_scale2: Option<Tensor>,
    quant_scale2: Option<Tensor>,
    quant_offset2: Option<Tensor>,
    antiquant_scale: Option<Tensor>,
    antiquant_offset: Option<Tensor>,
    block_table: Option<Tensor>,
    query_padding: Option<Tensor>,
    key_padding: Option<Tensor>,
    key_antiquant_scale: Option<Tensor>,
    key_antiquant_offset: Option<Tensor>,
    value_antiquant_scale: Option<Tensor>,
    value_antiquant_offset: Option<Tensor>,
    key_prefix: Option<Tensor>,
    value_prefix: Option<Tensor>,
    _prefix_length: Option<Vec<i64>>,
    heads: i64,
    scale: f64,
    before: i64,
    after: i64,
    layout: String,
    key_heads: i64,
    sparse: i64,
    precise: i64,
    block: i64,
    antiquant_mode: i64,
    with_log_sum: bool,
    _key_antiquant_mode: i64,
    _value_antiquant_mode: i64,
    out: Tensor,
    log_sum: Option<Tensor>,
) -> Planned {
    expect_plain(&[
        &key_antiquant_scale,
        &key_antiquant_offset,
        &value_antiquant_scale,
        &value_antiquant_offset,
        &key_prefix,
        &value_prefix,
    ])?;
    fused_infer_attention_score(
        query,
        key,
        value,
        shift,
        mask,
        query_lengths,
        key_lengths,
        dequant_scale1,
        quant_scale1,
        dequant_scale2,
        quant_scale2,
        quant_offset2,
        antiquant_scale,
        antiquant_offset,
        block_table,
        query_padding,
        key_padding,
        heads,
        scale,
        before,
        after,
        layout,
        key_heads,
        sparse,
        precise,
        block,
        antiquant_mode,
        with_log_sum,
        out,
        log_sum,
    )
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn prompt_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shift: Option<Tensor>,
    mask: Option<Tensor>,
    lengths: Option<Vec<i64>>,
    heads: i64,
    scale: f64,
    before: i64,
    after: i64,
    layout: String,
    key_heads: i64,
    out: Tensor,
) -> Planned {
    let (sparse, log_sum) = ([0, before, after], None);
    let how = How { shift, mask, key_lengths: lengths, heads, scale, sparse, layout, key_heads, log_sum };
    attend(query, key, value, how, out)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn incre_flash_attention(
    query: Tensor,
    key: Vec<Tensor>,
    value: Vec<Tensor>,
    shift: Option<Tensor>,
    mask: Option<Tensor>,
    lengths: Option<Vec<i64>>,
    heads: i64,
    scale: f64,
    layout: String,
    key_heads: i64,
    out: Tensor,
) -> Planned {
    let (sparse, log_sum) = ([1, 0, 0], None);
    let how = How { shift, mask, key_lengths: lengths, heads, scale, sparse, layout, key_heads, log_sum };
    attend(query, only("key", key)?, only("value", value)?, how, out)
}
