//! Whole optimizer steps in one pass over a parameter.
//!
//! Formulas and order of operations are torch's. Half precision is computed in `f32`.

use crate::computing::load;
use crate::elementwise::{Single, copy, floats, pack};
use crate::threads::each_of;
use crate::wide::wide;
use crate::{DType, Element, Float, Layout, View, ViewMut};

/// Numbers of one step of stochastic gradient descent.
#[derive(Clone, Copy, Debug)]
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
    /// There is no momentum yet: its buffer is filled, not read.
    pub first: bool,
}

/// Numbers of one step of Adam and AdamW.
#[derive(Clone, Copy, Debug)]
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

/// One step of stochastic gradient descent. `momentum` is needed if the step has any.
pub fn sgd(step: SgdStep, param: ViewMut<'_>, grad: View<'_>, momentum: Option<ViewMut<'_>>) {
    check(&param, grad.layout(), momentum.iter());
    assert!(step.momentum == 0.0 || momentum.is_some(), "sgd: momentum without its buffer");
    floats!(param.dtype(), T => {
        let grad = pack::<T>(grad);
        match momentum.filter(|_| step.momentum != 0.0) {
            Some(buffer) => change([param, buffer], |[param, buffer]| sgd_momentum(step, param, &grad, buffer)),
            None => change([param], |[param]| sgd_plain(step, param, &grad)),
        }
    }, single => {
        let (mut wide, grad) = (Single::load(param.as_view()), Single::load(grad));
        let mut buffer = momentum.as_ref().map(|buffer| Single::load(buffer.as_view()));
        sgd(step, wide.view_mut(), grad.view(), buffer.as_mut().map(Single::view_mut));
        wide.store(param);
        store(buffer, momentum);
    });
}

/// A parameter, its gradient, and what Adam keeps of earlier ones.
pub struct AdamTensors<'a> {
    /// The parameter.
    pub param: ViewMut<'a>,
    /// Its gradient.
    pub grad: View<'a>,
    /// The mean of gradients.
    pub exp_avg: ViewMut<'a>,
    /// The mean of their squares.
    pub exp_avg_sq: ViewMut<'a>,
    /// The largest mean of squares so far, needed if the step is of the amsgrad kind.
    pub max_exp_avg_sq: Option<ViewMut<'a>>,
}

/// One step of Adam. `max_exp_avg_sq` is needed if the step is of the amsgrad kind.
pub fn adam(
    step: AdamStep,
    param: ViewMut<'_>,
    grad: View<'_>,
    exp_avg: ViewMut<'_>,
    exp_avg_sq: ViewMut<'_>,
    max_exp_avg_sq: Option<ViewMut<'_>>,
) {
    adam_all(step, vec![AdamTensors { param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq }]);
}

/// One step of Adam for each parameter, threads sharing all of them.
pub fn adam_all(step: AdamStep, mut all: Vec<AdamTensors<'_>>) {
    let (single, double) = (Adam::<f32>::new(step), Adam::<f64>::new(step));
    let bytes: usize = all.iter().map(|x| x.param.layout().len() * x.param.dtype().size()).sum();
    let mut pieces = Vec::with_capacity(all.len());
    for tensors in &mut all {
        tensors.check(step);
        match tensors.param.dtype() {
            DType::F32 if tensors.is_contiguous() => Slices::of(tensors, step, Piece::Single, &mut pieces),
            DType::F64 if tensors.is_contiguous() => Slices::of(tensors, step, Piece::Double, &mut pieces),
            _ => tensors.step(step),
        }
    }
    // Seven streams, at some 20 bytes a nanosecond.
    each_of(pieces, bytes / 3, |piece| match piece {
        Piece::Single(slices) => slices.step(&single),
        Piece::Double(slices) => slices.step(&double),
    });
}

/// What one thread takes at a time.
enum Piece<'a> {
    Single(Slices<'a, f32>),
    Double(Slices<'a, f64>),
}

/// Parts of a parameter and its state that belong together.
struct Slices<'a, T> {
    param: &'a mut [T],
    grad: &'a [T],
    mean: &'a mut [T],
    square: &'a mut [T],
    max: Option<&'a mut [T]>,
}

/// Elements of one piece: four arrays of them stay in the second-level cache.
const PIECE: usize = 8192;

impl<'a, T: Float> Slices<'a, T> {
    /// Adds the pieces of contiguous tensors to a list.
    fn of(
        tensors: &'a mut AdamTensors<'_>,
        step: AdamStep,
        piece: impl Fn(Slices<'a, T>) -> Piece<'a>,
        pieces: &mut Vec<Piece<'a>>,
    ) {
        let all = "just seen to be contiguous";
        let max = tensors.max_exp_avg_sq.as_mut().filter(|_| step.amsgrad);
        let mut max = max.map(|max| max.slice::<T>().expect(all).chunks_mut(PIECE));
        let params = tensors.param.slice::<T>().expect(all).chunks_mut(PIECE);
        let grads = tensors.grad.slice::<T>().expect(all).chunks(PIECE);
        let means = tensors.exp_avg.slice::<T>().expect(all).chunks_mut(PIECE);
        let squares = tensors.exp_avg_sq.slice::<T>().expect(all).chunks_mut(PIECE);
        for (((param, grad), mean), square) in params.zip(grads).zip(means).zip(squares) {
            let max = max.as_mut().and_then(Iterator::next);
            pieces.push(piece(Slices { param, grad, mean, square, max }));
        }
    }

    fn step(self, adam: &Adam<T>) {
        let Slices { param, grad, mean, square, max } = self;
        match max {
            Some(max) => adam_amsgrad(adam, param, grad, mean, square, max),
            None => adam_plain(adam, param, grad, mean, square),
        }
    }
}

impl AdamTensors<'_> {
    fn check(&self, step: AdamStep) {
        let state = [&self.exp_avg, &self.exp_avg_sq].into_iter().chain(&self.max_exp_avg_sq);
        check(&self.param, self.grad.layout(), state);
        assert!(!step.amsgrad || self.max_exp_avg_sq.is_some(), "adam: amsgrad without its buffer");
    }

    fn is_contiguous(&self) -> bool {
        let state = [&self.param, &self.exp_avg, &self.exp_avg_sq].into_iter().chain(&self.max_exp_avg_sq);
        self.grad.layout().is_contiguous() && state.into_iter().all(|view| view.layout().is_contiguous())
    }

    /// The step of tensors that lie in any way, or in half precision, which is computed in `f32`.
    fn step(&mut self, step: AdamStep) {
        if self.param.dtype() == DType::F64 { self.step_as::<f64>(step) } else { self.step_as::<f32>(step) }
    }

    fn step_as<T: Float>(&mut self, step: AdamStep) {
        let states =
            [&self.param, &self.exp_avg, &self.exp_avg_sq].map(|view| load::<T>(view.as_view()).into_owned());
        let [mut param, mut mean, mut square] = states;
        let mut max = self.max_exp_avg_sq.as_ref().map(|max| load::<T>(max.as_view()).into_owned());
        let slices = Slices {
            param: &mut param,
            grad: &load(self.grad),
            mean: &mut mean,
            square: &mut square,
            max: max.as_deref_mut().filter(|_| step.amsgrad),
        };
        slices.step(&Adam::new(step));
        put(&param, &mut self.param);
        put(&mean, &mut self.exp_avg);
        put(&square, &mut self.exp_avg_sq);
        if let (Some(max), Some(view)) = (max, &mut self.max_exp_avg_sq) {
            put(&max, view);
        }
    }
}

/// Rounds elements back into a view.
fn put<T: Element>(elements: &[T], view: &mut ViewMut<'_>) {
    let layout = crate::elementwise::contiguous(view.shape());
    copy(View::of(elements, &layout), view.reborrow());
}

fn check<'a>(param: &ViewMut<'_>, grad: &Layout, state: impl Iterator<Item = &'a ViewMut<'a>>) {
    assert_eq!(grad.shape(), param.shape(), "optimizer: gradient and parameter have different shapes");
    for state in state {
        assert_eq!(state.shape(), param.shape(), "optimizer: state and parameter have different shapes");
    }
}

fn store(wide: Option<Single>, view: Option<ViewMut<'_>>) {
    if let (Some(wide), Some(view)) = (wide, view) {
        wide.store(view);
    }
}

/// Calls `f` with the elements of all views in row-major order, to be changed.
fn change<T: Float, const N: usize>(mut views: [ViewMut<'_>; N], f: impl FnOnce([&mut [T]; N])) {
    if views.iter().all(|view| view.layout().is_contiguous()) {
        return f(views.each_mut().map(|view| view.slice().expect("just seen to be contiguous")));
    }
    let mut packed = views.each_ref().map(|view| pack::<T>(view.as_view()).into_owned());
    f(packed.each_mut().map(|elements| &mut elements[..]));
    for (elements, view) in packed.iter().zip(views) {
        let layout = crate::elementwise::contiguous(view.shape());
        copy(View::of(elements, &layout), view);
    }
}

/// The gradient with its sign and the pull of weight decay.
#[inline(always)]
fn towards<T: Float>(grad: T, param: T, sign: T, decay: T) -> T {
    let grad = sign * grad;
    if decay == T::ZERO { grad } else { grad + decay * param }
}

fn sign<T: Float>(maximize: bool) -> T {
    if maximize { -T::ONE } else { T::ONE }
}

fn sgd_plain<T: Float>(step: SgdStep, param: &mut [T], grad: &[T]) {
    let (sign, decay, lr) = (sign(step.maximize), T::narrow(step.weight_decay), T::narrow(-step.lr));
    sgd_loop(param, grad, [sign, decay, lr]);
}

wide! {
    fn sgd_loop[T: Float](param: &mut [T], grad: &[T], numbers: [T; 3]) {
        let [sign, decay, lr] = numbers;
        for (param, &grad) in param.iter_mut().zip(grad) {
            *param = *param + lr * towards(grad, *param, sign, decay);
        }
    }
}

wide! {
    fn sgd_momentum[T: Float](step: SgdStep, param: &mut [T], grad: &[T], buffer: &mut [T]) {
        let (sign, decay, lr) = (sign(step.maximize), T::narrow(step.weight_decay), T::narrow(-step.lr));
        let (momentum, fresh) = (T::narrow(step.momentum), T::narrow(1.0 - step.dampening));
        for ((param, &grad), buffer) in param.iter_mut().zip(grad).zip(buffer) {
            let grad = towards(grad, *param, sign, decay);
            *buffer = if step.first { grad } else { *buffer * momentum + fresh * grad };
            let direction = if step.nesterov { grad + momentum * *buffer } else { *buffer };
            *param = *param + lr * direction;
        }
    }
}

/// The numbers of a step of Adam in the precision of the parameter.
struct Adam<T> {
    size: T,
    correction: T,
    eps: T,
    beta1: T,
    beta2: T,
    fresh1: T,
    fresh2: T,
    sign: T,
    shrink: T,
    decay: T,
    /// As torch's lerp, the mean moves from its nearer end.
    near: bool,
}

impl<T: Float> Adam<T> {
    fn new(step: AdamStep) -> Adam<T> {
        let count = step.step as f64;
        let decay = |wanted: bool| if wanted { step.weight_decay } else { 0.0 };
        Adam {
            size: T::narrow(-(step.lr / (1.0 - step.beta1.powf(count)))),
            correction: T::narrow(1.0 / (1.0 - step.beta2.powf(count)).sqrt()),
            eps: T::narrow(step.eps),
            beta1: T::ONE - T::narrow(1.0 - step.beta1),
            beta2: T::narrow(step.beta2),
            fresh1: T::narrow(1.0 - step.beta1),
            fresh2: T::narrow(1.0 - step.beta2),
            sign: sign(step.maximize),
            shrink: T::narrow(1.0 - step.lr * decay(step.decoupled)),
            decay: T::narrow(decay(!step.decoupled)),
            near: 1.0 - step.beta1 < 0.5,
        }
    }

    /// The new parameter; `largest` picks what to divide by, given the mean of squares.
    #[inline(always)]
    fn next(&self, param: T, grad: T, mean: &mut T, square: &mut T, largest: impl FnOnce(T) -> T) -> T {
        let param = param * self.shrink;
        let grad = towards(grad, param, self.sign, self.decay);
        *mean =
            if self.near { *mean + self.fresh1 * (grad - *mean) } else { grad - (grad - *mean) * self.beta1 };
        *square = *square * self.beta2 + self.fresh2 * grad * grad;
        // Not divided by the correction: a second division would take longer than memory does.
        param + self.size * *mean / (largest(*square).sqrt() * self.correction + self.eps)
    }
}

wide! {
    fn adam_plain[T: Float](adam: &Adam<T>, param: &mut [T], grad: &[T], mean: &mut [T], square: &mut [T]) {
        for (((param, &grad), mean), square) in param.iter_mut().zip(grad).zip(mean).zip(square) {
            *param = adam.next(*param, grad, mean, square, |square| square);
        }
    }
}

wide! {
    fn adam_amsgrad[T: Float](
        adam: &Adam<T>, param: &mut [T], grad: &[T], mean: &mut [T], square: &mut [T], max: &mut [T],
    ) {
        for ((((param, &grad), mean), square), max) in
            param.iter_mut().zip(grad).zip(mean).zip(square).zip(max)
        {
            *param = adam.next(*param, grad, mean, square, |square| {
                *max = if *max > square { *max } else { square };
                *max
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;
    use crate::testing::{Array, assert_close};

    const SGD: SgdStep = SgdStep {
        lr: 0.5,
        momentum: 0.0,
        dampening: 0.0,
        weight_decay: 0.0,
        nesterov: false,
        maximize: false,
        first: true,
    };

    const ADAM: AdamStep = AdamStep {
        lr: 0.1,
        beta1: 0.9,
        beta2: 0.99,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
        step: 1,
    };

    #[test]
    fn tensors_of_all_sizes_and_types_take_one_step_together() {
        let sizes = [1, 7, PIECE - 1, PIECE, 3 * PIECE + 5, 0];
        let arrays = |seed| sizes.map(|size| Array::<f32>::random(&[size], seed));
        let (grads, before, old) = (arrays(1), arrays(2), arrays(3));
        let run = |threads: usize| {
            let (mut params, mut means, mut squares) = (before.clone(), old.clone(), arrays(4));
            squares.iter_mut().flat_map(|square| &mut square.elements).for_each(|x| *x = x.abs());
            let doubles = Array::<f64>::random(&[5], 5);
            let mut other = [doubles.clone(), doubles.clone(), Array::zeros(&[5])];
            let [param, exp_avg, exp_avg_sq] = other.each_mut().map(|array| array.view_mut());
            let mut all =
                vec![AdamTensors { param, grad: doubles.view(), exp_avg, exp_avg_sq, max_exp_avg_sq: None }];
            let state = params.iter_mut().zip(&grads).zip(&mut means).zip(&mut squares);
            all.extend(state.map(|(((param, grad), mean), square)| AdamTensors {
                param: param.view_mut(),
                grad: grad.view(),
                exp_avg: mean.view_mut(),
                exp_avg_sq: square.view_mut(),
                max_exp_avg_sq: None,
            }));
            crate::threads::with_threads(threads, || adam_all(AdamStep { step: 5, ..ADAM }, all));
            (
                params.map(|array| array.elements),
                means.map(|array| array.elements),
                other.map(|array| array.elements),
            )
        };
        let (params, means, other) = run(1);
        assert_eq!((&params, &means), (&run(2).0, &run(3).1));
        assert_ne!(other[0], Array::<f64>::random(&[5], 5).elements);
        for (i, (param, mean)) in params.iter().zip(&means).enumerate() {
            for (j, &mean) in mean.iter().enumerate() {
                let (g, m) = (grads[i].elements[j], old[i].elements[j]);
                assert!((mean - (m + 0.1 * (g - m))).abs() < 1e-5);
                assert!(param[j].is_nan() || param[j] != before[i].elements[j] || mean == 0.0);
            }
        }
    }

    fn sgd_twice(step: SgdStep) -> f64 {
        let (mut param, grad) = (Array::new(&[1], &[1.0f64]), Array::new(&[1], &[2.0f64]));
        let mut buffer = Array::<f64>::zeros(&[1]);
        sgd(step, param.view_mut(), grad.view(), Some(buffer.view_mut()));
        sgd(SgdStep { first: false, ..step }, param.view_mut(), grad.view(), Some(buffer.view_mut()));
        param.elements[0]
    }

    #[test]
    fn sgd_follows_its_formula() {
        assert_eq!(sgd_twice(SGD), -1.0);
        assert_eq!(sgd_twice(SgdStep { maximize: true, ..SGD }), 3.0);
        // 1 - 0.5 (2 + 0.5) = -0.25, then -0.25 - 0.5 (2 - 0.125)
        assert_eq!(sgd_twice(SgdStep { weight_decay: 0.5, ..SGD }), -1.1875);
        // 1 - 0.5 * 2 = 0, then 0 - 0.5 (0.5 * 2 + 2)
        assert_eq!(sgd_twice(SgdStep { momentum: 0.5, ..SGD }), -1.5);
        // 0, then 0 - 0.5 (0.5 * 2 + 0.75 * 2)
        assert_eq!(sgd_twice(SgdStep { momentum: 0.5, dampening: 0.25, ..SGD }), -1.25);
        // 1 - 0.5 (2 + 0.5 * 2) = -0.5, then -0.5 - 0.5 (2 + 0.5 * 3)
        assert_eq!(sgd_twice(SgdStep { momentum: 0.5, nesterov: true, ..SGD }), -2.25);
    }

    /// Adam on one number, straight from the paper, with torch's options.
    fn reference(step: AdamStep, grads: &[f64]) -> f64 {
        let (mut param, mut m, mut v, mut max) = (1.0, 0.0, 0.0, 0.0f64);
        for (t, grad) in (1..).zip(grads) {
            let mut grad = if step.maximize { -grad } else { *grad };
            if step.decoupled {
                param -= step.lr * step.weight_decay * param;
            } else {
                grad += step.weight_decay * param;
            }
            m = step.beta1 * m + (1.0 - step.beta1) * grad;
            v = step.beta2 * v + (1.0 - step.beta2) * grad * grad;
            max = max.max(v);
            let v = if step.amsgrad { max } else { v } / (1.0 - step.beta2.powi(t));
            param -= step.lr * (m / (1.0 - step.beta1.powi(t))) / (v.sqrt() + step.eps);
        }
        param
    }

    #[test]
    fn adam_follows_its_formula() {
        let grads = [2.0, -1.0, 0.1, 0.0];
        for step in [
            ADAM,
            AdamStep { weight_decay: 0.1, ..ADAM },
            AdamStep { weight_decay: 0.1, decoupled: true, ..ADAM },
            AdamStep { amsgrad: true, ..ADAM },
            AdamStep { maximize: true, beta1: 0.3, ..ADAM },
        ] {
            let mut state = [1.0f64, 0.0, 0.0, 0.0].map(|x| Array::new(&[1], &[x]));
            for (t, &grad) in (1..).zip(&grads) {
                let [param, mean, square, max] = state.each_mut().map(|array| array.view_mut());
                let grad = Array::new(&[1], &[grad]);
                adam(AdamStep { step: t, ..step }, param, grad.view(), mean, square, Some(max));
            }
            assert_close(&state[0].elements, &[reference(step, &grads)], 1e-12);
        }
    }

    #[test]
    fn any_precision_and_arrangement_takes_the_same_step() {
        let numbers: Vec<f64> = (0..6).map(|i| f64::from(i) - 2.5).collect();
        let expected: Vec<f64> = numbers.iter().map(|grad| 1.0 - 0.1 * grad.signum()).collect();
        let grad = Array::new(&[2, 3], &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>());
        let turned = || Array::<f32>::zeros(&[3, 2]).with(|layout| layout.transpose(0, 1));
        let (mut param, mut mean, mut square) = (turned(), turned(), turned());
        param.elements.fill(1.0);
        adam(ADAM, param.view_mut(), grad.view(), mean.view_mut(), square.view_mut(), None);
        assert_close(&param.wide(), &expected, 1e-6);
        let grad = Array::new(&[6], &numbers.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>());
        let mut state = [1.0, 0.0, 0.0].map(|x| Array::new(&[6], &[bf16::from_f32(x); 6]));
        let [param, mean, square] = state.each_mut().map(|array| array.view_mut());
        adam(ADAM, param, grad.view(), mean, square, None);
        assert_close(&state[0].wide(), &expected, 5e-3);
    }

    #[test]
    #[should_panic(expected = "momentum without its buffer")]
    fn momentum_needs_its_buffer() {
        let grad = Array::<f32>::zeros(&[1]);
        sgd(SgdStep { momentum: 0.9, ..SGD }, grad.clone().view_mut(), grad.view(), None);
    }
}
