//! Scaled dot-product attention in blocks of queries and keys: scores exist for one block at a time.
//!
//! The forward pass keeps the logarithm of each query's sum of exponentials, from which the
//! backward pass makes the weights again.

#![expect(unsafe_code, reason = "threads write rows of their own that lie between those of others")]

mod backward;
mod forward;
mod parts;
#[cfg(test)]
mod tests;

use crate::elementwise::{Single, floats};
use crate::{DType, View, ViewMut};
use backward::{Inputs, backward};
use forward::forward;
use parts::{Added, Heads, Rows, Shape};

/// What attention computes beside its tensors.
#[derive(Clone, Copy)]
pub struct Attention<'a> {
    /// What scores are multiplied by.
    pub scale: f64,
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// What is added to scores, or as bool, which keys are seen; broadcast to `[batch, heads, queries, keys]`.
    pub mask: Option<View<'a>>,
}

/// `out = softmax(scale * query @ key' + mask) @ value`, zeros where a query sees no key, and
/// `log_sum` the logarithm of each query's sum of exponentials.
///
/// `query` and `out` are `[batch, heads, queries, width]`, `key` and `value`
/// `[batch, shared, keys, width]`, where `heads` is a multiple of `shared`, and `log_sum`
/// `[batch, heads, queries]`, of `f32` for half precision.
pub fn attention(
    query: View<'_>,
    key: View<'_>,
    value: View<'_>,
    how: Attention<'_>,
    out: ViewMut<'_>,
    log_sum: ViewMut<'_>,
) {
    floats!(out.dtype(), T => {
        let mask = how.mask.map(Added::<T>::new);
        let shape = Shape::of(query, key, &how);
        let mask = mask.as_ref().map(|mask| mask.view(&shape));
        forward::<T>([query, key, value].map(Heads::new), mask, shape, Rows::new(out), Rows::new(log_sum));
    }, single => {
        let [query, key, value] = [query, key, value].map(Single::load);
        let mut wide = Single::zeros(out.shape());
        attention(query.view(), key.view(), value.view(), how, wide.view_mut(), log_sum);
        wide.store(out);
    });
}

/// What [`attention`] was given and gave, for its gradient.
#[derive(Clone, Copy)]
pub struct Attended<'a> {
    /// The queries.
    pub query: View<'a>,
    /// The keys.
    pub key: View<'a>,
    /// The values.
    pub value: View<'a>,
    /// The result.
    pub out: View<'a>,
    /// The logarithm of each query's sum of exponentials.
    pub log_sum: View<'a>,
}

/// The gradients of [`attention`] for query, key and value, given that of its result.
pub fn attention_backward(
    grad: View<'_>,
    given: Attended<'_>,
    how: Attention<'_>,
    [to_query, to_key, to_value]: [ViewMut<'_>; 3],
) {
    let Attended { query, key, value, out, log_sum } = given;
    floats!(grad.dtype(), T => {
        let mask = how.mask.map(Added::<T>::new);
        let shape = Shape::of(query, key, &how);
        let mask = mask.as_ref().map(|mask| mask.view(&shape));
        let inputs = Inputs {
            grad: Heads::new(grad),
            query: Heads::new(query),
            key: Heads::new(key),
            value: Heads::new(value),
            out: Heads::new(out),
            log_sum: Heads::new(log_sum),
        };
        backward::<T>(&inputs, mask, shape, [to_query, to_key, to_value].map(Rows::new));
    }, single => {
        let wide = [grad, query, key, value, out].map(Single::load);
        let [grad, query, key, value, out] = wide.each_ref().map(Single::view);
        let mut results = [&to_query, &to_key, &to_value].map(|view| Single::zeros(view.shape()));
        let given = Attended { query, key, value, out, log_sum };
        attention_backward(grad, given, how, results.each_mut().map(Single::view_mut));
        for (result, view) in results.iter().zip([to_query, to_key, to_value]) {
            result.store(view);
        }
    });
}
