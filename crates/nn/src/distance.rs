//! How alike two tensors are.

use crate::{Forward, Module};
use cresset_tensor::{Result, Tensor};

/// The cosine of the angle between vectors along a dimension.
#[derive(Clone, Copy, Debug, Module)]
pub struct CosineSimilarity {
    /// Along which vectors lie.
    pub dim: isize,
    /// The least that lengths count for.
    pub eps: f64,
}

impl Default for CosineSimilarity {
    fn default() -> CosineSimilarity {
        CosineSimilarity { dim: 1, eps: 1e-8 }
    }
}

impl Forward<(Tensor, Tensor)> for CosineSimilarity {
    type Output = Tensor;

    fn forward(&self, (x1, x2): (&Tensor, &Tensor)) -> Result<Tensor> {
        x1.cosine_similarity(x2, self.dim, self.eps)
    }
}

/// The norm of the difference of vectors along the last dimension.
#[derive(Clone, Copy, Debug, Module)]
pub struct PairwiseDistance {
    /// The order of the norm.
    pub p: f64,
    /// Added to each difference.
    pub eps: f64,
    /// Whether the dimension stays, with size 1.
    pub keepdim: bool,
}

impl Default for PairwiseDistance {
    fn default() -> PairwiseDistance {
        PairwiseDistance { p: 2.0, eps: 1e-6, keepdim: false }
    }
}

impl Forward<(Tensor, Tensor)> for PairwiseDistance {
    type Output = Tensor;

    fn forward(&self, (x1, x2): (&Tensor, &Tensor)) -> Result<Tensor> {
        x1.pairwise_distance(x2, self.p, self.eps, self.keepdim)
    }
}
