//! The loss of very many classes, of which few are frequent.

use crate::check::{positive, refused, within};
use crate::{Forward, Hooks, Linear, Module, Sequential};
use cresset_tensor::{Cause, DType, Error, Result, Tensor};

const NAME: &str = "AdaptiveLogSoftmaxWithLoss";

/// Classes in clusters, the frequent ones first: those below the first cutoff have scores of their own, and
/// each later cluster one score together, and a layer of its own that is asked only where it matters.
///
/// Called with samples `[samples, in_features]` or `[in_features]` and their classes; gives the
/// log-probability of each, and the loss: the negative mean.
///
/// ```
/// use cresset_nn::{AdaptiveLogSoftmaxWithLoss, Forward, Tensor};
///
/// let loss = AdaptiveLogSoftmaxWithLoss::new(16, 1000, [10, 100])?;
/// let (x, classes) = (Tensor::randn([3, 16], ())?, Tensor::new([4i64, 70, 999])?);
/// let (log_probs, mean) = loss.call((&x, &classes))?;
/// assert_eq!((log_probs.shape(), mean.shape()), (&[3][..], &[][..]));
/// assert_eq!(loss.log_prob(&x)?.shape(), [3, 1000]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct AdaptiveLogSoftmaxWithLoss {
    /// Scores of the frequent classes, and of the clusters.
    pub head: Linear,
    /// Scores of the classes of each cluster, by way of fewer and fewer numbers.
    pub tail: Vec<Sequential>,
    in_features: usize,
    /// Where clusters begin, and how many classes there are.
    cutoffs: Vec<usize>,
    hooks: Hooks,
}

impl AdaptiveLogSoftmaxWithLoss {
    /// `n_classes` in clusters that begin at `cutoffs`.
    ///
    /// # Errors
    /// If there are no cutoffs, or they do not rise from at least 1 to less than `n_classes`.
    pub fn new(in_features: usize, n_classes: usize, cutoffs: impl Into<Vec<usize>>) -> Result<Self> {
        positive(NAME, &[("in_features", in_features), ("n_classes", n_classes)])?;
        let mut cutoffs = cutoffs.into();
        let rising = cutoffs.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = cutoffs.first().is_some_and(|&first| first > 0)
            && cutoffs.last().is_some_and(|&last| last < n_classes);
        if !rising || !inside {
            let text = format_args!(
                "cutoffs are {cutoffs:?}, expected rising ones from 1 to {}",
                n_classes.saturating_sub(1)
            );
            return Err(refused(NAME, text));
        }
        let head = Linear::new(in_features, cutoffs[0] + cutoffs.len())?.bias(false)?;
        cutoffs.push(n_classes);
        Self { head, tail: Vec::new(), in_features, cutoffs, hooks: Hooks::default() }.div_value(4.0)
    }

    /// How many times fewer numbers each cluster has than the one before; 4 at first. Clusters start anew. As in
    /// torch, one that is left without any number takes its classes for equally likely.
    ///
    /// # Errors
    /// If it is not above 0.
    pub fn div_value(mut self, div_value: f64) -> Result<Self> {
        within(NAME, "div_value", div_value, div_value > 0.0 && div_value.is_finite(), "above 0")?;
        let cluster = |i: usize| {
            let width = (self.in_features as f64 / div_value.powi(i as i32 + 1)).floor() as usize;
            let classes = self.cutoffs[i + 1] - self.cutoffs[i];
            let layer = |from, to| Linear::of_any_size(from, to)?.bias(false);
            Ok(Sequential::new().push(layer(self.in_features, width)?).push(layer(width, classes)?))
        };
        self.tail = (0..self.cutoffs.len() - 1).map(cluster).collect::<Result<_>>()?;
        Ok(self)
    }

    /// Whether the scores of frequent classes and clusters have a bias; not at first.
    pub fn head_bias(self, bias: bool) -> Result<Self> {
        Ok(Self { head: self.head.bias(bias)?, ..self })
    }

    /// The log-probabilities of all classes, `[samples, n_classes]`.
    ///
    /// # Errors
    /// For samples of another size.
    pub fn log_prob(&self, input: &Tensor) -> Result<Tensor> {
        self.check_rank(input, &[2])?;
        self.all_classes(input, &self.head.call(input)?)
    }

    /// The most likely class of each sample.
    ///
    /// # Errors
    /// For samples of another size.
    pub fn predict(&self, input: &Tensor) -> Result<Tensor> {
        self.check_rank(input, &[2])?;
        let scores = self.head.call(input)?;
        let best = scores.argmax(1, false)?;
        // Only where a cluster is most likely, its classes are looked at.
        let rows = rows_of(&best.ge(self.cutoffs[0] as i64)?)?;
        if rows.numel() == 0 {
            return Ok(best);
        }
        let all = self.all_classes(&input.index_select(0, &rows)?, &scores.index_select(0, &rows)?)?;
        best.index_copy(0, &rows, &all.argmax(1, false)?)
    }

    fn all_classes(&self, input: &Tensor, scores: &Tensor) -> Result<Tensor> {
        let (head, frequent) = (scores.log_softmax(1)?, self.cutoffs[0]);
        let mut parts = vec![head.narrow(1, 0, frequent)?];
        for (i, cluster) in self.tail.iter().enumerate() {
            let shares = cluster.call(input)?.log_softmax(1)?;
            parts.push(shares.add(&head.narrow(1, (frequent + i) as isize, 1)?)?);
        }
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1)
    }

    fn check_rank(&self, input: &Tensor, ranks: &[usize]) -> Result<()> {
        crate::check::rank(NAME, input, ranks)?;
        crate::check::size(NAME, "features", input, input.dim() - 1, self.in_features)
    }

    fn check(&self, input: &Tensor, target: &Tensor) -> Result<()> {
        self.check_rank(input, &[1, 2])?;
        if target.shape() != &input.shape()[..input.dim() - 1] {
            let text = format_args!(
                "target is {:?}, expected a class for each sample of {:?}",
                target.shape(),
                input.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        if target.dtype().is_float() || target.dtype() == DType::Bool {
            let text = format_args!("target is of {}, expected integers", target.dtype());
            return Err(Error::new(Cause::DType, NAME, text));
        }
        let classes = *self.cutoffs.last().unwrap_or(&0);
        let outside = target.lt(0)?.logical_or(&target.ge(classes as i64)?)?;
        if outside.any()?.item()?.as_f64() != 0.0 {
            let text = format_args!("a class is outside of 0 to {}", classes - 1);
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        Ok(())
    }
}

/// Where a mask of one dimension is true.
fn rows_of(mask: &Tensor) -> Result<Tensor> {
    mask.nonzero()?.squeeze_dim(1)
}

impl Forward<(Tensor, Tensor)> for AdaptiveLogSoftmaxWithLoss {
    type Output = (Tensor, Tensor);

    fn forward(&self, (input, target): (&Tensor, &Tensor)) -> Result<(Tensor, Tensor)> {
        self.check(input, target)?;
        if input.dim() == 1 {
            let (log_probs, loss) = self.forward((&input.unsqueeze(0)?, &target.unsqueeze(0)?))?;
            return Ok((log_probs.squeeze_dim(0)?, loss));
        }
        let head = self.head.call(input)?.log_softmax(1)?;
        // Each sample's column of the head, and what its cluster adds to that.
        let mut column = target.copy()?;
        let mut inside = Tensor::zeros([target.numel()], (input.dtype(), input.device()))?;
        for (i, cluster) in self.tail.iter().enumerate() {
            let (first, end) = (self.cutoffs[i] as i64, self.cutoffs[i + 1] as i64);
            let rows = rows_of(&target.ge(first)?.logical_and(&target.lt(end)?)?)?;
            if rows.numel() == 0 {
                continue;
            }
            let shares = cluster.call(&input.index_select(0, &rows)?)?.log_softmax(1)?;
            let place = target.index_select(0, &rows)?.sub(first)?.unsqueeze(1)?;
            inside = inside.index_copy(0, &rows, &shares.gather(1, &place)?.squeeze_dim(1)?)?;
            column = column.index_fill(0, &rows, (self.cutoffs[0] + i) as i64)?;
        }
        let log_probs = inside.add(&head.gather(1, &column.unsqueeze(1)?)?.squeeze_dim(1)?)?;
        let loss = log_probs.neg()?.mean()?;
        Ok((log_probs, loss))
    }
}
