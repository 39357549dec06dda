//! Optimizer steps in one pass over all parameters of a group.
//!
//! One operator per optimizer, all of one form: a [`Batch`] of parameters, each with its gradient, what
//! is kept beside it, and the numbers of its step.

use super::check_float;
use crate::op::{Given, Inputs, Swap, kernel_table};
use crate::{Cause, Error, Kernel, Key, Op, Result, Tensor};
use cresset_dispatch::key;
use cresset_dispatch::observe::Argument;
use cresset_kernels::optimizer::{self, MOST_STATES, Rule, Tensors};
use cresset_kernels::{Buffer, Reading, Writing};
use smallvec::SmallVec;

pub use cresset_kernels::optimizer::{
    AdadeltaStep, AdagradStep, AdamStep, AdamaxStep, AsgdStep, NadamStep, RadamStep, RmspropStep, RpropStep,
    SgdStep,
};

/// Parameters that take a step together.
#[derive(Clone, Copy)]
pub struct Batch<'a, R> {
    /// Each parameter, followed by its gradient and by what its rule keeps.
    pub tensors: &'a [Tensor],
    /// The numbers of each parameter's step.
    pub rules: &'a [R],
    /// How many steps each parameter took, as tensors: for observers alone, and empty if none are kept so.
    pub steps: &'a [Tensor],
}

/// What observers are told of a step, after all tensors.
pub trait ToldStep: Rule {
    /// Visits the numbers that all parameters share.
    fn told(&self, _visit: &mut dyn FnMut(Argument<'_>)) {}

    /// How many lists of what is kept torch's operator takes, empty or not.
    const LISTS: usize = 0;

    /// Whether it takes the counts of steps.
    const COUNTED: bool = false;
}

fn tell<const N: usize>(arguments: [Argument<'_>; N], visit: &mut dyn FnMut(Argument<'_>)) {
    arguments.into_iter().chain([Argument::None, Argument::None]).for_each(visit);
}

impl ToldStep for AdamStep {
    const LISTS: usize = 3;
    const COUNTED: bool = true;

    fn told(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let numbers = [self.lr, self.beta1, self.beta2, self.weight_decay, self.eps].map(Argument::Float);
        let [lr, beta1, beta2, decay, eps] = numbers;
        let [amsgrad, maximize] = [self.amsgrad, self.maximize].map(Argument::Bool);
        tell([lr, beta1, beta2, decay, eps, amsgrad, maximize], visit);
    }
}

impl ToldStep for SgdStep {
    const LISTS: usize = 1;

    fn told(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let numbers = [self.weight_decay, self.momentum, self.lr, self.dampening].map(Argument::Float);
        let [decay, momentum, lr, dampening] = numbers;
        let [nesterov, maximize, first] = [self.nesterov, self.maximize, self.first].map(Argument::Bool);
        tell([decay, momentum, lr, dampening, nesterov, maximize, first], visit);
    }
}

impl ToldStep for AdagradStep {
    const LISTS: usize = 1;
    const COUNTED: bool = true;

    fn told(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let numbers = [self.lr, self.lr_decay, self.weight_decay, self.eps].map(Argument::Float);
        let [lr, lr_decay, decay, eps] = numbers;
        tell([lr, lr_decay, decay, eps, Argument::Bool(self.maximize)], visit);
    }
}

macro_rules! untold {
    ($($rule:ty)*) => {$(impl ToldStep for $rule {})*};
}

untold!(NadamStep RadamStep AdamaxStep AdadeltaStep RmspropStep RpropStep AsgdStep);

impl<'a, R: ToldStep> Batch<'a, R> {
    /// Each parameter, its gradient, what is kept beside them, and its rule.
    pub fn each(self) -> impl Iterator<Item = (&'a Tensor, &'a Tensor, &'a [Tensor], &'a R)> {
        let width = (self.tensors.len() / self.rules.len().max(1)).max(2);
        let lists = self.tensors.chunks_exact(width).zip(self.rules);
        lists.map(|(list, rule)| (&list[0], &list[1], &list[2..], rule))
    }

    fn check(self, op: &'static str) -> Result<()> {
        let states = self.rules.first().map_or(0, Rule::states);
        if self.tensors.len() != self.rules.len() * (2 + states) {
            let text = format_args!(
                "expects a parameter, its gradient and {states} tensors beside them for each of {} steps, not {} tensors",
                self.rules.len(),
                self.tensors.len()
            );
            return Err(Error::new(Cause::Argument, op, text));
        }
        let recording = !key::excluded().contains(Key::AUTOGRAD);
        for (param, grad, states, rule) in self.each() {
            if rule.states() != states.len() {
                return Err(Error::new(Cause::Argument, op, "expects steps that all keep as much"));
            }
            check_float(op, param)?;
            states.iter().chain([grad]).try_for_each(|other| check_like(op, param, other))?;
            check_apart(op, param, grad, states)?;
            if recording && states.iter().chain([param]).any(Tensor::requires_grad) {
                let text = "changes tensors that require grad; call it under no_grad()";
                return Err(Error::new(Cause::Graph, op, text));
            }
        }
        Ok(())
    }

    /// The parameters, their gradients, and one list for each kind of what is kept: the order of torch's.
    fn arguments(self, visit: &mut dyn FnMut(Argument<'_>)) {
        let width = self.tensors.len() / self.rules.len().max(1);
        for kind in 0..width {
            let list: Vec<_> = self.tensors[kind..].iter().step_by(width).map(Tensor::argument).collect();
            visit(Argument::Tensors(&list));
        }
        (width..2 + R::LISTS).for_each(|_| visit(Argument::Tensors(&[])));
        if R::COUNTED {
            let steps: Vec<_> = self.steps.iter().map(Tensor::argument).collect();
            visit(Argument::Tensors(&steps));
        }
        if let Some(rule) = self.rules.first() {
            rule.told(visit);
        }
    }

    fn changed(self, op: &'static str) {
        for (param, _, states, _) in self.each() {
            states.iter().chain([param]).for_each(|tensor| tensor.storage().changed(op));
        }
    }

    fn step_on_host(self) -> Result<()> {
        let mut members = Members::new();
        let mut rules = SmallVec::<[R; TOGETHER]>::new();
        for (param, grad, states, rule) in self.each() {
            let shared = states.iter().chain([param]).any(|other| grad.storage().same_as(other.storage()));
            members.push(Member {
                param,
                grad,
                copy: if shared { Some(grad.copy()?) } else { None },
                states,
            });
            rules.push(*rule);
            if members.len() == TOGETHER {
                step(&rules, &members);
                members.clear();
                rules.clear();
            }
        }
        step(&rules, &members);
        Ok(())
    }
}

impl<R: ToldStep> Inputs for Batch<'_, R> {
    type For<'b> = Batch<'b, R>;

    fn each(self, mut visit: impl FnMut(Given<'_>)) {
        self.tensors.iter().for_each(|tensor| visit(Given::Tensor(tensor)));
    }

    /// Parameters are changed where they are: nothing can stand in their place.
    fn swapped<T>(self, _: &mut Swap<'_>, then: impl FnOnce(Batch<'_, R>) -> Result<T>) -> Result<T> {
        then(self)
    }
}

fn check_like(op: &'static str, param: &Tensor, other: &Tensor) -> Result<()> {
    if other.shape() == param.shape() && other.dtype() == param.dtype() {
        return Ok(());
    }
    let text = format_args!(
        "a parameter is {} {:?}, what belongs to it {} {:?}",
        param.dtype(),
        param.shape(),
        other.dtype(),
        other.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// Refuses what one step would change twice.
fn check_apart(op: &'static str, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let shares = |i: usize| {
        let mut others = states[..i].iter().chain([param, grad]);
        others.any(|other| other.storage().same_as(states[i].storage()))
    };
    if (0..states.len()).any(shares) {
        let text = "a parameter, its gradient and what is kept beside it must have memory of their own";
        return Err(Error::new(Cause::Argument, op, text));
    }
    if states.iter().chain([param]).any(|tensor| tensor.layout().may_overlap()) {
        let text = "several elements of a tensor to be changed share memory; call contiguous() first";
        return Err(Error::new(Cause::Argument, op, text));
    }
    Ok(())
}

/// Parameters that are locked at a time: as many as fit beside the stack's other things, so that a step
/// allocates nothing.
const TOGETHER: usize = 32;

struct Member<'a> {
    param: &'a Tensor,
    grad: &'a Tensor,
    /// The gradient in memory of its own, if it shares some with what is changed.
    copy: Option<Tensor>,
    states: &'a [Tensor],
}

type Members<'a> = SmallVec<[Member<'a>; TOGETHER]>;

/// The tensors of a parameter: what is written, then what is read.
const WRITTEN: usize = 1 + MOST_STATES;

impl Member<'_> {
    fn read(&self) -> &Tensor {
        self.copy.as_ref().unwrap_or(self.grad)
    }

    fn written(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(self.param).chain(self.states)
    }
}

/// Where the memory of a tensor starts.
fn address(tensor: &Tensor) -> usize {
    tensor.storage().host().map_or(0, Buffer::address)
}

/// Takes the steps of at most [`TOGETHER`] parameters; one by one if something is changed that
/// another's step reads or changes too.
fn step<R: Rule>(rules: &[R], members: &[Member<'_>]) {
    let mut order: SmallVec<[(usize, usize, usize); TOGETHER * (WRITTEN + 1)]> = SmallVec::new();
    for (i, member) in members.iter().enumerate() {
        let tensors = member.written().enumerate().chain([(WRITTEN, member.read())]);
        order.extend(tensors.filter(|(_, tensor)| tensor.numel() > 0).map(|(j, t)| (address(t), i, j)));
    }
    order.sort_unstable();
    if members.len() > 1 && order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        rules.chunks(1).zip(members.chunks(1)).for_each(|(rule, member)| step(rule, member));
        return;
    }
    // Locks are taken in the order of addresses.
    let mut writings: SmallVec<[[Option<Writing<'_>>; WRITTEN]; TOGETHER]> = SmallVec::new();
    let mut readings: SmallVec<[Option<Reading<'_>>; TOGETHER]> = SmallVec::new();
    writings.extend(members.iter().map(|_| [const { None }; WRITTEN]));
    readings.extend(members.iter().map(|_| None));
    for (_, i, j) in order {
        match writings[i].get_mut(j) {
            Some(writing) => *writing = members[i].written().nth(j).map(Tensor::write),
            None => readings[i] = Some(members[i].read().read()),
        }
    }
    let locked = members.iter().zip(&mut writings).zip(&readings).zip(rules);
    let mut tensors: SmallVec<[Tensors<'_>; TOGETHER]> = SmallVec::new();
    let mut steps: SmallVec<[R; TOGETHER]> = SmallVec::new();
    for (((member, writings), reading), rule) in locked {
        // Tensors without elements were not locked, and need no step.
        let Some(reading) = reading else { continue };
        let mut views = member
            .written()
            .zip(writings)
            .filter_map(|(tensor, writing)| writing.as_mut().map(|writing| tensor.elements_mut(writing)));
        let Some(param) = views.next() else { continue };
        tensors.push(Tensors::new(param, member.read().elements(reading), views));
        steps.push(*rule);
    }
    optimizer::step_all(&steps, &mut tensors);
}

macro_rules! fused {
    ($($(#[$doc:meta])* $op:ident($rule:ty) = $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op;

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = Batch<'a, $rule>;
            type Output = ();

            fn arguments(&self, batch: Batch<'_, $rule>, visit: &mut dyn FnMut(Argument<'_>)) {
                batch.arguments(visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, batch: Batch<'_, $rule>) -> Result<()> {
                batch.check(Self::NAME)
            }

            /// Torch's kernel reads how many steps each parameter took.
            fn shown(&self, batch: Batch<'_, $rule>) -> Result<Option<()>> {
                batch.steps.iter().try_for_each(|step| step.item().map(drop))?;
                Ok(None)
            }

            fn cpu(&self, batch: Batch<'_, $rule>, (): &()) -> Result<()> {
                batch.step_on_host()
            }

            fn changed(&self, batch: Batch<'_, $rule>) {
                batch.changed(Self::NAME);
            }
        }
    )*};
}

// Four of them are torch's; the others have no fused form there, and names of their own here.
fused! {
    /// Stochastic gradient descent; keeps the momentum, if there is any.
    FusedSgd(SgdStep) = "aten::_fused_sgd_";
    /// Adam; keeps the means of gradients and of their squares, and with `amsgrad` the largest of these.
    FusedAdam(AdamStep) = "aten::_fused_adam_";
    /// AdamW: as [`FusedAdam`].
    FusedAdamW(AdamStep) = "aten::_fused_adamw_";
    /// Adagrad; keeps the sum of squares of gradients.
    FusedAdagrad(AdagradStep) = "aten::_fused_adagrad_";
    /// NAdam; keeps the means of gradients and of their squares.
    FusedNadam(NadamStep) = "cresset::_fused_nadam_";
    /// RAdam; keeps the means of gradients and of their squares.
    FusedRadam(RadamStep) = "cresset::_fused_radam_";
    /// Adamax; keeps the mean of gradients and their decaying maximum.
    FusedAdamax(AdamaxStep) = "cresset::_fused_adamax_";
    /// Adadelta; keeps the means of squares of gradients and of steps.
    FusedAdadelta(AdadeltaStep) = "cresset::_fused_adadelta_";
    /// RMSprop; keeps the mean of squares, then the mean if centered, then the momentum if there is any.
    FusedRmsprop(RmspropStep) = "cresset::_fused_rmsprop_";
    /// Rprop; keeps the last gradient and the length of the step.
    FusedRprop(RpropStep) = "cresset::_fused_rprop_";
    /// ASGD; keeps the average.
    FusedAsgd(AsgdStep) = "cresset::_fused_asgd_";
}
