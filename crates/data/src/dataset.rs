//! What can be loaded from.

use cresset_tensor::{Cause, Error, Result, Tensor};
use std::sync::Arc;

/// Samples, numbered from 0, that come in batches.
///
/// Most data sets know one sample at a time: implement [`Each`] for them.
pub trait Dataset: Send + Sync {
    /// What a batch is, e.g. a pair of tensors.
    type Batch: Send + 'static;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples with these numbers, in this order, as one batch.
    ///
    /// # Errors
    /// If a sample cannot be read or the samples do not fit together.
    fn batch(&self, numbers: &[usize]) -> Result<Self::Batch>;
}

/// Samples that are read one at a time and then put together.
///
/// ```
/// use cresset_data::{Dataset, Each};
/// use cresset_tensor::{Result, Tensor};
///
/// /// The squares.
/// struct Squares(usize);
///
/// impl Each for Squares {
///     type Sample = i64;
///     type Batch = Tensor;
///
///     fn len(&self) -> usize {
///         self.0
///     }
///
///     fn get(&self, number: usize) -> Result<i64> {
///         Ok((number * number) as i64)
///     }
///
///     fn collate(&self, samples: Vec<i64>) -> Result<Tensor> {
///         Tensor::from_slice(&samples, [samples.len()])
///     }
/// }
///
/// assert_eq!(Squares(10).batch(&[3, 1])?.to_vec::<i64>()?, [9, 1]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub trait Each: Send + Sync {
    /// One sample.
    type Sample;
    /// What a batch is.
    type Batch: Send + 'static;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sample number `number`.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&self, number: usize) -> Result<Self::Sample>;

    /// Puts samples together; [`Tensor::stack`] does for tensors of one shape.
    ///
    /// # Errors
    /// If they do not fit together.
    fn collate(&self, samples: Vec<Self::Sample>) -> Result<Self::Batch>;
}

impl<E: Each> Dataset for E {
    type Batch = E::Batch;

    fn len(&self) -> usize {
        Each::len(self)
    }

    fn batch(&self, numbers: &[usize]) -> Result<E::Batch> {
        let samples = numbers.iter().map(|&number| self.get(number)).collect::<Result<_>>()?;
        self.collate(samples)
    }
}

/// A data set that several loaders share.
impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Batch = D::Batch;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn batch(&self, numbers: &[usize]) -> Result<D::Batch> {
        (**self).batch(numbers)
    }
}

/// Tensors whose first dimension counts the samples. A batch has the same number of tensors.
pub struct TensorDataset<const N: usize> {
    tensors: [Tensor; N],
    len: usize,
}

impl<const N: usize> TensorDataset<N> {
    /// A data set of these tensors.
    ///
    /// # Errors
    /// If there are none, or they do not have the same number of samples.
    pub fn new(tensors: [Tensor; N]) -> Result<TensorDataset<N>> {
        let samples = |tensor: &Tensor| tensor.shape().first().copied();
        let first = tensors.first().and_then(samples);
        match first {
            Some(len) if tensors.iter().all(|tensor| samples(tensor) == first) => {
                Ok(TensorDataset { tensors, len })
            }
            _ => {
                let shapes: Vec<&[usize]> = tensors.iter().map(Tensor::shape).collect();
                let text =
                    format_args!("expects tensors with one number of samples, not of shapes {shapes:?}");
                Err(Error::new(Cause::Shape, "TensorDataset", text))
            }
        }
    }
}

impl<const N: usize> Dataset for TensorDataset<N> {
    type Batch = [Tensor; N];

    fn len(&self) -> usize {
        self.len
    }

    fn batch(&self, numbers: &[usize]) -> Result<[Tensor; N]> {
        let numbers: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
        let index = Tensor::from_slice(&numbers, [numbers.len()])?.to(self.tensors[0].device())?;
        let rows = self.tensors.iter().map(|tensor| tensor.index_select(0, &index));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        Ok(rows.try_into().unwrap_or_else(|_| unreachable!("one batch of rows per tensor")))
    }
}
