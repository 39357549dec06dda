//! Steps by the size of earlier gradients: Adagrad, Adadelta and RMSprop.

use super::{Mean, Rule, Update, each_with_one, each_with_three, each_with_two, sign, towards};
use crate::Float;

/// Numbers of one step of Adagrad. It keeps the sum of squares of gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdagradStep {
    /// Learning rate of the first step.
    pub lr: f64,
    /// How fast the learning rate falls.
    pub lr_decay: f64,
    /// The number of this step, from 1.
    pub step: u64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Go up instead of down.
    pub maximize: bool,
}

#[derive(Clone, Copy)]
struct Adagrad<T> {
    lr: T,
    eps: T,
    decay: T,
    sign: T,
}

impl AdagradStep {
    /// The learning rate of this step.
    pub fn rate(&self) -> f64 {
        self.lr / (1.0 + (self.step as f64 - 1.0) * self.lr_decay)
    }
}

impl Rule for AdagradStep {
    fn states(&self) -> usize {
        1
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let adagrad = Adagrad {
            lr: T::narrow(-self.rate()),
            eps: T::narrow(self.eps),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
        };
        if let [sum] = states {
            each_with_one(adagrad, param, grad, sum);
        }
    }
}

impl<T: Float> Update<T, 1> for Adagrad<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [sum]: [T; 1]) -> (T, [T; 1]) {
        let grad = towards(grad, param, self.sign, self.decay);
        let sum = sum + grad * grad;
        (param + self.lr * grad / (sum.sqrt() + self.eps), [sum])
    }
}

/// Numbers of one step of Adadelta. It keeps the means of squares of gradients and of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdadeltaStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the means.
    pub rho: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Go up instead of down.
    pub maximize: bool,
}

#[derive(Clone, Copy)]
struct Adadelta<T> {
    lr: T,
    rho: T,
    fresh: T,
    eps: T,
    decay: T,
    sign: T,
}

impl Rule for AdadeltaStep {
    fn states(&self) -> usize {
        2
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let adadelta = Adadelta {
            lr: T::narrow(-self.lr),
            rho: T::narrow(self.rho),
            fresh: T::narrow(1.0 - self.rho),
            eps: T::narrow(self.eps),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
        };
        if let [square, steps] = states {
            each_with_two(adadelta, param, grad, square, steps);
        }
    }
}

impl<T: Float> Update<T, 2> for Adadelta<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [square, steps]: [T; 2]) -> (T, [T; 2]) {
        let grad = towards(grad, param, self.sign, self.decay);
        let square = square * self.rho + self.fresh * grad * grad;
        let step = (steps + self.eps).sqrt() / (square + self.eps).sqrt() * grad;
        (param + self.lr * step, [square, steps * self.rho + self.fresh * step * step])
    }
}

/// Numbers of one step of RMSprop. It keeps the mean of squares of gradients, then their mean if
/// `centered`, then the last step if there is momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmspropStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the means.
    pub alpha: f64,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// Pull of parameters towards zero.
    pub weight_decay: f64,
    /// Share of the last step that is kept.
    pub momentum: f64,
    /// Divide by the deviation from the mean.
    pub centered: bool,
    /// Go up instead of down.
    pub maximize: bool,
}

#[derive(Clone, Copy)]
struct Rmsprop<T> {
    lr: T,
    mean: Mean<T>,
    alpha: T,
    fresh: T,
    eps: T,
    momentum: T,
    decay: T,
    sign: T,
}

#[derive(Clone, Copy)]
struct Centered<T>(Rmsprop<T>);

impl Rule for RmspropStep {
    fn states(&self) -> usize {
        1 + usize::from(self.centered) + usize::from(self.momentum != 0.0)
    }

    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]) {
        let rmsprop = Rmsprop {
            lr: T::narrow(-self.lr),
            mean: Mean::new(self.alpha),
            alpha: T::narrow(self.alpha),
            fresh: T::narrow(1.0 - self.alpha),
            eps: T::narrow(self.eps),
            momentum: T::narrow(self.momentum),
            decay: T::narrow(self.weight_decay),
            sign: sign(self.maximize),
        };
        match states {
            [square] => each_with_one(rmsprop, param, grad, square),
            [square, mean] if self.centered => each_with_two(Centered(rmsprop), param, grad, square, mean),
            [square, last] => each_with_two(rmsprop, param, grad, square, last),
            [square, mean, last] => each_with_three(rmsprop, param, grad, square, mean, last),
            _ => {}
        }
    }
}

impl<T: Float> Rmsprop<T> {
    /// The gradient with its pull, and the mean of squares.
    #[inline(always)]
    fn begun(&self, param: T, grad: T, square: T) -> (T, T) {
        let grad = towards(grad, param, self.sign, self.decay);
        (grad, square * self.alpha + self.fresh * grad * grad)
    }

    #[inline(always)]
    fn deviation(&self, square: T, mean: T) -> T {
        (square - mean * mean).sqrt() + self.eps
    }
}

impl<T: Float> Update<T, 1> for Rmsprop<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [square]: [T; 1]) -> (T, [T; 1]) {
        let (grad, square) = self.begun(param, grad, square);
        (param + self.lr * grad / (square.sqrt() + self.eps), [square])
    }
}

impl<T: Float> Update<T, 2> for Centered<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [square, mean]: [T; 2]) -> (T, [T; 2]) {
        let (grad, square) = self.0.begun(param, grad, square);
        let mean = self.0.mean.next(mean, grad);
        (param + self.0.lr * grad / self.0.deviation(square, mean), [square, mean])
    }
}

impl<T: Float> Update<T, 2> for Rmsprop<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [square, last]: [T; 2]) -> (T, [T; 2]) {
        let (grad, square) = self.begun(param, grad, square);
        let last = last * self.momentum + grad / (square.sqrt() + self.eps);
        (param + self.lr * last, [square, last])
    }
}

impl<T: Float> Update<T, 3> for Rmsprop<T> {
    #[inline(always)]
    fn next(&self, param: T, grad: T, [square, mean, last]: [T; 3]) -> (T, [T; 3]) {
        let (grad, square) = self.begun(param, grad, square);
        let mean = self.mean.next(mean, grad);
        let last = last * self.momentum + grad / self.deviation(square, mean);
        (param + self.lr * last, [square, mean, last])
    }
}
