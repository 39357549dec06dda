//! Convolutions as products of matrices: what windows see becomes columns.

use crate::computing::{computing, load, store};
use crate::elementwise::contiguous;
use crate::matrix::gemm;
use crate::reduce::sum_slice;
use crate::scratch::Scratch;
use crate::threads::each_chunk;
use crate::wide::wide;
use crate::window::{Window, fold, unfold};
use crate::{Number, View, ViewMut};

/// How the channels of a convolution are joined.
#[derive(Clone, Copy, Debug)]
pub struct Channels {
    /// Into how many groups they are split, each convolved by itself.
    pub groups: usize,
    /// Channels of a group in `x`.
    pub inputs: usize,
    /// Channels of a group in `out`.
    pub outputs: usize,
}

/// `out[n, o, w] = sum over i and k of weight[o, i, k] * x[n, i, what window w sees at k]`, plus
/// `bias[o]`.
///
/// `x` is `[batch, groups * inputs, ..]`, `weight` `[groups * outputs, inputs, ..]`, `out`
/// `[batch, groups * outputs, ..]`: `window.input` follows the channels of `x`, and
/// `window.output` those of `out`.
pub fn convolve(
    x: View<'_>,
    weight: View<'_>,
    bias: Option<View<'_>>,
    channels: Channels,
    window: &Window,
    out: ViewMut<'_>,
) {
    computing!(out.dtype(), T => {
        let (x, weight, bias) = (load::<T>(x), load::<T>(weight), bias.map(load::<T>));
        let work = Work { channels, window, batch: channels.batch(out.layout().len(), channels.outputs * window.count()) };
        store::<T>(out, |out| work.gather(&x, &weight, bias.as_deref(), out));
    });
}

/// The other way round: every element of `x` adds its multiple of the weight to what its window sees.
///
/// `x` is `[batch, groups * inputs, ..]`, `weight` `[groups * inputs, outputs, ..]`, `out`
/// `[batch, groups * outputs, ..]`; here `window.output` follows the channels of `x`, and
/// `window.input` those of `out`. Given the gradient of [`convolve`], its weight and window, this
/// is the gradient for its `x`.
pub fn convolve_transposed(
    x: View<'_>,
    weight: View<'_>,
    bias: Option<View<'_>>,
    channels: Channels,
    window: &Window,
    out: ViewMut<'_>,
) {
    computing!(out.dtype(), T => {
        let (x, weight, bias) = (load::<T>(x), load::<T>(weight), bias.map(load::<T>));
        let work = Work { channels, window, batch: channels.batch(out.layout().len(), channels.outputs * window.area()) };
        store::<T>(out, |out| work.spread(&x, &weight, bias.as_deref(), out));
    });
}

/// The gradient of [`convolve`] for its weight, given `x` and the gradient of `out`: `out[o, i, k]` is the
/// sum over `n` and `w` of `grad[n, o, w] * x[n, i, what window w sees at k]`.
pub fn convolve_weights(grad: View<'_>, x: View<'_>, channels: Channels, window: &Window, out: ViewMut<'_>) {
    let batch = grad.shape()[0];
    computing!(out.dtype(), T => {
        let (grad, x) = (load::<T>(grad), load::<T>(x));
        store::<T>(out, |out| Work { channels, window, batch }.weights(&grad, &x, out));
    });
}

/// `out[c] = sum of x[n, c, ..]`, for `x` of `[batch, channels, ..]`.
pub fn sum_channels(x: View<'_>, out: ViewMut<'_>) {
    let (batch, channels) = (x.shape()[0], x.shape()[1]);
    let area: usize = x.shape()[2..].iter().product();
    computing!(out.dtype(), T => {
        let x = load::<T>(x);
        let plane = |n: usize, channel: usize| sum_slice(&x[(n * channels + channel) * area..][..area]);
        store::<T>(out, |out| each_chunk(out, 1, x.len() / 8, |channel, out| {
            let planes: Vec<T> = (0..batch).map(|n| plane(n, channel)).collect();
            out[0] = sum_slice(&planes);
        }));
    });
}

/// `columns[.., k, w] = x[.., what window w sees at k]`; `x` ends with `window.input`.
pub fn im2col(x: View<'_>, window: &Window, columns: ViewMut<'_>) {
    let (area, size) = (window.area(), window.places() * window.count());
    computing!(columns.dtype(), T => {
        let x = load::<T>(x);
        store::<T>(columns, |columns| {
            let cost = columns.len() / 4;
            each_chunk(columns, size.max(1), cost, |i, columns| unfold(&x[i * area..][..area], window, columns));
        });
    });
}

/// `out[.., what window w sees at k] = sum of columns[.., k, w]`; `out` ends with `window.input`.
pub fn col2im(columns: View<'_>, window: &Window, out: ViewMut<'_>) {
    let (area, size) = (window.area(), window.places() * window.count());
    computing!(out.dtype(), T => {
        let columns = load::<T>(columns);
        store::<T>(out, |out| each_chunk(out, area.max(1), columns.len() / 4, |i, plane| {
            plane.fill(0 as T);
            fold(&columns[i * size..][..size], window, plane);
        }));
    });
}

impl Channels {
    /// How many samples there are, if the channels of a group have `size` elements.
    fn batch(&self, elements: usize, size: usize) -> usize {
        elements.checked_div(self.groups * size).unwrap_or(0)
    }
}

/// One convolution. Samples are cut into pieces by shape alone, for threads to share.
struct Work<'a> {
    channels: Channels,
    window: &'a Window,
    batch: usize,
}

/// Samples are cut into no more pieces than this.
const PIECES: usize = 32;
/// Elements that all pieces' weights together have at most, if there are more than two.
const PARTIAL: usize = 1 << 23;

impl Work<'_> {
    /// Samples of one piece.
    fn together(&self) -> usize {
        self.batch.div_ceil(PIECES).max(1)
    }

    /// Nanoseconds of one pass, roughly.
    fn cost(&self, depth: usize, rows: usize) -> usize {
        let columns = self.batch * self.channels.groups * self.window.count() * depth;
        columns.saturating_mul(rows + 16) / 40
    }

    fn gather<T: Number>(&self, x: &[T], weight: &[T], bias: Option<&[T]>, out: &mut [T]) {
        let Channels { groups, inputs, outputs } = self.channels;
        let (area, count, depth) = (self.window.area(), self.window.count(), inputs * self.window.places());
        let (layout, kernel, product) =
            (contiguous(&[depth, count]), contiguous(&[outputs, depth]), contiguous(&[outputs, count]));
        let (size, together) = (outputs * count, self.together() * groups);
        if size == 0 {
            return;
        }
        each_chunk(out, together * size, self.cost(depth, outputs), |piece, out| {
            let mut columns = Columns::new(self.window, depth);
            for (i, out) in (piece * together..).zip(out.chunks_exact_mut(size)) {
                let group = i % groups;
                let columns = columns.of(&x[i * inputs * area..][..inputs * area], self.window);
                let weight = &weight[group * outputs * depth..][..outputs * depth];
                let (weight, columns) = (View::of(weight, &kernel), View::of(columns, &layout));
                gemm(1.0, weight, columns, 0.0, ViewMut::of(out, &product));
                add_bias(bias.map(|bias| &bias[group * outputs..]), count, out);
            }
        });
    }

    fn spread<T: Number>(&self, x: &[T], weight: &[T], bias: Option<&[T]>, out: &mut [T]) {
        let Channels { groups, inputs, outputs } = self.channels;
        let (area, count, depth) = (self.window.area(), self.window.count(), outputs * self.window.places());
        let (layout, operand) = (contiguous(&[depth, count]), contiguous(&[inputs, count]));
        let kernel = contiguous(&[inputs, depth]).transpose(0, 1);
        let (size, together) = (outputs * area, self.together() * groups);
        if size == 0 {
            return;
        }
        each_chunk(out, together * size, self.cost(depth, inputs), |piece, out| {
            let mut columns = Scratch::new(depth * count);
            for (i, out) in (piece * together..).zip(out.chunks_exact_mut(size)) {
                let group = i % groups;
                let x = View::of(&x[i * inputs * count..][..inputs * count], &operand);
                let weight = View::of(&weight[group * inputs * depth..][..inputs * depth], &kernel);
                gemm(1.0, weight, x, 0.0, ViewMut::of(&mut columns, &layout));
                out.fill(T::ZERO);
                let planes = columns.chunks_exact((self.window.places() * count).max(1));
                out.chunks_exact_mut(area)
                    .zip(planes)
                    .for_each(|(plane, columns)| fold(columns, self.window, plane));
                add_bias(bias.map(|bias| &bias[group * outputs..]), area, out);
            }
        });
    }

    fn weights<T: Number>(&self, grad: &[T], x: &[T], out: &mut [T]) {
        let Channels { groups, inputs, outputs } = self.channels;
        let (area, count, depth) = (self.window.area(), self.window.count(), inputs * self.window.places());
        let (layout, operand) = (contiguous(&[depth, count]).transpose(0, 1), contiguous(&[outputs, count]));
        let (kernel, size) = (contiguous(&[outputs, depth]), out.len());
        let most = (PARTIAL / size.max(1)).clamp(2, PIECES);
        let together = self.batch.div_ceil(most).max(1);
        let pieces = self.batch.div_ceil(together);
        if size == 0 || pieces == 0 {
            return out.fill(T::ZERO);
        }
        let mut partial = Scratch::new(size * pieces);
        each_chunk(&mut partial, size, self.cost(depth, outputs), |piece, partial| {
            let mut columns = Columns::new(self.window, depth);
            let first = piece * together * groups;
            for i in first..groups * self.batch.min((piece + 1) * together) {
                let columns = columns.of(&x[i * inputs * area..][..inputs * area], self.window);
                let grad = &grad[i * outputs * count..][..outputs * count];
                let out = &mut partial[i % groups * outputs * depth..][..outputs * depth];
                let before = if i < first + groups { 0.0 } else { 1.0 };
                gemm(
                    1.0,
                    View::of(grad, &operand),
                    View::of(columns, &layout),
                    before,
                    ViewMut::of(out, &kernel),
                );
            }
        });
        let (first, others) = partial.split_at(size);
        out.copy_from_slice(first);
        others.chunks_exact(size).for_each(|partial| add(partial, out));
    }
}

wide! {
    fn add[T: Number](x: &[T], out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = out.plus(x);
        }
    }
}

/// Adds a number per channel to planes of `area` elements.
fn add_bias<T: Number>(bias: Option<&[T]>, area: usize, out: &mut [T]) {
    let Some(bias) = bias else { return };
    for (plane, &bias) in out.chunks_exact_mut(area.max(1)).zip(bias) {
        plane.iter_mut().for_each(|out| *out = out.plus(bias));
    }
}

/// Room for the columns of a group's planes; none where windows of one place see all as it lies.
struct Columns<T> {
    room: Scratch<T>,
}

impl<T: Number> Columns<T> {
    fn new(window: &Window, depth: usize) -> Columns<T> {
        let room = if window.is_identity() { 0 } else { depth * window.count() };
        Columns { room: Scratch::new(room) }
    }

    fn of<'a>(&'a mut self, planes: &'a [T], window: &Window) -> &'a [T] {
        if window.is_identity() {
            return planes;
        }
        let size = window.places() * window.count();
        let planes = planes.chunks_exact(window.area().max(1));
        self.room
            .chunks_exact_mut(size.max(1))
            .zip(planes)
            .for_each(|(columns, plane)| unfold(plane, window, columns));
        &self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, assert_close};
    use crate::threads::with_threads;

    /// Batch, channels, and windows of every kind.
    fn cases() -> Vec<(usize, Channels, Window)> {
        let window = |input: [usize; 3], kernel, stride, padding, dilation| {
            let output = |dim: usize| {
                let kernel: [usize; 3] = kernel;
                let (stride, padding, dilation): ([usize; 3], [usize; 3], [usize; 3]) =
                    (stride, padding, dilation);
                (input[dim] + 2 * padding[dim] - dilation[dim] * (kernel[dim] - 1) - 1) / stride[dim] + 1
            };
            Window { input, kernel, stride, padding, dilation, output: [output(0), output(1), output(2)] }
        };
        let plain = |groups, inputs, outputs| Channels { groups, inputs, outputs };
        vec![
            (3, plain(1, 1, 6), window([1, 28, 28], [1, 5, 5], [1; 3], [0; 3], [1; 3])),
            (70, plain(1, 2, 3), window([1, 6, 7], [1, 3, 3], [1; 3], [0, 1, 1], [1; 3])),
            (2, plain(2, 3, 2), window([1, 9, 11], [1, 3, 2], [1, 2, 3], [0, 1, 0], [1, 1, 2])),
            (2, plain(4, 1, 1), window([3, 5, 5], [2, 3, 3], [1; 3], [1; 3], [1; 3])),
            (2, plain(1, 8, 4), window([1, 5, 5], [1; 3], [1; 3], [0; 3], [1; 3])),
        ]
    }

    /// Calls `f` with the indices of every product: output, input, weight.
    fn products(batch: usize, channels: Channels, window: &Window, mut f: impl FnMut(usize, usize, usize)) {
        let Channels { groups, inputs, outputs } = channels;
        let split =
            |i: usize, [_, rows, columns]: [usize; 3]| [i / columns / rows, i / columns % rows, i % columns];
        for (n, g, o) in
            (0..batch * groups * outputs).map(|i| (i / outputs / groups, i / outputs % groups, i % outputs))
        {
            for (i, w, k) in (0..inputs * window.count() * window.places()).map(|j| {
                (
                    j / window.places() / window.count(),
                    j / window.places() % window.count(),
                    j % window.places(),
                )
            }) {
                let (at, of) = (split(w, window.output), split(k, window.kernel));
                let place = |dim: usize| {
                    (at[dim] * window.stride[dim] + of[dim] * window.dilation[dim])
                        .checked_sub(window.padding[dim])
                };
                let Some([z, y, x]) = [place(0), place(1), place(2)]
                    .into_iter()
                    .zip(window.input)
                    .map(|(place, size)| place.filter(|&place| place < size))
                    .collect::<Option<Vec<_>>>()
                    .and_then(|places| <[usize; 3]>::try_from(places).ok())
                else {
                    continue;
                };
                let seen = (z * window.input[1] + y) * window.input[2] + x;
                let out = ((n * groups + g) * outputs + o) * window.count() + w;
                let input = ((n * groups + g) * inputs + i) * window.area() + seen;
                f(out, input, ((g * outputs + o) * inputs + i) * window.places() + k);
            }
        }
    }

    #[test]
    fn convolutions_and_their_gradients_agree_with_sums_of_products() {
        for (batch, channels, window) in cases() {
            let Channels { groups, inputs, outputs } = channels;
            let shape = |channels: usize, sizes: [usize; 3]| [batch, channels, sizes[0], sizes[1], sizes[2]];
            let x = Array::<f32>::random(&shape(groups * inputs, window.input), 1);
            let grad = Array::<f32>::random(&shape(groups * outputs, window.output), 2);
            let [kd, kh, kw] = window.kernel;
            let weight = Array::<f32>::random(&[groups * outputs, inputs, kd, kh, kw], 3);
            let bias = Array::<f32>::random(&[groups * outputs], 4);
            let (xs, grads, weights) = (x.wide(), grad.wide(), weight.wide());
            let mut expected: Vec<f64> = (0..grads.len())
                .map(|i| bias.elements[i / window.count() % (groups * outputs)].into())
                .collect();
            let (mut to_x, mut to_weight) = (vec![0.0; xs.len()], vec![0.0; weights.len()]);
            products(batch, channels, &window, |o, i, k| {
                expected[o] += xs[i] * weights[k];
                to_x[i] += grads[o] * weights[k];
                to_weight[k] += grads[o] * xs[i];
            });
            let run = |threads: usize| {
                let mut results = [&grad, &x, &weight]
                    .map(|like| Array::new(like.layout.shape(), &vec![f32::NAN; like.elements.len()]));
                let [out, input, weights] = &mut results;
                let mut sums = Array::<f32>::zeros(&[groups * outputs]);
                let back = Channels { groups, inputs: outputs, outputs: inputs };
                with_threads(threads, || {
                    convolve(x.view(), weight.view(), Some(bias.view()), channels, &window, out.view_mut());
                    convolve_transposed(grad.view(), weight.view(), None, back, &window, input.view_mut());
                    convolve_weights(grad.view(), x.view(), channels, &window, weights.view_mut());
                    sum_channels(grad.view(), sums.view_mut());
                });
                (results, sums)
            };
            let ([out, input, weights], sums) = run(1);
            assert_close(&out.wide(), &expected, 1e-5);
            assert_close(&input.wide(), &to_x, 1e-5);
            assert_close(&weights.wide(), &to_weight, 1e-4);
            let channel =
                |c: usize| (0..grads.len()).filter(move |i| i / window.count() % (groups * outputs) == c);
            let expected: Vec<f64> =
                (0..groups * outputs).map(|c| channel(c).map(|i| grads[i]).sum()).collect();
            assert_close(&sums.wide(), &expected, 1e-5);
            for threads in [2, 3] {
                let (others, other_sums) = run(threads);
                let bits =
                    |array: &Array<f32>| array.elements.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                for (one, other) in
                    [&out, &input, &weights, &sums].into_iter().zip(others.iter().chain([&other_sums]))
                {
                    assert_eq!(bits(one), bits(other));
                }
            }
        }
    }
}
