//! Losses that ask for a margin between what belongs together and what does not.

use super::{Reduction, reduction_number};
use crate::autocast;
use crate::{Cause, Error, Inputs, MemoryFormat, Result, Tensor, composite, shown};
use cresset_dispatch::observe::{Argument, Span};

/// Tells observers of a loss with a margin.
fn margin_span<I: Inputs>(name: &'static str, inputs: I, margin: f64, reduction: Reduction) -> Option<Span> {
    composite(name, inputs, |visit| {
        visit(Argument::Float(margin));
        visit(Argument::Int(reduction_number(reduction)));
    })
}

/// The options of [`Tensor::triplet_margin_loss`].
#[derive(Clone, Copy, Debug)]
pub struct TripletMargin {
    /// How much farther negatives should be.
    pub margin: f64,
    /// The order of the norm that distances are.
    pub p: f64,
    /// What is added to each difference.
    pub epsilon: f64,
    /// Whether the distance from positive to negative counts if it is the smaller.
    pub swap: bool,
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
}

impl Default for TripletMargin {
    /// The mean of what lacks to a margin of 1, by Euclidean distance.
    fn default() -> Self {
        TripletMargin { margin: 1.0, p: 2.0, epsilon: 1e-6, swap: false, reduction: Reduction::Mean }
    }
}

impl Tensor {
    /// These distances where the target is 1, and what they lack to the margin where it is -1.
    pub fn hinge_embedding_loss(&self, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Tensor> {
        const NAME: &str = "aten::hinge_embedding_loss";
        let _span = margin_span(NAME, [self, target], margin, reduction);
        if let Some(cast) =
            autocast::casting(NAME, [self, target], |[x, y]| x.hinge_embedding_loss(y, margin, reduction))
        {
            return cast;
        }
        let zeros = self.zeros_like_with(MemoryFormat::Contiguous)?;
        let lacking = shown::less(margin, self)?;
        lacking.clamp_min_(0)?;
        let apart = target.ne(1)?.choose(&lacking, &zeros)?;
        let together = target.ne(-1)?.choose(self, &zeros)?;
        apart.add(&together)?.reduced(reduction)
    }

    /// What this lacks to lie `margin` above `other` where the target is 1, below it where it is -1.
    pub fn margin_ranking_loss(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::margin_ranking_loss";
        let inputs = [self, other, target];
        let _span = margin_span(NAME, inputs, margin, reduction);
        if let Some(cast) =
            autocast::casting(NAME, inputs, |[a, b, y]| a.margin_ranking_loss(b, y, margin, reduction))
        {
            return cast;
        }
        if self.dim() != other.dim() || self.dim() != target.dim() {
            let text = format_args!(
                "expects as many dimensions of all, not {:?}, {:?} and {:?}",
                self.shape(),
                other.shape(),
                target.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let difference = self.sub(other)?;
        let lacking = target.neg()?.mul(&difference)?.add(margin)?;
        lacking.clamp_min_(0)?;
        lacking.reduced(reduction)
    }

    /// One less the cosine between these vectors and the `other`, where the target is 1; where it is -1,
    /// by how much the cosine exceeds the margin.
    pub fn cosine_embedding_loss(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::cosine_embedding_loss";
        let inputs = [self, other, target];
        let _span = margin_span(NAME, inputs, margin, reduction);
        if let Some(cast) =
            autocast::casting(NAME, inputs, |[a, b, y]| a.cosine_embedding_loss(b, y, margin, reduction))
        {
            return cast;
        }
        let dim = target.dim();
        if dim > 1 || self.dim() != dim + 1 || other.dim() != dim + 1 {
            let text = format_args!(
                "expects vectors and a target, or rows of them and a target each, not {:?}, {:?} and {:?}",
                self.shape(),
                other.shape(),
                target.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        /// Keeps lengths from 0; in single precision, as torch has it.
        const LEAST: f64 = 1e-12f32 as f64;
        let over = [dim as isize];
        let product = |a: &Tensor, b: &Tensor| a.mul(b)?.sum_dims(&over, false);
        let cosine = product(self, other)?;
        let (own, others) = (product(self, self)?.add(LEAST)?, product(other, other)?.add(LEAST)?);
        let length = own.mul(&others)?;
        length.sqrt_()?;
        let cosine = cosine.div(&length)?;
        let zeros = cosine.zeros_like_with(MemoryFormat::Contiguous)?;
        let together = shown::less(1, &cosine)?;
        let apart = cosine.sub(margin)?;
        apart.clamp_min_(0)?;
        let together = target.eq(1)?.choose(&together, &zeros)?;
        let apart = target.eq(-1)?.choose(&apart, &zeros)?;
        together.add(&apart)?.reduced(reduction)
    }

    /// What lacks for these to be closer to `positive` than to `negative` by a margin.
    pub fn triplet_margin_loss(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        how: TripletMargin,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::triplet_margin_loss";
        let _span = composite(NAME, [self, positive, negative], |visit| {
            [how.margin, how.p, how.epsilon].into_iter().for_each(|number| visit(Argument::Float(number)));
            visit(Argument::Bool(how.swap));
            visit(Argument::Int(reduction_number(how.reduction)));
        });
        if let Some(cast) = autocast::casting(NAME, [self, positive, negative], |[x, near, far]| {
            x.triplet_margin_loss(near, far, how)
        }) {
            return cast;
        }
        if how.margin.is_nan() || how.margin <= 0.0 {
            let text = format_args!("expects a margin above 0, not {}", how.margin);
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        if self.dim() != positive.dim() || self.dim() != negative.dim() {
            let text = format_args!(
                "expects as many dimensions of all, not {:?}, {:?} and {:?}",
                self.shape(),
                positive.shape(),
                negative.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let distance = |a: &Tensor, b: &Tensor| a.pairwise_distance(b, how.p, how.epsilon, false);
        let (near, mut far) = (distance(self, positive)?, distance(self, negative)?);
        if how.swap {
            far = far.min_of(&distance(positive, negative)?)?;
        }
        near.add(how.margin)?.sub(&far)?.clamp_min(0)?.reduced(how.reduction)
    }
}
