//! Attention over sequences of different lengths that lie one after the other.

use super::super::cast::{Temporary, expect_dtype};
use super::super::numbers::{singles, store};
use super::super::optional::{placed, present};
use super::super::shape::expect;
use super::TYPES;
use super::seen::{Sparse, added};
use super::weigh::{COPIES, forward};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, View};

/// Where each sequence starts and ends, of where they end.
fn ranges(ends: Option<Vec<i64>>, total: usize, name: &str) -> Result<Vec<[usize; 2]>> {
    let ends: Vec<usize> = ends.unwrap_or_default().into_iter().map(|end| end.max(0) as usize).collect();
    if ends.is_empty() || ends.last() != Some(&total) || ends.windows(2).any(|pair| pair[0] > pair[1]) {
        fail!(code::NN_PARAM_INVALID, "{name} {ends:?} do not end sequences of {total} rows in all");
    }
    Ok((0..ends.len()).map(|at| [if at == 0 { 0 } else { ends[at - 1] }, ends[at]]).collect())
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_var_len_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shift: Option<Tensor>,
    drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    query_ends: Option<Vec<i64>>,
    key_ends: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    before: i64,
    after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    _weights: Option<Tensor>,
    out: Tensor,
) -> Planned {
    if layout != "TND" || keep != 1.0 || drop_mask.is_some() || shift.is_some() {
        fail!(code::NN_PARAM_INVALID, "layout {layout:?}, keep {keep} or a shift are not simulated");
    }
    let (&[rows, given, width], &[keys, shared, _]) = (query.shape(), key.shape()) else {
        fail!(code::NN_PARAM_INVALID, "query {:?} and key {:?} are not TND", query.shape(), key.shape());
    };
    if given as i64 != heads || shared == 0 || given % shared != 0 {
        fail!(code::NN_PARAM_INVALID, "{heads} heads of {given}, of which keys have {shared}");
    }
    for (name, x) in [("query", &query), ("key", &key), ("value", &value), ("out", &out)] {
        expect_dtype(name, x, TYPES)?;
        expect_dtype(name, x, &[query.dtype()])?;
    }
    expect("key", &key, &[keys, shared, width])?;
    expect("value", &value, &[keys, shared, value.shape().last().copied().unwrap_or(0)])?;
    expect("out", &out, &[rows, given, value.shape()[2]])?;
    for (name, x) in [("largest", &largest), ("sums", &sums)] {
        x.as_ref().map_or(Ok(()), |x| expect(name, x, &[rows, given, COPIES]))?;
    }
    let of_queries = ranges(query_ends, rows, "query_ends")?;
    let of_keys = ranges(key_ends, keys, "key_ends")?;
    if of_queries.len() != of_keys.len() {
        fail!(code::NN_PARAM_INVALID, "{} sequences of queries, {} of keys", of_queries.len(), of_keys.len());
    }
    let rule = Sparse::new(sparse, before, after)?;
    let rule = mask.is_some().then_some(rule);
    let mask = mask.filter(|_| sparse <= 1);
    if let Some(mask) = &mask {
        expect_dtype("mask", mask, &[DType::Bool, DType::U8])?;
        let longest =
            |ranges: &[[usize; 2]]| ranges.iter().map(|[start, end]| end - start).max().unwrap_or(0);
        if mask.shape().len() != 2
            || mask.shape()[0] < longest(&of_queries)
            || mask.shape()[1] < longest(&of_keys)
        {
            fail!(code::NN_PARAM_INVALID, "mask {:?} is less than the longest sequence", mask.shape());
        }
    }
    let (masks, masked) = present([mask]);
    let (kept, wanted) = present([largest, sums]);
    let reads = [vec![query, key, value], masks].concat();
    let plan =
        Plan::lists(c"FlashAttentionScore", reads, [vec![out], kept].concat(), move |reads, writes| {
            let [mask] = placed(masked, reads[3..].iter().copied());
            let mut writes = writes.into_iter();
            let mut out = writes.next().expect("the result comes first");
            let [largest, sums] = placed(wanted, writes);
            let mut logs = vec![0.0f32; rows * given];
            for ([q_start, q_end], [k_start, k_end]) in of_queries.into_iter().zip(of_keys) {
                let (count, seen) = (q_end - q_start, k_end - k_start);
                let part = |x: View<'_>, start: usize, count: usize| {
                    x.layout().narrow(0, start, count).unsqueeze(0).permute(&[0, 2, 1, 3])
                };
                let parts = [
                    part(reads[0], q_start, count),
                    part(reads[1], k_start, seen),
                    part(reads[2], k_start, seen),
                ];
                let views = std::array::from_fn(|at: usize| reads[at].with_layout(&parts[at]));
                let cut = mask.map(|mask| {
                    mask.layout().narrow(0, 0, count).narrow(1, 0, seen).unsqueeze(0).unsqueeze(0)
                });
                let mask = mask.zip(cut.as_ref()).map(|(mask, cut)| mask.with_layout(cut));
                let added = added([1, given, count, seen], mask, rule, None, None);
                let to = out.layout().narrow(0, q_start, count).unsqueeze(0).permute(&[0, 2, 1, 3]);
                let found: Temporary = forward(views, scale, &added, None, out.with_layout(&to));
                let found = found.read(singles);
                for (at, log) in found.into_iter().enumerate() {
                    logs[(q_start + at % count) * given + at / count] = log;
                }
            }
            if let Some(largest) = largest {
                store(&logs.iter().flat_map(|log| [*log; COPIES]).collect::<Vec<f32>>(), largest);
            }
            if let Some(sums) = sums {
                cresset_kernels::elementwise::fill(cresset_kernels::Scalar::Int(1), sums);
            }
            Ok(())
        });
    plan.map(Plan::on_cube)
}
