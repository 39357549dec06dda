//! Sizes, strides and indices from small to beyond counting: a tensor that is what it says, or an error.

use super::config;
use cresset_tensor::indexing::{Indexer, Slice};
use cresset_tensor::{DType, Device, Result, Tensor};
use proptest::prelude::*;
use std::borrow::Cow;

/// Numbers that arithmetic with sizes stumbles over, and small ones.
fn size() -> impl Strategy<Value = i64> {
    let edges =
        [0, 1, 2, 3, -1, -2, 1 << 20, 1 << 31, 1 << 32, 1 << 62, i64::MAX, i64::MIN, i64::MAX / 4 + 1];
    prop_oneof![3 => 0i64..5, 2 => proptest::sample::select(edges.to_vec())]
}

fn sizes() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(size(), 0..5)
}

/// As many as are no sizes stand for very many.
fn unsigned(sizes: &[i64]) -> Vec<usize> {
    sizes.iter().map(|&size| size as usize).collect()
}

/// Fails unless elements and bytes of what came out can be counted; elements of a view may lie on each other.
fn check(outcome: Result<Tensor>) {
    let Ok(tensor) = outcome else { return };
    let count = if tensor.shape().contains(&0) {
        Some(0)
    } else {
        tensor.shape().iter().try_fold(1usize, |count, &size| count.checked_mul(size))
    };
    assert_eq!(count, Some(tensor.numel()), "{:?}", tensor.shape());
    let bytes =
        tensor.numel().checked_mul(tensor.dtype().size()).and_then(|bytes| isize::try_from(bytes).ok());
    assert!(bytes.is_some() || !tensor.is_contiguous(), "{:?} of {}", tensor.shape(), tensor.dtype());
}

/// Makes tensors and views of sizes; on `meta` nothing is allocated, so that they go as far as they can.
fn use_sizes(shape: &[i64], other: &[i64], strides: &[i64], [dim, at, length]: [i64; 3]) {
    let meta = (DType::F64, Device::META);
    let (shape, target, dim) = (unsigned(shape), unsigned(other), dim as isize);
    check(Tensor::zeros(&shape[..], meta));
    check(Tensor::full(&shape[..], 1, meta));
    for start in
        [Tensor::zeros(&shape[..], meta), Tensor::zeros([2, 3, 4], meta), Tensor::zeros([0, 3], meta)]
    {
        let Ok(x) = start else { continue };
        check(x.view(other));
        check(x.reshape(other));
        check(x.expand(other));
        check(x.repeat(other));
        check(x.unflatten(dim, other));
        check(x.as_strided(&target, &unsigned(strides), at as usize));
        check(x.narrow(dim, at as isize, length as usize));
        check(x.select(dim, at as isize));
        check(x.unfold(dim, at as usize, length as usize));
        check(x.repeat_interleave(at as usize, Some(dim)));
        check(x.transpose(dim, at as isize));
        check(x.unsqueeze(at as isize));
        check(x.flatten(dim, at as isize));
        check(x.sum_dims(&[dim, at as isize], true));
    }
}

/// Reads and writes what the parts of an index pick.
fn use_index(shape: &[usize], parts: &[Part]) {
    let count: usize = shape.iter().product();
    let x = Tensor::arange(count as i64).unwrap().view(shape).unwrap();
    let indexers: Vec<Indexer<'_>> = parts.iter().map(Part::indexer).collect();
    if let Ok(picked) = x.get(&indexers[..]) {
        // Every element that is picked is one of those that are there.
        assert!(picked.to_vec::<i64>().unwrap().iter().all(|&value| (0..count as i64).contains(&value)));
        x.set(&indexers[..], -7).unwrap();
        let changed = x.to_vec::<i64>().unwrap().iter().filter(|&&value| value == -7).count();
        assert!(changed <= picked.numel());
    } else {
        assert!(x.set(&indexers[..], -7).is_err());
        assert!(x.to_vec::<i64>().unwrap().iter().copied().eq(0..count as i64), "a refused change was made");
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_sizes_make_a_tensor_or_a_view_panic_or_lie(
        shape in sizes(), other in sizes(), strides in sizes(), dim in -3i64..4, at in size(), length in size(),
    ) {
        use_sizes(&shape, &other, &strides, [dim, at, length]);
    }

    #[test]
    fn no_index_makes_reading_or_writing_panic_or_reach_beyond(
        shape in proptest::collection::vec(0usize..4, 0..4),
        parts in proptest::collection::vec(part(), 0..5),
    ) {
        use_index(&shape, &parts);
    }
}

/// The lines of a kept file that are no remarks.
fn kept(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn kept_sizes_get_an_answer_or_an_error() {
    for line in kept(include_str!("../corpus/sizes.txt")) {
        let lists: Vec<Vec<i64>> = line.split('|').map(numbers).collect();
        let [shape, other, strides, rest] = &lists[..] else { panic!("{line} has no four parts") };
        use_sizes(shape, other, strides, rest[..].try_into().expect("a dimension, a place and a length"));
    }
}

#[test]
fn kept_indices_get_an_answer_or_an_error() {
    for line in kept(include_str!("../corpus/indices.txt")) {
        let (shape, parts) = line.split_once('|').expect("a shape and an index");
        let parts: Vec<Part> = parts.split(',').map(|part| Part::parse(part.trim())).collect();
        use_index(&numbers(shape), &parts);
    }
}

/// A part of an index, by value.
#[derive(Clone, Debug)]
enum Part {
    At(i64),
    Range(Option<i64>, Option<i64>, i64),
    NewAxis,
    Ellipsis,
    Truth(bool),
    List(Vec<i64>),
    Mask(Vec<bool>),
}

fn part() -> impl Strategy<Value = Part> {
    let place = || prop_oneof![3 => -4i64..4, 1 => size()];
    prop_oneof![
        place().prop_map(Part::At),
        (proptest::option::of(place()), proptest::option::of(place()), place())
            .prop_map(|(start, stop, step)| Part::Range(start, stop, step)),
        Just(Part::NewAxis),
        Just(Part::Ellipsis),
        any::<bool>().prop_map(Part::Truth),
        proptest::collection::vec(place(), 0..3).prop_map(Part::List),
        proptest::collection::vec(any::<bool>(), 0..4).prop_map(Part::Mask),
    ]
}

impl Part {
    /// A part as it is written in Python; `[..]` is a list, `<..>` a mask.
    fn parse(text: &str) -> Part {
        let inside = |ends: [char; 2]| text.strip_prefix(ends[0])?.strip_suffix(ends[1]);
        let place = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        match text {
            "None" => Part::NewAxis,
            "..." => Part::Ellipsis,
            "True" | "False" => Part::Truth(text == "True"),
            _ if text.contains(':') => {
                let mut ends = text.split(':').map(place);
                let mut next = || ends.next().flatten();
                Part::Range(next(), next(), next().unwrap_or(1))
            }
            _ => match (inside(['[', ']']), inside(['<', '>'])) {
                (Some(list), _) => Part::List(numbers(list)),
                (_, Some(mask)) => Part::Mask(numbers(mask)),
                _ => Part::At(text.parse().unwrap()),
            },
        }
    }

    fn indexer(&self) -> Indexer<'_> {
        match self {
            Part::At(place) => Indexer::At(*place),
            Part::Range(start, stop, step) => {
                Indexer::Slice(Slice { start: *start, stop: *stop, step: *step })
            }
            Part::NewAxis => Indexer::NewAxis,
            Part::Ellipsis => Indexer::Ellipsis,
            Part::Truth(on) => Indexer::Truth(*on),
            Part::List(places) => Indexer::List(places.clone()),
            Part::Mask(mask) => Indexer::Tensor(Cow::Owned(Tensor::from_slice(mask, [mask.len()]).unwrap())),
        }
    }
}
