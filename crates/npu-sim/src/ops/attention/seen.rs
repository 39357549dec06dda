//! Which keys a query sees, and what is added to its scores.

use super::super::cast::{Temporary, expect_dtype};
use super::super::numbers::numbers;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use cresset_acl::code;
use cresset_kernels::{DType, Layout, View};

/// The rule by which keys are hidden, besides a mask.
#[derive(Clone, Copy)]
pub(super) struct Sparse {
    pub(super) mode: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Sparse {
    /// No rule.
    pub(super) const NONE: Sparse = Sparse { mode: 1, before: 0, after: 0 };

    pub(super) fn new(mode: i64, before: i64, after: i64) -> Result<Sparse> {
        if !(0..=4).contains(&mode) {
            fail!(code::NN_PARAM_INVALID, "sparse mode {mode} is not simulated");
        }
        Ok(Sparse { mode, before, after })
    }

    /// Whether the mask counts, which other modes only give as a pattern to cut from.
    fn reads_mask(self) -> bool {
        self.mode <= 1
    }

    /// Whether a query sees a key, of so many of both.
    fn sees(self, query: usize, key: usize, rows: usize, keys: usize) -> bool {
        let (query, key, shift) = (query as i64, key as i64, keys as i64 - rows as i64);
        let within = |at: i64| at.saturating_sub(self.before) <= key && key <= at.saturating_add(self.after);
        match self.mode {
            0 => within(query),
            2 => key <= query,
            3 => key <= query + shift,
            4 => within(query + shift),
            _ => true,
        }
    }
}

/// What is added to scores, if anything, as `[batch or 1, heads or 1, rows, keys]`: which keys are seen, or
/// numbers.
pub(super) struct Added(Option<Temporary>);

/// A mask or a shift as `[batch or 1, heads or 1, rows, keys]`.
pub(super) fn plane(name: &str, x: &Tensor, [batch, heads, rows, keys]: [usize; 4]) -> Result<Tensor> {
    let layout = match x.shape().len() {
        2 => x.layout().unsqueeze(0).unsqueeze(0),
        3 => x.layout().unsqueeze(1),
        4 => x.layout().clone(),
        _ => fail!(code::NN_PARAM_INVALID, "{name} of shape {:?}", x.shape()),
    };
    let shape = layout.shape();
    let fits = |at: usize, size: usize| shape[at] == 1 || shape[at] == size;
    let rows_fit = shape[2] == rows || shape[2] == 1;
    if !fits(0, batch) || !fits(1, heads) || !rows_fit || shape[3] != keys {
        fail!(
            code::NN_PARAM_INVALID,
            "{name} of shape {:?} for scores {:?}",
            x.shape(),
            [batch, heads, rows, keys]
        );
    }
    Ok(x.with_layout(layout))
}

/// Checks a mask; gives it as a plane, if its elements count.
pub(super) fn mask_of(mask: Option<Tensor>, sparse: Sparse, scores: [usize; 4]) -> Result<Option<Tensor>> {
    let Some(mask) = mask else { return Ok(None) };
    expect_dtype("mask", &mask, &[DType::Bool, DType::U8, DType::I8])?;
    if sparse.reads_mask() { plane("mask", &mask, scores).map(Some) } else { Ok(None) }
}

/// Joins mask, rule and shift. Lengths, one per sample, hide the keys beyond them.
pub(super) fn added(
    scores: [usize; 4],
    mask: Option<View<'_>>,
    sparse: Option<Sparse>,
    shift: Option<(View<'_>, f64)>,
    lengths: Option<&[usize]>,
) -> Added {
    let [batch, heads, rows, keys] = scores;
    let sparse = sparse.unwrap_or(Sparse::NONE);
    let plain = sparse.mode == 1 || sparse.mode == 0 && covers(sparse, rows, keys);
    if mask.is_none() && shift.is_none() && lengths.is_none() && plain {
        return Added(None);
    }
    let size = |view: Option<View<'_>>, at: usize| view.map_or(1, |view| view.shape()[at]);
    let shifted = shift.map(|(shift, _)| shift);
    let outer = if lengths.is_some() { batch } else { size(mask, 0).max(size(shifted, 0)) };
    let inner = size(mask, 1).max(size(shifted, 1));
    let shape = [outer.clamp(1, batch.max(1)), inner.clamp(1, heads.max(1)), rows, keys];
    let spread = |view: View<'_>| {
        let layout = view.layout().broadcast_to(&shape).expect("planes fit the scores");
        numbers(view.with_layout(&layout))
    };
    let hidden = mask.map(spread);
    let shifts = shift.map(|(shift, factor)| (spread(shift), factor));
    let sees = |at: usize| {
        let (key, query) = (at % keys, at / keys % rows);
        let sample = at / (keys * rows * shape[1]);
        hidden.as_ref().is_none_or(|hidden| hidden[at] == 0.0)
            && (plain || sparse.sees(query, key, rows, keys))
            && lengths.is_none_or(|lengths| key < lengths[sample])
    };
    let count = shape.iter().product();
    let layout = Layout::contiguous(&shape).expect("as many elements as scores");
    Added(Some(match shifts {
        None => {
            let seen: Vec<bool> = (0..count).map(sees).collect();
            Temporary::of(View::of(&seen, &layout), DType::Bool)
        }
        Some((shifts, factor)) => {
            let shift = |at: usize| if sees(at) { (shifts[at] * factor) as f32 } else { f32::NEG_INFINITY };
            let added: Vec<f32> = (0..count).map(shift).collect();
            Temporary::of(View::of(&added, &layout), DType::F32)
        }
    }))
}

/// Whether a band reaches over everything.
fn covers(sparse: Sparse, rows: usize, keys: usize) -> bool {
    sparse.before >= rows as i64 - 1 && sparse.after >= keys as i64 - 1
}

impl Added {
    /// Runs `body` with what is added.
    pub(super) fn with<R>(&self, body: impl FnOnce(Option<View<'_>>) -> R) -> R {
        match &self.0 {
            None => body(None),
            Some(added) => added.read(|added| body(Some(added))),
        }
    }
}
