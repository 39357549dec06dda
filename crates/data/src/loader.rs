//! Batches, one after the other.

use crate::Dataset;
use crate::order::{Order, Shard};
use crate::workers::Workers;
use cresset_dispatch::observe::{self, Call, Kind, Name};
use cresset_tensor::{Cause, Error, Result};
use std::sync::Arc;

/// Brings a data set in batches. Each [`epoch`](DataLoader::epoch) goes through all of it once.
///
/// In profiles, waiting for a batch is a scope of the name that torch gives it, so that TensorBoard
/// counts it as loading data.
pub struct DataLoader<D> {
    dataset: Arc<D>,
    order: Order,
    shard: Shard,
    workers: usize,
    prefetch: usize,
}

/// How a [`DataLoader`] is set up.
#[derive(Clone)]
pub struct Builder<D> {
    dataset: Arc<D>,
    batch_size: usize,
    drop_last: bool,
    seed: Option<u64>,
    shard: Shard,
    workers: usize,
    prefetch: usize,
}

impl<D> Builder<D> {
    /// Samples in a batch; 1 unless said otherwise.
    #[must_use]
    pub fn batch_size(mut self, samples: usize) -> Builder<D> {
        self.batch_size = samples;
        self
    }

    /// Goes through the samples in an order by chance, another one each epoch. The same seed gives
    /// the same orders.
    #[must_use]
    pub fn shuffle(mut self, seed: u64) -> Builder<D> {
        self.seed = Some(seed);
        self
    }

    /// Leaves out the last samples if they do not fill a batch.
    #[must_use]
    pub fn drop_last(mut self, on: bool) -> Builder<D> {
        self.drop_last = on;
        self
    }

    /// Loads part number `rank` of `ranks` of every batch: what one of several processes trains with. All of them
    /// have the same batches in the same order, and together all samples once. Where a batch cannot be divided
    /// evenly, parts differ by one sample; a rank may have none.
    ///
    /// ```
    /// use cresset_data::{DataLoader, TensorDataset};
    /// use cresset_tensor::Tensor;
    ///
    /// let part = |rank| -> Result<Vec<Vec<i64>>, cresset_tensor::Error> {
    ///     let data = TensorDataset::new([Tensor::arange(5)?])?;
    ///     let loader = DataLoader::builder(data).batch_size(4).shard(rank, 2).build()?;
    ///     loader.epoch(0).map(|batch| batch?[0].to_vec()).collect()
    /// };
    /// assert_eq!(part(0)?, [vec![0, 1], vec![]]);
    /// assert_eq!(part(1)?, [vec![2, 3], vec![4]]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    #[must_use]
    pub fn shard(mut self, rank: usize, ranks: usize) -> Builder<D> {
        self.shard = Shard { rank, ranks };
        self
    }

    /// Loads on so many threads ahead of time. Batches come in the same order as without.
    #[must_use]
    pub fn workers(mut self, threads: usize) -> Builder<D> {
        self.workers = threads;
        self
    }

    /// How many batches each worker may be ahead; 2 unless said otherwise.
    #[must_use]
    pub fn prefetch(mut self, batches: usize) -> Builder<D> {
        self.prefetch = batches;
        self
    }
}

impl<D: Dataset> Builder<D> {
    /// The loader.
    ///
    /// # Errors
    /// If the data set is empty, a batch has no samples, or no batch would ever be full.
    pub fn build(self) -> Result<DataLoader<D>> {
        let samples = self.dataset.len();
        let fault = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Argument, "DataLoader", text));
        if samples == 0 {
            return fault(format_args!("the data set is empty"));
        }
        if self.batch_size == 0 {
            return fault(format_args!("batch_size is 0, expected at least 1"));
        }
        if self.drop_last && self.batch_size > samples {
            let size = self.batch_size;
            return fault(format_args!(
                "{samples} samples do not fill a batch of {size}, and drop_last is set"
            ));
        }
        if self.shard.rank >= self.shard.ranks {
            let Shard { rank, ranks } = self.shard;
            return fault(format_args!("part {rank} of {ranks}, expected one below the number of parts"));
        }
        if self.workers > 0 && self.prefetch == 0 {
            return fault(format_args!("prefetch is 0, expected at least 1 for workers to be ahead"));
        }
        let Builder { dataset, batch_size: batch, drop_last, seed, shard, workers, prefetch } = self;
        let order = Order { samples, batch, drop_last, seed };
        Ok(DataLoader { dataset, order, shard, workers, prefetch })
    }
}

impl<D: Dataset + 'static> DataLoader<D> {
    /// Sets up a loader for `dataset`.
    pub fn builder(dataset: D) -> Builder<D> {
        let dataset = Arc::new(dataset);
        let shard = Shard { rank: 0, ranks: 1 };
        Builder { dataset, batch_size: 1, drop_last: false, seed: None, shard, workers: 0, prefetch: 2 }
    }

    /// The data set.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// How many batches an epoch has.
    pub fn len(&self) -> usize {
        self.order.batches()
    }

    /// Whether an epoch has no batches; a loader that could be built has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches of epoch number `epoch`.
    pub fn epoch(&self, epoch: u64) -> Epoch<D> {
        self.epoch_from(epoch, 0)
    }

    /// The same from batch number `batch` on: where a training that was stopped goes on.
    pub fn epoch_from(&self, epoch: u64, batch: usize) -> Epoch<D> {
        let plan = Arc::new(Plan {
            dataset: self.dataset.clone(),
            samples: self.order.samples(epoch),
            batch: self.order.batch,
            batches: self.order.batches(),
            shard: self.shard,
        });
        let workers = (self.workers > 0).then(|| Workers::start(&plan, batch, self.workers, self.prefetch));
        Epoch { plan, next: batch, workers }
    }
}

/// What is loaded in one epoch.
pub(crate) struct Plan<D> {
    dataset: Arc<D>,
    samples: Vec<usize>,
    batch: usize,
    pub(crate) batches: usize,
    shard: Shard,
}

impl<D: Dataset> Plan<D> {
    /// Batch number `number`.
    pub(crate) fn load(&self, number: usize) -> Result<D::Batch> {
        let start = number * self.batch;
        let end = (start + self.batch).min(self.samples.len());
        self.dataset.batch(self.shard.of(&self.samples[start..end]))
    }
}

/// The batches of one epoch, in order. Dropped early, its workers end.
pub struct Epoch<D: Dataset> {
    plan: Arc<Plan<D>>,
    next: usize,
    workers: Option<Workers<D::Batch>>,
}

impl<D: Dataset> Iterator for Epoch<D> {
    type Item = Result<D::Batch>;

    fn next(&mut self) -> Option<Result<D::Batch>> {
        let _span = observe::span(&Waiting { workers: self.workers.is_some() });
        let number = self.next;
        if number >= self.plan.batches {
            return None;
        }
        self.next += 1;
        match &self.workers {
            None => Some(self.plan.load(number)),
            Some(workers) => {
                let batch = workers.batch(number);
                if batch.is_none() {
                    // Nothing more comes from a worker that is gone.
                    self.next = self.plan.batches;
                }
                Some(batch.unwrap_or_else(|| {
                    let text = format_args!("a worker panicked before it had loaded batch {number}");
                    Err(Error::new(Cause::Argument, "DataLoader", text))
                }))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.plan.batches.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl<D: Dataset> ExactSizeIterator for Epoch<D> {}

/// The wait for a batch, as profiles show it.
struct Waiting {
    workers: bool,
}

impl Call for Waiting {
    fn name(&self) -> Name<'_> {
        Name::Static(match self.workers {
            false => "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            true => "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        })
    }

    fn kind(&self) -> Kind {
        Kind::Scope
    }
}
