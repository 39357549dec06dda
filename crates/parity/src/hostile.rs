//! Recorded calls with hostile arguments: an error is an answer, a panic is not.
//!
//! Choices are the same each time; `PROPTEST_RNG_SEED` makes others, as for all random tests.

use crate::arguments::{Arguments, Tensors, prepare};
use crate::golden::{Golden, Passed};
use crate::ops::{self, Entry};
use crate::value::Value;
use cresset_kernels::random::Philox;
use cresset_tensor::autograd::{self, Pass};
use cresset_tensor::{DType, Device, Result, Scalar, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// How many changed calls are made per recorded operator.
const CALLS: usize = 60;

/// A source of choices.
struct Dice(Vec<i64>);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(Philox::new(seed, 0).permutation(4096))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0.pop().expect("a few hundred choices are enough") as usize % count.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

#[test]
fn no_arguments_make_an_operator_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/opinfo");
    let chosen = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0u64);
    let mut panics = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for (path, seed) in paths.into_iter().zip(chosen << 16..) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let golden = Golden::read(&path).unwrap().unwrap();
        let nothing = golden.cases.is_empty() && golden.errors.is_empty();
        let entry = ops::find(&golden.name()).or_else(|| ops::find(&golden.op));
        if let Some(entry) = entry.filter(|_| !nothing) {
            panics.extend(attack(&golden, entry, &mut Dice::new(seed)));
        }
    }
    assert!(panics.is_empty(), "{} calls panicked:\n{}", panics.len(), panics.join("\n"));
}

fn attack(golden: &Golden, entry: &Entry, dice: &mut Dice) -> Vec<String> {
    let recorded: Vec<&Passed> = golden
        .cases
        .iter()
        .map(|case| &case.passed)
        .chain(golden.errors.iter().map(|case| &case.passed))
        .collect();
    let mut panics = Vec::new();
    for _ in 0..CALLS {
        let mut passed = dice.pick(&recorded).clone();
        let Ok(mut tensors) = prepare(golden, &passed, Device::CPU, true) else { continue };
        match dice.below(2) {
            0 => spoil_value(&mut passed, dice),
            _ => spoil_tensor(&mut tensors, dice).unwrap(),
        }
        let calm = catch_unwind(AssertUnwindSafe(|| call(entry, &passed, &tensors)));
        if calm.is_err() {
            let inputs: Vec<_> = tensors.values().map(|x| (x.dtype(), x.shape())).collect();
            panics.push(format!("{} {:?} {:?} on {inputs:?}", golden.name(), passed.args, passed.kwargs));
        }
    }
    panics
}

/// Runs all that can be run; errors are welcome.
fn call(entry: &Entry, passed: &Passed, tensors: &Tensors) {
    let arguments = Arguments::new(passed, tensors, Device::CPU);
    if let Ok(outputs) = entry.call(&arguments) {
        let differentiable: Vec<_> = outputs.iter().filter(|x| x.requires_grad()).collect();
        let ones: Vec<Tensor> = differentiable.iter().filter_map(|x| x.ones_like().ok()).collect();
        let roots: Vec<_> = differentiable.into_iter().zip(ones.iter().map(Some)).collect();
        let _ = autograd::backward(&roots, Pass::default());
    }
    if let (Some(change), Some(target)) = (entry.change(), tensors.get(&0))
        && let Ok(mut target) = target.copy().and_then(|copy| copy.detach())
    {
        let _ = change(&mut target, &arguments);
    }
}

/// Replaces an argument, or a part of one, by something unreasonable.
fn spoil_value(passed: &mut Passed, dice: &mut Dice) {
    let count = passed.args.len() + passed.kwargs.len();
    let at = dice.below(count);
    let value = match at.checked_sub(passed.args.len()) {
        None => passed.args.get_mut(at),
        Some(at) => passed.kwargs.get_mut(at).map(|(_, value)| value),
    };
    let Some(value) = value else { return };
    match value {
        Value::List(list) if !list.is_empty() && dice.below(3) > 0 => {
            let at = dice.below(list.len());
            match dice.below(3) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => list[at] = unreasonable(dice),
            }
        }
        value => *value = unreasonable(dice),
    }
}

/// Sizes are tiny or beyond all memory: what lies between would only make the test slow.
fn unreasonable(dice: &mut Dice) -> Value {
    let ints = [0, 1, 2, -1, -2, -7, 5, 63, 100, 1 << 62, i64::MAX, i64::MIN, i64::MIN + 1];
    let floats = [0.0, -0.0, 1.5, -3.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    match dice.below(8) {
        0..4 => Value::Scalar(Scalar::Int(dice.pick(&ints))),
        4 => Value::Scalar(Scalar::Float(dice.pick(&floats))),
        5 => Value::Scalar(Scalar::Bool(dice.below(2) == 1)),
        6 => Value::None,
        _ => Value::List((0..dice.below(4)).map(|_| Value::Scalar(Scalar::Int(dice.pick(&ints)))).collect()),
    }
}

/// Replaces a tensor by one of another shape, element type or order.
fn spoil_tensor(tensors: &mut Tensors, dice: &mut Dice) -> Result<()> {
    let numbers: Vec<usize> = tensors.keys().copied().collect();
    if numbers.is_empty() {
        return Ok(());
    }
    let number = dice.pick(&numbers);
    let old = tensors[&number].detach()?;
    let shapes: [&[usize]; 8] =
        [&[], &[0], &[1], &[3, 0, 2], &[1, 1, 1, 1, 1, 1], &[2, 3], &[0, 0], &[2, 2, 2, 2]];
    let new = match dice.below(4) {
        0 => old.to_dtype(dice.pick(&DType::ALL))?,
        1 => Tensor::zeros(dice.pick(&shapes), old.dtype())?,
        2 if old.dim() > 1 => old.transpose(0, -1)?,
        2 => Tensor::ones(dice.pick(&shapes), dice.pick(&DType::ALL))?,
        _ => Tensor::full(old.shape(), f64::NAN, old.dtype())?,
    };
    let new = new.copy()?;
    if new.dtype().is_float() {
        new.set_requires_grad(true)?;
    }
    tensors.insert(number, new);
    Ok(())
}
