//! What a loader brings, in which order, and how it fails.

use cresset_data::{DataLoader, Dataset, Each, Result, Tensor, TensorDataset};
use cresset_profiler::Profiler;
use cresset_tensor::{Cause, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Its own numbers; one of them cannot be read, or panics.
struct Numbers {
    count: usize,
    unreadable: Option<usize>,
    panics: Option<usize>,
    read: Arc<AtomicUsize>,
}

fn numbers(count: usize) -> Numbers {
    Numbers { count, unreadable: None, panics: None, read: Arc::default() }
}

impl Each for Numbers {
    type Sample = usize;
    type Batch = Vec<usize>;

    fn len(&self) -> usize {
        self.count
    }

    fn get(&self, number: usize) -> Result<usize> {
        self.read.fetch_add(1, Relaxed);
        assert!(self.panics != Some(number), "number {number}");
        match self.unreadable {
            Some(unreadable) if unreadable == number => {
                Err(Error::new(Cause::Argument, "numbers", format_args!("{number} cannot be read")))
            }
            _ => Ok(number),
        }
    }

    fn collate(&self, samples: Vec<usize>) -> Result<Vec<usize>> {
        Ok(samples)
    }
}

fn batches<D: Dataset + 'static>(loader: &DataLoader<D>, epoch: u64) -> Vec<D::Batch> {
    loader.epoch(epoch).map(|batch| batch.unwrap()).collect()
}

#[test]
fn samples_come_in_order_and_the_last_batch_may_be_short() {
    let loader = DataLoader::builder(numbers(7)).batch_size(3).build().unwrap();
    assert_eq!(batches(&loader, 0), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    assert_eq!((loader.len(), loader.epoch(0).len()), (3, 3));
    let loader = DataLoader::builder(numbers(7)).batch_size(3).drop_last(true).build().unwrap();
    assert_eq!(batches(&loader, 0), [vec![0, 1, 2], vec![3, 4, 5]]);
}

#[test]
fn every_epoch_has_an_order_of_its_own_that_the_seed_repeats() {
    let loader = |seed| DataLoader::builder(numbers(50)).batch_size(8).shuffle(seed).build().unwrap();
    let (first, second) = (batches(&loader(1), 0), batches(&loader(1), 1));
    assert_ne!(first, second);
    assert_eq!(first, batches(&loader(1), 0));
    assert_ne!(first, batches(&loader(2), 0));
    for epoch in [first, second] {
        let mut all = epoch.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..50));
    }
}

#[test]
fn workers_bring_what_one_thread_brings() {
    let build = |workers| {
        DataLoader::builder(numbers(103))
            .batch_size(5)
            .shuffle(3)
            .workers(workers)
            .prefetch(1)
            .build()
            .unwrap()
    };
    let alone = batches(&build(0), 4);
    for workers in [1, 2, 3, 8, 40] {
        assert_eq!(batches(&build(workers), 4), alone);
    }
}

#[test]
fn an_epoch_goes_on_where_it_was_left() {
    for workers in [0, 2] {
        let loader =
            DataLoader::builder(numbers(40)).batch_size(4).shuffle(9).workers(workers).build().unwrap();
        let rest: Vec<_> = loader.epoch_from(2, 7).map(|batch| batch.unwrap()).collect();
        assert_eq!(rest, batches(&loader, 2)[7..]);
    }
}

#[test]
fn workers_are_no_further_ahead_than_they_may_be_and_end_with_the_epoch() {
    let data = numbers(1000);
    let read = data.read.clone();
    let loader = DataLoader::builder(data).workers(2).prefetch(3).build().unwrap();
    let mut epoch = loader.epoch(0);
    epoch.next().unwrap().unwrap();
    drop(epoch);
    // The batch that was taken; for each worker what its channel holds, and one that found no room.
    assert!(read.load(Relaxed) <= 1 + 2 * (3 + 1) + 1, "{}", read.load(Relaxed));
}

#[test]
fn a_sample_that_cannot_be_read_is_told_in_its_batch() {
    for workers in [0, 2] {
        let data = Numbers { unreadable: Some(4), ..numbers(9) };
        let loader = DataLoader::builder(data).batch_size(3).workers(workers).build().unwrap();
        let outcomes: Vec<bool> = loader.epoch(0).map(|batch| batch.is_ok()).collect();
        assert_eq!(outcomes, [true, false, true]);
    }
}

#[test]
fn a_worker_that_panics_is_an_error_and_the_end() {
    let data = Numbers { panics: Some(4), ..numbers(9) };
    let loader = DataLoader::builder(data).batch_size(3).workers(1).build().unwrap();
    let mut epoch = loader.epoch(0);
    assert!(epoch.next().unwrap().is_ok());
    let error = epoch.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "DataLoader: a worker panicked before it had loaded batch 1");
    assert!(epoch.next().is_none());
}

#[test]
fn rows_of_tensors_are_batches_of_tensors() {
    let x = Tensor::arange(12).unwrap().reshape([6, 2]).unwrap();
    let y = Tensor::arange(6).unwrap();
    let data = TensorDataset::new([x, y]).unwrap();
    let [x, y] = data.batch(&[5, 0]).unwrap();
    assert_eq!((x.shape(), x.to_vec::<i64>().unwrap()), (&[2, 2][..], vec![10, 11, 0, 1]));
    assert_eq!(y.to_vec::<i64>().unwrap(), [5, 0]);
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let refused = |builder: cresset_data::Builder<Numbers>| builder.build().err().unwrap().to_string();
    let of = |count| DataLoader::builder(numbers(count));
    assert_eq!(refused(of(0)), "DataLoader: the data set is empty");
    assert_eq!(refused(of(3).batch_size(0)), "DataLoader: batch_size is 0, expected at least 1");
    let text = "DataLoader: 3 samples do not fill a batch of 4, and drop_last is set";
    assert_eq!(refused(of(3).batch_size(4).drop_last(true)), text);
    let text = "DataLoader: prefetch is 0, expected at least 1 for workers to be ahead";
    assert_eq!(refused(of(3).workers(1).prefetch(0)), text);
    let (six, five) = (Tensor::arange(6).unwrap(), Tensor::arange(5).unwrap());
    let error = TensorDataset::new([six, five]).err().unwrap().to_string();
    assert!(
        error.ends_with("expects tensors with one number of samples, not of shapes [[6], [5]]"),
        "{error}"
    );
}

/// As torch has it: once per batch, and once to find that there is no more.
#[test]
fn waiting_for_a_batch_is_a_scope_of_the_profile() {
    for (workers, kind) in [(0, "SingleProcess"), (2, "MultiProcessing")] {
        let loader = DataLoader::builder(numbers(6)).batch_size(3).workers(workers).build().unwrap();
        let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
        batches(&loader, 0);
        profiler.stop().unwrap();
        let name = format!("enumerate(DataLoader)#_{kind}DataLoaderIter.__next__");
        assert_eq!(profiler.events().unwrap().filter(|event| event.name() == name).count(), 3);
    }
}
