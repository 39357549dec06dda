//! The loss of sequences that are not aligned with what they are to say.

use super::{Reduction, reduction_number};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::sizes;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::loss;

/// The negative log-likelihood of each sample's labels, and that of all beginnings of alignments.
#[derive(Clone, Debug)]
pub struct CtcLoss {
    /// How many steps of each sample count.
    pub input_lengths: Vec<usize>,
    /// How many labels each sample has.
    pub target_lengths: Vec<usize>,
    /// The class that stands for no label.
    pub blank: usize,
    /// Whether samples whose loss is infinite have no gradient.
    pub zero_infinity: bool,
}

impl CtcLoss {
    fn sequences<'a>(&'a self, targets: cresset_kernels::View<'a>) -> loss::Sequences<'a> {
        loss::Sequences {
            targets,
            steps: &self.input_lengths,
            labels: &self.target_lengths,
            blank: self.blank,
        }
    }

    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(self.blank as i64));
        visit(Argument::Bool(self.zero_infinity));
    }
}

impl Op for CtcLoss {
    const NAME: &'static str = "aten::_ctc_loss";
    const BACKWARD: &'static str = "CtcLossBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    /// Log-probabilities `[steps, samples, classes]`, and labels `[samples, most]` or in a line.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let saved = [0, 1, 2, 3].map(|i| ctx.saved(i));
        let [log_probs, targets, losses, log_alpha] = saved;
        let gradient = CtcLossBackward(self.clone());
        grads!(ctx; gradient.call([ctx.grad(), log_probs, targets, losses, log_alpha])?)
    }

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|input| visit(Argument::Tensor(input.argument())));
        visit(Argument::Ints(&sizes(&self.input_lengths)));
        visit(Argument::Ints(&sizes(&self.target_lengths)));
        self.attributes(visit);
    }
}

impl Kernel for CtcLoss {
    kernel_table!(CtcLoss);

    fn infer(&self, [log_probs, targets]: [&Tensor; 2]) -> Result<[Spec; 2]> {
        let &[steps, samples, classes] = log_probs.shape() else {
            let text = format_args!("expects [steps, samples, classes], not {:?}", log_probs.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if log_probs.numel() == 0 {
            let text = format_args!("expects log-probabilities, not the empty {:?}", log_probs.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        if !log_probs.dtype().is_float() || targets.dtype() != DType::I64 {
            let (log_probs, targets) = (log_probs.dtype(), targets.dtype());
            let text = format_args!("expects floats and targets of i64, not {log_probs} and {targets}");
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        if self.blank >= classes {
            let text = format_args!("blank is {}, expected a class below {classes}", self.blank);
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        self.check_lengths(steps, samples)?;
        let most = self.check_targets(samples, targets)?;
        let log_alpha = Spec::new([samples, steps, 2 * most + 1], DType::F64);
        Ok([Spec::new([samples], log_probs.dtype()), log_alpha])
    }

    fn cpu(&self, [log_probs, targets]: [&Tensor; 2], [out, log_alpha]: &[Tensor; 2]) -> Result<()> {
        let (reading, labels) = (log_probs.read(), targets.read());
        let (mut writing, mut beginnings) = (out.write(), log_alpha.write());
        loss::ctc_loss(
            log_probs.elements(&reading),
            self.sequences(targets.elements(&labels)),
            out.elements_mut(&mut writing),
            log_alpha.elements_mut(&mut beginnings),
        )
        .map_err(|error| no_class(Self::NAME, error))
    }
}

fn no_class(op: &'static str, error: cresset_kernels::OutOfRange) -> Error {
    Error::new(Cause::Index, op, format_args!("target {error}"))
}

impl CtcLoss {
    fn check_lengths(&self, steps: usize, samples: usize) -> Result<()> {
        let lengths = [("input_lengths", &self.input_lengths), ("target_lengths", &self.target_lengths)];
        for (name, lengths) in lengths {
            if lengths.len() != samples {
                let text = format_args!("{name} has {} elements for {samples} samples", lengths.len());
                return Err(Error::new(Cause::Shape, Self::NAME, text));
            }
        }
        match self.input_lengths.iter().find(|&&length| length > steps) {
            Some(length) => {
                let text = format_args!("an input length is {length}, expected at most {steps}");
                Err(Error::new(Cause::Argument, Self::NAME, text))
            }
            None => Ok(()),
        }
    }

    /// The most labels that a sample can have.
    fn check_targets(&self, samples: usize, targets: &Tensor) -> Result<usize> {
        let longest = self.target_lengths.iter().copied().max().unwrap_or(0);
        let fault = match *targets.shape() {
            // Lengths may be absurd, so that their sum does not fit.
            [count] => (!sums_to(&self.target_lengths, count))
                .then(|| format!("{count} labels for samples of {:?}", self.target_lengths)),
            [rows, most] => (rows != samples || most < longest).then(|| {
                format!(
                    "targets {:?} for {samples} samples of at most {longest} labels, expected [samples, labels]",
                    [rows, most]
                )
            }),
            _ => Some(format!(
                "expects targets [samples, labels], or all labels in a line, not {:?}",
                targets.shape()
            )),
        };
        fault.map_or(Ok(longest), |text| Err(Error::new(Cause::Shape, Self::NAME, text)))
    }
}

fn sums_to(lengths: &[usize], count: usize) -> bool {
    lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length)) == Some(count)
}

/// The gradient of [`CtcLoss`]. As in torch it has no derivative of its own.
#[derive(Clone, Debug)]
pub struct CtcLossBackward(pub CtcLoss);

impl Op for CtcLossBackward {
    const NAME: &'static str = "aten::_ctc_loss_backward";
    const BACKWARD: &'static str = "NotImplemented";
    /// The gradient of losses, log-probabilities, labels, losses, and the likelihood of beginnings.
    type Inputs<'a> = [&'a Tensor; 5];
    type Output = Tensor;

    fn arguments(&self, inputs: [&Tensor; 5], visit: &mut dyn FnMut(Argument<'_>)) {
        let [grad, log_probs, targets, losses, log_alpha] = inputs.map(Tensor::argument);
        [grad, log_probs, targets].into_iter().for_each(|tensor| visit(Argument::Tensor(tensor)));
        visit(Argument::Ints(&sizes(&self.0.input_lengths)));
        visit(Argument::Ints(&sizes(&self.0.target_lengths)));
        [losses, log_alpha].into_iter().for_each(|tensor| visit(Argument::Tensor(tensor)));
        self.0.attributes(visit);
    }
}

impl Kernel for CtcLossBackward {
    kernel_table!(CtcLossBackward);

    fn infer(&self, [grad, log_probs, targets, losses, log_alpha]: [&Tensor; 5]) -> Result<Spec> {
        let [of_losses, of_alpha] = self.0.infer([log_probs, targets])?;
        let fits =
            |tensor: &Tensor, spec: &Spec| tensor.shape() == &spec.shape[..] && tensor.dtype() == spec.dtype;
        if !fits(grad, &of_losses) || !fits(losses, &of_losses) || !fits(log_alpha, &of_alpha) {
            let text = format_args!(
                "gradient {:?}, losses {:?} and beginnings {:?} for log-probabilities {:?}",
                grad.shape(),
                losses.shape(),
                log_alpha.shape(),
                log_probs.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(log_probs))
    }

    fn cpu(&self, inputs: [&Tensor; 5], out: &Tensor) -> Result<()> {
        let readings = inputs.map(Tensor::read);
        let [grad, log_probs, targets, losses, log_alpha] =
            std::array::from_fn(|i| inputs[i].elements(&readings[i]));
        let zero_infinity = self.0.zero_infinity;
        loss::ctc_loss_backward(
            grad,
            log_probs,
            self.0.sequences(targets),
            loss::Aligned { losses, log_alpha, zero_infinity },
            out.elements_mut(&mut out.write()),
        )
        .map_err(|error| no_class(Self::NAME, error))
    }
}

/// The options of [`Tensor::ctc_loss`].
#[derive(Clone, Copy, Debug)]
pub struct Ctc {
    /// The class that stands for no label.
    pub blank: usize,
    /// What becomes of the losses of samples. A mean is taken of losses per label.
    pub reduction: Reduction,
    /// Whether samples that are too short for their labels count for nothing, instead of making the
    /// loss infinite.
    pub zero_infinity: bool,
}

impl Default for Ctc {
    /// Class 0 is the blank; the mean.
    fn default() -> Ctc {
        Ctc { blank: 0, reduction: Reduction::Mean, zero_infinity: false }
    }
}

impl Tensor {
    /// The loss of these log-probabilities `[steps, samples, classes]`, or `[steps, classes]` of one
    /// sample, for labels whose alignment is not known.
    ///
    /// `targets` is `[samples, most labels]`, or has the labels of all samples in a line. The gradient
    /// is that of torch: right behind a log-softmax, and without a derivative of its own.
    ///
    /// ```
    /// # use cresset_tensor::{Tensor, ops::Ctc};
    /// // Two steps, each of which says 1 with a probability of one half.
    /// let log_probs = Tensor::new([[0.5f64, 0.5], [0.5, 0.5]])?.log()?;
    /// let loss = log_probs.ctc_loss(&Tensor::new([1i64])?, &[2], &[1], Ctc::default())?;
    /// // "1-", "-1" and "11" all say 1.
    /// assert!((loss.item()?.as_f64() + 0.75f64.ln()).abs() < 1e-12);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn ctc_loss(
        &self,
        targets: &Tensor,
        input_lengths: &[usize],
        target_lengths: &[usize],
        how: Ctc,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::ctc_loss";
        let _span = composite(NAME, [self, targets], |visit| {
            visit(Argument::Ints(&sizes(input_lengths)));
            visit(Argument::Ints(&sizes(target_lengths)));
            visit(Argument::Int(how.blank as i64));
            visit(Argument::Int(reduction_number(how.reduction)));
            visit(Argument::Bool(how.zero_infinity));
        });
        let again = |[x, y]: [&Tensor; 2]| x.ctc_loss(y, input_lengths, target_lengths, how);
        if let Some(cast) = autocast::casting(NAME, [self, targets], again) {
            return cast;
        }
        let targets = targets.to_dtype(DType::I64)?;
        let op = CtcLoss {
            input_lengths: input_lengths.to_vec(),
            target_lengths: target_lengths.to_vec(),
            blank: how.blank,
            zero_infinity: how.zero_infinity,
        };
        let is_batch = self.dim() != 2;
        let batch = if is_batch { self.clone() } else { self.unsqueeze(1)? };
        let [losses, _] = op.call([&batch, &targets])?;
        let mut losses = if is_batch { losses } else { losses.squeeze_dim(0)? };
        if how.zero_infinity {
            losses = losses.zeros_like()?.where_(&losses.eq(f64::INFINITY)?, &losses)?;
        }
        match how.reduction {
            Reduction::Mean => {
                let lengths: Vec<i64> = target_lengths.iter().map(|&length| length.max(1) as i64).collect();
                let shape: &[usize] = if is_batch { &[target_lengths.len()] } else { &[] };
                let lengths = Tensor::from_vec(lengths, shape)?.to_dtype(self.dtype())?.to(self.device())?;
                losses.div(&lengths)?.mean()
            }
            Reduction::Sum | Reduction::None => losses.reduced(how.reduction),
        }
    }
}
