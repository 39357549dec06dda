//! Connectionist temporal classification: how likely a sequence of labels is, over all its alignments.
//!
//! Between the labels of a sample, and around them, lie blanks: `2 n + 1` states for `n` labels. An
//! alignment starts in one of the first two states, ends in one of the last two, and each step stays,
//! goes on by one, or skips a blank between different labels. All sums are of probabilities by their
//! logarithms, in double precision.

use crate::elementwise::{Single, floats, pack, to_vec, write};
use crate::scratch::Elements;
use crate::{DType, Float, OutOfRange, View, ViewMut, threads};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Ix3};

/// What the samples of a batch were to say, and how long each of them is.
#[derive(Clone, Copy)]
pub struct Sequences<'a> {
    /// The labels of i64: `[samples, most]`, or those of all samples one after the other.
    pub targets: View<'a>,
    /// How many steps of each sample count.
    pub steps: &'a [usize],
    /// How many labels each sample has.
    pub labels: &'a [usize],
    /// The class that stands for no label.
    pub blank: usize,
}

/// `out` gets, per sample, the negative log-likelihood of its labels, given log-probabilities
/// `[steps, samples, classes]`. `log_alpha`, of f64 and `[samples, steps, 2 * most labels + 1]`, gets
/// the likelihood of all beginnings of alignments by where they end.
pub fn ctc_loss(
    log_probs: View<'_>,
    sequences: Sequences<'_>,
    out: ViewMut<'_>,
    log_alpha: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let batch = Batch::new(log_probs.shape(), sequences)?;
    floats!(log_probs.dtype(), T => forward::<T>(log_probs, &batch, out, log_alpha), single => {
        let mut wide = Single::zeros(out.shape());
        forward::<f32>(Single::load(log_probs).view(), &batch, wide.view_mut(), log_alpha);
        wide.store(out);
    });
    Ok(())
}

/// What [`ctc_loss`] gave.
#[derive(Clone, Copy)]
pub struct Aligned<'a> {
    /// The losses of samples.
    pub losses: View<'a>,
    /// The likelihood of all beginnings.
    pub log_alpha: View<'a>,
    /// Whether samples without any alignment have no gradient, instead of none that is a number.
    pub zero_infinity: bool,
}

/// The gradient of [`ctc_loss`] for log-probabilities, whose shape `out` has, that were normalized
/// by a log-softmax: as in torch, it is what the softmax hands on, and not the plain derivative.
pub fn ctc_loss_backward(
    grad: View<'_>,
    log_probs: View<'_>,
    sequences: Sequences<'_>,
    aligned: Aligned<'_>,
    out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let batch = Batch::new(log_probs.shape(), sequences)?;
    let grad = to_vec::<f64>(grad);
    floats!(log_probs.dtype(), T => backward::<T>(&grad, log_probs, &batch, aligned, out), single => {
        let mut wide = Single::zeros(out.shape());
        backward::<f32>(&grad, Single::load(log_probs).view(), &batch, aligned, wide.view_mut());
        wide.store(out);
    });
    Ok(())
}

/// Labels that are all classes.
struct Batch<'a> {
    labels: Elements<'a, i64>,
    /// Where the labels of each sample start.
    starts: Vec<usize>,
    counts: &'a [usize],
    steps: &'a [usize],
    blank: usize,
    shape: [usize; 3],
}

impl<'a> Batch<'a> {
    fn new(shape: &[usize], sequences: Sequences<'a>) -> Result<Batch<'a>, OutOfRange> {
        let &[steps, samples, classes] = shape else {
            panic!("ctc_loss: {shape:?} is not [steps, samples, classes]")
        };
        assert_eq!(sequences.steps.len(), samples, "ctc_loss: a number of steps per sample");
        assert_eq!(sequences.labels.len(), samples, "ctc_loss: a number of labels per sample");
        assert!(sequences.blank < classes, "ctc_loss: blank is a class");
        let labels = pack::<i64>(sequences.targets);
        let starts: Vec<usize> = match *sequences.targets.shape() {
            [_, most] => (0..samples).map(|sample| sample * most).collect(),
            _ => {
                let ends = sequences.labels.iter().scan(0, |end, count| {
                    *end += count;
                    Some(*end)
                });
                ends.zip(sequences.labels).map(|(end, count)| end - count).collect()
            }
        };
        for (&start, &count) in starts.iter().zip(sequences.labels) {
            if let Some(&index) = labels[start..][..count].iter().find(|&&label| !is_class(label, classes)) {
                return Err(OutOfRange { index, size: classes });
            }
        }
        let Sequences { labels: counts, steps: each, blank, .. } = sequences;
        Ok(Batch { labels, starts, counts, steps: each, blank, shape: [steps, samples, classes] })
    }

    fn states(&self, sample: usize) -> States<'_> {
        let labels = &self.labels[self.starts[sample]..][..self.counts[sample]];
        States { labels, blank: self.blank, steps: self.steps[sample] }
    }

    /// Roughly how long one pass over all states takes, in nanoseconds.
    fn cost(&self) -> usize {
        let states = self.counts.iter().map(|labels| 2 * labels + 1);
        states.zip(self.steps).map(|(states, steps)| 40 * states * steps).sum()
    }
}

fn is_class(label: i64, classes: usize) -> bool {
    usize::try_from(label).is_ok_and(|label| label < classes)
}

/// The states of one sample.
struct States<'a> {
    labels: &'a [i64],
    blank: usize,
    steps: usize,
}

impl States<'_> {
    fn count(&self) -> usize {
        2 * self.labels.len() + 1
    }

    /// The class that is heard in a state.
    fn class(&self, state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] as usize }
    }

    /// Whether one may come to this state from two states before.
    fn skips(&self, state: usize) -> bool {
        state >= 2 && !state.is_multiple_of(2) && self.labels[state / 2] != self.labels[state / 2 - 1]
    }

    /// Fills `alpha`, a row of `width` states per step, with the likelihood of all beginnings.
    fn beginnings(&self, log_prob: impl Fn(usize, usize) -> f64, alpha: &mut [f64], width: usize) {
        let count = self.count();
        for step in 0..self.steps {
            let (before, here) = alpha.split_at_mut(step * width);
            let before = before.rchunks(width.max(1)).next().unwrap_or(&[]);
            for (state, here) in here[..count].iter_mut().enumerate() {
                let come = match step {
                    0 if state < 2 => 0.0,
                    0 => f64::NEG_INFINITY,
                    _ => {
                        let next = if state > 0 { before[state - 1] } else { f64::NEG_INFINITY };
                        let skip = if self.skips(state) { before[state - 2] } else { f64::NEG_INFINITY };
                        log_sum([before[state], next, skip])
                    }
                };
                *here = come + log_prob(step, self.class(state));
            }
        }
    }

    /// The likelihood of all alignments, of that of their beginnings.
    fn total(&self, alpha: &[f64], width: usize) -> f64 {
        match (self.steps, self.labels.len()) {
            (0, 0) => 0.0,
            (0, _) => f64::NEG_INFINITY,
            (steps, labels) => {
                let last = &alpha[(steps - 1) * width..];
                let in_label = if labels > 0 { last[2 * labels - 1] } else { f64::NEG_INFINITY };
                log_sum([last[2 * labels], in_label, f64::NEG_INFINITY])
            }
        }
    }

    /// Turns the likelihood `beta` of all ends after `step` into that of all ends from it on.
    fn step_back(&self, step: usize, log_prob: impl Fn(usize) -> f64, beta: &mut [f64]) {
        let count = self.count();
        for state in 0..count {
            let go = if step + 1 == self.steps {
                if state + 2 >= count { 0.0 } else { f64::NEG_INFINITY }
            } else {
                let next = if state + 1 < count { beta[state + 1] } else { f64::NEG_INFINITY };
                let skips = state + 2 < count && self.skips(state + 2);
                log_sum([beta[state], next, if skips { beta[state + 2] } else { f64::NEG_INFINITY }])
            };
            beta[state] = go + log_prob(self.class(state));
        }
    }
}

/// The logarithm of a sum, of the logarithms of its terms.
fn log_sum(terms: [f64; 3]) -> f64 {
    let most = terms[0].max(terms[1]).max(terms[2]);
    if most == f64::NEG_INFINITY {
        return most;
    }
    terms.iter().map(|term| (term - most).exp()).sum::<f64>().ln() + most
}

fn forward<T: Float>(log_probs: View<'_>, batch: &Batch<'_>, mut out: ViewMut<'_>, log_alpha: ViewMut<'_>) {
    let log_probs = as_steps::<T>(&log_probs);
    let [steps, samples, _] = batch.shape;
    let width = log_alpha.shape()[2];
    write::<f64>(log_alpha, |log_alpha| {
        log_alpha.fill(f64::NEG_INFINITY);
        threads::each_chunk(log_alpha, steps * width, batch.cost(), |sample, alpha| {
            let log_probs = log_probs.index_axis(Axis(1), sample);
            batch.states(sample).beginnings(|step, class| log_probs[[step, class]].wide(), alpha, width);
        });
        let mut out = out.array::<T>();
        for sample in 0..samples {
            let alpha = &log_alpha[sample * steps * width..];
            out[[sample]] = T::narrow(-batch.states(sample).total(alpha, width));
        }
    });
}

fn as_steps<'a, T: Float>(log_probs: &View<'a>) -> ndarray::ArrayView3<'a, T> {
    log_probs.array::<T>().into_dimensionality::<Ix3>().expect("a batch has three dimensions")
}

fn backward<T: Float>(
    grad: &[f64],
    log_probs: View<'_>,
    batch: &Batch<'_>,
    aligned: Aligned<'_>,
    mut out: ViewMut<'_>,
) {
    let log_probs = as_steps::<T>(&log_probs);
    let (width, losses) = (aligned.log_alpha.shape()[2], to_vec::<f64>(aligned.losses));
    let log_alpha = pack::<f64>(aligned.log_alpha);
    let mut out = out.array::<T>().into_dimensionality::<Ix3>().expect("a batch has three dimensions");
    out.fill(T::ZERO);
    let [steps, _, classes] = batch.shape;
    let samples: Vec<_> = out.axis_iter_mut(Axis(1)).enumerate().collect();
    threads::each_of(samples, 2 * batch.cost() + 10 * log_probs.len(), |(sample, out)| {
        if aligned.zero_infinity && losses[sample] == f64::INFINITY {
            return;
        }
        let states = batch.states(sample);
        let alpha = &log_alpha[sample * steps * width..][..steps * width];
        // From the beginnings and not from the loss, which was rounded.
        let loss = -states.total(alpha, width);
        let log_probs = log_probs.index_axis(Axis(1), sample);
        gradient(&states, (alpha, width), loss, grad[sample], log_probs, out, &mut vec![0.0; classes]);
    });
}

/// The gradient of one sample. `occupied` is memory for a number per class.
fn gradient<T: Float>(
    states: &States<'_>,
    (alpha, width): (&[f64], usize),
    loss: f64,
    grad: f64,
    log_probs: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
    occupied: &mut [f64],
) {
    let mut beta = vec![f64::NEG_INFINITY; states.count()];
    for step in (0..states.steps).rev() {
        states.step_back(step, |class| log_probs[[step, class]].wide(), &mut beta);
        occupied.fill(f64::NEG_INFINITY);
        for (state, (begins, ends)) in alpha[step * width..].iter().zip(&beta).enumerate() {
            let occupied = &mut occupied[states.class(state)];
            *occupied = log_sum([*occupied, begins + ends, f64::NEG_INFINITY]);
        }
        for (class, &occupied) in occupied.iter().enumerate() {
            let log_prob = log_probs[[step, class]].wide();
            // Both halves count this step.
            let share = (occupied + loss - log_prob).exp();
            out[[step, class]] = T::narrow((log_prob.exp() - share) * grad);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    /// Three steps, one sample, classes blank, 1 and 2.
    const PROBS: [f64; 9] = [0.5, 0.3, 0.2, 0.1, 0.6, 0.3, 0.4, 0.4, 0.2];

    fn loss(labels: &[i64], steps: usize) -> Result<f64, OutOfRange> {
        let log_probs = Array::new(&[3, 1, 3], &PROBS.map(f64::ln));
        let targets = Array::new(&[labels.len()], labels);
        let width = 2 * labels.len() + 1;
        let (mut out, mut alpha) = (Array::<f64>::zeros(&[1]), Array::<f64>::zeros(&[1, 3, width]));
        let (steps, count) = ([steps], [labels.len()]);
        let sequences = Sequences { targets: targets.view(), steps: &steps, labels: &count, blank: 0 };
        ctc_loss(log_probs.view(), sequences, out.view_mut(), alpha.view_mut())?;
        Ok(out.elements[0])
    }

    /// The loss by looking at every path of three steps.
    fn by_paths(labels: &[i64]) -> f64 {
        let heard = |path: [usize; 3]| {
            let mut path = path.to_vec();
            path.dedup();
            path.into_iter().filter(|&class| class != 0).map(|class| class as i64).collect::<Vec<_>>()
        };
        let paths = (0..27).map(|n| [n / 9, n / 3 % 3, n % 3]).filter(|&path| heard(path) == labels);
        -paths.map(|[a, b, c]| PROBS[a] * PROBS[3 + b] * PROBS[6 + c]).sum::<f64>().ln()
    }

    #[test]
    fn the_loss_is_the_likelihood_of_all_paths_that_sound_alike() {
        for labels in [&[][..], &[1], &[2], &[1, 2], &[2, 1], &[1, 1], &[1, 2, 1]] {
            let (got, expected) = (loss(labels, 3).unwrap(), by_paths(labels));
            assert!((got - expected).abs() < 1e-12, "{labels:?}: {got} is not {expected}");
        }
    }

    #[test]
    fn labels_that_do_not_fit_are_infinitely_unlikely() {
        assert_eq!(loss(&[1, 1], 2), Ok(f64::INFINITY));
        assert_eq!(loss(&[1], 0), Ok(f64::INFINITY));
        assert_eq!(loss(&[], 0), Ok(0.0));
    }

    #[test]
    fn a_label_that_is_no_class_is_named() {
        assert_eq!(loss(&[1, 3], 3), Err(OutOfRange { index: 3, size: 3 }));
        assert_eq!(loss(&[-1], 3), Err(OutOfRange { index: -1, size: 3 }));
    }
}
