//! The same bits for every number of threads, and the same answer however elements lie in memory.
//!
//! Sizes are above those from which kernels share their work.

use cresset_kernels::with_threads;
use cresset_tensor::ops::{Approximate, Attention, Convolving, Pooling};
use cresset_tensor::{DType, Result, Tensor};

/// A name, the shapes of the inputs, and what is computed of them.
type Case = (&'static str, &'static [&'static [usize]], fn(&[Tensor]) -> Result<Tensor>);

const ELEMENTWISE: &[Case] = &[
    ("add", &[&[517, 1031], &[517, 1031]], |x| x[0].add(&x[1])),
    ("add a row", &[&[517, 1031], &[1031]], |x| x[0].add(&x[1])),
    ("add a column", &[&[517, 1031], &[517, 1]], |x| x[0].add(&x[1])),
    ("multiply planes by a row in the middle", &[&[61, 67, 71], &[67, 1]], |x| x[0].mul(&x[1])),
    ("divide", &[&[300, 1000], &[300, 1000]], |x| x[0].div(&x[1].add(3.0)?)),
    ("relu", &[&[300, 1000]], |x| x[0].relu()),
    ("exp", &[&[300, 1000]], |x| x[0].exp()),
    ("tanh", &[&[300, 1000]], |x| x[0].tanh()),
    ("sigmoid", &[&[300, 1000]], |x| x[0].sigmoid()),
    ("gelu", &[&[300, 1000]], |x| x[0].gelu(Approximate::None)),
    ("gelu by tanh", &[&[300, 1000]], |x| x[0].gelu(Approximate::Tanh)),
    ("mask", &[&[300, 1000]], |x| x[0].masked_fill(&x[0].gt(0.5)?, 2.0)),
    ("copy across", &[&[40, 60, 110]], |x| x[0].permute(&[2, 0, 1])?.contiguous()),
    ("join", &[&[300, 500], &[300, 400]], |x| Tensor::cat(&[&x[0], &x[1]], 1)),
    ("pick rows", &[&[400, 500]], |x| x[0].index_select(0, &places(700, 400)?)),
    ("look up", &[&[65, 256]], |x| x[0].embedding(&places(2048, 65)?, None)),
];

const OTHERS: &[Case] = &[
    ("sum", &[&[517, 1031]], |x| x[0].sum()),
    ("sum of columns", &[&[517, 1031]], |x| x[0].sum_dims(&[0], false)),
    ("sum of rows", &[&[517, 1031]], |x| x[0].sum_dims(&[1], false)),
    ("sum in the middle", &[&[61, 67, 71]], |x| x[0].sum_dims(&[1], false)),
    ("mean", &[&[517, 1031]], |x| x[0].mean()),
    ("softmax", &[&[517, 1031]], |x| x[0].softmax(-1)),
    ("softmax of columns", &[&[517, 1031]], |x| x[0].softmax(0)),
    ("log softmax", &[&[517, 1031]], |x| x[0].log_softmax(-1)),
    ("cross entropy", &[&[2048, 65]], |x| x[0].cross_entropy(&places(2048, 65)?)),
    ("layer norm", &[&[517, 1031], &[1031], &[1031]], |x| {
        x[0].layer_norm(&[1031], Some(&x[1]), Some(&x[2]), 1e-5)
    }),
    ("running sums", &[&[300, 1000]], |x| x[0].cumsum(1, None)),
    ("matrix product", &[&[193, 257], &[257, 129]], |x| x[0].matmul(&x[1])),
    ("tall product", &[&[2048, 128], &[128, 65]], |x| x[0].matmul(&x[1])),
    ("deep product", &[&[10, 4096], &[4096, 31]], |x| x[0].matmul(&x[1])),
    ("product with a transposed matrix", &[&[193, 257], &[129, 257]], |x| x[0].matmul(&x[1].t()?)),
    ("many products", &[&[33, 40, 50], &[33, 50, 60]], |x| x[0].matmul(&x[1])),
    ("matrix times vector", &[&[1000, 1031], &[1031]], |x| x[0].mv(&x[1])),
    ("linear layer", &[&[64, 784], &[512, 784], &[512]], |x| x[0].linear(&x[1], Some(&x[2]))),
    ("convolution", &[&[8, 6, 24, 24], &[16, 6, 5, 5], &[16]], |x| {
        x[0].conv2d(&x[1], Some(&x[2]), &Convolving::default())
    }),
    ("convolution of one channel", &[&[32, 1, 28, 28], &[6, 1, 5, 5], &[6]], |x| {
        x[0].conv2d(&x[1], Some(&x[2]), &Convolving::default())
    }),
    ("pooling", &[&[32, 6, 48, 48]], |x| x[0].max_pool2d(&Pooling::new([2, 2]))),
    ("attention", &[&[3, 4, 100, 32], &[3, 4, 100, 32], &[3, 4, 100, 32]], |x| {
        x[0].scaled_dot_product_attention(&x[1], &x[2], Attention::default())
    }),
    ("attention to what came before", &[&[3, 4, 100, 32], &[3, 4, 100, 32], &[3, 4, 100, 32]], |x| {
        x[0].scaled_dot_product_attention(&x[1], &x[2], Attention { causal: true, ..Attention::default() })
    }),
];

/// Numbers from -1 to 1 without an order.
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let number = |i: usize| {
        let mixed = ((i + seed * 7919) as u32).wrapping_mul(2_654_435_761) >> 8;
        mixed as f32 / (1 << 23) as f32 - 1.0
    };
    Tensor::from_slice(&(0..count).map(number).collect::<Vec<_>>(), shape).unwrap()
}

/// Indices below `below`, some more than once.
fn places(count: i64, below: i64) -> Result<Tensor> {
    Tensor::arange(count)?.mul(37)?.remainder(below)
}

fn inputs(shapes: &[&[usize]]) -> Vec<Tensor> {
    shapes.iter().enumerate().map(|(seed, shape)| numbers(shape, seed)).collect()
}

/// The result, and the gradient for each input.
fn run(case: &Case, inputs: &[Tensor]) -> Vec<Vec<f32>> {
    let leaves: Vec<Tensor> = inputs.iter().map(|x| x.detach().unwrap().with_grad().unwrap()).collect();
    let out = (case.2)(&leaves).unwrap_or_else(|error| panic!("{}: {error}", case.0));
    let weights = numbers(out.shape(), 5);
    out.mul(&weights).unwrap().sum().unwrap().backward().unwrap();
    let gradients = leaves.iter().map(|leaf| leaf.grad().expect("each input has a gradient"));
    std::iter::once(out.detach().unwrap()).chain(gradients).map(|x| x.to_vec().unwrap()).collect()
}

fn bits(results: &[Vec<f32>]) -> Vec<Vec<u32>> {
    results.iter().map(|result| result.iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn results_have_the_same_bits_for_every_number_of_threads() {
    for case in ELEMENTWISE.iter().chain(OTHERS) {
        let inputs = inputs(case.1);
        let alone = bits(&with_threads(1, || run(case, &inputs)));
        for threads in [2, 3, 7] {
            // Who gets which piece differs from run to run.
            for _ in 0..3 {
                let shared = bits(&with_threads(threads, || run(case, &inputs)));
                assert!(alone == shared, "{} differs with {threads} threads", case.0);
            }
        }
    }
}

/// The same elements in memory in another order, with gaps, and from another place on.
fn arrangements(x: &Tensor) -> Result<Vec<(&'static str, Tensor)>> {
    let last = x.dim() as isize - 1;
    let turned = x.transpose(0, last)?.contiguous()?.transpose(0, last)?;
    let mut wider = x.shape().to_vec();
    *wider.last_mut().expect("at least one dimension") += 3;
    let inside = Tensor::full(&wider, f32::NAN, DType::F32)?.narrow(last, 1, x.shape()[last as usize])?;
    inside.copy_(x)?;
    let mut doubled = x.shape().to_vec();
    doubled.push(2);
    let every_second = Tensor::full(&doubled, f32::NAN, DType::F32)?.select(-1, 1)?;
    every_second.copy_(x)?;
    let repeated = x.narrow(0, 0, 1)?.expand(x.shape())?;
    Ok(vec![("turned", turned), ("inside", inside), ("every second", every_second), ("repeated", repeated)])
}

/// Compares each case on arranged inputs with the same on their copies.
fn compare(cases: &[Case], same: impl Fn(&[f32], &[f32]) -> bool) {
    for case in cases {
        let plain = inputs(case.1);
        for at in 0..plain.len() {
            for (how, arranged) in arrangements(&plain[at]).unwrap() {
                let mut inputs = plain.clone();
                inputs[at] = arranged.clone();
                let got = run(case, &inputs);
                inputs[at] = arranged.contiguous().unwrap();
                let expected = run(case, &inputs);
                for (part, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    assert!(same(got, expected), "{}: result {part} differs, input {at} {how}", case.0);
                }
            }
        }
    }
}

#[test]
fn elementwise_work_on_a_view_is_exactly_that_on_its_copy() {
    // The result only: gradients of what is broadcast are sums, whose order may differ.
    for case in ELEMENTWISE {
        let plain = inputs(case.1);
        for at in 0..plain.len() {
            for (how, arranged) in arrangements(&plain[at]).unwrap() {
                let with = |x: &Tensor| {
                    let mut inputs = plain.clone();
                    inputs[at] = x.clone();
                    bits(&[(case.2)(&inputs).unwrap().to_vec().unwrap()])
                };
                let same = with(&arranged) == with(&arranged.contiguous().unwrap());
                assert!(same, "{} differs, input {at} {how}", case.0);
            }
        }
    }
}

#[test]
fn other_work_on_a_view_is_that_on_its_copy_up_to_rounding() {
    let largest = |x: &[f32]| x.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
    let close = |got: &[f32], expected: &[f32]| {
        let tolerance = 2e-5 * largest(expected);
        let mut pairs = got.iter().zip(expected);
        got.len() == expected.len() && pairs.all(|(got, expected)| (got - expected).abs() <= tolerance)
    };
    compare(ELEMENTWISE, close);
    compare(OTHERS, close);
}
