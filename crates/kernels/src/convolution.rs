//! Convolutions as products of matrices: what windows see becomes columns.

use crate::computing::{computing, load, store};
use crate::elementwise::contiguous;
use crate::matrix::gemm;
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
        store::<T>(out, |out| {
            convolve_groups(&x, &weight, channels, window, out);
            add_bias(bias.as_deref(), window.count(), out);
        });
    });
}

/// The other way round: every element of `x` adds its multiple of the weight to what its window sees.
///
/// `x` is `[batch, groups * inputs, ..]`, `weight` `[groups * inputs, outputs, ..]`, `out`
/// `[batch, groups * outputs, ..]`; here `window.output` follows the channels of `x`, and
/// `window.input` those of `out`.
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
        store::<T>(out, |out| {
            transpose_groups(&x, &weight, channels, window, out);
            add_bias(bias.as_deref(), window.area(), out);
        });
    });
}

/// `columns[.., k, w] = x[.., what window w sees at k]`; `x` ends with `window.input`.
pub fn im2col(x: View<'_>, window: &Window, columns: ViewMut<'_>) {
    let (area, size) = (window.area(), window.places() * window.count());
    computing!(columns.dtype(), T => {
        let x = load::<T>(x);
        store::<T>(columns, |columns| {
            let planes = x.chunks_exact(area.max(1));
            columns.chunks_exact_mut(size.max(1)).zip(planes).for_each(|(columns, plane)| unfold(plane, window, columns));
        });
    });
}

/// `out[.., what window w sees at k] = sum of columns[.., k, w]`; `out` ends with `window.input`.
pub fn col2im(columns: View<'_>, window: &Window, out: ViewMut<'_>) {
    let (area, size) = (window.area(), window.places() * window.count());
    computing!(out.dtype(), T => {
        let columns = load::<T>(columns);
        store::<T>(out, |out| {
            out.fill(0 as T);
            let columns = columns.chunks_exact(size.max(1));
            out.chunks_exact_mut(area.max(1)).zip(columns).for_each(|(plane, columns)| fold(columns, window, plane));
        });
    });
}

fn convolve_groups<T: Number>(x: &[T], weight: &[T], channels: Channels, window: &Window, out: &mut [T]) {
    let Channels { inputs, outputs, .. } = channels;
    let (area, count, depth) = (window.area(), window.count(), inputs * window.places());
    let (layout, kernel, product) =
        (contiguous(&[depth, count]), contiguous(&[outputs, depth]), contiguous(&[outputs, count]));
    let mut columns = Columns::new(window, depth);
    for (i, out) in out.chunks_exact_mut((outputs * count).max(1)).enumerate() {
        let columns = columns.of(&x[i * inputs * area..][..inputs * area], window);
        let weight = &weight[(i % channels.groups) * outputs * depth..][..outputs * depth];
        let (weight, columns) = (View::of(weight, &kernel), View::of(columns, &layout));
        gemm(1.0, weight, columns, 0.0, ViewMut::of(out, &product));
    }
}

fn transpose_groups<T: Number>(x: &[T], weight: &[T], channels: Channels, window: &Window, out: &mut [T]) {
    let Channels { inputs, outputs, .. } = channels;
    let (area, count, depth) = (window.area(), window.count(), outputs * window.places());
    let (layout, operand) = (contiguous(&[depth, count]), contiguous(&[inputs, count]));
    let kernel = contiguous(&[inputs, depth]).transpose(0, 1);
    let mut columns = vec![T::ZERO; depth * count];
    out.fill(T::ZERO);
    for (i, out) in out.chunks_exact_mut((outputs * area).max(1)).enumerate() {
        let x = &x[i * inputs * count..][..inputs * count];
        let weight = &weight[(i % channels.groups) * inputs * depth..][..inputs * depth];
        gemm(1.0, View::of(weight, &kernel), View::of(x, &operand), 0.0, ViewMut::of(&mut columns, &layout));
        let planes = out.chunks_exact_mut(area).zip(columns.chunks_exact((window.places() * count).max(1)));
        planes.for_each(|(plane, columns)| fold(columns, window, plane));
    }
}

/// Adds a number per channel to planes of `area` elements.
fn add_bias<T: Number>(bias: Option<&[T]>, area: usize, out: &mut [T]) {
    let Some(bias) = bias else { return };
    for (plane, &bias) in out.chunks_exact_mut(area.max(1)).zip(bias.iter().cycle()) {
        plane.iter_mut().for_each(|out| *out = out.plus(bias));
    }
}

/// Room for the columns of a group's planes; none where windows of one place see all as it lies.
struct Columns<T> {
    room: Vec<T>,
}

impl<T: Number> Columns<T> {
    fn new(window: &Window, depth: usize) -> Columns<T> {
        let room = if window.is_identity() { 0 } else { depth * window.count() };
        Columns { room: vec![T::ZERO; room] }
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
