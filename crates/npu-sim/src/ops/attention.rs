//! Scaled dot-product attention in blocks, and its gradients.

use super::cast::{Temporary, expect_dtype};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::attention::{self as kernels, Attended, Attention};
use cresset_kernels::functions::{Add, Log};
use cresset_kernels::{DType, Layout, Scalar, View, ViewMut, elementwise};

/// What attention computes with.
const TYPES: &[DType] = &[DType::F32, DType::F16, DType::BF16];
/// How often the maximum and the sum of each query are repeated.
const COPIES: usize = 8;

/// The numbers that both directions share.
struct How {
    keep: f64,
    heads: i64,
    layout: String,
    sparse: i64,
}

impl How {
    /// Refuses what is not simulated, and what does not fit together.
    fn check(&self, query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<bool> {
        if self.layout != "BNSD" || self.keep != 1.0 || self.sparse != 0 {
            let How { layout, keep, sparse, .. } = self;
            fail!(
                code::NN_PARAM_INVALID,
                "layout {layout}, keep {keep}, sparse mode {sparse} are not simulated"
            );
        }
        for (name, x) in [("query", query), ("key", key), ("value", value)] {
            expect_dtype(name, x, TYPES)?;
            expect_dtype(name, x, &[query.dtype()])?;
        }
        let (&[batch, heads, rows, width], &[_, shared, keys, _]) = (query.shape(), key.shape()) else {
            fail!(
                code::NN_PARAM_INVALID,
                "query {:?} and key {:?} are not of rank 4",
                query.shape(),
                key.shape()
            );
        };
        if heads as i64 != self.heads || shared == 0 || heads % shared != 0 {
            fail!(code::NN_PARAM_INVALID, "{} heads, of which keys have {shared}, of {heads}", self.heads);
        }
        expect("key", key, &[batch, shared, keys, width])?;
        expect("value", value, key.shape())?;
        let Some(mask) = mask else { return Ok(false) };
        expect_dtype("mask", mask, &[DType::Bool])?;
        expect("mask", mask, &[rows, keys])?;
        Ok(true)
    }
}

/// Where a key is seen, of a mask that says where it is hidden.
fn seen(hidden: View<'_>) -> Temporary {
    let seen = Temporary::new(DType::Bool, hidden.shape());
    seen.write(|to| elementwise::test(|x| x == Scalar::Bool(false), hidden, to));
    seen
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _shift: Option<Tensor>,
    _drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    _before: i64,
    _after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    largest: Tensor,
    sums: Tensor,
    _weights: Option<Tensor>,
    out: Tensor,
) -> Planned {
    let how = How { keep, heads, layout, sparse };
    let masked = how.check(&query, &key, &value, mask.as_ref())?;
    expect("out", &out, query.shape())?;
    expect_dtype("out", &out, &[query.dtype()])?;
    expect_statistics(&query, &largest, &sums)?;
    let mask = mask.unwrap_or_else(|| query.clone());
    let plan = Plan::new(
        c"FlashAttentionScore",
        [query, key, value, mask],
        [out, largest, sums],
        move |[query, key, value, mask], [out, largest, sums]| {
            let logarithms = Temporary::new(DType::F32, &query.shape()[..3]);
            let run = |mask: Option<View<'_>>| {
                let how = Attention { scale, causal: false, mask };
                logarithms.write(|log_sum| kernels::attention(query, key, value, how, out, log_sum));
            };
            if masked {
                seen(mask).read(|seen| run(Some(seen)))
            } else {
                run(None)
            }
            // The sum of all exponentials as one power; beside it each query's sum is 1.
            logarithms.read(|logarithms| spread(logarithms, largest));
            elementwise::fill(Scalar::Int(1), sums);
            Ok(())
        },
    );
    plan.map(Plan::on_cube)
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn flash_attention_score_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad: Tensor,
    _shift: Option<Tensor>,
    _drop_mask: Option<Tensor>,
    _padding_mask: Option<Tensor>,
    mask: Option<Tensor>,
    largest: Option<Tensor>,
    sums: Option<Tensor>,
    _weights: Option<Tensor>,
    output: Option<Tensor>,
    _prefix: Option<Vec<i64>>,
    scale: f64,
    keep: f64,
    _before: i64,
    _after: i64,
    heads: i64,
    layout: String,
    _precise: i64,
    sparse: i64,
    to_query: Tensor,
    to_key: Tensor,
    to_value: Tensor,
    _to_shift: Option<Tensor>,
) -> Planned {
    let how = How { keep, heads, layout, sparse };
    let masked = how.check(&query, &key, &value, mask.as_ref())?;
    let (Some(largest), Some(sums), Some(output)) = (largest, sums, output) else {
        fail!(code::NN_PARAM_NULLPTR, "the results of the forward pass are null");
    };
    expect_statistics(&query, &largest, &sums)?;
    for (name, x, like) in [
        ("grad", &grad, &query),
        ("output", &output, &query),
        ("to_query", &to_query, &query),
        ("to_key", &to_key, &key),
        ("to_value", &to_value, &value),
    ] {
        expect(name, x, like.shape())?;
        expect_dtype(name, x, &[query.dtype()])?;
    }
    let mask = mask.unwrap_or_else(|| query.clone());
    let reads = [grad, query, key, value, output, largest, sums, mask];
    let plan = Plan::new(
        c"FlashAttentionScoreGrad",
        reads,
        [to_query, to_key, to_value],
        move |[grad, query, key, value, out, largest, sums, mask], results| {
            logarithms(largest, sums).read(|log_sum| {
                let given = Attended { query, key, value, out, log_sum };
                let run = |mask: Option<View<'_>>| {
                    kernels::attention_backward(
                        grad,
                        given,
                        Attention { scale, causal: false, mask },
                        results,
                    );
                };
                if masked { seen(mask).read(|seen| run(Some(seen))) } else { run(None) }
            });
            Ok(())
        },
    );
    plan.map(Plan::on_cube)
}

fn expect_statistics(query: &Tensor, largest: &Tensor, sums: &Tensor) -> Result {
    let shape = [&query.shape()[..3], &[COPIES]].concat();
    for (name, x) in [("largest", largest), ("sums", sums)] {
        expect(name, x, &shape)?;
        expect_dtype(name, x, &[DType::F32])?;
    }
    Ok(())
}

/// Each number of a query as often as it is kept.
fn spread(numbers: View<'_>, out: ViewMut<'_>) {
    let column = Layout::contiguous(&[numbers.shape(), &[1]].concat()).expect("as many elements");
    let wide = column.broadcast_to(out.shape()).expect("a column fills rows");
    Temporary::of(numbers, DType::F32).read(|numbers| elementwise::copy(numbers.with_layout(&wide), out));
}

/// The logarithm of each query's sum of exponentials.
fn logarithms(largest: View<'_>, sums: View<'_>) -> Temporary {
    let first = |x: View<'_>| x.layout().select(3, 0);
    let (of_largest, of_sums) = (first(largest), first(sums));
    let result = Temporary::of(sums.with_layout(&of_sums), DType::F32);
    result.write(|mut logarithms| {
        elementwise::unary_in_place(Log, logarithms.reborrow());
        let one = Add { alpha: Scalar::Int(1) };
        elementwise::binary_in_place(one, logarithms, largest.with_layout(&of_largest));
    });
    result
}
