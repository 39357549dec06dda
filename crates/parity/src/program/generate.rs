//! Tensors that any language can make alike: elements by a documented rule from a seed, or literal.

use super::cursor::{Cursor, Read};
use crate::golden::dtype;
use cresset_tensor::{DType, Device, Result, Tensor};
use serde_json::Value as Json;

/// No tensor of a program is larger.
const MOST_ELEMENTS: u64 = 1 << 24;

/// How a tensor starts.
#[derive(Clone, Debug)]
pub(super) struct Start {
    shape: Vec<usize>,
    dtype: DType,
    elements: Elements,
    pub(super) requires_grad: bool,
}

#[derive(Clone, Debug)]
enum Elements {
    /// From one number up to another.
    Seeded {
        seed: u64,
        from: f64,
        to: f64,
    },
    Literal(Vec<f64>),
}

impl Start {
    pub(super) fn parse(at: &Cursor<'_>) -> Read<Start> {
        at.only(&["shape", "dtype", "seed", "from", "to", "values", "requires_grad"])?;
        let dtype = match at.member("dtype") {
            Some(name) => dtype(name.text()?).or_else(|reason| name.fault(reason))?,
            None => DType::F32,
        };
        let (mut shape, elements) = match at.member("values") {
            Some(values) => {
                let mut elements = Vec::new();
                let shape = flatten(&values, &mut elements, 0)?;
                (shape, Elements::Literal(elements))
            }
            None => (Vec::new(), Start::seeded(at, dtype)?),
        };
        if let Some(given) = at.member("shape") {
            let sizes =
                given.list()?.iter().map(|size| size.count(MOST_ELEMENTS)).collect::<Read<Vec<_>>>()?;
            let count = sizes.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
            if count.is_none_or(|count| count > MOST_ELEMENTS) {
                return given.fault(format_args!("a tensor has at most {MOST_ELEMENTS} elements"));
            }
            shape = sizes.into_iter().map(|size| size as usize).collect();
        } else if matches!(elements, Elements::Seeded { .. }) {
            return at.fault("needs a \"shape\", or \"values\"");
        }
        if let Elements::Literal(list) = &elements
            && list.len() != shape.iter().product::<usize>()
        {
            return at.fault(format_args!("{} values do not fill the shape {shape:?}", list.len()));
        }
        let requires_grad = at.member("requires_grad").map_or(Ok(false), |truth| truth.truth())?;
        Ok(Start { shape, dtype, elements, requires_grad })
    }

    fn seeded(at: &Cursor<'_>, dtype: DType) -> Read<Elements> {
        let seed = at.member("seed").map_or(Ok(0), |seed| seed.count(u64::MAX))?;
        let (from, to) = if dtype.is_float() { (-1.0, 1.0) } else { (0.0, 2.0) };
        let from = at.member("from").map_or(Ok(from), |from| from.number())?;
        let to = at.member("to").map_or(Ok(to), |to| to.number())?;
        Ok(Elements::Seeded { seed, from, to })
    }

    /// Elements from `seed` for a tensor that is there already.
    pub(super) fn like(tensor: &Tensor, seed: u64, reach: f64) -> Start {
        let elements = Elements::Seeded { seed, from: -reach, to: reach };
        Start { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), elements, requires_grad: false }
    }

    pub(super) fn make(&self, device: Device) -> Result<Tensor> {
        let count = self.shape.iter().product();
        let elements = match &self.elements {
            Elements::Literal(list) => list.clone(),
            Elements::Seeded { seed, from, to } => {
                let place = |share: f64| from + share * (to - from);
                let whole = |number: f64| if self.dtype.is_float() { number } else { number.floor() };
                shares(*seed).take(count).map(|share| whole(place(share))).collect()
            }
        };
        let tensor = Tensor::from_slice(&elements, &*self.shape)?.to_dtype(self.dtype)?.to(device)?;
        if self.requires_grad { tensor.with_grad() } else { Ok(tensor) }
    }
}

/// Numbers from 0 to below 1: Steele's and Vigna's SplitMix64, the upper 53 bits of each.
fn shares(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) >> 11
    })
    .map(|bits| bits as f64 / (1u64 << 53) as f64)
}

/// Takes nested lists apart; gives their shape.
fn flatten(at: &Cursor<'_>, to: &mut Vec<f64>, depth: usize) -> Read<Vec<usize>> {
    if depth > 16 {
        return at.fault("a tensor has at most 16 dimensions here");
    }
    if !at.json.is_array() {
        to.push(element(at)?);
        return Ok(Vec::new());
    }
    let list = at.list()?;
    let mut inner: Option<Vec<usize>> = None;
    for one in &list {
        let shape = flatten(one, to, depth + 1)?;
        if inner.get_or_insert_with(|| shape.clone()) != &shape {
            return one.fault(format_args!(
                "has the shape {shape:?}, those before have {:?}",
                inner.unwrap_or_default()
            ));
        }
    }
    Ok([vec![list.len()], inner.unwrap_or_default()].concat())
}

fn element(at: &Cursor<'_>) -> Read<f64> {
    match at.json {
        Json::Bool(truth) => Ok(f64::from(u8::from(*truth))),
        Json::String(text) => match text.as_str() {
            "nan" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            _ => at.fault("expected a number, or \"nan\", \"inf\", \"-inf\""),
        },
        _ => at.number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 1234567, as published with the generator.
    #[test]
    fn elements_follow_the_published_generator() {
        let expected = [6457827717110365317u64, 3203168211198807973, 9817491932198370423];
        let shares: Vec<f64> = shares(1_234_567).take(3).collect();
        assert_eq!(shares, expected.map(|z| (z >> 11) as f64 / (1u64 << 53) as f64));
    }
}
