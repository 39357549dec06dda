//! Singular values: pairs of columns are turned until all are perpendicular.
//!
//! The library has no such operator. The method is that of Jacobi, one-sided: every turn is made of products
//! and sums of whole columns, of all matrices of a stack and of as many pairs as have no column in common.

use crate::aclnn;
use cresset_tensor::ops::Svd;
use cresset_tensor::{Cause, DType, Device, Error, Kernel, Key, Op as _, Result, Tensor};

pub(super) fn register(npu: Key) {
    Svd::table().register(npu, |_, [x], [u, s, vh]| {
        if s.numel() == 0 {
            return Ok(());
        }
        if x.sub(x)?.eq(0)?.all()?.item()?.as_i64() == 0 {
            let text = "a matrix with infinite elements or NaN has no singular values";
            return Err(Error::new(Cause::Argument, Svd::NAME, text));
        }
        let rank = x.dim();
        let tall = x.shape()[rank - 2] >= x.shape()[rank - 1];
        let [left, values, right] = decomposed(&if tall { x.copy()? } else { x.mt()?.copy()? })?;
        let (of_u, of_vh) = if tall { (left, right.mt()?) } else { (right, left.mt()?) };
        aclnn::inplace_copy(u, &of_u)?;
        aclnn::inplace_copy(s, &values)?;
        aclnn::inplace_copy(vh, &of_vh)
    });
}

/// Far more rounds than are ever needed.
const MOST_ROUNDS: usize = 60;

/// Left vectors, values and right vectors of matrices that are at least as high as wide.
fn decomposed(x: &Tensor) -> Result<[Tensor; 3]> {
    let (stack, matrix) = x.shape().split_at(x.dim() - 2);
    let (stack, width) = (stack.to_vec(), matrix[1]);
    let (mut columns, options) = (x.clone(), (x.dtype(), x.device()));
    let mut turns =
        Tensor::eye(width, width, options)?.expand([&stack[..], &[width, width]].concat())?.copy()?;
    let limit = if x.dtype() == DType::F64 { 1e-15 } else { 1e-7 };
    for _ in 0..MOST_ROUNDS {
        let mut crooked = 0.0f64;
        for pairs in tournament(width) {
            let [first, second] = [0, 1].map(|side| {
                let side: Vec<i64> = pairs.iter().map(|pair| pair[side] as i64).collect();
                Tensor::from_slice(&side, [side.len()])?.to(x.device())
            });
            let (first, second) = (first?, second?);
            crooked = crooked.max(turn(&mut columns, &mut turns, &first, &second)?);
        }
        if crooked <= limit {
            break;
        }
    }
    let values = columns.mul(&columns)?.sum_dims(&[-2], false)?.sqrt()?;
    let [values, order] = values.sort(-1, true, true)?;
    let in_order = |x: &Tensor| {
        let rows = x.shape()[x.dim() - 2];
        x.gather(-1, &order.unsqueeze(-2)?.expand([&stack[..], &[rows, width]].concat())?)
    };
    let (columns, turns) = (in_order(&columns)?, in_order(&turns)?);
    let left = completed(&columns, &values, limit)?;
    Ok([left, values, turns])
}

/// Pairs of columns, in lists without a column in common, such that each meets each.
fn tournament(width: usize) -> Vec<Vec<[usize; 2]>> {
    let even = width.next_multiple_of(2);
    let mut places: Vec<usize> = (0..even).collect();
    let mut rounds = Vec::new();
    for _ in 1..even.max(2) {
        let pairs = (0..even / 2).map(|at| [places[at], places[even - 1 - at]]);
        let pairs: Vec<[usize; 2]> = pairs.filter(|pair| pair.iter().all(|&column| column < width)).collect();
        if !pairs.is_empty() {
            rounds.push(pairs);
        }
        places[1..].rotate_right(1);
    }
    rounds
}

/// Turns pairs of columns so that they are perpendicular. Returns the largest cosine there was.
fn turn(columns: &mut Tensor, turns: &mut Tensor, first: &Tensor, second: &Tensor) -> Result<f64> {
    let (a, b) = (columns.index_select(-1, first)?, columns.index_select(-1, second)?);
    let along = |x: &Tensor, y: &Tensor| x.mul(y)?.sum_dims(&[-2], true);
    let (aa, bb, ab) = (along(&a, &a)?, along(&b, &b)?, along(&a, &b)?);
    let lengths = aa.mul(&bb)?.sqrt()?;
    let is_some = lengths.gt(0)?.logical_and(&ab.ne(0)?)?;
    let cosine = ab.abs()?.div(&lengths)?.masked_fill(&is_some.logical_not()?, 0)?;
    let zeta = bb.sub(&aa)?.div(&ab.mul(2)?)?;
    let root = zeta.mul(&zeta)?.add(1)?.sqrt()?;
    let sign = zeta.ge(0)?.to(zeta.dtype())?.mul(2)?.sub(1)?;
    let tangent = sign.div(&zeta.abs()?.add(&root)?)?.masked_fill(&is_some.logical_not()?, 0)?;
    let by = tangent.mul(&tangent)?.add(1)?.rsqrt()?;
    let across = by.mul(&tangent)?;
    let turned = |x: &Tensor| -> Result<Tensor> {
        let (a, b) = (x.index_select(-1, first)?, x.index_select(-1, second)?);
        let new_a = a.mul(&by)?.sub(&b.mul(&across)?)?;
        let new_b = a.mul(&across)?.add(&b.mul(&by)?)?;
        x.index_copy(-1, first, &new_a)?.index_copy(-1, second, &new_b)
    };
    (*columns, *turns) = (turned(columns)?, turned(turns)?);
    Ok(cosine.max()?.item()?.as_f64())
}

/// The columns, each of length 1. One of no length becomes whatever is perpendicular to all others.
fn completed(columns: &Tensor, values: &Tensor, limit: f64) -> Result<Tensor> {
    let rank = columns.dim() as isize;
    let largest = values.narrow(-1, 0, 1)?;
    let missing = values.le(&largest.mul(limit)?)?;
    let row = |x: &Tensor| x.unsqueeze(-2);
    let mut left = columns
        .div(&row(&values.masked_fill(&missing, 1)?)?)?
        .masked_fill(&row(&missing)?.expand(columns.shape())?, 0)?;
    if missing.any()?.to(Device::CPU)?.item()?.as_i64() == 0 {
        return Ok(left);
    }
    for at in 0..values.shape()[values.dim() - 1] as isize {
        // What is left of each unit vector outside of all columns so far; the longest of these is taken.
        let outside = left.mul(&left)?.sum_dims(&[-1], false)?.rsub(1)?;
        let longest = outside.argmax(-1, true)?;
        let mut unit = outside.zeros_like()?.scatter(-1, &longest, 1)?.unsqueeze(-1)?;
        for _ in 0..2 {
            unit = unit.sub(&left.matmul(&left.mt()?.matmul(&unit)?)?)?;
        }
        let unit = unit.div(&unit.mul(&unit)?.sum_dims(&[-2], true)?.sqrt()?)?;
        let place = missing.narrow(-1, at, 1)?.unsqueeze(-2)?.expand(unit.shape())?;
        let old = left.narrow(rank - 1, at, 1)?;
        left.narrow(rank - 1, at, 1)?.copy_(&unit.where_(&place, &old)?)?;
        left = left.copy()?;
    }
    Ok(left)
}
