//! How far the right class of a sample, or several of them, lies above the wrong ones.

use super::{Reduction, reduction_number};
use crate::autograd::{self, Pass, Saves};
use crate::op::{self, kernel_table};
use crate::ops::check_float;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, Key, MemoryFormat, Op, Result, Spec, Tensor,
    autocast, composite, grads, shown,
};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::Argument;
use cresset_kernels::loss::{self, ClassMargin};

/// How far the right classes of samples, several each, lie above the wrong ones; and where the right ones are.
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
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let gradient = MultilabelMarginLossBackward { reduction: self.reduction };
        grads!(ctx; gradient.call([ctx.grad(), ctx.saved(0), ctx.saved(1), ctx.saved(3)])?)
    }

    fn arguments(&self, [x, target]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

/// Shows how torch looks whether all of these are in range.
fn show_range(of: &Tensor) -> Result<()> {
    of.min()?.item()?;
    of.max()?.item().map(drop)
}

impl Kernel for MultilabelMarginLoss {
    kernel_table!(MultilabelMarginLoss);

    fn infer(&self, [x, target]: [&Tensor; 2]) -> Result<[Spec; 2]> {
        let samples = check_labels(Self::NAME, x, target)?;
        let shape: &[usize] = if self.reduction == Reduction::None { &[samples] } else { &[] };
        Ok([Spec::new(shape, x.dtype()), Spec::like(x)])
    }

    fn shown(&self, [x, target]: [&Tensor; 2]) -> Result<Option<[Tensor; 2]>> {
        let [spec, _] = self.infer([x, target])?;
        let empties = [shown::empty_output(x.dtype())?, shown::empty_output(x.dtype())?];
        let out = shown::grown(&empties[0], &spec.shape, Argument::None)?;
        let right = shown::grown_as(&empties[1], target, Argument::None)?;
        right.zero_()?;
        show_range(target)?;
        let outputs = [out, right];
        self.fill([x, target], &outputs, Device::CPU)?;
        Ok(Some(outputs))
    }

    fn cpu(&self, [x, target]: [&Tensor; 2], [out, right]: &[Tensor; 2]) -> Result<()> {
        let (reading, aiming) = (x.read(), target.read());
        let (mut writing, mut marking) = (out.write(), right.write());
        let (x, target) = (x.elements(&reading), target.elements(&aiming));
        let outs = (out.elements_mut(&mut writing), right.elements_mut(&mut marking));
        loss::multilabel_margin(x, target, self.reduction, outs).map_err(no_class(Self::NAME))
    }
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
    /// The gradient, the scores, the targets, and where the right ones are.
    type Inputs<'a> = [&'a Tensor; 4];
    type Output = Tensor;

    fn arguments(&self, [grad, x, target, right]: [&Tensor; 4], visit: &mut dyn FnMut(Argument<'_>)) {
        [grad, x, target].iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Int(reduction_number(self.reduction)));
        visit(Argument::Tensor(right.argument()));
    }
}

impl Kernel for MultilabelMarginLossBackward {
    kernel_table!(MultilabelMarginLossBackward);

    fn infer(&self, [grad, x, target, _]: [&Tensor; 4]) -> Result<Spec> {
        let samples = check_labels(Self::NAME, x, target)?;
        let expected = if self.reduction == Reduction::None { samples } else { 1 };
        if grad.numel() != expected || grad.dtype() != x.dtype() {
            let text = format_args!("gradient of {} {:?} for {samples} samples", grad.dtype(), grad.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn shown(&self, inputs: [&Tensor; 4]) -> Result<Option<Tensor>> {
        let [_, x, target, right] = inputs;
        let out = x.zeros_like_with(MemoryFormat::Contiguous)?;
        shown::within("aten::resize_as_", [&out, x], &[Argument::None], || {
            shown::resized(&out, x.shape(), Argument::None).map(|()| out.clone())
        })?;
        out.zero_()?;
        show_range(target)?;
        show_range(right)?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, [grad, x, target, _]: [&Tensor; 4], out: &Tensor) -> Result<()> {
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

/// What the right class of a sample lacks to lie a margin above each other one: for scores, targets and a
/// weight per class, on the host.
#[derive(Clone, Debug)]
pub struct MultiMarginLoss {
    /// How far, and how it counts.
    pub margin: ClassMargin,
}

type Operands<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);

impl MultiMarginLoss {
    fn visit(&self, weight: Option<&Tensor>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(if self.margin.squared { 2 } else { 1 }));
        visit(Argument::Float(self.margin.margin));
        visit(weight.map_or(Argument::None, |weight| Argument::Tensor(weight.argument())));
        visit(Argument::Int(reduction_number(self.margin.reduction)));
    }

    /// The same options for a loss made of other operators.
    fn options<'a>(&self, weight: Option<&'a Tensor>) -> MultiMargin<'a> {
        let ClassMargin { margin, squared, reduction } = self.margin;
        MultiMargin { squared, margin, weight, reduction }
    }
}

impl Op for MultiMarginLoss {
    const NAME: &'static str = MULTI_MARGIN;
    const BACKWARD: &'static str = "MultiMarginLossBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Operands<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, target, weight) = (ctx.saved(0), ctx.saved(1), ctx.optional(2));
        if !KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD) {
            let gradient = MultiMarginLossBackward(self.clone());
            return grads!(ctx; gradient.call(([ctx.grad(), x, target], weight))?);
        }
        // A gradient that is to have one itself is that of a loss made of operators.
        let loss = composed(x, target, self.options(weight))?;
        let pass = Pass { create_graph: true, retain_graph: true, allow_unused: true };
        Ok(Grads::from_vec(autograd::grad(&[(&loss, Some(ctx.grad()))], &[x], pass)?))
    }

    fn arguments(&self, ([x, target], weight): Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        self.visit(weight, visit);
    }
}

/// Scores as `[samples, classes]`, without a call.
fn by_sample(x: &Tensor) -> Tensor {
    let shape = match x.shape() {
        [] => [1, 1],
        &[classes] => [1, classes],
        _ => return x.clone(),
    };
    x.with_layout(x.layout().view(&shape).expect("a dimension of size 1 can be added anywhere"))
}

impl Kernel for MultiMarginLoss {
    kernel_table!(MultiMarginLoss);

    fn infer(&self, ([x, target], weight): Operands<'_>) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        check_classes(x, target, weight)?;
        let shape: &[usize] = if self.margin.reduction == Reduction::None { target.shape() } else { &[] };
        Ok(Spec::new(shape, x.dtype()))
    }

    fn shown(&self, inputs: Operands<'_>) -> Result<Option<Tensor>> {
        let spec = self.infer(inputs)?;
        let out = shown::grown(&shown::empty_output(spec.dtype)?, &spec.shape, Argument::None)?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, ([x, target], weight): Operands<'_>, out: &Tensor) -> Result<()> {
        let x = by_sample(x);
        let (reading, aiming, weighing) = (x.read(), target.read(), weight.map(Tensor::read));
        let weight = weight.zip(weighing.as_ref()).map(|(weight, reading)| weight.elements(reading));
        let (x, target) = (x.elements(&reading), target.elements(&aiming));
        let mut writing = out.write();
        loss::multi_margin(x, target, weight, self.margin, out.elements_mut(&mut writing))
            .map_err(no_class(Self::NAME))
    }
}

/// The gradient of [`MultiMarginLoss`] for the scores.
#[derive(Clone, Debug)]
pub struct MultiMarginLossBackward(pub MultiMarginLoss);

type BackwardOperands<'a> = ([&'a Tensor; 3], Option<&'a Tensor>);

impl Op for MultiMarginLossBackward {
    const NAME: &'static str = "aten::multi_margin_loss_backward";
    const BACKWARD: &'static str = "NotImplemented";
    /// The gradient, the scores, the targets, and a weight per class.
    type Inputs<'a> = BackwardOperands<'a>;
    type Output = Tensor;

    fn arguments(&self, (tensors, weight): BackwardOperands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        tensors.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        self.0.visit(weight, visit);
    }
}

impl Kernel for MultiMarginLossBackward {
    kernel_table!(MultiMarginLossBackward);

    fn infer(&self, ([grad, x, target], weight): BackwardOperands<'_>) -> Result<Spec> {
        let spec = self.0.infer(([x, target], weight))?;
        crate::ops::check_gradient(Self::NAME, grad, &spec)?;
        Ok(Spec::like(x))
    }

    fn shown(&self, inputs: BackwardOperands<'_>) -> Result<Option<Tensor>> {
        let ([_, x, _], _) = inputs;
        let out = shown::grown_as(&shown::empty_output(x.dtype())?, x, Argument::None)?;
        self.fill(inputs, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, ([grad, x, target], weight): BackwardOperands<'_>, out: &Tensor) -> Result<()> {
        let (x, out) = (by_sample(x), by_sample(out));
        let (gradients, reading, aiming) = (grad.read(), x.read(), target.read());
        let weighing = weight.map(Tensor::read);
        let weight = weight.zip(weighing.as_ref()).map(|(weight, reading)| weight.elements(reading));
        let (grad, x, target) = (grad.elements(&gradients), x.elements(&reading), target.elements(&aiming));
        let mut writing = out.write();
        loss::multi_margin_backward(grad, x, target, weight, self.0.margin, out.elements_mut(&mut writing))
            .map_err(no_class(Self::NAME))
    }
}

const MULTI_MARGIN: &str = "aten::multi_margin_loss";

/// Refuses scores, targets and weights that do not fit together; gives how many samples and classes there are.
fn check_classes(x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<[usize; 2]> {
    let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, MULTI_MARGIN, text));
    let [count, classes] = match x.shape() {
        [] => [1, 1],
        &[classes] if classes > 0 => [1, classes],
        &[count, classes] if classes > 0 => [count, classes],
        shape => {
            return refused(format_args!("expects scores of [classes] or [samples, classes], not {shape:?}"));
        }
    };
    if target.dim() > 1 || target.numel() != count || target.dtype() != DType::I64 {
        return refused(format_args!(
            "expects a target of i64 for each of {count} samples, not {} {:?}",
            target.dtype(),
            target.shape()
        ));
    }
    match weight {
        Some(weight) if weight.shape() != [classes] || weight.dtype() != x.dtype() => refused(format_args!(
            "expects a weight of {} and shape [{classes}], not {} {:?}",
            x.dtype(),
            weight.dtype(),
            weight.shape()
        )),
        _ => Ok([count, classes]),
    }
}

/// The loss made of other operators: for devices without a kernel, and for gradients of gradients.
fn composed(x: &Tensor, target: &Tensor, how: MultiMargin<'_>) -> Result<Tensor> {
    let [count, classes] = check_classes(x, target, how.weight)?;
    let x = x.reshape([count, classes])?;
    let column = target.reshape([count, 1])?;
    let lacking = x.sub(&x.gather(1, &column)?)?.add(how.margin)?.relu()?;
    let mut losses = if how.squared { lacking.mul(&lacking)? } else { lacking };
    if let Some(weight) = how.weight {
        losses = losses.mul(&weight.index_select(0, &target.reshape([count])?)?.unsqueeze(1)?)?;
    }
    let own = Tensor::arange(classes)?.to(x.device())?.eq(&column)?;
    let losses = own.choose(0, &losses)?.sum_dims(&[1], false)?.div(classes as f64)?;
    match how.reduction {
        Reduction::None => losses.reshape(target.shape()),
        reduction => losses.reduced(reduction),
    }
}

impl Tensor {
    /// What the `target` class lacks to lie a margin above each other one, as a mean over classes.
    pub fn multi_margin_loss(&self, target: &Tensor, how: MultiMargin<'_>) -> Result<Tensor> {
        let inputs = ([self, target], how.weight);
        let again =
            |([x, target], weight): Operands<'_>| x.multi_margin_loss(target, MultiMargin { weight, ..how });
        if let Some(cast) = autocast::casting(MULTI_MARGIN, inputs, again) {
            return cast;
        }
        if !self.device().is_cpu() {
            return composed(self, target, how);
        }
        let margin = ClassMargin { margin: how.margin, squared: how.squared, reduction: how.reduction };
        MultiMarginLoss { margin }.call(inputs)
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
        if self.shape() != target.shape() || self.dim() > 2 {
            let text = format_args!(
                "expects [classes] or [samples, classes] of scores, and as many targets, not {:?} and {:?}",
                self.shape(),
                target.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        if self.dim() == 2 {
            return multilabel(self, target, reduction);
        }
        let row = |x: &Tensor| x.reshape([1, x.numel()]);
        let loss = multilabel(&row(self)?, &row(target)?, reduction)?;
        if reduction == Reduction::None { loss.squeeze_dim(0) } else { Ok(loss) }
    }
}

/// The loss of `[samples, classes]` of scores.
fn multilabel(x: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    if op::is_served::<MultilabelMarginLoss>(x.device()) {
        let [loss, _] = MultilabelMarginLoss { reduction }.call([x, target])?;
        return Ok(loss);
    }
    check_labels(MultilabelMarginLoss::NAME, x, target)?;
    multilabel_pieces(x, target)?.reduced(reduction)
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
