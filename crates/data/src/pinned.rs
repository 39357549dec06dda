//! Batches in memory that devices reach by themselves.

use crate::Dataset;
use cresset_tensor::{Result, Tensor};

/// A batch whose tensors can be moved to such memory.
pub trait Pin: Sized {
    /// The same batch there.
    ///
    /// # Errors
    /// If there is no device that reaches host memory, or no such memory is left.
    fn pin(self) -> Result<Self>;
}

impl Pin for Tensor {
    fn pin(self) -> Result<Tensor> {
        self.pin_memory()
    }
}

impl<const N: usize> Pin for [Tensor; N] {
    fn pin(mut self) -> Result<[Tensor; N]> {
        for tensor in &mut self {
            *tensor = tensor.pin_memory()?;
        }
        Ok(self)
    }
}

impl Pin for Vec<Tensor> {
    fn pin(self) -> Result<Vec<Tensor>> {
        self.into_iter().map(Tensor::pin).collect()
    }
}

/// A data set whose batches wait in pinned memory, so that copies to a device need not be waited for:
/// workers fill it while the device computes.
///
/// ```no_run
/// # use cresset_data::{DataLoader, Pinned, TensorDataset};
/// # use cresset_tensor::{Device, Result, To};
/// # fn f(digits: TensorDataset<2>, npu: Device) -> Result<()> {
/// let loader = DataLoader::builder(Pinned::new(digits)).batch_size(64).workers(2).build()?;
/// for batch in loader.epoch(0) {
///     let [features, classes] = batch?;
///     let later = To { device: Some(npu), non_blocking: true, ..To::default() };
///     let (features, classes) = (features.to(later)?, classes.to(later)?);
/// #   let _ = (features, classes);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pinned<D> {
    dataset: D,
    on: bool,
}

impl<D> Pinned<D> {
    /// Batches of `dataset`, pinned.
    pub fn new(dataset: D) -> Pinned<D> {
        Pinned { dataset, on: true }
    }

    /// Pins batches only if `on`: the host itself has nothing to reach.
    #[must_use]
    pub fn only_if(self, on: bool) -> Pinned<D> {
        Pinned { on, ..self }
    }
}

impl<D: Dataset<Batch: Pin>> Dataset for Pinned<D> {
    type Batch = D::Batch;

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn batch(&self, numbers: &[usize]) -> Result<D::Batch> {
        let batch = self.dataset.batch(numbers)?;
        if self.on { batch.pin() } else { Ok(batch) }
    }
}
