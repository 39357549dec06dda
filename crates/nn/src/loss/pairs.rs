//! What should be close, and what should be apart.

use super::{Reduction, losses};
use crate::check::within;
use crate::{Forward, Hooks, Module, functional};
use cresset_tensor::ops::TripletMargin;
use cresset_tensor::{Result, Tensor};

losses! {
    /// `log(1 + e^(-x y))` for targets `y` of 1 and -1.
    SoftMarginLoss {}
        |loss, x, target| x.soft_margin_loss(target, loss.reduction);

    /// Distances where the target is 1, and what they lack to the margin where it is -1.
    HingeEmbeddingLoss {
        /// How far those should be that do not belong together.
        margin: f64 = 1.0;
    }
        |loss, x, target| x.hinge_embedding_loss(target, loss.margin, loss.reduction);

    /// One less the cosine of two vectors where the target is 1; where it is -1, by how much the cosine
    /// exceeds the margin.
    CosineEmbeddingLoss {
        /// The cosine that those may have that do not belong together.
        margin: f64 = 0.0;
    }
        |loss, x, other, target| x.cosine_embedding_loss(other, target, loss.margin, loss.reduction);

    /// What the first lacks to lie a margin above the second where the target is 1, below it where it
    /// is -1.
    MarginRankingLoss {
        /// How far they should be apart.
        margin: f64 = 0.0;
    }
        |loss, x, other, target| x.margin_ranking_loss(other, target, loss.margin, loss.reduction);

    /// What lacks for an anchor to be closer to a positive than to a negative by a margin.
    TripletMarginLoss {
        /// How much farther negatives should be.
        margin: f64 = 1.0, "above 0" if |margin| margin > 0.0;
        /// The order of the norm that distances are.
        p: f64 = 2.0;
        /// What is added to each difference.
        eps: f64 = 1e-6;
        /// Whether the distance from positive to negative counts if it is the smaller.
        swap: bool = false;
    }
        |loss, anchor, positive, negative| anchor.triplet_margin_loss(positive, negative, TripletMargin {
            margin: loss.margin,
            p: loss.p,
            epsilon: loss.eps,
            swap: loss.swap,
            reduction: loss.reduction,
        });
}

type Distance = Box<dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync>;

/// As [`TripletMarginLoss`], by a distance of one's own.
#[derive(Module)]
pub struct TripletMarginWithDistanceLoss {
    #[module(skip)]
    distance: Distance,
    #[module(skip)]
    reduction: Reduction,
    margin: f64,
    swap: bool,
    hooks: Hooks,
}

impl TripletMarginWithDistanceLoss {
    /// By `distance`, with a margin of 1.
    pub fn new(distance: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        let distance = Box::new(distance);
        Self { distance, reduction: Reduction::Mean, margin: 1.0, swap: false, hooks: Hooks::default() }
    }

    /// What becomes of the losses of single samples: their mean unless said otherwise.
    pub fn reduction(self, reduction: Reduction) -> Result<Self> {
        Ok(Self { reduction, ..self })
    }

    /// How much farther negatives should be.
    pub fn margin(self, margin: f64) -> Result<Self> {
        within("TripletMarginWithDistanceLoss", "margin", margin, margin > 0.0, "above 0")?;
        Ok(Self { margin, ..self })
    }

    /// Whether the distance from positive to negative counts if it is the smaller.
    pub fn swap(self, swap: bool) -> Result<Self> {
        Ok(Self { swap, ..self })
    }
}

impl Default for TripletMarginWithDistanceLoss {
    /// By Euclidean distance.
    fn default() -> Self {
        Self::new(|a, b| a.pairwise_distance(b, 2.0, 1e-6, false))
    }
}

impl Forward<(Tensor, Tensor, Tensor)> for TripletMarginWithDistanceLoss {
    type Output = Tensor;

    fn forward(&self, (anchor, positive, negative): (&Tensor, &Tensor, &Tensor)) -> Result<Tensor> {
        let Self { distance, margin, swap, reduction, .. } = self;
        let triplet = [anchor, positive, negative];
        functional::triplet_margin_with_distance_loss(triplet, distance, *margin, *swap, *reduction)
    }
}
