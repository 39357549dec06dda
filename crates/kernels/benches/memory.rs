//! Kernels that move more than they compute, against copying memory, in one run: what share of a
//! copy's bandwidth each reaches, counting the bytes that must move at least.

use cresset_kernels::elementwise::{binary, copy, number_unary, select, unary};
use cresset_kernels::functions::{Add, Exp, Log, Relu, Sigmoid, Tanh, Unary};
use cresset_kernels::normalization::{Normalized, layer_norm, norm_backward};
use cresset_kernels::{Layout, Scalar, View, ViewMut, random::Philox, reduce, softmax, with_threads};
use std::hint::black_box;
use std::time::Instant;

const ADD: Add = Add { alpha: Scalar::Int(1) };

fn main() {
    for threads in [1, 2] {
        for side in [512, 4096] {
            with_threads(threads, || Bench::new(side, threads).run());
        }
    }
}

/// Nanoseconds of the fastest of many calls.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed().as_millis() < 200 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    best
}

/// Zeros in pages of their own, huge ones if there are any, as tensors have them; they are never given back.
fn zeros(len: usize) -> &'static mut [f32] {
    let (readable, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new pages that nobody else knows, cleared by the system.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), 4 * len, readable, private, -1, 0);
        assert_ne!(start, libc::MAP_FAILED, "no memory for {len} elements");
        libc::madvise(start, 4 * len, libc::MADV_HUGEPAGE);
        std::slice::from_raw_parts_mut(start.cast(), len)
    }
}

fn shape(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).expect("small enough to count")
}

/// Square matrices with room for an output.
struct Bench {
    side: usize,
    threads: usize,
    a: &'static [f32],
    b: &'static [f32],
    out: &'static mut [f32],
    /// Bytes per nanosecond of a copy.
    limit: f64,
}

impl Bench {
    fn new(side: usize, threads: usize) -> Bench {
        let numbers = |seed| {
            let numbers = zeros(side * side);
            Philox::new(seed, 0).normal(0.0, 1.0, ViewMut::of(numbers, &shape(&[side * side])));
            &*numbers
        };
        Bench { side, threads, a: numbers(1), b: numbers(2), out: zeros(side * side), limit: 0.0 }
    }

    /// Times `f`, which reads so many operands as large as a matrix and writes so many.
    fn report(&mut self, name: &str, streams: f64, f: impl Fn(&[f32], &[f32], &mut [f32])) {
        let ns = time(|| f(black_box(self.a), self.b, self.out));
        let rate = streams * 4.0 * self.a.len() as f64 / ns;
        if name == "copy" {
            self.limit = rate;
        }
        let (side, threads, share) = (self.side, self.threads, rate / self.limit);
        println!(
            "{threads} threads, {side:>4} squared, {name:<22} {:9.1} us {rate:6.1} GB/s {share:5.2} of a copy",
            ns / 1e3
        );
    }

    fn run(&mut self) {
        let side = self.side;
        let (grid, line, row, column) =
            (shape(&[side, side]), shape(&[side * side]), shape(&[1, side]), shape(&[side, 1]));
        let turned = grid.transpose(0, 1);
        let rows = row.broadcast_to(&[side, side]).expect("a row fits");
        let columns = column.broadcast_to(&[side, side]).expect("a column fits");
        let number = shape(&[]).broadcast_to(&[side, side]).expect("a number fits");
        self.report("copy", 2.0, |a, _, out| copy(View::of(a, &line), ViewMut::of(out, &line)));
        let add = |a: &[f32], b: &[f32], other: &Layout, out: &mut [f32]| {
            binary(ADD, View::of(a, &grid), View::of(b, other), ViewMut::of(out, &grid));
        };
        self.report("add", 3.0, |a, b, out| add(a, b, &grid, out));
        self.report("add a number", 2.0, |a, b, out| add(a, b, &number, out));
        self.report("add a row", 2.0, |a, b, out| add(a, b, &rows, out));
        self.report("add a column", 2.0, |a, b, out| add(a, b, &columns, out));
        self.report("add transposed", 3.0, |a, b, out| add(a, b, &turned, out));
        self.report("copy transposed", 2.0, |a, _, out| copy(View::of(a, &turned), ViewMut::of(out, &grid)));
        self.report("relu", 2.0, |a, _, out| number_unary(Relu, View::of(a, &line), ViewMut::of(out, &line)));
        let truths: Vec<bool> = self.b.iter().map(|&x| x < 0.0).collect();
        self.report("where", 3.25, |a, b, out| {
            let condition = View::of(&truths, &line);
            select(condition, View::of(a, &line), View::of(b, &line), ViewMut::of(out, &line));
        });
        self.functions(&line);
        self.report("sum", 1.0, |a, _, out| {
            reduce::sum(View::of(a, &line), &[0], ViewMut::of(out, &shape(&[1])))
        });
        self.report("sum of rows", 1.0, |a, _, out| {
            reduce::sum(View::of(a, &grid), &[1], ViewMut::of(out, &column))
        });
        self.report("sum of columns", 1.0, |a, _, out| {
            reduce::sum(View::of(a, &grid), &[0], ViewMut::of(out, &row))
        });
        self.report("sum of turned rows", 1.0, |a, _, out| {
            reduce::sum(View::of(a, &turned), &[1], ViewMut::of(out, &column));
        });
        self.rows(&shape(&[side * side / 512, 512]));
    }

    fn functions(&mut self, line: &Layout) {
        fn map(f: impl Unary, x: &[f32], line: &Layout, out: &mut [f32]) {
            unary(f, View::of(x, line), ViewMut::of(out, line));
        }
        self.report("exp", 2.0, |a, _, out| map(Exp, a, line, out));
        self.report("log", 2.0, |a, _, out| map(Log, a, line, out));
        self.report("sigmoid", 2.0, |a, _, out| map(Sigmoid, a, line, out));
        self.report("tanh", 2.0, |a, _, out| map(Tanh, a, line, out));
    }

    fn rows(&mut self, grid: &Layout) {
        let (count, size) = (grid.shape()[0], grid.shape()[1]);
        self.report("softmax", 2.0, |a, _, out| {
            softmax::softmax(View::of(a, grid), 1, ViewMut::of(out, grid))
        });
        self.report("log_softmax", 2.0, |a, _, out| {
            softmax::log_softmax(View::of(a, grid), 1, ViewMut::of(out, grid));
        });
        self.report("softmax_backward", 3.0, |a, b, out| {
            softmax::softmax_backward(View::of(a, grid), View::of(b, grid), 1, ViewMut::of(out, grid));
        });
        self.report("log_softmax_backward", 3.0, |a, b, out| {
            softmax::log_softmax_backward(View::of(a, grid), View::of(b, grid), 1, ViewMut::of(out, grid));
        });
        let (each, line) = (shape(&[count]), shape(&[size]));
        let weight = vec![1.5f32; size];
        let affine = [Some(View::of(&weight, &line)); 2];
        self.report("layer_norm", 2.0, |a, _, out| {
            let (mut mean, mut scale) = (vec![0.0f32; count], vec![0.0f32; count]);
            let statistics = [ViewMut::of(&mut mean, &each), ViewMut::of(&mut scale, &each)];
            layer_norm(View::of(a, grid), size, affine, 1e-5, ViewMut::of(out, grid), statistics);
        });
        let (mean, scale) = (vec![0.0f32; count], vec![1.0f32; count]);
        self.report("layer_norm_backward", 3.0, |a, b, out| {
            let (mut weights, mut biases) = (vec![0.0f32; size], vec![0.0f32; size]);
            let of = Normalized {
                x: View::of(a, grid),
                size,
                weight: affine[0],
                mean: Some(View::of(&mean, &each)),
                scale: View::of(&scale, &each),
            };
            let gradients = [
                Some(ViewMut::of(out, grid)),
                Some(ViewMut::of(&mut weights, &line)),
                Some(ViewMut::of(&mut biases, &line)),
            ];
            norm_backward(View::of(b, grid), of, gradients);
        });
    }
}
