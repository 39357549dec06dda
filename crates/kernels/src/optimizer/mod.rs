//! Whole optimizer steps in one pass over each parameter.
//!
//! A [`Rule`] says what one step does to the elements of a parameter and of what is kept beside it;
//! everything else (threads, layouts, half precision) is here, once for all rules. Formulas and order
//! of operations are torch's. Half precision is computed in `f32`.

mod adam;
mod adaptive;
mod descent;
mod pieces;

pub use adam::{AdamStep, AdamaxStep, NadamStep, RadamStep};
pub use adaptive::{AdadeltaStep, AdagradStep, RmspropStep};
pub use descent::{AsgdStep, RpropStep, SgdStep};

use crate::computing::load;
use crate::elementwise::{contiguous, copy};
use crate::scratch::Scratch;
use crate::threads::each;
use crate::wide::wide;
use crate::{DType, Element, Float, View, ViewMut};
use pieces::Pieces;
use smallvec::SmallVec;

/// The most tensors that a rule keeps beside a parameter.
pub const MOST_STATES: usize = 3;

/// Parameters whose pieces are shared between threads at a time.
const TOGETHER: usize = 32;

/// The numbers of one step, and what it does with them.
pub trait Rule: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// How many tensors of the parameter's shape it keeps between steps.
    fn states(&self) -> usize;

    /// Takes the step for elements that lie one after the other. There are [`states`](Rule::states)
    /// lists of states, and all lists are of one length.
    fn apply<T: Float>(&self, param: &mut [T], grad: &[T], states: &mut [&mut [T]]);
}

/// A parameter, its gradient, and what is kept beside it.
pub struct Tensors<'a> {
    /// The parameter.
    pub param: ViewMut<'a>,
    /// Its gradient.
    pub grad: View<'a>,
    /// What the rule keeps, in its order.
    pub states: SmallVec<[ViewMut<'a>; MOST_STATES]>,
}

impl<'a> Tensors<'a> {
    /// A parameter with what belongs to it.
    pub fn new(
        param: ViewMut<'a>,
        grad: View<'a>,
        states: impl IntoIterator<Item = ViewMut<'a>>,
    ) -> Tensors<'a> {
        Tensors { param, grad, states: states.into_iter().collect() }
    }

    fn check(&self, states: usize) {
        assert_eq!(self.states.len(), states, "optimizer: the rule keeps {states} tensors");
        let shape = self.param.shape();
        assert_eq!(self.grad.shape(), shape, "optimizer: gradient and parameter have different shapes");
        for state in &self.states {
            assert_eq!(state.shape(), shape, "optimizer: state and parameter have different shapes");
        }
    }

    fn is_plain(&self) -> bool {
        let dtype = self.param.dtype();
        let plain = |of: DType, is_contiguous: bool| of == dtype && is_contiguous;
        plain(dtype, self.param.layout().is_contiguous())
            && plain(self.grad.dtype(), self.grad.layout().is_contiguous())
            && self.states.iter().all(|state| plain(state.dtype(), state.layout().is_contiguous()))
    }

    /// The step of tensors that lie in any way.
    fn step_packed<R: Rule>(&mut self, rule: &R) {
        if self.param.dtype() == DType::F64 {
            self.step_packed_as::<f64, R>(rule);
        } else {
            self.step_packed_as::<f32, R>(rule);
        }
    }

    fn step_packed_as<T: Float, R: Rule>(&mut self, rule: &R) {
        let packed = |view: &ViewMut<'_>| load::<T>(view.as_view()).into_scratch();
        let mut param = packed(&self.param);
        let mut states: SmallVec<[Scratch<T>; MOST_STATES]> = self.states.iter().map(packed).collect();
        let mut lists: SmallVec<[&mut [T]; MOST_STATES]> =
            states.iter_mut().map(|list| &mut list[..]).collect();
        rule.apply(&mut param, &load(self.grad), &mut lists);
        put(&param, &mut self.param);
        lists.iter().zip(&mut self.states).for_each(|(elements, view)| put(elements, view));
    }
}

/// Rounds elements back into a view.
fn put<T: Element>(elements: &[T], view: &mut ViewMut<'_>) {
    let layout = contiguous(view.shape());
    copy(View::of(elements, &layout), view.reborrow());
}

/// One step of one parameter.
pub fn step<R: Rule>(rule: &R, tensors: Tensors<'_>) {
    step_all(std::slice::from_ref(rule), &mut [tensors]);
}

/// One step of each parameter by the rule of the same index, threads sharing all of them.
///
/// # Panics
/// If shapes differ, or there is not one rule per parameter with as many states as it keeps.
pub fn step_all<R: Rule>(rules: &[R], all: &mut [Tensors<'_>]) {
    assert_eq!(rules.len(), all.len(), "optimizer: there is a rule per parameter");
    for (rules, all) in rules.chunks(TOGETHER).zip(all.chunks_mut(TOGETHER)) {
        step_together(rules, all);
    }
}

fn step_together<R: Rule>(rules: &[R], all: &mut [Tensors<'_>]) {
    let mut shared: SmallVec<[Pieces<'_, R>; TOGETHER]> = SmallVec::new();
    let (mut count, mut bytes) = (0, 0);
    for (rule, tensors) in rules.iter().zip(all) {
        tensors.check(rule.states());
        if !tensors.is_plain() {
            tensors.step_packed(rule);
            continue;
        }
        bytes += tensors.param.layout().len() * tensors.param.dtype().size();
        let pieces = Pieces::new(rule, tensors, count);
        count = pieces.end();
        shared.push(pieces);
    }
    // Up to seven streams, at some 20 bytes a nanosecond.
    each(count, bytes / 3, |i| {
        if let Some(pieces) = shared.iter().find(|pieces| i < pieces.end()) {
            pieces.step_next();
        }
    });
}

/// What a step does to one element, given those that are kept: the new ones.
trait Update<T: Float, const STATES: usize>: Copy {
    fn next(&self, param: T, grad: T, states: [T; STATES]) -> (T, [T; STATES]);
}

wide! {
    fn each_alone[T: Float, U: Update<T, 0>](update: U, param: &mut [T], grad: &[T]) {
        for (param, &grad) in param.iter_mut().zip(grad) {
            (*param, []) = update.next(*param, grad, []);
        }
    }
}

wide! {
    fn each_with_one[T: Float, U: Update<T, 1>](update: U, param: &mut [T], grad: &[T], a: &mut [T]) {
        for ((param, &grad), a) in param.iter_mut().zip(grad).zip(a) {
            (*param, [*a]) = update.next(*param, grad, [*a]);
        }
    }
}

wide! {
    fn each_with_two[T: Float, U: Update<T, 2>](
        update: U, param: &mut [T], grad: &[T], a: &mut [T], b: &mut [T],
    ), heavy if true {
        for (((param, &grad), a), b) in param.iter_mut().zip(grad).zip(a).zip(b) {
            (*param, [*a, *b]) = update.next(*param, grad, [*a, *b]);
        }
    }
}

wide! {
    fn each_with_three[T: Float, U: Update<T, 3>](
        update: U, param: &mut [T], grad: &[T], a: &mut [T], b: &mut [T], c: &mut [T],
    ) {
        for ((((param, &grad), a), b), c) in param.iter_mut().zip(grad).zip(a).zip(b).zip(c) {
            (*param, [*a, *b, *c]) = update.next(*param, grad, [*a, *b, *c]);
        }
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

/// The larger of two, and what is not a number if either is none.
#[inline(always)]
fn larger<T: Float>(a: T, b: T) -> T {
    if a > b || a.is_nan() { a } else { b }
}

/// A mean that moves towards a gradient; as torch's lerp, from its nearer end.
#[derive(Clone, Copy)]
struct Mean<T> {
    fresh: T,
    kept: T,
    near: bool,
}

impl<T: Float> Mean<T> {
    fn new(beta: f64) -> Mean<T> {
        let fresh = T::narrow(1.0 - beta);
        Mean { fresh, kept: T::ONE - fresh, near: 1.0 - beta < 0.5 }
    }

    #[inline(always)]
    fn next(&self, mean: T, grad: T) -> T {
        if self.near { mean + self.fresh * (grad - mean) } else { grad - (grad - mean) * self.kept }
    }
}

#[cfg(test)]
mod tests;
