//! Attention in blocks, by one kernel.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::{FusedAttention, FusedAttentionBackward};
use cresset_tensor::{DType, Kernel, Key, Result, Tensor};
use std::ffi::CStr;

/// Batch, heads, rows, width.
const LAYOUT: &CStr = c"BNSD";
/// As many tokens before and after as there may be.
const ALL: i64 = i32::MAX as i64;
/// Masks mean what they say, and sums are computed as exactly as is usual.
const PLAIN: i64 = 0;

pub(super) fn register(npu: Key) {
    FusedAttention::table().register(npu, |op, ([query, key, value], mask), [out, largest, sums]| {
        let hidden = hidden(op, query, key, mask)?;
        let (none, heads) = (nothing(query)?, query.shape()[1] as i64);
        aclnn::flash_attention_score(
            query,
            key,
            value,
            None,
            None,
            None,
            hidden.as_ref(),
            None,
            op.scale,
            1.0,
            ALL,
            ALL,
            heads,
            LAYOUT,
            PLAIN,
            PLAIN,
            largest,
            sums,
            Some(&none),
            out,
        )
    });
    FusedAttentionBackward::table().register(npu, |op, (tensors, mask), [to_query, to_key, to_value]| {
        let [grad, query, key, value, out, largest, sums] = tensors;
        let hidden = hidden(&op.0, query, key, mask)?;
        let (none, heads) = (nothing(query)?, query.shape()[1] as i64);
        aclnn::flash_attention_score_grad(
            query,
            key,
            value,
            grad,
            None,
            None,
            None,
            hidden.as_ref(),
            Some(largest),
            Some(sums),
            None,
            Some(out),
            None,
            op.0.scale,
            1.0,
            ALL,
            ALL,
            heads,
            LAYOUT,
            PLAIN,
            PLAIN,
            to_query,
            to_key,
            to_value,
            Some(&none),
        )
    });
}

/// Which keys a query does not see: to the library a mask tells what is hidden, to an operator what is seen.
fn hidden(
    op: &FusedAttention,
    query: &Tensor,
    key: &Tensor,
    mask: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    let shape = [query.shape()[2], key.shape()[2]];
    let hidden = beside(query, &shape, DType::Bool)?;
    match mask {
        Some(mask) => aclnn::logical_not(mask, &hidden)?,
        None if op.causal => aclnn::triu(&filled(query, &shape, DType::Bool, true)?, 1, &hidden)?,
        None => return Ok(None),
    }
    Ok(Some(hidden))
}

/// In the place of a result that is not wanted.
fn nothing(x: &Tensor) -> Result<Tensor> {
    beside(x, &[0], x.dtype())
}
