//! A parameter cut into pieces that threads take one after the other.

use super::{MOST_STATES, Rule, Tensors};
use crate::{DType, Element, bf16, f16};
use half::slice::HalfFloatSliceExt;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::slice::{Chunks, ChunksMut};

/// Elements of one piece: four arrays of them stay in the second-level cache.
pub(super) const PIECE: usize = 8192;

/// Elements of half precision that are widened at a time.
const BLOCK: usize = 512;

/// The pieces of a parameter that nobody took yet. Handing out the next needs no list of them, so that
/// a step allocates nothing however large its parameters are.
pub(super) struct Pieces<'a, R> {
    rule: &'a R,
    /// How many pieces there are up to the end of this parameter.
    end: usize,
    left: Mutex<Left<'a>>,
}

enum Left<'a> {
    F32(Lists<'a, f32>),
    F64(Lists<'a, f64>),
    F16(Lists<'a, f16>),
    Bf16(Lists<'a, bf16>),
}

/// What belongs together, cut at the same places.
struct Lists<'a, T> {
    param: ChunksMut<'a, T>,
    grad: Chunks<'a, T>,
    states: SmallVec<[ChunksMut<'a, T>; MOST_STATES]>,
}

struct Piece<'a, T> {
    param: &'a mut [T],
    grad: &'a [T],
    states: SmallVec<[&'a mut [T]; MOST_STATES]>,
}

impl<'a, R: Rule> Pieces<'a, R> {
    /// The pieces of contiguous tensors of one type, after `before` others.
    pub(super) fn new(rule: &'a R, tensors: &'a mut Tensors<'_>, before: usize) -> Pieces<'a, R> {
        let end = before + tensors.param.layout().len().div_ceil(PIECE);
        let left = match tensors.param.dtype() {
            DType::F32 => Left::F32(Lists::of(tensors)),
            DType::F64 => Left::F64(Lists::of(tensors)),
            DType::F16 => Left::F16(Lists::of(tensors)),
            DType::BF16 => Left::Bf16(Lists::of(tensors)),
            other => panic!("optimizers are for floats, not {other}"),
        };
        Pieces { rule, end, left: Mutex::new(left) }
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Takes the step for the next piece.
    pub(super) fn step_next(&self) {
        let mut left = self.left.lock();
        match &mut *left {
            Left::F32(lists) => {
                let piece = lists.next();
                drop(left);
                if let Some(Piece { param, grad, mut states }) = piece {
                    self.rule.apply(param, grad, &mut states);
                }
            }
            Left::F64(lists) => {
                let piece = lists.next();
                drop(left);
                if let Some(Piece { param, grad, mut states }) = piece {
                    self.rule.apply(param, grad, &mut states);
                }
            }
            Left::F16(lists) => {
                let piece = lists.next();
                drop(left);
                self.step_half(piece);
            }
            Left::Bf16(lists) => {
                let piece = lists.next();
                drop(left);
                self.step_half(piece);
            }
        }
    }

    /// Takes the step in `f32`, block by block.
    fn step_half<T>(&self, piece: Option<Piece<'_, T>>)
    where
        [T]: HalfFloatSliceExt,
    {
        let Some(Piece { param, grad, mut states }) = piece else { return };
        let (mut wide_param, mut wide_grad) = ([0.0f32; BLOCK], [0.0f32; BLOCK]);
        let mut wide_states = [[0.0f32; BLOCK]; MOST_STATES];
        for start in (0..grad.len()).step_by(BLOCK) {
            let range = start..grad.len().min(start + BLOCK);
            let length = range.len();
            param[range.clone()].convert_to_f32_slice(&mut wide_param[..length]);
            grad[range.clone()].convert_to_f32_slice(&mut wide_grad[..length]);
            let mut lists: SmallVec<[&mut [f32]; MOST_STATES]> = SmallVec::new();
            for (state, wide) in states.iter().zip(&mut wide_states) {
                state[range.clone()].convert_to_f32_slice(&mut wide[..length]);
                lists.push(&mut wide[..length]);
            }
            self.rule.apply(&mut wide_param[..length], &wide_grad[..length], &mut lists);
            param[range.clone()].convert_from_f32_slice(&wide_param[..length]);
            for (state, wide) in states.iter_mut().zip(&lists) {
                state[range.clone()].convert_from_f32_slice(wide);
            }
        }
    }
}

impl<'a, T: Element> Lists<'a, T> {
    fn of(tensors: &'a mut Tensors<'_>) -> Lists<'a, T> {
        let all = "the caller has seen that all are contiguous";
        let states = tensors.states.iter_mut();
        Lists {
            param: tensors.param.slice().expect(all).chunks_mut(PIECE),
            grad: tensors.grad.slice().expect(all).chunks(PIECE),
            states: states.map(|state| state.slice().expect(all).chunks_mut(PIECE)).collect(),
        }
    }

    fn next(&mut self) -> Option<Piece<'a, T>> {
        let states = self.states.iter_mut().map(Iterator::next).collect::<Option<_>>();
        Some(Piece { param: self.param.next()?, grad: self.grad.next()?, states: states? })
    }
}
