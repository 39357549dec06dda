//! Steps by running means of the gradient and of its square: Adam and its kin.

use super::{Mean, Rule, Update, each_with_three, each_with_two, larger, sign, towards};
use crate::Float;

/// Numbers of one step of Adam and AdamW. It keeps the mean of gradients, that of their squares, and
/// with `amsgrad` the largest of these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Apply the decay to the parameter (AdamW), not to the gradient.
    pub decoupled: bool,
    /// Divide by the largest mean of squares so far.
    pub amsgrad: bool,
    /// Go up instead of down.
    pub maximize: bool,
    /// How many steps there were, with this one: from 1.
    pub step: u64,
}

/// What all of them begin with, in the precision of the parameter.
#[derive(Clone, Copy)]
struct Moments<T> {
    mean: Mean<T>,
    beta2: T,
    fresh2: T,
    sign: T,
    shrink: T,
    decay: T,
}

impl<T: Float> Moments<T> {
    fn new(
        (beta1, beta2): (f64, f64),
        maximize: bool,
        (decay, decoupled, lr): (f64, bool, f64),
    ) -> Moments<T> {
        Moments {
            mean: Mean::new(beta1),
            beta2: T::narrow(beta2),
            fresh2: T::narrow(1.0 - beta2),
            sign: sign(maximize),
            shrink: T::narrow(if decoupled { 1.0 - lr * decay } else { 1.0 }),
            decay: T::narrow(if decoupled { 0.0 } else { decay }),
        }
    }

    /// The decayed parameter, the gradient with its pull, and both means.
    #[inline(always)]
    fn next(&self, param: T, grad: T, mean: T, square: T) -> (T, T, T, T) {
        let param = param * self.shrink;
        let grad = towards(grad, param, self.sign, self.decay);
        (param, grad, self.mean.next(mean, grad), square * self.beta2 + self.fresh2 * grad * grad)
    }
}

/// How far a running mean of `count` numbers is from its limit.
fn correction(beta: f64, count: f64) -> f64 {
    1.0 - beta.powf(count)
}

#[derive(Clone, Copy)]
struct Adam<T> {
    moments: Moments<T>,
    size: T,
    correction: T,
    eps: T,
}

impl<T: Float> Adam<T> {
    fn new(step: &AdamStep) -> Adam<T> {
        let count = step.step as f64;
        let decay = (step.weight_decay, step.decoupled, step.lr);
        Adam {
            moments: Moments::new((step.beta1, step.beta2), step.maximize, decay),
            size: T::narrow(-(step.lr / correction(step.beta1, count))),
            correction: T::narrow(1.0 / correction(step.beta2, count).sqrt()),
            eps: T::narrow(step.eps),
        }
    }

    // Not divided by the correction: a second division would take longer than memory does.
    #[inline(always)]
    fn moved(&self, param: T, mean: T, square: T) -> T {
        param + self.size * mean / (square.sqrt() * self.correction + self.eps)
    }
}

impl Rule for AdamStep {
    fn states(&self) -> usize {
        if self.amsgrad { 3 } else { 2 }
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        match states {
            [mean, square] => each_with_two(Adam::new(self), param, grad, mean, square),
            [mean, square, max] => each_with_three(Adam::new(self), param, grad, mean, square, max),
            _ => {}
        }
    }
}

impl<T: Float> Update<T, 2> for Adam<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [mean, square]: [T; 2]) -> (T, [T; 2]) {
        let (param, _, mean, square) = self.moments.next(param, grad, mean, square);
        (self.moved(param, mean, square), [mean, square])
    }
}

impl<T: Float> Update<T, 3> for Adam<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [mean, square, max]: [T; 3]) -> (T, [T; 3]) {
        let (param, _, mean, square) = self.moments.next(param, grad, mean, square);
        let max = larger(max, square);
        (self.moved(param, mean, max), [mean, square, max])
    }
}

/// Numbers of one step of NAdam. It keeps the means of gradients and of their squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NadamStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Apply the decay to the parameter, not to the gradient.
    pub decoupled: bool,
    /// Go up instead of down.
    pub maximize: bool,
    /// The momentum of this step, and of the next.
    pub mu: (f64, f64),
    /// The product of all momenta up to this step.
    pub mu_product: f64,
    /// How many steps there were, with this one: from 1.
    pub step: u64,
}

#[derive(Clone, Copy)]
struct Nadam<T> {
    moments: Moments<T>,
    of_grad: T,
    of_mean: T,
    correction: T,
    eps: T,
}

impl Rule for NadamStep {
    fn states(&self) -> usize {
        2
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let (now, next) = self.mu;
        let decay = (self.weight_decay, self.decoupled, self.lr);
        let nadam = Nadam {
            moments: Moments::new((self.beta1, self.beta2), self.maximize, decay),
            of_grad: T::narrow(-self.lr * (1.0 - now) / (1.0 - self.mu_product)),
            of_mean: T::narrow(-self.lr * next / (1.0 - self.mu_product * next)),
            correction: T::narrow(1.0 / correction(self.beta2, self.step as f64).sqrt()),
            eps: T::narrow(self.eps),
        };
        if let [mean, square] = states {
            each_with_two(nadam, param, grad, mean, square);
        }
    }
}

impl<T: Float> Update<T, 2> for Nadam<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [mean, square]: [T; 2]) -> (T, [T; 2]) {
        let (param, grad, mean, square) = self.moments.next(param, grad, mean, square);
        let divisor = square.sqrt() * self.correction + self.eps;
        (param + (self.of_grad * grad + self.of_mean * mean) / divisor, [mean, square])
    }
}

/// Numbers of one step of RAdam. It keeps the means of gradients and of their squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadamStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Apply the decay to the parameter, not to the gradient.
    pub decoupled: bool,
    /// Go up instead of down.
    pub maximize: bool,
    /// How many steps there were, with this one: from 1.
    pub step: u64,
}

impl RadamStep {
    /// What the step is multiplied by once the mean of squares is known well enough to divide by it.
    pub fn rectification(&self) -> Option<f64> {
        let count = self.step as f64;
        let limit = 2.0 / (1.0 - self.beta2) - 1.0;
        let power = self.beta2.powf(count);
        let length = limit - 2.0 * count * power / (1.0 - power);
        let ratio = (length - 4.0) * (length - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * length);
        (length > 5.0).then(|| ratio.sqrt())
    }
}

#[derive(Clone, Copy)]
struct Radam<T> {
    moments: Moments<T>,
    size: T,
    eps: T,
    divides: bool,
}

impl Rule for RadamStep {
    fn states(&self) -> usize {
        2
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let (count, rectification) = (self.step as f64, self.rectification());
        let size = -self.lr / correction(self.beta1, count);
        let adapted = rectification.map_or(1.0, |by| by * correction(self.beta2, count).sqrt());
        let decay = (self.weight_decay, self.decoupled, self.lr);
        let radam = Radam {
            moments: Moments::new((self.beta1, self.beta2), self.maximize, decay),
            size: T::narrow(size * adapted),
            eps: T::narrow(self.eps),
            divides: rectification.is_some(),
        };
        if let [mean, square] = states {
            each_with_two(radam, param, grad, mean, square);
        }
    }
}

impl<T: Float> Update<T, 2> for Radam<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [mean, square]: [T; 2]) -> (T, [T; 2]) {
        let (param, _, mean, square) = self.moments.next(param, grad, mean, square);
        let divisor = if self.divides { square.sqrt() + self.eps } else { T::ONE };
        (param + self.size * mean / divisor, [mean, square])
    }
}

/// Numbers of one step of Adamax. It keeps the mean of gradients and their decaying maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamaxStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of their maximum.
    pub beta2: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Go up instead of down.
    pub maximize: bool,
    /// How many steps there were, with this one: from 1.
    pub step: u64,
}

#[derive(Clone, Copy)]
struct Adamax<T> {
    mean: Mean<T>,
    beta2: T,
    size: T,
    eps: T,
    decay: T,
    sign: T,
}

impl Rule for AdamaxStep {
    fn states(&self) -> usize {
        2
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let adamax = Adamax {
            mean: Mean::new(self.beta1),
            beta2: T::narrow(self.beta2),
            size: T::narrow(-self.lr / correction(self.beta1, self.step as f64)),
            eps: T::narrow(self.eps),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
        };
        if let [mean, max] = states {
            each_with_two(adamax, param, grad, mean, max);
        }
    }
}

impl<T: Float> Update<T, 2> for Adamax<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [mean, max]: [T; 2]) -> (T, [T; 2]) {
        let grad = towards(grad, param, self.sign, self.decay);
        let mean = self.mean.next(mean, grad);
        let max = larger(max * self.beta2, grad.abs() + self.eps);
        (param + self.size * mean / max, [mean, max])
    }
}
