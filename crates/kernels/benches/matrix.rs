//! Products of matrices and what is made of them: ours on one and two threads, beside the crates that
//! they could be made of, in one run.
//!
//! Why the gemm crate: GFLOP/s of f32 on one core of an AVX2 machine whose limit is about 100,
//! measured beside each other while the machine was shared (so 10 % between columns mean little).
//!
//! | product | gemm | faer | matrixmultiply |
//! |---|---|---|---|
//! | 8, 16, 32 | 6, 36, 74 | 13, 44, 58 | 6, 27, 54 |
//! | 64, 256, 1024 | 88, 94, 74 | 87, 90, 73 | 55, 72, 77 |
//! | 64 x 784 x 512 | 78 | 80 | 65 |
//! | 64 x 784 x 512, right operand transposed | 78 | 84 | 69 |
//! | 2048 x 128 x 384, likewise | 80 | 78 | 69 |
//! | 512 x 1024 x 784, left operand transposed | 86 | 57 | 50 |
//! | 64 of 128 x 128 x 32 | 43 | 52 | 34 |
//! | 1 x 1024 x 1024 | 32 | 32 | 4 |
//!
//! faer is level with gemm but for transposed left operands, which every backward pass has, and it
//! is some thirty crates larger; below 16 a loop of our own is faster than all of them.

use cresset_kernels::attention::{Attended, Attention, attention, attention_backward};
use cresset_kernels::convolution::{Channels, convolve, convolve_transposed, convolve_weights};
use cresset_kernels::optimizer::{AdamStep, Tensors, step_all};
use cresset_kernels::{DType, Layout, View, ViewMut, Window, bf16, matrix, random::Philox, with_threads};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    println!("GFLOP/s                          1 thread  2 threads  gemm crate  matrixmultiply");
    for n in [4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 2048] {
        product([n, n, n], [false; 2]);
    }
    for shape in [[64, 784, 512], [2048, 128, 384], [2048, 512, 128], [1, 1024, 1024], [1024, 1024, 1]] {
        for turned in [[false, false], [false, true], [true, false]] {
            product(shape, turned);
        }
    }
    for shape in [[512, 64, 784], [512, 1024, 784], [512, 2048, 128]] {
        product(shape, [true, false]);
    }
    batched();
    other_types();
    attentions();
    convolutions();
    optimizers();
}

/// Nanoseconds of the fastest of many calls, by a clock.
fn fastest(mut f: impl FnMut(), clock: impl Fn() -> f64) -> f64 {
    let start = clock();
    f();
    let calls = (2e5 / (clock() - start).max(10.0)).ceil() as usize;
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed().as_millis() < 200 {
        let start = clock();
        (0..calls).for_each(|_| f());
        best = best.min((clock() - start) / calls as f64);
    }
    best
}

/// On one thread its own time is measured, which other programs cannot lengthen much.
fn time(f: impl FnMut()) -> f64 {
    fastest(f, || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists, and writes to a place of our own.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    })
}

/// The same on one thread, and on two by the clock on the wall.
fn times(mut f: impl FnMut()) -> [f64; 2] {
    let begin = Instant::now();
    let one = with_threads(1, || time(&mut f));
    [one, with_threads(2, || fastest(&mut f, || begin.elapsed().as_nanos() as f64))]
}

fn shape(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).expect("small enough to count")
}

fn numbers(n: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; n];
    Philox::new(1, 0).normal(0.0, 1.0, ViewMut::of(&mut numbers, &shape(&[n])));
    numbers
}

/// A matrix of `rows` and `columns`, or the transpose of one that lies the other way.
fn lying(rows: usize, columns: usize, turned: bool) -> Layout {
    if turned { shape(&[columns, rows]).transpose(0, 1) } else { shape(&[rows, columns]) }
}

fn product([m, k, n]: [usize; 3], turned: [bool; 2]) {
    let (a, b, mut c) = (numbers(m * k), numbers(k * n), vec![0.0f32; m * n]);
    let (of_a, of_b, of_c) = (lying(m, k, turned[0]), lying(k, n, turned[1]), shape(&[m, n]));
    let (x, y) = (View::of(&a, &of_a), View::of(&b, &of_b));
    let ours = times(|| matrix::gemm(1.0, black_box(x), y, 0.0, ViewMut::of(&mut c, &of_c)));
    let steps = |layout: &Layout| [layout.strides()[0] as isize, layout.strides()[1] as isize];
    let ([down_a, across_a], [down_b, across_b]) = (steps(&of_a), steps(&of_b));
    let (start_a, start_b, start_c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: the strides are those of matrices that fill their vectors.
    let theirs = time(|| unsafe {
        gemm::gemm(
            m,
            n,
            k,
            black_box(start_c),
            1,
            n as isize,
            false,
            start_a,
            across_a,
            down_a,
            start_b,
            across_b,
            down_b,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    });
    // SAFETY: as above.
    let other = time(|| unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            start_a,
            down_a,
            across_a,
            start_b,
            down_b,
            across_b,
            0.0,
            black_box(start_c),
            n as isize,
            1,
        );
    });
    let speed = |ns: f64| 2.0 * (m * k * n) as f64 / ns;
    let side = |turned: bool| if turned { "'" } else { " " };
    println!(
        "{:<32} {:9.1} {:10.1} {:11.1} {:15.1}",
        format!("{m} x {k}{} x {n}{}", side(turned[0]), side(turned[1])),
        speed(ours[0]),
        speed(ours[1]),
        speed(theirs),
        speed(other)
    );
}

fn report(name: &str, flops: f64, [one, two]: [f64; 2]) {
    println!("{name:<32} {:9.1} {:10.1}  ({:.1} us)", flops / one, flops / two, one / 1e3);
}

fn batched() {
    for [batch, m, k, n] in [[64, 128, 32, 128], [64, 128, 128, 32], [4096, 8, 8, 8]] {
        let (a, b, mut c) = (numbers(batch * m * k), numbers(batch * k * n), vec![0.0f32; batch * m * n]);
        let (of_a, of_b, of_c) = (shape(&[batch, m, k]), shape(&[batch, k, n]), shape(&[batch, m, n]));
        let ns = times(|| {
            matrix::batched_gemm(
                1.0,
                View::of(&a, &of_a),
                View::of(&b, &of_b),
                0.0,
                ViewMut::of(&mut c, &of_c),
            );
        });
        report(&format!("{batch} of {m} x {k} x {n}"), 2.0 * (batch * m * k * n) as f64, ns);
    }
}

fn other_types() {
    for n in [64, 512] {
        let (layout, wide) = (shape(&[n, n]), numbers(n * n));
        let double: Vec<f64> = wide.iter().map(|&x| x.into()).collect();
        let half: Vec<bf16> = wide.iter().map(|&x| bf16::from_f32(x)).collect();
        let flops = 2.0 * (n * n * n) as f64;
        let mut out = vec![0.0f64; n * n];
        let x = View::of(&double, &layout);
        report(
            &format!("{} {n}", DType::F64),
            flops,
            times(|| {
                matrix::gemm(1.0, black_box(x), x, 0.0, ViewMut::of(&mut out, &layout));
            }),
        );
        let mut out = vec![bf16::ZERO; n * n];
        let x = View::of(&half, &layout);
        report(
            &format!("{} {n}", DType::BF16),
            flops,
            times(|| {
                matrix::gemm(1.0, black_box(x), x, 0.0, ViewMut::of(&mut out, &layout));
            }),
        );
    }
}

/// A layer of a small GPT: 16 samples of 128 tokens, 4 heads of 32, side by side in memory.
fn attentions() {
    let [batch, heads, rows, width] = [16, 4, 128, 32];
    let all = numbers(batch * rows * heads * width * 3);
    let whole = shape(&[batch, rows, 3 * heads, width]);
    let parts = [0, 1, 2].map(|i| whole.narrow(2, i * heads, heads).transpose(1, 2));
    let of_out = shape(&[batch, rows, heads, width]).transpose(1, 2);
    let of_sums = shape(&[batch, heads, rows]);
    let (mut out, mut sums) = (vec![0.0f32; of_out.len()], vec![0.0f32; of_sums.len()]);
    let [query, key, value] = parts.each_ref().map(|layout| View::of(&all, layout));
    for causal in [false, true] {
        let how = Attention { scale: 0.17, causal, mask: None };
        let flops = 4.0 * (batch * heads * rows * rows * width) as f64;
        report(
            &format!("attention, causal {causal}"),
            flops,
            times(|| {
                let (out, sums) = (ViewMut::of(&mut out, &of_out), ViewMut::of(&mut sums, &of_sums));
                attention(query, key, value, how, out, sums);
            }),
        );
        let mut grads = [0, 1, 2].map(|_| vec![0.0f32; of_out.len()]);
        let (of, log_sum) = (View::of(&out, &of_out), View::of(&sums, &of_sums));
        let given = Attended { query, key, value, out: of, log_sum };
        report(
            &format!("attention backward, causal {causal}"),
            2.5 * flops,
            times(|| {
                attention_backward(of, given, how, grads.each_mut().map(|grad| ViewMut::of(grad, &of_out)));
            }),
        );
    }
}

/// The two convolutions of LeNet.
fn convolutions() {
    for [inputs, outputs, side] in [[1, 6, 28], [6, 16, 12]] {
        let (batch, size) = (64, side - 4);
        let window = Window {
            input: [1, side, side],
            kernel: [1, 5, 5],
            stride: [1; 3],
            padding: [0; 3],
            dilation: [1; 3],
            output: [1, size, size],
        };
        let (of_x, of_weight) = (shape(&[batch, inputs, side, side]), shape(&[outputs, inputs, 5, 5]));
        let of_out = shape(&[batch, outputs, size, size]);
        let (mut x, mut weight, mut out) =
            (numbers(of_x.len()), numbers(of_weight.len()), numbers(of_out.len()));
        let channels = Channels { groups: 1, inputs, outputs };
        let back = Channels { groups: 1, inputs: outputs, outputs: inputs };
        let flops = 2.0 * (of_out.len() * inputs * 25) as f64;
        report(
            &format!("convolution {inputs} to {outputs}"),
            flops,
            times(|| {
                let (x, weight) = (View::of(&x, &of_x), View::of(&weight, &of_weight));
                convolve(x, weight, None, channels, &window, ViewMut::of(&mut out, &of_out));
            }),
        );
        report(
            "  its input gradient",
            flops,
            times(|| {
                let (grad, weight) = (View::of(&out, &of_out), View::of(&weight, &of_weight));
                convolve_transposed(grad, weight, None, back, &window, ViewMut::of(&mut x, &of_x));
            }),
        );
        report(
            "  its weight gradient",
            flops,
            times(|| {
                let (grad, x) = (View::of(&out, &of_out), View::of(&x, &of_x));
                convolve_weights(grad, x, channels, &window, ViewMut::of(&mut weight, &of_weight));
            }),
        );
    }
}

/// Adam over 100 tensors of 100 000 elements, and over many small ones.
fn optimizers() {
    let step = AdamStep {
        lr: 1e-3,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.01,
        decoupled: true,
        amsgrad: false,
        maximize: false,
        step: 3,
    };
    for (count, size) in [(100, 100_000), (1000, 10)] {
        let layout = shape(&[size]);
        let mut tensors: Vec<[Vec<f32>; 4]> = (0..count).map(|_| [0; 4].map(|_| vec![0.1; size])).collect();
        let steps = vec![step; count];
        let [one, two] = times(|| {
            let mut all = Vec::with_capacity(count);
            for [param, grad, mean, square] in &mut tensors {
                let [param, mean, square] = [param, mean, square].map(|list| ViewMut::of(list, &layout));
                all.push(Tensors::new(param, View::of(grad, &layout), [mean, square]));
            }
            step_all(&steps, &mut all);
        });
        let bytes = (count * size * 7 * 4) as f64;
        println!(
            "AdamW over {count} x {size}: {:.1} and {:.1} GB/s, {:.0} ns a tensor",
            bytes / one,
            bytes / two,
            one / count as f64
        );
    }
}
