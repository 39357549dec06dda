//! Negative log-likelihood of classes: of samples, and of the places of images.

use super::{ClassLoss, Reduction, reduction_number};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Device, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, loss};

/// Log-probabilities and classes, and a weight per class.
pub(super) type Samples<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);

/// The gradient, log-probabilities, classes and total weight, and a weight per class.
type Gradient<'a> = ([&'a Tensor; 4], Option<&'a Tensor>);

/// Where the host and torch differ in how they come to the same numbers.
struct Shows {
    forward: fn(&[Spec; 2]) -> Result<Option<[Tensor; 2]>>,
    backward: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

const OF_SAMPLES: Shows = Shows {
    forward: |_| Ok(None),
    backward: |x, target| {
        let out = Tensor::uninit(x.shape(), x.dtype(), Device::CPU)?;
        out.zero_()?;
        if target.dim() == 0 {
            target.unsqueeze(0)?;
        }
        Ok(out)
    },
};

const OF_IMAGES: Shows = Shows {
    forward: |[loss, total]| {
        let (_, total_from) = (shown::empty_output(loss.dtype)?, shown::empty_output(total.dtype)?);
        let out = Tensor::uninit(&loss.shape, loss.dtype, Device::CPU)?;
        Ok(Some([out, shown::grown(&total_from, &[], Argument::None)?]))
    },
    backward: |x, _| {
        let out = x.zeros_like()?;
        shown::within("aten::resize_as_", [&out, x], &[Argument::None], || {
            shown::resized(&out, x.shape(), Argument::None).map(|()| out.clone())
        })?;
        out.zero_()?;
        Ok(out)
    },
};

fn check_samples(
    op: &'static str,
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
) -> Result<(Dims, usize)> {
    let dim = usize::from(x.dim() > 1);
    let others: Dims =
        x.shape().iter().enumerate().filter(|&(at, _)| at != dim).map(|(_, &size)| size).collect();
    let Some(&classes) = x.shape().get(dim).filter(|_| others[..] == *target.shape()) else {
        let text = format_args!(
            "expects scores of [classes] or [samples, classes, ..] and targets of the same shape without \
             classes, not {:?} and {:?}",
            x.shape(),
            target.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    };
    if !x.dtype().is_float() || target.dtype() != DType::I64 {
        let text =
            format_args!("expects floats and targets of i64, not {} and {}", x.dtype(), target.dtype());
        return Err(Error::new(Cause::DType, op, text));
    }
    match weight {
        Some(weight) if weight.shape() != [classes] || weight.dtype() != x.dtype() => {
            let text = format_args!(
                "expects a weight of {} and shape [{classes}], not {} and {:?}",
                x.dtype(),
                weight.dtype(),
                weight.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
        _ => Ok((others, classes)),
    }
}

fn sample_arguments(
    ([x, target], weight): Samples<'_>,
    reduction: Reduction,
    ignore: i64,
    visit: &mut dyn FnMut(Argument<'_>),
) {
    visit(Argument::Tensor(x.argument()));
    visit(Argument::Tensor(target.argument()));
    visit(weight.map_or(Argument::None, |weight| Argument::Tensor(weight.argument())));
    visit(Argument::Int(reduction_number(reduction)));
    visit(Argument::Int(ignore));
}

fn out_of_range(op: &'static str, error: cresset_kernels::OutOfRange) -> Error {
    Error::new(Cause::Index, op, format_args!("target {error}"))
}

/// A loss and its gradient: what they and their nodes are called, and how they are shown.
macro_rules! likelihoods {
    ($($(#[$doc:meta])* $loss:ident: $name:literal, $node:literal;
        $(#[$back_doc:meta])* $back:ident: $back_name:literal, $back_node:literal, $shows:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $loss {
            /// What becomes of the losses of single samples.
            pub reduction: Reduction,
            /// Samples of this class do not count.
            pub ignore_index: i64,
        }

        impl Op for $loss {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $node;
            const SAVES: Saves = Saves::AndOutputsFrom(1);
            const DIFFERENTIABLE: usize = 1;
            type Inputs<'a> = Samples<'a>;
            type Output = [Tensor; 2];

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let (x, target, weight, total) = (ctx.saved(0), ctx.saved(1), ctx.optional(2), ctx.saved(4));
                let gradient = $back { reduction: self.reduction, ignore_index: self.ignore_index };
                grads!(ctx; gradient.call(([ctx.grad(), x, target, total], weight))?)
            }

            fn arguments(&self, inputs: Samples<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
                sample_arguments(inputs, self.reduction, self.ignore_index, visit);
            }
        }

        impl Kernel for $loss {
            kernel_table!($loss);

            fn infer(&self, ([x, target], weight): Samples<'_>) -> Result<[Spec; 2]> {
                let (samples, _) = check_samples(Self::NAME, x, target, weight)?;
                let shape: &[usize] = if self.reduction == Reduction::None { &samples } else { &[] };
                Ok([Spec::new(shape, x.dtype()), Spec::new([], x.dtype())])
            }

            fn shown(&self, inputs: Samples<'_>) -> Result<Option<[Tensor; 2]>> {
                let outputs = ($shows.forward)(&self.infer(inputs)?)?;
                if let Some(outputs) = &outputs {
                    self.fill(inputs, outputs, Device::CPU)?;
                }
                Ok(outputs)
            }

            fn cpu(&self, ([x, target], weight): Samples<'_>, [out, total]: &[Tensor; 2]) -> Result<()> {
                let (reading, targets, weights) = (x.read(), target.read(), weight.map(Tensor::read));
                let weights = weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading));
                let (mut writing, mut totalling) = (out.write(), total.write());
                loss::nll_loss(
                    x.elements(&reading),
                    target.elements(&targets),
                    weights,
                    self.reduction,
                    self.ignore_index,
                    out.elements_mut(&mut writing),
                    total.elements_mut(&mut totalling),
                )
                .map_err(|error| out_of_range(Self::NAME, error))
            }
        }

        $(#[$back_doc])*
        #[derive(Clone, Debug)]
        pub struct $back {
            /// What became of the losses of single samples.
            pub reduction: Reduction,
            /// Samples of this class did not count.
            pub ignore_index: i64,
        }

        impl Op for $back {
            const NAME: &'static str = $back_name;
            const BACKWARD: &'static str = $back_node;
            const SAVES: Saves = Saves::Inputs;
            type Inputs<'a> = Gradient<'a>;
            type Output = Tensor;

            /// The gradient is linear in `grad`: what comes back is the same weighted sum again.
            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let (target, weight) = (ctx.saved(2), ctx.optional(4));
                let loss = $loss { reduction: self.reduction, ignore_index: self.ignore_index };
                grads!(ctx;
                    { let [sum, _] = loss.call(([ctx.grad(), target], weight))?; sum },
                    ctx.grad().zeros_like()?,
                )
            }

            fn arguments(
                &self,
                ([grad, x, target, total], weight): Gradient<'_>,
                visit: &mut dyn FnMut(Argument<'_>),
            ) {
                visit(Argument::Tensor(grad.argument()));
                sample_arguments(([x, target], weight), self.reduction, self.ignore_index, visit);
                visit(Argument::Tensor(total.argument()));
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, ([grad, x, target, total], weight): Gradient<'_>) -> Result<Spec> {
                let (samples, _) = check_samples(Self::NAME, x, target, weight)?;
                let each = self.reduction == Reduction::None;
                let expected = if each { samples.iter().product::<usize>() } else { 1 };
                if grad.numel() != expected || total.numel() != 1 || grad.dtype() != x.dtype() {
                    let text = format_args!(
                        "gradient of shape {:?} and {} for samples of {:?}",
                        grad.shape(),
                        grad.dtype(),
                        &samples[..]
                    );
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
                Ok(Spec::like(x))
            }

            fn shown(&self, inputs: Gradient<'_>) -> Result<Option<Tensor>> {
                self.infer(inputs)?;
                let ([_, x, target, _], _) = inputs;
                let out = ($shows.backward)(x, target)?;
                self.fill(inputs, &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, ([grad, _, target, total], weight): Gradient<'_>, out: &Tensor) -> Result<()> {
                let (gradients, targets, totals) = (grad.read(), target.read(), total.read());
                let weights = weight.map(Tensor::read);
                let weights = weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading));
                let mut writing = out.write();
                loss::nll_loss_backward(
                    grad.elements(&gradients),
                    target.elements(&targets),
                    weights,
                    self.reduction,
                    self.ignore_index,
                    total.elements(&totals),
                    out.elements_mut(&mut writing),
                )
                .map_err(|error| out_of_range(Self::NAME, error))
            }
        }
    )*};
}

likelihoods! {
    /// The negative log-likelihood of the right class, and the total weight of the samples.
    NllLoss: "aten::nll_loss_forward", "NllLossBackward0";
    /// The gradient of [`NllLoss`].
    NllLossBackward: "aten::nll_loss_backward", "NllLossBackwardBackward0", OF_SAMPLES;
    /// As [`NllLoss`], of `[samples, classes, height, width]`.
    NllLoss2d: "aten::nll_loss2d_forward", "NllLoss2DBackward0";
    /// The gradient of [`NllLoss2d`].
    NllLoss2dBackward: "aten::nll_loss2d_backward", "NllLoss2DBackwardBackward0", OF_IMAGES;
}

impl Tensor {
    /// The negative log-likelihood of the `target` classes, given log-probabilities.
    pub fn nll_loss(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        self.nll_loss_with(target, ClassLoss { weight, reduction, ..ClassLoss::default() })
    }

    /// As [`nll_loss`](Tensor::nll_loss), with all options. Classes are the second dimension, or
    /// the only one of a single sample.
    pub fn nll_loss_with(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        const NAME: &str = "aten::nll_loss_nd";
        let _span = composite(NAME, ([self, target], how.weight), |visit| how.arguments(visit));
        check_samples(NAME, self, target, how.weight)?;
        if self.dim() <= 2 {
            return self.nll_loss_of_samples(target, how);
        }
        if !self.device().is_cpu() {
            return self.nll_loss_in_rows(target, how);
        }
        if self.dim() == 4 {
            return self.nll_loss_of_images(target, how);
        }
        let (x, places) = (self.contiguous()?, target.contiguous()?);
        let (samples, classes) = (self.shape()[0], self.shape()[1]);
        let count = target.shape()[1..].iter().product::<usize>();
        let image = x.seen_as(&[samples, classes, 1, count])?;
        let loss = image.nll_loss_of_images(&places.seen_as(&[samples, 1, count])?, how)?;
        if how.reduction == Reduction::None { loss.view(target.shape()) } else { Ok(loss) }
    }

    /// A view of these sizes; the last one is what is left, and said so as torch does where there is some.
    fn seen_as(&self, shape: &[usize]) -> Result<Tensor> {
        let mut sizes: Vec<isize> = shape.iter().map(|&size| size as isize).collect();
        if let Some(last) = sizes.last_mut().filter(|_| self.numel() > 0) {
            *last = -1;
        }
        self.view(&sizes[..])
    }

    fn nll_loss_of_samples(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let inputs = ([self, target], how.weight);
        const NAME: &str = "aten::nll_loss";
        let _span = composite(NAME, inputs, |visit| how.arguments(visit));
        let again =
            |([x, target], weight): Samples<'_>| x.nll_loss_of_samples(target, ClassLoss { weight, ..how });
        if let Some(cast) = autocast::casting(NAME, inputs, again) {
            return cast;
        }
        if self.dim() == 1 && !self.device().is_cpu() {
            return self.nll_loss_in_rows(target, how);
        }
        let [loss, _] = NllLoss { reduction: how.reduction, ignore_index: how.ignore_index }.call(inputs)?;
        Ok(loss)
    }

    fn nll_loss_of_images(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let inputs = ([self, target], how.weight);
        const NAME: &str = "aten::nll_loss2d";
        let _span = composite(NAME, inputs, |visit| how.arguments(visit));
        let again =
            |([x, target], weight): Samples<'_>| x.nll_loss_of_images(target, ClassLoss { weight, ..how });
        if let Some(cast) = autocast::casting(NAME, inputs, again) {
            return cast;
        }
        let [loss, _] =
            NllLoss2d { reduction: how.reduction, ignore_index: how.ignore_index }.call(inputs)?;
        Ok(loss)
    }

    /// With a row per target: devices know this form only.
    fn nll_loss_in_rows(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let (count, classes) = (target.numel(), self.shape()[usize::from(self.dim() > 1)]);
        let last = if self.dim() > 2 { self.movedim(&[1], &[-1])? } else { self.clone() };
        let (x, line) = (last.reshape([count, classes])?, target.reshape([count])?);
        let op = NllLoss { reduction: how.reduction, ignore_index: how.ignore_index };
        let [loss, _] = op.call(([&x, &line], how.weight))?;
        if how.reduction == Reduction::None { loss.reshape(target.shape()) } else { Ok(loss) }
    }
}
