//! Windows that slide over up to three dimensions: where each looks, and columns of what they see.

use crate::Number;

/// How windows slide along each of three dimensions; unused leading ones are of size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Sizes of what is looked at.
    pub input: [usize; 3],
    /// How many places a window has.
    pub kernel: [usize; 3],
    /// From one window to the next.
    pub stride: [usize; 3],
    /// How far the first window begins before the input.
    pub padding: [usize; 3],
    /// From one place of a window to the next.
    pub dilation: [usize; 3],
    /// How many windows there are.
    pub output: [usize; 3],
}

impl Window {
    /// Places in the input.
    pub fn area(&self) -> usize {
        self.input.iter().product()
    }

    /// Places in a window.
    pub fn places(&self) -> usize {
        self.kernel.iter().fold(1, |count, &size| count.saturating_mul(size))
    }

    /// How many windows there are in all.
    pub fn count(&self) -> usize {
        self.output.iter().fold(1, |count, &size| count.saturating_mul(size))
    }

    /// Whether each window sees the one place of its own number.
    pub(crate) fn is_identity(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3] && self.input == self.output
    }

    /// Whether some window has a place where there is no input.
    fn looks_outside(&self) -> bool {
        (0..3).any(|dim| {
            let last = self.output[dim].saturating_sub(1).saturating_mul(self.stride[dim]);
            self.padding[dim] > 0
                || last.saturating_add((self.kernel[dim].max(1) - 1).saturating_mul(self.dilation[dim]))
                    >= self.input[dim]
        })
    }

    /// Which windows along `dim` see the input at their place `k`, and what the first of them sees.
    fn seeing(&self, dim: usize, k: usize) -> Seen {
        let (shift, padding, stride) =
            (k.saturating_mul(self.dilation[dim]), self.padding[dim], self.stride[dim]);
        let first = padding.saturating_sub(shift).div_ceil(stride);
        let beyond = self.input[dim].saturating_add(padding).saturating_sub(shift).div_ceil(stride);
        let end = beyond.min(self.output[dim]);
        let first = first.min(end);
        Seen {
            first,
            end,
            at: first.saturating_mul(stride).saturating_add(shift).saturating_sub(padding),
            stride,
        }
    }

    /// Calls `f` for every run of places that a row of windows sees: the place `k` of the windows,
    /// the number of the first of them, where in the input it looks, and how many there are.
    /// From each window to the next the place in the input moves by the last stride.
    fn runs(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let ([_, rows, columns], [_, out_rows, out_columns]) = (self.input, self.output);
        let mut k = 0;
        for kz in 0..self.kernel[0] {
            let deep = self.seeing(0, kz);
            for ky in 0..self.kernel[1] {
                let high = self.seeing(1, ky);
                for kx in 0..self.kernel[2] {
                    let wide = self.seeing(2, kx);
                    for (oz, z) in deep.each() {
                        for (oy, y) in high.each() {
                            let window = (oz * out_rows + oy) * out_columns + wide.first;
                            f(k, window, (z * rows + y) * columns + wide.at, wide.end - wide.first);
                        }
                    }
                    k += 1;
                }
            }
        }
    }
}

/// A run of windows that see the input at one of their places.
struct Seen {
    first: usize,
    end: usize,
    at: usize,
    stride: usize,
}

impl Seen {
    /// Windows and where they look.
    fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        (self.first..self.end).zip((self.at..).step_by(self.stride))
    }
}

/// `columns[k, window] = plane[what the window sees at its place k]`, 0 outside the plane.
pub(crate) fn unfold<T: Number>(plane: &[T], window: &Window, columns: &mut [T]) {
    if window.looks_outside() {
        columns.fill(T::ZERO);
    }
    let (count, stride) = (window.count(), window.stride[2]);
    window.runs(|k, first, at, len| {
        let row = &mut columns[k * count + first..][..len];
        if stride == 1 {
            return row.copy_from_slice(&plane[at.min(plane.len())..][..len]);
        }
        row.iter_mut()
            .zip(plane[at.min(plane.len())..].iter().step_by(stride))
            .for_each(|(to, &from)| *to = from);
    });
}

/// `plane[what the window sees at its place k] += columns[k, window]`.
pub(crate) fn fold<T: Number>(columns: &[T], window: &Window, plane: &mut [T]) {
    let (count, stride, end) = (window.count(), window.stride[2], plane.len());
    window.runs(|k, first, at, len| {
        let row = &columns[k * count + first..][..len];
        let places = plane[at.min(end)..].iter_mut();
        if stride == 1 {
            return places.zip(row).for_each(|(to, &from)| *to = to.plus(from));
        }
        places.step_by(stride).zip(row).for_each(|(to, &from)| *to = to.plus(from));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Window = Window {
        input: [1, 1, 4],
        kernel: [1, 1, 2],
        stride: [1, 1, 2],
        padding: [0, 0, 1],
        dilation: [1, 1, 2],
        output: [1, 1, 2],
    };

    #[test]
    fn columns_hold_what_windows_see_and_zeros_outside() {
        let mut columns = [9; 4];
        unfold(&[1, 2, 3, 4], &LINE, &mut columns);
        assert_eq!(columns, [0, 2, 2, 4]);
    }

    #[test]
    fn folding_adds_what_windows_share() {
        let mut plane = [0; 4];
        fold(&[1, 10, 100, 1000], &LINE, &mut plane);
        assert_eq!(plane, [0, 110, 0, 1000]);
    }
}
