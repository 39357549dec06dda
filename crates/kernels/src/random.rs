//! Random numbers computed from a position, not from the last number.
//!
//! The generator is Philox 4x32 with ten rounds: a seed and a counter are scrambled into
//! 128 bits. Every element takes half of such a block, so the n-th element drawn from a seed
//! is the same whether it is drawn alone, in one large call or in many small ones, by one
//! thread or, starting at offsets, by several.

use crate::elementwise::write;
use crate::{Element, ViewMut, with_dtype};

/// A counter-based generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Philox {
    seed: u64,
    offset: u64,
}

impl Philox {
    /// The generator of a seed, after `offset` elements were drawn.
    pub fn new(seed: u64, offset: u64) -> Philox {
        Philox { seed, offset }
    }

    /// What it started from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many elements were drawn.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Numbers spread evenly from `low` up to, not including, `high`. Element types other
    /// than `f64` get 24 bits of chance.
    pub fn uniform(&mut self, low: f64, high: f64, out: ViewMut<'_>) {
        if out.dtype() == crate::DType::F64 {
            return self
                .draw::<f64>(out, |bits| low + (bits >> 11) as f64 / (1u64 << 53) as f64 * (high - low));
        }
        // Rounding to the element type may reach `high`, which is not to be drawn.
        with_dtype!(out.dtype(), [floats] T => {
            let top = T::from_scalar(high.into());
            self.draw::<T>(out, |bits| {
                let share = (bits >> 40) as f64 / (1u64 << 24) as f64;
                let value = T::from_scalar((low + share * (high - low)).into());
                if value < top { value } else { T::from_scalar(low.into()) }
            });
        }, else panic!("uniform numbers are floats"));
    }

    /// 1 with a probability, and 0 otherwise.
    pub fn bernoulli(&mut self, probability: f64, out: ViewMut<'_>) {
        let least = (1.0 - probability) as f32;
        with_dtype!(out.dtype(), T => {
            let [zero, one] = [false, true].map(|truth| T::from_scalar(truth.into()));
            self.draw::<T>(out, |bits| if (bits >> 40) as f32 / (1u64 << 24) as f32 >= least { one } else { zero });
        });
    }

    /// Normally distributed numbers.
    pub fn normal(&mut self, mean: f64, std: f64, out: ViewMut<'_>) {
        with_dtype!(out.dtype(), [floats] T => self.draw::<T>(out, |bits| {
            T::from_scalar((mean + std * standard_normal(bits)).into())
        }), else panic!("normal numbers are floats"));
    }

    /// Integers from `low` up to, not including, `high`, in any element type.
    ///
    /// # Panics
    /// If there are none.
    pub fn integers(&mut self, low: i64, high: i64, out: ViewMut<'_>) {
        assert!(low < high, "there are no integers from {low} up to {high}");
        let count = high.wrapping_sub(low) as u64;
        with_dtype!(out.dtype(), T => self.draw::<T>(out, |bits| {
            T::from_scalar(low.wrapping_add(below(bits, count) as i64).into())
        }));
    }

    /// The numbers below `n` in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..n as i64).collect();
        for last in (1..n).rev() {
            let other = below(self.bits(self.offset), last as u64 + 1) as usize;
            self.offset = self.offset.wrapping_add(1);
            order.swap(last, other);
        }
        order
    }

    fn draw<T: Element>(&mut self, out: ViewMut<'_>, f: impl Fn(u64) -> T) {
        let (len, start) = (out.layout().len() as u64, self.offset);
        write(out, |out: &mut [T]| {
            let mut at = start;
            let mut rest = out;
            if at % 2 == 1 && !rest.is_empty() {
                rest[0] = f(self.bits(at));
                (rest, at) = (&mut rest[1..], at.wrapping_add(1));
            }
            for pair in rest.chunks_mut(2) {
                let halves = block(self.seed, at / 2);
                pair.iter_mut().zip(halves).for_each(|(out, bits)| *out = f(bits));
                at = at.wrapping_add(2);
            }
        });
        self.offset = start.wrapping_add(len);
    }

    fn bits(&self, at: u64) -> u64 {
        block(self.seed, at / 2)[(at % 2) as usize]
    }
}

/// Two elements' worth of bits.
#[inline]
fn block(seed: u64, counter: u64) -> [u64; 2] {
    let [a, b, c, d] =
        philox([counter as u32, (counter >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32]);
    [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32]
}

/// Philox4x32-10.
#[inline]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b, c, d] = counter;
        let first = u64::from(a) * 0xD251_1F53;
        let second = u64::from(c) * 0xCD9E_8D57;
        counter = [
            (second >> 32) as u32 ^ b ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ d ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// A number below `count`; the bias is at most `count / 2^64`.
#[inline]
fn below(bits: u64, count: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}

/// Box and Muller's transform: half of the bits make a radius, half an angle.
#[inline]
fn standard_normal(bits: u64) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << 32) as f64;
    // Never zero, so that the logarithm is finite.
    let radius = (-2.0 * (((bits >> 32) as f64 + 0.5) * SCALE).ln()).sqrt();
    radius * ((bits as u32) as f64 * SCALE * std::f64::consts::TAU).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;
    use crate::{DType, f16};

    #[test]
    fn blocks_agree_with_the_published_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    fn draw(generator: &mut Philox, n: usize) -> Vec<f32> {
        let mut out = Array::<f32>::zeros(&[n]);
        generator.normal(0.0, 1.0, out.view_mut());
        out.elements
    }

    #[test]
    fn many_small_calls_draw_what_one_large_one_does() {
        let whole = draw(&mut Philox::new(7, 0), 20);
        let mut generator = Philox::new(7, 0);
        let parts: Vec<f32> = [1, 0, 2, 5, 3, 9].iter().flat_map(|&n| draw(&mut generator, n)).collect();
        assert_eq!(parts, whole);
        assert_eq!(generator.offset(), 20);
        assert_eq!(draw(&mut Philox::new(7, 13), 7), whole[13..]);
        assert_ne!(draw(&mut Philox::new(8, 0), 20), whole);
    }

    #[test]
    fn uniform_numbers_are_even_and_below_the_top() {
        let mut out = Array::<f64>::zeros(&[100, 100]);
        Philox::new(1, 0).uniform(2.0, 4.0, out.view_mut());
        assert!(out.elements.iter().all(|x| (2.0..4.0).contains(x)));
        assert!((out.elements.iter().sum::<f64>() / 1e4 - 3.0).abs() < 0.03);
        let mut half = Array::<f16>::zeros(&[100_000]);
        Philox::new(1, 0).uniform(0.0, 1.0, half.view_mut());
        assert!(half.wide().iter().all(|x| (0.0..1.0).contains(x)));
    }

    #[test]
    fn ones_come_as_often_as_they_are_likely() {
        let mut out = Array::<f32>::zeros(&[100_000]);
        Philox::new(1, 0).bernoulli(0.3, out.view_mut());
        assert!(out.elements.iter().all(|&x| x == 0.0 || x == 1.0));
        assert!((out.wide().iter().sum::<f64>() / 1e5 - 0.3).abs() < 0.01);
        Philox::new(1, 0).bernoulli(1.0, out.view_mut());
        assert!(out.elements.iter().all(|&x| x == 1.0));
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let mut out = Array::<f32>::zeros(&[100_000]);
        Philox::new(2, 0).normal(1.0, 3.0, out.view_mut());
        let (wide, n) = (out.wide(), 1e5);
        let mean = wide.iter().sum::<f64>() / n;
        let variance = wide.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.04 && (variance.sqrt() - 3.0).abs() < 0.04, "{mean} {variance}");
    }

    #[test]
    fn integers_reach_both_ends_and_fit_any_type() {
        for dtype in DType::ALL {
            with_dtype!(dtype, T => {
                let mut out = Array::<T>::zeros(&[50]);
                Philox::new(3, 0).integers(0, 2, out.view_mut());
                assert!(out.wide().contains(&0.0) && out.wide().contains(&1.0));
            });
        }
        let mut out = Array::<i64>::zeros(&[3]);
        Philox::new(3, 0).integers(i64::MIN, i64::MAX, out.view_mut());
        assert_ne!(out.elements[0], out.elements[1]);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut order = Philox::new(4, 0).permutation(100);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
        assert_eq!(Philox::new(4, 0).permutation(0), []);
    }
}
