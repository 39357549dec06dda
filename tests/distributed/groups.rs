//! What a group makes of its tensors equals what one process computes.

use super::{numbers, ranks};
use cresset::distributed::{Collective, ProcessGroup, Reduce};
use cresset::{Device, Result, Tensor};

/// What each rank brings, computed alike everywhere.
fn brought(rank: u32) -> Result<Tensor> {
    Tensor::arange(12)?.to_dtype(cresset::DType::F32)?.add(1.0 + f64::from(rank))?.sin()?.reshape([6, 2])
}

fn here(group: &ProcessGroup) -> Result<Tensor> {
    brought(group.rank())?.to(group.device())
}

/// What all ranks together make, by operators of one process.
fn together(ranks: u32, join: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let mut all = (0..ranks).map(brought);
    let first = all.next().unwrap()?;
    all.try_fold(first, |sum, one| join(&sum, &one?))
}

fn close(got: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!(got.shape(), expected.shape());
    for (a, b) in numbers(got)?.iter().zip(numbers(expected)?) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} instead of {b}");
    }
    Ok(())
}

#[test]
fn reductions_equal_those_of_one_process() {
    ranks("distributed::groups::reductions_equal_those_of_one_process", 3, |group| {
        let reduced = |reduce| {
            let x = here(group)?;
            group.all_reduce(&x, reduce)?;
            Ok::<_, cresset::Error>(x)
        };
        close(&reduced(Reduce::Sum)?, &together(3, |a, b| a.add(b))?)?;
        close(&reduced(Reduce::Product)?, &together(3, |a, b| a.mul(b))?)?;
        close(&reduced(Reduce::Max)?, &together(3, |a, b| a.maximum(b))?)?;
        close(&reduced(Reduce::Min)?, &together(3, |a, b| a.minimum(b))?)?;

        let x = here(group)?;
        group.reduce(&x, Reduce::Sum, 2)?;
        let expected = if group.rank() == 2 { together(3, |a, b| a.add(b))? } else { brought(group.rank())? };
        close(&x, &expected)?;

        let part = group.reduce_scatter(&here(group)?, Reduce::Sum)?;
        let sum = together(3, |a, b| a.add(b))?;
        close(&part, &sum.narrow(0, 2 * group.rank() as isize, 2)?)?;
        let error = group.reduce_scatter(&here(group)?.t()?, Reduce::Sum).unwrap_err().to_string();
        assert!(error.contains("shape [2, 6] cannot be divided among 3 ranks"), "{error}");
        Ok(())
    });
}

#[test]
fn tensors_are_gathered_broadcast_and_sent() {
    ranks("distributed::groups::tensors_are_gathered_broadcast_and_sent", 3, |group| {
        let all = group.all_gather(&here(group)?)?;
        let (a, b, c) = (brought(0)?, brought(1)?, brought(2)?);
        close(&all, &Tensor::cat(&[&a, &b, &c], 0)?)?;

        let x = here(group)?;
        group.broadcast(&x, 1)?;
        close(&x, &b)?;

        match group.rank() {
            0 => group.send(&here(group)?, 2)?,
            2 => {
                group.receive(&x, 0)?;
                close(&x, &a)?;
            }
            _ => {}
        }
        group.barrier()?;
        assert!(group.any(group.rank() == 1)?);
        assert!(!group.any(false)?);
        Ok(())
    });
}

#[test]
fn tensors_with_gaps_are_changed_where_they_lie() {
    ranks("distributed::groups::tensors_with_gaps_are_changed_where_they_lie", 2, |group| {
        let whole = here(group)?;
        group.all_reduce(&whole.narrow(1, 1, 1)?, Reduce::Sum)?;
        let expected = brought(group.rank())?;
        expected.narrow(1, 1, 1)?.copy_(&together(2, |a, b| a.add(b))?.narrow(1, 1, 1)?)?;
        close(&whole, &expected)
    });
}

#[test]
fn a_collective_that_was_started_goes_on_beside_other_work() {
    ranks("distributed::groups::a_collective_that_was_started_goes_on_beside_other_work", 2, |group| {
        let (x, other) = (here(group)?, here(group)?);
        let started = group.start(Collective::AllReduce { tensor: &x, reduce: Reduce::Sum })?;
        let beside = other.mul(2.0)?;
        started.wait()?;
        close(&x.add(&beside)?, &together(2, |a, b| a.add(b))?.add(&brought(group.rank())?.mul(2.0)?)?)?;
        assert_eq!((group.size(), group.name(), group.backend().name()), (2, "world", "hccl"));
        Ok(())
    });
}

#[test]
fn a_rank_that_is_not_there_is_refused_by_every_backend() {
    use cresset::distributed::Alone;
    let group = ProcessGroup::new(Alone::new(Device::CPU), "world").unwrap();
    let x = Tensor::ones([2], ()).unwrap();
    let told = |outcome: Result<()>| outcome.unwrap_err().to_string();
    assert_eq!(told(group.send(&x, 0)), "ProcessGroup: rank 0 is this one; expected another");
    assert_eq!(told(group.receive(&x, 1)), "ProcessGroup: there is no rank 1: there are 1");
    assert_eq!(told(group.broadcast(&x, 3)), "ProcessGroup: there is no rank 3: there are 1");
    group.broadcast(&x, 0).unwrap();
}
