//! Which samples each batch of an epoch is made of.

use cresset_kernels::random::Philox;

/// How a data set is gone through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) samples: usize,
    pub(crate) batch: usize,
    /// Whether samples that fill no batch are left out.
    pub(crate) drop_last: bool,
    /// Shuffled anew each epoch, from this seed.
    pub(crate) seed: Option<u64>,
}

impl Order {
    /// How many batches an epoch has.
    pub(crate) fn batches(&self) -> usize {
        if self.drop_last { self.samples / self.batch } else { self.samples.div_ceil(self.batch) }
    }

    /// The samples of one epoch in order. It depends on seed and number alone, so that training
    /// can go on where it was.
    pub(crate) fn samples(&self, epoch: u64) -> Vec<usize> {
        match self.seed {
            None => (0..self.samples).collect(),
            Some(seed) => {
                let drawn = epoch.wrapping_mul(self.samples as u64);
                let order = Philox::new(seed, drawn).permutation(self.samples);
                order.into_iter().map(|sample| sample as usize).collect()
            }
        }
    }
}

/// Which part of every batch is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
}

impl Shard {
    /// The part of a batch.
    pub(crate) fn of(self, batch: &[usize]) -> &[usize] {
        let start = |rank: usize| batch.len() * rank / self.ranks;
        &batch[start(self.rank)..start(self.rank + 1)]
    }
}
