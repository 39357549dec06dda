//! A last layer and its cross-entropy in one.

use super::{Reduction, given};
use crate::check::{positive, within};
use crate::{Buffer, Forward, Hooks, Linear, Module};
use cresset_tensor::ops::ClassLoss;
use cresset_tensor::{Cause, Error, Result, Tensor};

/// The cross-entropy of a linear layer's scores: called with features `[samples, in_features]` or
/// `[in_features]`, and targets.
#[derive(Module)]
pub struct LinearCrossEntropyLoss {
    /// From features to the scores of all classes, of each place in `out_features`.
    pub linear: Linear,
    weight: Option<Buffer>,
    #[module(skip)]
    out_features: Vec<usize>,
    #[module(skip)]
    reduction: Reduction,
    in_features: usize,
    num_classes: usize,
    #[module(skip)]
    ignore_index: Option<i64>,
    label_smoothing: f64,
    hooks: Hooks,
}

const NAME: &str = "LinearCrossEntropyLoss";

impl LinearCrossEntropyLoss {
    /// Scores of `num_classes` from `in_features`, without a bias.
    pub fn new(in_features: usize, num_classes: usize) -> Result<Self> {
        positive(NAME, &[("in_features", in_features), ("num_classes", num_classes)])?;
        Ok(Self {
            linear: Linear::new(in_features, num_classes)?.bias(false)?,
            weight: None,
            out_features: Vec::new(),
            reduction: Reduction::Mean,
            in_features,
            num_classes,
            ignore_index: None,
            label_smoothing: 0.0,
            hooks: Hooks::default(),
        })
    }

    /// The places that have a class each, as dimensions; none for one class per sample.
    pub fn out_features(self, sizes: &[usize]) -> Result<Self> {
        let scores = sizes.iter().product::<usize>() * self.num_classes;
        positive(NAME, &[("the product of out_features", scores)])?;
        let linear = Linear::new(self.in_features, scores)?.bias(self.linear.bias.is_some())?;
        Ok(Self { linear, out_features: sizes.to_vec(), ..self })
    }

    /// With a bias, or without.
    pub fn bias(self, bias: bool) -> Result<Self> {
        Ok(Self { linear: self.linear.bias(bias)?, ..self })
    }

    /// What becomes of the losses of single samples: their mean unless said otherwise.
    pub fn reduction(self, reduction: Reduction) -> Result<Self> {
        Ok(Self { reduction, ..self })
    }

    /// What each class weighs.
    pub fn weight(self, weight: &Tensor) -> Result<Self> {
        if weight.shape() != [self.num_classes] {
            let text = format_args!("weight is {:?}, expected [{}]", weight.shape(), self.num_classes);
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        Ok(Self { weight: Some(Buffer::new(weight.detach()?)), ..self })
    }

    /// Samples of this class do not count.
    pub fn ignore_index(self, ignore_index: i64) -> Result<Self> {
        Ok(Self { ignore_index: Some(ignore_index), ..self })
    }

    /// The share of the target that is spread over all classes.
    pub fn label_smoothing(self, label_smoothing: f64) -> Result<Self> {
        let allowed = (0.0..=1.0).contains(&label_smoothing);
        within(NAME, "label_smoothing", label_smoothing, allowed, "from 0 to 1")?;
        Ok(Self { label_smoothing, ..self })
    }

    /// The scores as `[samples, classes, ..]`.
    fn scores(&self, input: &Tensor) -> Result<Tensor> {
        if !(1..=2).contains(&input.dim()) || input.shape().last() != Some(&self.in_features) {
            let text = format_args!(
                "input is {:?}, expected [samples, {1}] or [{1}]",
                input.shape(),
                self.in_features
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let mut shape = input.shape()[..input.dim() - 1].to_vec();
        shape.push(self.num_classes);
        shape.extend(&self.out_features);
        self.linear.call(input)?.reshape(shape)
    }
}

impl Forward<(Tensor, Tensor)> for LinearCrossEntropyLoss {
    type Output = Tensor;

    fn forward(&self, (input, target): (&Tensor, &Tensor)) -> Result<Tensor> {
        let weight = given(&self.weight);
        let how = ClassLoss {
            weight: weight.as_ref(),
            reduction: self.reduction,
            ignore_index: self.ignore_index.unwrap_or(-100),
            label_smoothing: self.label_smoothing,
        };
        self.scores(input)?.cross_entropy_with(target, how)
    }
}
