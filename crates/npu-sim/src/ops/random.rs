//! Random numbers and dropout, by seed and offset.
//!
//! The bits are those of this project's generator, not of any hardware: only distribution and repetition
//! can be relied on, as between two generations of hardware.

use super::cast::{FLOATS, Temporary, expect_dtype, stored};
use super::numbers::{integers, numbers, store};
use super::shape::{broadcast_to, expect, expect_one};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::random::Philox;
use cresset_kernels::{DType, Scalar, View, ViewMut};
use std::ffi::CStr;

/// The numbers of one call. Clients count calls, a few at a time, rather than numbers: each offset is a sequence of
/// its own, or numbers of one call would come again in the next.
fn sequence(seed: u64, offset: u64) -> Philox {
    let mut bits = seed.wrapping_add(offset.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Philox::new(bits ^ (bits >> 31), 0)
}

/// A kernel that writes random numbers.
fn draw<F>(kernel: &'static CStr, out: Tensor, seed: u64, offset: u64, f: F) -> Planned
where
    F: FnOnce(&mut Philox, ViewMut<'_>) + Send + 'static,
{
    Plan::new(kernel, [], [out], move |[], [out]| {
        f(&mut sequence(seed, offset), out);
        Ok(())
    })
}

/// As [`draw`], with seed and offset on the device.
fn draw_from<F>(
    kernel: &'static CStr,
    out: Tensor,
    seed: Tensor,
    offsets: Tensor,
    offset: u64,
    f: F,
) -> Planned
where
    F: FnOnce(&mut Philox, ViewMut<'_>) + Send + 'static,
{
    expect_one("seed", &seed)?;
    expect_one("offsets", &offsets)?;
    Plan::new(kernel, [seed, offsets], [out], move |[seed, offsets], [out]| {
        let start = (integers(offsets)[0] as u64).wrapping_add(offset);
        f(&mut sequence(integers(seed)[0] as u64, start), out);
        Ok(())
    })
}

fn uniform(from: f64, to: f64) -> impl FnOnce(&mut Philox, ViewMut<'_>) + Send {
    move |philox, out| stored(out, DType::F64, |out| philox.uniform(from, to, out))
}

fn normal(mean: f32, std: f32) -> impl FnOnce(&mut Philox, ViewMut<'_>) + Send {
    move |philox, out| stored(out, DType::F64, |out| philox.normal(mean.into(), std.into(), out))
}

fn whole(from: i64, to: i64) -> impl FnOnce(&mut Philox, ViewMut<'_>) + Send {
    move |philox, out| {
        let dtype = if out.dtype() == DType::Bool { DType::U8 } else { out.dtype() };
        stored(out, dtype, |out| philox.integers(from, to, out));
    }
}

fn expect_range(from: i64, to: i64) -> Result {
    if from >= to {
        fail!(code::NN_PARAM_INVALID, "there is no integer from {from} up to {to}");
    }
    Ok(())
}

pub(crate) fn inplace_uniform(x: Tensor, from: f64, to: f64, seed: u64, offset: u64) -> Planned {
    draw(c"StatelessRandomUniformV2", x, seed, offset, uniform(from, to))
}

pub(crate) fn inplace_uniform_tensor(
    x: Tensor,
    from: f64,
    to: f64,
    seed: Tensor,
    offsets: Tensor,
    offset: u64,
) -> Planned {
    draw_from(c"StatelessRandomUniformV2", x, seed, offsets, offset, uniform(from, to))
}

pub(crate) fn inplace_normal(x: Tensor, mean: f32, std: f32, seed: i64, offset: i64) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    draw(c"StatelessRandomNormalV2", x, seed as u64, offset as u64, normal(mean, std))
}

pub(crate) fn inplace_normal_tensor(
    x: Tensor,
    mean: f32,
    std: f32,
    seed: Tensor,
    offsets: Tensor,
    offset: i64,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    draw_from(c"StatelessRandomNormalV2", x, seed, offsets, offset as u64, normal(mean, std))
}

pub(crate) fn normal_float_float(mean: f32, std: f32, seed: i64, offset: i64, out: Tensor) -> Planned {
    inplace_normal(out, mean, std, seed, offset)
}

pub(crate) fn inplace_random(x: Tensor, from: i64, to: i64, seed: i64, offset: i64) -> Planned {
    expect_range(from, to)?;
    draw(c"StatelessRandomUniformV2", x, seed as u64, offset as u64, whole(from, to))
}

pub(crate) fn inplace_random_tensor(
    x: Tensor,
    from: i64,
    to: i64,
    seed: Tensor,
    offsets: Tensor,
    offset: i64,
) -> Planned {
    expect_range(from, to)?;
    draw_from(c"StatelessRandomUniformV2", x, seed, offsets, offset as u64, whole(from, to))
}

/// One for every element that passes, with the probability that it does.
fn trials(philox: &mut Philox, probabilities: &[f64], out: ViewMut<'_>) {
    let shape = out.shape().to_vec();
    let drawn = Temporary::new(DType::F64, &shape);
    drawn.write(|to| philox.uniform(0.0, 1.0, to));
    let drawn = drawn.read(numbers);
    let passed: Vec<f64> = drawn.iter().zip(probabilities).map(|(at, p)| (at < p) as u8 as f64).collect();
    store(&passed, out);
}

pub(crate) fn inplace_bernoulli(x: Tensor, probability: Scalar, seed: i64, offset: i64) -> Planned {
    let p = expect_probability(probability.as_f64())?;
    draw(c"StatelessBernoulli", x, seed as u64, offset as u64, move |philox, out| {
        trials(philox, &vec![p; out.layout().len()], out);
    })
}

pub(crate) fn inplace_bernoulli_tensor(x: Tensor, probability: Tensor, seed: i64, offset: i64) -> Planned {
    let probability = broadcast_to("probability", &probability, x.shape())?;
    Plan::new(c"StatelessBernoulli", [probability], [x], move |[probability], [out]| {
        trials(&mut sequence(seed as u64, offset as u64), &numbers(probability), out);
        Ok(())
    })
}

pub(crate) fn bernoulli(x: Tensor, probability: Scalar, seed: i64, offset: i64, out: Tensor) -> Planned {
    expect("out", &out, x.shape())?;
    inplace_bernoulli(out, probability, seed, offset)
}

fn expect_probability(p: f64) -> Result<f64> {
    if !(0.0..=1.0).contains(&p) {
        fail!(code::NN_PARAM_INVALID, "a probability of {p}");
    }
    Ok(p)
}

pub(crate) fn randperm(n: i64, seed: i64, offset: i64, out: Tensor) -> Planned {
    expect("out", &out, &[n.max(0) as usize])?;
    draw(c"StatelessRandperm", out, seed as u64, offset as u64, move |philox, out| {
        store(&philox.permutation(n as usize), out);
    })
}

pub(crate) fn multinomial(
    x: Tensor,
    count: i64,
    replacement: bool,
    seed: i64,
    offset: i64,
    out: Tensor,
) -> Planned {
    let Some((&classes, rows)) = x.shape().split_last() else {
        fail!(code::NN_PARAM_INVALID, "x has no dimensions, expected one or two");
    };
    let count = count.max(0) as usize;
    if count == 0 || !replacement && count > classes {
        fail!(code::NN_PARAM_INVALID, "{count} samples of {classes} classes");
    }
    expect("out", &out, &[rows, &[count]].concat())?;
    expect_dtype("out", &out, &[DType::I64])?;
    Plan::new(c"MultinomialWithReplacement", [x], [out], move |[x], [out]| {
        let drawn = Temporary::new(DType::F64, &[out.layout().len()]);
        drawn.write(|to| sequence(seed as u64, offset as u64).uniform(0.0, 1.0, to));
        let mut draws = drawn.read(numbers).into_iter();
        let mut chosen = Vec::with_capacity(out.layout().len());
        for row in numbers(x).chunks(classes.max(1)) {
            let mut weights = row.to_vec();
            for _ in 0..count {
                let mark = draws.next().expect("one per sample") * weights.iter().sum::<f64>();
                let class = choose(&weights, mark);
                if !replacement {
                    weights[class] = 0.0;
                }
                chosen.push(class as i64);
            }
        }
        store(&chosen, out);
        Ok(())
    })
}

/// The class in whose share of the sum a mark falls.
fn choose(weights: &[f64], mark: f64) -> usize {
    let mut sum = 0.0;
    let found = weights.iter().position(|weight| {
        sum += weight;
        mark < sum
    });
    found.unwrap_or_else(|| weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0))
}

/// Elements whose bits a mask has room for: bits come in groups of so many.
const GROUP: usize = 128;

/// Fails unless a mask has a bit for each of so many elements.
fn expect_mask(mask: &Tensor, elements: usize) -> Result {
    let bytes = elements.next_multiple_of(GROUP) / 8;
    expect_dtype("mask", mask, &[DType::U8])?;
    if mask.layout().len() < bytes {
        fail!(code::NN_PARAM_INVALID, "a mask of {} bytes for {elements} elements", mask.layout().len());
    }
    Ok(())
}

/// A bit for each of so many elements: 1 with probability `1 - p`.
fn keep_bits(philox: &mut Philox, p: f64, elements: usize, bytes: usize) -> Vec<u8> {
    let drawn = Temporary::new(DType::F32, &[elements]);
    drawn.write(|to| philox.uniform(0.0, 1.0, to));
    let mut bits = vec![0; bytes];
    for (at, drawn) in drawn.read(numbers).into_iter().enumerate() {
        bits[at / 8] |= ((drawn >= p) as u8) << (at % 8);
    }
    bits
}

fn is_kept(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

fn bytes_of(mask: View<'_>) -> Vec<u8> {
    mask.array::<u8>().iter().copied().collect()
}

fn elements_of(shape: &[i64]) -> usize {
    shape.iter().map(|&size| size.max(0) as usize).product()
}

pub(crate) fn dropout_gen_mask(shape: Vec<i64>, p: f64, seed: i64, offset: i64, out: Tensor) -> Planned {
    let (elements, p) = (elements_of(&shape), expect_probability(p)?);
    expect_mask(&out, elements)?;
    draw(c"StatelessDropOutGenMask", out, seed as u64, offset as u64, move |philox, out| {
        store(&keep_bits(philox, p, elements, out.layout().len()), out);
    })
}

pub(crate) fn dropout_gen_mask_v2(
    shape: Vec<i64>,
    p: f64,
    seed: i64,
    offset: i64,
    _dtype: i32,
    out: Tensor,
) -> Planned {
    dropout_gen_mask(shape, p, seed, offset, out)
}

pub(crate) fn dropout_gen_mask_v2_tensor(
    shape: Vec<i64>,
    p: f64,
    seed: Tensor,
    offsets: Tensor,
    offset: i64,
    _dtype: i32,
    out: Tensor,
) -> Planned {
    let (elements, p) = (elements_of(&shape), expect_probability(p)?);
    expect_mask(&out, elements)?;
    let kernel = c"StatelessDropOutGenMask";
    draw_from(kernel, out, seed, offsets, offset as u64, move |philox, out| {
        store(&keep_bits(philox, p, elements, out.layout().len()), out);
    })
}

pub(crate) fn dropout_do_mask(x: Tensor, mask: Tensor, p: f64, out: Tensor) -> Planned {
    let p = expect_probability(p)?;
    masked(c"DropOutDoMask", x, mask, if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 }, out)
}

pub(crate) fn dropout_backward(grad: Tensor, mask: Tensor, scale: f64, out: Tensor) -> Planned {
    masked(c"DropOutDoMask", grad, mask, scale, out)
}

/// What a mask keeps of `x`, times a number.
fn masked(kernel: &'static CStr, x: Tensor, mask: Tensor, scale: f64, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    expect_mask(&mask, x.layout().len())?;
    Plan::new(kernel, [x, mask], [out], move |[x, mask], [out]| {
        let bits = bytes_of(mask);
        let kept = numbers(x).into_iter().enumerate();
        let kept: Vec<f64> = kept.map(|(at, x)| if is_kept(&bits, at) { x * scale } else { 0.0 }).collect();
        store(&kept, out);
        Ok(())
    })
}

pub(crate) fn dropout(
    x: Tensor,
    p: f64,
    train: bool,
    seed: i64,
    offset: i64,
    out: Tensor,
    mask: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, x.shape())?;
    let p = if train { expect_probability(p)? } else { 0.0 };
    let elements = x.layout().len();
    expect_mask(&mask, elements)?;
    Plan::new(c"DropOutDoMask", [x], [out, mask], move |[x], [out, mask]| {
        let mut philox = sequence(seed as u64, offset as u64);
        let bits = keep_bits(&mut philox, p, elements, mask.layout().len());
        let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
        let kept = numbers(x).into_iter().enumerate();
        let kept: Vec<f64> = kept.map(|(at, x)| if is_kept(&bits, at) { x * scale } else { 0.0 }).collect();
        store(&kept, out);
        store(&bits, mask);
        Ok(())
    })
}

/// The shape of the noise is that of `x`, whatever is said.
pub(crate) fn dropout_v3(
    x: Tensor,
    _noise: Option<Tensor>,
    p: f64,
    seed: i64,
    offset: i64,
    out: Tensor,
    mask: Tensor,
) -> Planned {
    dropout(x, p, true, seed, offset, out, mask)
}
