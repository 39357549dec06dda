//! Steps along the gradient: SGD, ASGD and Rprop.

use super::{Rule, Update, each_alone, each_with_one, each_with_two, sign, towards};
use crate::Float;

/// Numbers of one step of stochastic gradient descent. With momentum, it keeps the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdStep {
    /// Learning rate.
    pub lr: f64,
    /// Share of the last step that is kept.
    pub momentum: f64,
    /// Share of the gradient that is kept out of the momentum.
    pub dampening: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Look ahead by the momentum.
    pub nesterov: bool,
    /// Go up instead of down.
    pub maximize: bool,
    /// There is no momentum yet: what is kept is filled, not read.
    pub first: bool,
}

#[derive(Clone, Copy)]
struct Sgd<T> {
    lr: T,
    momentum: T,
    fresh: T,
    decay: T,
    sign: T,
    nesterov: bool,
    first: bool,
}

impl Rule for SgdStep {
    fn states(&self) -> usize {
        usize::from(self.momentum != 0.0)
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let sgd = Sgd {
            lr: T::narrow(-self.lr),
            momentum: T::narrow(self.momentum),
            fresh: T::narrow(1.0 - self.dampening),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
            nesterov: self.nesterov,
            first: self.first,
        };
        match states {
            [momentum] => each_with_one(sgd, param, grad, momentum),
            _ => each_alone(sgd, param, grad),
        }
    }
}

impl<T: Float> Update<T, 0> for Sgd<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, []: [T; 0]) -> (T, [T; 0]) {
        (param + self.lr * towards(grad, param, self.sign, self.decay), [])
    }
}

impl<T: Float> Update<T, 1> for Sgd<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [momentum]: [T; 1]) -> (T, [T; 1]) {
        let grad = towards(grad, param, self.sign, self.decay);
        let momentum = if self.first { grad } else { momentum * self.momentum + self.fresh * grad };
        let direction = if self.nesterov { grad + self.momentum * momentum } else { momentum };
        (param + self.lr * direction, [momentum])
    }
}

/// Numbers of one step of averaged stochastic gradient descent. It keeps the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsgdStep {
    /// Length of this step.
    pub eta: f64,
    /// How much a step of length 1 takes from the parameter.
    pub lambd: f64,
    /// Share of the parameter in its average; with 1 the average is the parameter.
    pub mu: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Go up instead of down.
    pub maximize: bool,
}

#[derive(Clone, Copy)]
struct Asgd<T> {
    eta: T,
    shrink: T,
    mu: T,
    decay: T,
    sign: T,
}

impl Rule for AsgdStep {
    fn states(&self) -> usize {
        1
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let asgd = Asgd {
            eta: T::narrow(-self.eta),
            shrink: T::narrow(1.0 - self.lambd * self.eta),
            mu: T::narrow(self.mu),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
        };
        if let [average] = states {
            each_with_one(asgd, param, grad, average);
        }
    }
}

impl<T: Float> Update<T, 1> for Asgd<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [average]: [T; 1]) -> (T, [T; 1]) {
        let grad = towards(grad, param, self.sign, self.decay);
        let param = param * self.shrink + self.eta * grad;
        let average = if self.mu == T::ONE { param } else { average + (param - average) * self.mu };
        (param, [average])
    }
}

/// Numbers of one step of resilient backpropagation. It keeps the last gradient and the length of
/// the step, for each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RpropStep {
    /// What a step is multiplied by after a change of sign, and after none.
    pub etas: (f64, f64),
    /// The shortest and the longest step.
    pub step_sizes: (f64, f64),
    /// Go up instead of down.
    pub maximize: bool,
}

#[derive(Clone, Copy)]
struct Rprop<T> {
    minus: T,
    plus: T,
    shortest: T,
    longest: T,
    sign: T,
}

impl Rule for RpropStep {
    fn states(&self) -> usize {
        2
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let rprop = Rprop {
            minus: T::narrow(self.etas.0),
            plus: T::narrow(self.etas.1),
            shortest: T::narrow(self.step_sizes.0),
            longest: T::narrow(self.step_sizes.1),
            sign: sign(self.maximize),
        };
        if let [last, size] = states {
            each_with_two(rprop, param, grad, last, size);
        }
    }
}

impl<T: Float> Update<T, 2> for Rprop<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [last, size]: [T; 2]) -> (T, [T; 2]) {
        let grad = self.sign * grad;
        let product = grad * last;
        let turned = product < T::ZERO;
        let factor = if product > T::ZERO { self.plus } else { T::ONE };
        let size = size * if turned { self.minus } else { factor };
        let size = if size < self.shortest { self.shortest } else { size };
        let size = if size > self.longest { self.longest } else { size };
        let grad = if turned { T::ZERO } else { grad };
        let up = if grad > T::ZERO { size } else { T::ZERO };
        let down = if grad < T::ZERO { size } else { T::ZERO };
        (param - up + down, [grad, size])
    }
}
