//! Steps of optimizers against copying memory, small operands, and products of matrices.

use cresset_kernels::elementwise::{binary, copy};
use cresset_kernels::functions::{Add, Binary};
use cresset_kernels::{Layout, Scalar, View, ViewMut, matrix, optimizer, random::Philox};
use std::hint::black_box;
use std::time::Instant;

const ADD: Add = Add { alpha: Scalar::Int(1) };

fn main() {
    adam();
    small();
    for n in [8, 64, 256, 1024] {
        product(n);
    }
}

/// Nanoseconds of the fastest of many calls.
fn time(mut f: impl FnMut()) -> f64 {
    let calls = {
        let start = Instant::now();
        f();
        (1e6 / (start.elapsed().as_nanos() as f64).max(10.0)).ceil() as usize
    };
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 300 {
        let start = Instant::now();
        (0..calls).for_each(|_| f());
        best = best.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    best
}

fn numbers(n: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; n];
    Philox::new(1, 0).normal(0.0, 1.0, ViewMut::of(&mut numbers, &shape(&[n])));
    numbers
}

fn shape(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).expect("small enough to count")
}

fn adam() {
    let n = 256 * 1024;
    let layout = shape(&[n]);
    let (a, mut out) = (numbers(n), vec![0.0f32; n]);
    let a = View::of(&a, &layout);
    let base = time(|| copy(black_box(a), ViewMut::of(&mut out, &layout)));
    println!("256K f32, copy                {:8.1} us  {:5.1} GB/s", base / 1e3, 8.0 * n as f64 / base);
    let report =
        |name: &str, ns: f64| println!("256K f32, {name:<19} {:8.1} us  {:5.2} copies", ns / 1e3, ns / base);
    let (mut mean, mut squares) = (vec![0.0f32; n], vec![0.0f32; n]);
    let step = optimizer::AdamStep {
        lr: 1e-3,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
        step: 3,
    };
    report(
        "adam",
        time(|| {
            let (mean, squares) = (ViewMut::of(&mut mean, &layout), ViewMut::of(&mut squares, &layout));
            let param = ViewMut::of(&mut out, &layout);
            optimizer::step(&step, optimizer::Tensors::new(param, black_box(a), [mean, squares]));
        }),
    );
}

#[inline(never)]
fn add(a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    binary(ADD, a, b, out);
}

fn small() {
    let layout = shape(&[2, 2]);
    let (a, b, mut out) = ([1.0f32; 4], [2.0f32; 4], [0.0f32; 4]);
    let ns =
        time(|| add(View::of(black_box(&a), &layout), View::of(&b, &layout), ViewMut::of(&mut out, &layout)));
    println!("2x2 f32, add                  {ns:8.1} ns");
    let by_hand = time(|| {
        let (a, b) = (black_box(&a), black_box(&b));
        black_box(&mut out).iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = ADD.apply(a, b));
    });
    println!("2x2 f32, add by hand          {by_hand:8.1} ns");
    let ns = time(|| {
        let (a, b) = (View::of(black_box(&a), &layout), View::of(&b, &layout));
        matrix::gemm(1.0, a, b, 0.0, ViewMut::of(&mut out, &layout));
    });
    println!("2x2 f32, gemm                 {ns:8.1} ns");
}

fn product(n: usize) {
    let layout = shape(&[n, n]);
    let (a, b, mut out) = (numbers(n * n), numbers(n * n), vec![0.0f32; n * n]);
    let (a, b) = (View::of(&a, &layout), View::of(&b, &layout));
    let ns = time(|| matrix::gemm(1.0, black_box(a), b, 0.0, ViewMut::of(&mut out, &layout)));
    println!(
        "gemm {n:>4} f32                 {:8.1} us  {:5.1} GFLOP/s",
        ns / 1e3,
        2.0 * (n as f64).powi(3) / ns
    );
}
