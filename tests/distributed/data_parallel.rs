//! Ranks that share gradients have those of one process with the whole batch.
//!
//! In double precision, so that nothing but rounding is left between them; one test holds single precision to the
//! rounding of its own.

use super::{numbers, ranks};
use cresset::distributed::{DataParallel, DataParallelOptions, ProcessGroup};
use cresset::nn::{BatchNorm1d, Embedding};
use cresset::prelude::*;
use cresset::{Error, Result};

/// Buckets so small that there are several.
const SMALL: DataParallelOptions =
    DataParallelOptions { bucket_bytes: 1 << 10, first_bucket_bytes: 256, broadcast_buffers: true };

/// The same model every time, on every thread.
fn model() -> Result<Sequential> {
    let model = Sequential::new().push(Linear::new(8, 16)?).push(Tanh);
    let model = model.push(Linear::new(16, 12)?).push(Tanh).push(Linear::new(12, 3)?);
    let _guard = no_grad();
    for (i, parameter) in model.parameters().iter().enumerate() {
        let numbers = Tensor::arange(parameter.numel())?.to_dtype(DType::F32)?.mul(1.3 + i as f64)?;
        parameter.copy_(&numbers.cos()?.mul(0.4)?.reshape(parameter.shape())?)?;
    }
    model.to(DType::F64)?;
    Ok(model)
}

/// The samples of the whole batch.
fn samples(count: usize) -> Result<(Tensor, Tensor)> {
    let x = Tensor::arange(count * 8)?.to_dtype(DType::F64)?.mul(0.7)?.sin()?.reshape([count, 8])?;
    let y = Tensor::arange(count)?.remainder(3)?;
    Ok((x, y))
}

/// This rank's part of a batch of `count`.
fn part(group: &ProcessGroup, from: usize, count: usize) -> Result<(Tensor, Tensor)> {
    let (x, y) = samples(from + count)?;
    let cut = |all: &Tensor| all.narrow(0, from as isize, count)?.to(group.device());
    Ok((cut(&x)?, cut(&y)?))
}

/// The gradients of one process, by `loss`, on the host.
fn expected(loss: impl FnOnce(&Sequential) -> Result<()>) -> Result<Vec<Tensor>> {
    let model = model()?;
    loss(&model)?;
    gradients(&model)
}

fn gradients(model: &impl Module) -> Result<Vec<Tensor>> {
    model.parameters().iter().map(|parameter| Ok(parameter.grad().expect("it was computed"))).collect()
}

fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.to(Device::CPU)?.to_dtype(DType::F64)?.to_vec()
}

/// Fails unless all gradients agree to 1e-12 of their largest element.
fn close(got: &[Tensor], expected: &[Tensor]) -> Result<()> {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        let (got, expected) = (doubles(got)?, doubles(expected)?);
        let largest = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let worst = got.iter().zip(&expected).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(largest > 0.0 && worst <= 1e-12 * largest, "differ by {worst} of {largest}");
    }
    Ok(())
}

fn wrapped(group: &ProcessGroup) -> Result<DataParallel<Sequential>> {
    let model = model()?;
    model.to(group.device())?;
    DataParallel::with(model, group, SMALL)
}

#[test]
fn two_ranks_have_the_gradients_of_one_process() {
    ranks("distributed::data_parallel::two_ranks_have_the_gradients_of_one_process", 2, |group| {
        let model = wrapped(group)?;
        assert!(model.buckets() > 2, "there are several buckets");
        for _ in 0..3 {
            model.zero_grad();
            let (x, y) = part(group, 8 * group.rank() as usize, 8)?;
            model.call(&x)?.cross_entropy(&y)?.backward()?;
            let (x, y) = samples(16)?;
            close(&gradients(&model)?, &expected(|one| one.call(&x)?.cross_entropy(&y)?.backward())?)?;
        }
        Ok(())
    });
}

#[test]
fn in_single_precision_gradients_differ_by_a_millionth_at_most() {
    let name = "distributed::data_parallel::in_single_precision_gradients_differ_by_a_millionth_at_most";
    ranks(name, 2, |group| {
        let single = || {
            let model = model()?;
            model.to(DType::F32)?;
            model.to(group.device())?;
            Ok::<_, Error>(model)
        };
        let (model, one) = (DataParallel::with(single()?, group, SMALL)?, single()?);
        let (x, y) = part(group, 32 * group.rank() as usize, 32)?;
        model.call(&x.to_dtype(DType::F32)?)?.cross_entropy(&y)?.backward()?;
        let (x, y) = part(group, 0, 64)?;
        one.call(&x.to_dtype(DType::F32)?)?.cross_entropy(&y)?.backward()?;
        // Relative to the length of the gradient: single elements of it are differences of larger numbers.
        let (mut length, mut difference) = (0.0, 0.0);
        for (ours, theirs) in gradients(&model)?.iter().zip(gradients(&one)?) {
            for (a, b) in doubles(ours)?.iter().zip(doubles(&theirs)?) {
                length += b * b;
                difference += (a - b) * (a - b);
            }
        }
        let relative = (difference / length).sqrt();
        assert!(relative <= 1e-6, "differ by {relative:e}");
        Ok(())
    });
}

#[test]
fn ranks_start_from_the_parameters_and_buffers_of_the_first() {
    ranks(
        "distributed::data_parallel::ranks_start_from_the_parameters_and_buffers_of_the_first",
        2,
        |group| {
            let (mean, rank) = (BatchNorm1d::new(4)?, f64::from(group.rank()));
            let model = Sequential::new().push(Linear::new(4, 4)?).push(mean);
            for (_, tensor) in model.state_dict() {
                let _guard = no_grad();
                tensor.fill_(1.0 + rank)?;
            }
            model.to(group.device())?;
            let model = DataParallel::new(model, group)?;
            for (name, tensor) in model.state_dict() {
                let tensor = tensor.to_dtype(DType::F32)?;
                assert!(numbers(&tensor)?.iter().all(|x| *x == 1.0), "{name} is that of another rank");
            }
            // Each rank sees other samples, and before each call the running mean becomes that of the first: 1, then 2.2.
            let x = Tensor::full([6, 4], 3.0 + rank, group.device())?;
            model.call(&x)?.sum()?.backward()?;
            model.call(&x)?.sum()?.backward()?;
            let state = model.state_dict();
            let (_, mean) =
                state.iter().find(|(name, _)| name == "1.running_mean").expect("names are the module's");
            let expected = 0.9 * 2.2 + 0.1 * (13.0 + 4.0 * rank as f32);
            assert!(numbers(mean)?.iter().all(|x| (x - expected).abs() < 1e-5), "{mean}");
            Ok(())
        },
    );
}

#[test]
fn without_sync_gradients_add_up_and_travel_with_the_next_pass() {
    ranks(
        "distributed::data_parallel::without_sync_gradients_add_up_and_travel_with_the_next_pass",
        2,
        |group| {
            let (model, rank) = (wrapped(group)?, group.rank() as usize);
            let (x, y) = part(group, 8 * rank, 4)?;
            {
                let _here_only = model.no_sync();
                model.call(&x)?.cross_entropy(&y)?.backward()?;
            }
            let (x, y) = (x.to(Device::CPU)?, y.to(Device::CPU)?);
            close(&gradients(&model)?, &expected(|one| one.call(&x)?.cross_entropy(&y)?.backward())?)?;

            let (x, y) = part(group, 8 * rank + 4, 4)?;
            model.call(&x)?.cross_entropy(&y)?.backward()?;
            let (x, y) = samples(16)?;
            let whole = |one: &Sequential| one.call(&x)?.cross_entropy(&y)?.mul(2.0)?.backward();
            close(&gradients(&model)?, &expected(whole)?)
        },
    );
}

#[test]
fn unequal_parts_count_by_their_samples() {
    ranks("distributed::data_parallel::unequal_parts_count_by_their_samples", 3, |group| {
        let (from, count) = [(0, 1), (1, 7), (8, 3)][group.rank() as usize];
        let (model, (x, y)) = (wrapped(group)?, part(group, from, count)?);
        model.set_samples(count);
        model.call(&x)?.cross_entropy(&y)?.backward()?;
        let (x, y) = samples(11)?;
        close(&gradients(&model)?, &expected(|one| one.call(&x)?.cross_entropy(&y)?.backward())?)
    });
}

#[test]
fn ranks_that_run_out_of_samples_go_on_until_all_have() {
    ranks("distributed::data_parallel::ranks_that_run_out_of_samples_go_on_until_all_have", 2, |group| {
        let model = wrapped(group)?;
        let batches: &[usize] = if group.rank() == 0 { &[4] } else { &[4, 4, 4] };
        let (mut batches, mut steps) = (batches.iter(), 0);
        let mut batch = batches.next();
        while group.any(batch.is_some())? {
            model.zero_grad();
            match batch {
                Some(&count) => {
                    let (x, y) = part(group, 4 * group.rank() as usize, count)?;
                    model.set_samples(count);
                    model.call(&x)?.cross_entropy(&y)?.backward()?;
                }
                None => model.backward_without_samples()?,
            }
            let (x, y) = samples(8)?;
            let left = if steps == 0 { 0 } else { 4 };
            let (x, y) = (x.narrow(0, left, 8 - left as usize)?, y.narrow(0, left, 8 - left as usize)?);
            close(&gradients(&model)?, &expected(|one| one.call(&x)?.cross_entropy(&y)?.backward())?)?;
            batch = batches.next();
            steps += 1;
        }
        assert_eq!(steps, 3, "all ranks take as many steps as the one with most batches");
        Ok(())
    });
}

#[test]
fn a_parameter_counts_if_any_rank_used_it_and_has_no_gradient_if_none_did() {
    let name =
        "distributed::data_parallel::a_parameter_counts_if_any_rank_used_it_and_has_no_gradient_if_none_did";
    ranks(name, 2, |group| {
        #[derive(Module)]
        struct Branches {
            first: Linear,
            second: Linear,
            never: Embedding,
        }
        impl Forward<(Tensor, i64)> for Branches {
            type Output = Tensor;
            fn forward(&self, (x, which): (&Tensor, i64)) -> Result<Tensor> {
                if which == 0 { self.first.call(x) } else { self.second.call(x) }
            }
        }
        let branches =
            Branches { first: Linear::new(2, 1)?, second: Linear::new(2, 1)?, never: Embedding::new(3, 2)? };
        branches.to(group.device())?;
        let model = DataParallel::with(branches, group, SMALL)?;
        let x = Tensor::new([[1.0f32, 2.0]])?.to(group.device())?;
        model.call((&x, i64::from(group.rank())))?.sum()?.backward()?;
        let module = model.module();
        for linear in [&module.first, &module.second] {
            assert_eq!(numbers(&linear.weight.tensor().grad().unwrap())?, [0.5, 1.0]);
        }
        assert!(module.never.weight.tensor().grad().is_none());
        Ok(())
    });
}

#[test]
fn a_pass_that_fails_does_not_spoil_the_next() {
    ranks("distributed::data_parallel::a_pass_that_fails_does_not_spoil_the_next", 2, |group| {
        let model = wrapped(group)?;
        let (x, y) = part(group, 8 * group.rank() as usize, 8)?;
        // Gradients of the last layers are on their way when that of the first fails, on every rank alike.
        let first = model.parameters().swap_remove(0);
        let told = |_: &Tensor| Err(Error::new(cresset::tensor::Cause::Argument, "hook", "told to"));
        let handle = first.register_hook(told)?;
        assert!(model.call(&x)?.cross_entropy(&y)?.backward().is_err());
        handle.remove();
        model.zero_grad();
        model.call(&x)?.cross_entropy(&y)?.backward()?;
        let (x, y) = samples(16)?;
        close(&gradients(&model)?, &expected(|one| one.call(&x)?.cross_entropy(&y)?.backward())?)
    });
}

#[test]
fn parameters_that_were_replaced_are_noticed_before_their_gradients_stay_behind() {
    let name = "distributed::data_parallel::parameters_that_were_replaced_are_noticed_before_their_gradients_stay_behind";
    ranks(name, 2, |group| {
        let (model, (x, _)) = (wrapped(group)?, part(group, 0, 4)?);
        model.call(&x)?;
        // One that is no longer learned changes nothing.
        model.parameters()[0].set_requires_grad(false)?;
        model.call(&x)?;
        model.to(DType::F32)?;
        let told = model.call(&x.to_dtype(DType::F32)?).unwrap_err().to_string();
        assert!(told.contains("after DataParallel was made"), "{told}");
        Ok(())
    });
}

#[test]
fn modules_that_differ_between_ranks_are_refused_everywhere() {
    ranks(
        "distributed::data_parallel::modules_that_differ_between_ranks_are_refused_everywhere",
        2,
        |group| {
            let module = Linear::new(4, 2 + group.rank() as usize)?;
            let there = DataParallel::new(Linear::new(4, 2)?, group).err().unwrap().to_string();
            assert!(there.contains("weight is on cpu") && there.contains("on npu:"), "{there}");
            module.to(group.device())?;
            let told = DataParallel::new(module, group).err().unwrap().to_string();
            assert!(told.contains("the module of rank 1 has other parameters"), "{told}");
            Ok(())
        },
    );
}

#[test]
fn training_takes_the_same_steps_as_one_process() {
    ranks("distributed::data_parallel::training_takes_the_same_steps_as_one_process", 2, |group| {
        let (model, one) = (wrapped(group)?, model()?);
        let options = SgdOptions { lr: 0.1, momentum: 0.9, ..SgdOptions::default() };
        let mut ours = Sgd::new(model.parameters(), options.clone())?;
        let mut theirs = Sgd::new(one.parameters(), options)?;
        let ((x, y), (whole, classes)) = (part(group, 8 * group.rank() as usize, 8)?, samples(16)?);
        for _ in 0..10 {
            ours.zero_grad();
            model.call(&x)?.cross_entropy(&y)?.backward()?;
            ours.step()?;
            theirs.zero_grad();
            one.call(&whole)?.cross_entropy(&classes)?.backward()?;
            theirs.step()?;
        }
        for (ours, theirs) in model.parameters().iter().zip(one.parameters()) {
            for (a, b) in doubles(ours)?.iter().zip(doubles(&theirs)?) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} instead of {b}");
            }
        }
        Ok(())
    });
}
