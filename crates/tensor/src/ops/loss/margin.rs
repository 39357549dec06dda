//! Losses that ask for a margin between what belongs together and what does not.

use super::{Reduction, reduction_number, share};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::{self, kernel_table};
use crate::ops::check_float;
use crate::{
    Backward, Cause, DType, Error, Forward, Grads, Inputs, Kernel, Op, Result, Spec, Tensor, composite, grads,
};
use cresset_dispatch::observe::{Argument, Span};
use cresset_kernels::loss;

/// Tells observers of a loss with a margin.
fn margin_span<I: Inputs>(name: &'static str, inputs: I, margin: f64, reduction: Reduction) -> Option<Span> {
    composite(name, inputs, |visit| {
        visit(Argument::Float(margin));
        visit(Argument::Int(reduction_number(reduction)));
    })
}

/// `log(1 + e^(-x y))` for targets `y` of 1 and -1.
#[derive(Clone, Debug)]
pub struct SoftMarginLoss {
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

impl Op for SoftMarginLoss {
    const NAME: &'static str = "aten::soft_margin_loss";
    const BACKWARD: &'static str = "SoftMarginLossBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, target) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; {
            let _span = composite("aten::soft_margin_loss_backward", [ctx.grad(), x, target], |visit| {
                visit(Argument::Int(reduction_number(self.reduction)));
            });
            // -y / (1 + e^(x y))
            let slope = target.neg()?.mul(&x.mul(target)?.neg()?.sigmoid()?)?;
            let share = share(self.reduction, slope.numel());
            slope.mul(ctx.grad())?.mul(share)?
        })
    }

    fn arguments(&self, [x, target]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

impl Forward for SoftMarginLoss {
    fn forward(&self, [x, target]: [&Tensor; 2]) -> Result<Tensor> {
        check_float(Self::NAME, x)?;
        target.neg()?.mul(x)?.exp()?.log1p()?.reduced(self.reduction)
    }
}

/// How far the right classes of samples, several each, lie above the wrong ones.
#[derive(Clone, Debug)]
pub struct MultilabelMarginLoss {
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
}

/// Checks scores `[samples, classes]` and targets alike, and how many samples there are.
fn check_labels(op: &'static str, x: &Tensor, target: &Tensor) -> Result<usize> {
    check_float(op, x)?;
    match x.shape() {
        &[samples, classes] if classes > 0 && target.shape() == x.shape() && target.dtype() == DType::I64 => {
            Ok(samples)
        }
        shape => {
            let text = format_args!(
                "expects scores of [samples, classes] and as many targets of i64, not {shape:?} and {} {:?}",
                target.dtype(),
                target.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

fn no_class(op: &'static str) -> impl FnOnce(cresset_kernels::OutOfRange) -> Error {
    move |error| Error::new(Cause::Index, op, format_args!("target {error}"))
}

impl Op for MultilabelMarginLoss {
    const NAME: &'static str = "aten::multilabel_margin_loss_forward";
    const BACKWARD: &'static str = "MultilabelMarginLossBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let gradient = MultilabelMarginLossBackward { reduction: self.reduction };
        grads!(ctx; gradient.call([ctx.grad(), ctx.saved(0), ctx.saved(1)])?)
    }

    fn arguments(&self, [x, target]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

impl Kernel for MultilabelMarginLoss {
    kernel_table!(MultilabelMarginLoss);

    fn infer(&self, [x, target]: [&Tensor; 2]) -> Result<Spec> {
        let samples = check_labels(Self::NAME, x, target)?;
        let shape: &[usize] = if self.reduction == Reduction::None { &[samples] } else { &[] };
        Ok(Spec::new(shape, x.dtype()))
    }

    fn cpu(&self, [x, target]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, aiming, mut writing) = (x.read(), target.read(), out.write());
        let (x, target) = (x.elements(&reading), target.elements(&aiming));
        loss::multilabel_margin(x, target, self.reduction, out.elements_mut(&mut writing))
            .map_err(no_class(Self::NAME))
    }
}

/// The losses of samples made of other operators, where a device has no kernel for them.
fn multilabel_pieces(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    // A sample's classes end where the first negative one stands.
    let is_class = target.ge(0)?.to_dtype(DType::I64)?.cumprod(1, None)?.ne(0)?;
    let classes = target.masked_fill(&is_class.logical_not()?, 0)?;
    let listed = is_class.to_dtype(DType::I64)?;
    let is_right = listed.zeros_like()?.scatter_add(1, &classes, &listed)?.ne(0)?;
    let lacks = x.gather(1, &classes)?.unsqueeze(2)?.sub(&x.unsqueeze(1)?)?.rsub(1)?.clamp_min(0)?;
    let counts = is_class.unsqueeze(2)?.logical_and(&is_right.logical_not()?.unsqueeze(1)?)?;
    let sums = lacks.mul(&counts.to_dtype(x.dtype())?)?.sum_dims(&[1, 2], false)?;
    sums.div(x.shape()[1] as f64)
}

/// The gradient of [`MultilabelMarginLoss`].
#[derive(Clone, Debug)]
pub struct MultilabelMarginLossBackward {
    /// As in [`MultilabelMarginLoss`].
    pub reduction: Reduction,
}

impl Op for MultilabelMarginLossBackward {
    const NAME: &'static str = "aten::multilabel_margin_loss_backward";
    const BACKWARD: &'static str = "NotImplemented";
    /// The gradient, the scores, the targets.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;
}

impl Kernel for MultilabelMarginLossBackward {
    kernel_table!(MultilabelMarginLossBackward);

    fn infer(&self, [grad, x, target]: [&Tensor; 3]) -> Result<Spec> {
        let samples = check_labels(Self::NAME, x, target)?;
        let expected = if self.reduction == Reduction::None { samples } else { 1 };
        if grad.numel() != expected || grad.dtype() != x.dtype() {
            let text = format_args!("gradient of {} {:?} for {samples} samples", grad.dtype(), grad.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, [grad, x, target]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        let (gradients, reading, aiming) = (grad.read(), x.read(), target.read());
        let mut writing = out.write();
        let (grad, x, target) = (grad.elements(&gradients), x.elements(&reading), target.elements(&aiming));
        loss::multilabel_margin_backward(grad, x, target, self.reduction, out.elements_mut(&mut writing))
            .map_err(no_class(Self::NAME))
    }
}

/// The options of [`Tensor::multi_margin_loss`].
#[derive(Clone, Copy, Debug)]
pub struct MultiMargin<'a> {
    /// Whether what is lacking is squared.
    pub squared: bool,
    /// How far the right class should lie above the others.
    pub margin: f64,
    /// What each class weighs.
    pub weight: Option<&'a Tensor>,
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
}

impl Default for MultiMargin<'_> {
    /// The mean of what lacks to a margin of 1; all classes weigh the same.
    fn default() -> Self {
        MultiMargin { squared: false, margin: 1.0, weight: None, reduction: Reduction::Mean }
    }
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

/// Scores of one sample or several as `[samples, classes]`.
fn samples(op: &'static str, x: &Tensor) -> Result<Tensor> {
    match x.shape() {
        [] => x.reshape([1, 1]),
        &[classes] if classes > 0 => x.reshape([1, classes]),
        &[_, classes] if classes > 0 => Ok(x.clone()),
        shape => {
            let text = format_args!("expects scores of [classes] or [samples, classes], not {shape:?}");
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

impl Tensor {
    /// `log(1 + e^(-x y))` for targets `y` of 1 and -1.
    pub fn soft_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        SoftMarginLoss { reduction }.call([self, target])
    }

    /// These distances where the target is 1, and what they lack to the margin where it is -1.
    pub fn hinge_embedding_loss(&self, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Tensor> {
        const NAME: &str = "aten::hinge_embedding_loss";
        let _span = margin_span(NAME, [self, target], margin, reduction);
        if let Some(cast) =
            autocast::casting(NAME, [self, target], |[x, y]| x.hinge_embedding_loss(y, margin, reduction))
        {
            return cast;
        }
        let lacking = target.ne(1)?.choose(&self.rsub(margin)?.clamp_min(0)?, 0)?;
        lacking.add(&target.ne(-1)?.choose(self, 0)?)?.reduced(reduction)
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
        target.neg()?.mul(&self.sub(other)?)?.add(margin)?.clamp_min(0)?.reduced(reduction)
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
        let over = [dim as isize];
        let product = |a: &Tensor, b: &Tensor| a.mul(b)?.sum_dims(&over, false);
        let length = product(self, self)?.add(1e-12)?.mul(&product(other, other)?.add(1e-12)?)?.sqrt()?;
        let cosine = product(self, other)?.div(&length)?;
        let together = target.eq(1)?.choose(&cosine.rsub(1)?, 0)?;
        let apart = target.eq(-1)?.choose(&cosine.sub(margin)?.clamp_min(0)?, 0)?;
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
            far = far.minimum(&distance(positive, negative)?)?;
        }
        near.add(how.margin)?.sub(&far)?.clamp_min(0)?.reduced(how.reduction)
    }

    /// What the `target` class lacks to lie a margin above each other one, as a mean over classes.
    pub fn multi_margin_loss(&self, target: &Tensor, how: MultiMargin<'_>) -> Result<Tensor> {
        const NAME: &str = "aten::multi_margin_loss";
        let _span = composite(NAME, ([self, target], how.weight), |visit| {
            visit(Argument::Int(if how.squared { 2 } else { 1 }));
            visit(Argument::Float(how.margin));
            visit(Argument::Int(reduction_number(how.reduction)));
        });
        let again = |([x, target], weight): ([&Tensor; 2], Option<&Tensor>)| {
            x.multi_margin_loss(target, MultiMargin { weight, ..how })
        };
        if let Some(cast) = autocast::casting(NAME, ([self, target], how.weight), again) {
            return cast;
        }
        let x = samples(NAME, self)?;
        let (count, classes) = (x.shape()[0], x.shape()[1]);
        if target.dim() > 1 || target.numel() != count || target.dtype() != DType::I64 {
            let text = format_args!(
                "expects a target of i64 for each of {count} samples, not {} {:?}",
                target.dtype(),
                target.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let column = target.reshape([count, 1])?;
        let lacking = x.sub(&x.gather(1, &column)?)?.add(how.margin)?.relu()?;
        let mut losses = if how.squared { lacking.mul(&lacking)? } else { lacking };
        if let Some(weight) = how.weight {
            if weight.shape() != [classes] {
                let text = format_args!("expects a weight of shape [{classes}], not {:?}", weight.shape());
                return Err(Error::new(Cause::Shape, NAME, text));
            }
            losses = losses.mul(&weight.index_select(0, &target.reshape([count])?)?.unsqueeze(1)?)?;
        }
        let own = Tensor::arange(classes)?.to(self.device())?.eq(&column)?;
        let losses = own.choose(0, &losses)?.sum_dims(&[1], false)?.div(classes as f64)?;
        match how.reduction {
            Reduction::None if target.dim() == 0 => losses.squeeze_dim(0),
            reduction => losses.reduced(reduction),
        }
    }

    /// What right classes lack to lie 1 above wrong ones, as a mean over classes. Of each sample, the
    /// classes in front of the first -1 in its `target` are right.
    pub fn multilabel_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        const NAME: &str = "aten::multilabel_margin_loss";
        let _span = composite(NAME, [self, target], |visit| {
            visit(Argument::Int(reduction_number(reduction)));
        });
        if let Some(cast) =
            autocast::casting(NAME, [self, target], |[x, y]| x.multilabel_margin_loss(y, reduction))
        {
            return cast;
        }
        if self.shape() != target.shape() {
            let text = format_args!(
                "expects as many targets as scores, not {:?} and {:?}",
                self.shape(),
                target.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let (x, target) = (samples(NAME, self)?, samples(NAME, target)?);
        let loss = if op::is_served::<MultilabelMarginLoss>(x.device()) {
            MultilabelMarginLoss { reduction }.call([&x, &target])?
        } else {
            check_labels(NAME, &x, &target)?;
            multilabel_pieces(&x, &target)?.reduced(reduction)?
        };
        if reduction == Reduction::None && self.dim() < 2 { loss.squeeze_dim(0) } else { Ok(loss) }
    }

    /// The cross-entropy of the sigmoid of each score with the `target`, as a mean over classes, the last
    /// dimension.
    pub fn multilabel_soft_margin_loss(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let Some(&classes) = self.shape().last() else {
            let text = "expects scores of at least one dimension";
            return Err(Error::new(Cause::Shape, "multilabel_soft_margin_loss", text));
        };
        let right = target.mul(&self.logsigmoid()?)?;
        let wrong = target.rsub(1)?.mul(&self.neg()?.logsigmoid()?)?;
        let losses = right.add(&wrong)?.neg()?;
        let losses = weight.map_or_else(|| Ok(losses.clone()), |weight| losses.mul(weight))?;
        losses.sum_dims(&[-1], false)?.div(classes as f64)?.reduced(reduction)
    }
}
