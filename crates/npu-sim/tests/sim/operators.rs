//! Every operator against a direct computation.

use crate::support::*;
use cresset_acl::constant::{dtype, reduction};
use cresset_acl::{code, types::TensorHandle};

type T = Tensor<f32>;
type Handle = *const TensorHandle;
type Unary = fn(Handle, Handle) -> Outcome;
type Binary = fn(Handle, Handle, Handle) -> Outcome;
type InPlace<'a> = Box<dyn Fn(Handle) -> Outcome + 'a>;
type Of<const N: usize> = fn([f32; N]) -> f32;

#[track_caller]
fn near(actual: &[f32], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len());
    for (at, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((a - e).abs() <= 1e-5 * e.abs().max(1.0), "element {at}: {a}, expected {e}");
    }
}

const X: [f32; 6] = [0.5, -1.5, 2.0, 3.25, -0.25, 1.0];
const POSITIVE: [f32; 6] = [0.5, 1.5, 2.0, 3.25, 0.25, 1.0];
const ROW: [f32; 3] = [2.0, 0.5, -4.0];

/// Two layouts of a 2×3 tensor, and an output for each.
fn layouts(values: &[f32]) -> [(T, T); 2] {
    [
        (T::new(&[2, 3], values), T::scattered(&[2, 3], &[0.0; 6])),
        (T::scattered(&[2, 3], values), T::new(&[2, 3], &[0.0; 6])),
    ]
}

#[test]
fn unary_functions() {
    open();
    let table: [(Unary, Of<1>, &[f32]); 8] = [
        (|x, out| run!(reciprocal(x, out)), |[x]| 1.0 / x, &X),
        (|x, out| run!(neg(x, out)), |[x]| -x, &X),
        (|x, out| run!(exp(x, out)), |[x]| x.exp(), &X),
        (|x, out| run!(log(x, out)), |[x]| x.ln(), &POSITIVE),
        (|x, out| run!(sqrt(x, out)), |[x]| x.sqrt(), &POSITIVE),
        (|x, out| run!(relu(x, out)), |[x]| x.max(0.0), &X),
        (|x, out| run!(tanh(x, out)), |[x]| x.tanh(), &X),
        (|x, out| run!(sigmoid(x, out)), |[x]| 1.0 / (1.0 + (-x).exp()), &X),
    ];
    for (run, f, values) in table {
        let expected: Vec<f32> = values.iter().map(|&x| f([x])).collect();
        for (x, out) in layouts(values) {
            run(x.raw, out.raw).unwrap();
            near(&out.get(), &expected);
            run(x.raw, x.raw).unwrap();
            near(&x.get(), &expected);
        }
    }
}

#[test]
fn functions_of_two_tensors_broadcast() {
    open();
    let table: [(Binary, Of<2>); 6] = [
        (|x, y, out| run!(add(x, y, scalar(2.0), out)), |[x, y]| x + 2.0 * y),
        (|x, y, out| run!(sub(x, y, scalar(0.5), out)), |[x, y]| x - 0.5 * y),
        (|x, y, out| run!(mul(x, y, out)), |[x, y]| x * y),
        (|x, y, out| run!(div(x, y, out)), |[x, y]| x / y),
        (|x, y, out| run!(pow_tensor_tensor(x, y, out)), |[x, y]| x.powf(y)),
        (|x, y, out| run!(maximum(x, y, out)), |[x, y]| x.max(y)),
    ];
    let other = T::scattered(&[1, 3], &ROW);
    for (run, f) in table {
        let expected: Vec<f32> = POSITIVE.iter().enumerate().map(|(i, &x)| f([x, ROW[i % 3]])).collect();
        for (x, out) in layouts(&POSITIVE) {
            run(x.raw, other.raw, out.raw).unwrap();
            near(&out.get(), &expected);
            run(x.raw, other.raw, x.raw).unwrap();
            near(&x.get(), &expected);
        }
    }
}

#[test]
fn gradients_have_the_shape_of_what_they_are_of() {
    open();
    let table: [(Binary, Of<2>); 3] = [
        (
            |x, y, out| run!(threshold_backward(x, y, scalar(0.5), out)),
            |[x, y]| if y <= 0.5 { 0.0 } else { x },
        ),
        (|x, y, out| run!(tanh_backward(x, y, out)), |[x, y]| x * (1.0 - y * y)),
        (|x, y, out| run!(sigmoid_backward(x, y, out)), |[x, y]| x * (1.0 - y) * y),
    ];
    let other = T::scattered(&[2, 3], &X);
    for (run, f) in table {
        let expected: Vec<f32> = POSITIVE.iter().zip(X).map(|(&x, y)| f([x, y])).collect();
        for (x, out) in layouts(&POSITIVE) {
            run(x.raw, other.raw, out.raw).unwrap();
            near(&out.get(), &expected);
        }
    }
}

#[test]
fn functions_of_a_tensor_and_a_number() {
    open();
    let table: [(Unary, Of<1>); 5] = [
        (|x, out| run!(adds(x, scalar(3.0), scalar(2.0), out)), |[x]| x + 6.0),
        (|x, out| run!(subs(x, scalar(3.0), scalar(2.0), out)), |[x]| x - 6.0),
        (|x, out| run!(muls(x, scalar(-3.0), out)), |[x]| x * -3.0),
        (|x, out| run!(divs(x, scalar(4.0), out)), |[x]| x / 4.0),
        (|x, out| run!(pow_tensor_scalar(x, scalar(2.0), out)), |[x]| x * x),
    ];
    for (run, f) in table {
        for (x, out) in layouts(&X) {
            run(x.raw, out.raw).unwrap();
            near(&out.get(), &X.map(|x| f([x])));
        }
    }
}

#[test]
fn functions_in_place() {
    open();
    let (row, positive) = (T::new(&[3], &ROW), T::scattered(&[2, 3], &POSITIVE));
    let (r, p) = (row.raw, positive.raw);
    let table: [(InPlace<'_>, Of<3>); 7] = [
        (Box::new(|x| run!(inplace_add(x, r, scalar(2.0)))), |[x, r, _]| x + 2.0 * r),
        (Box::new(|x| run!(inplace_adds(x, scalar(2.0), scalar(1.0)))), |[x, _, _]| x + 2.0),
        (Box::new(|x| run!(inplace_mul(x, r))), |[x, r, _]| x * r),
        (Box::new(|x| run!(inplace_muls(x, scalar(0.5)))), |[x, _, _]| x * 0.5),
        (Box::new(|x| run!(inplace_addcdiv(x, r, p, scalar(3.0)))), |[x, r, p]| x + 3.0 * r / p),
        (Box::new(|x| run!(inplace_addcmul(x, r, p, scalar(3.0)))), |[x, r, p]| x + 3.0 * r * p),
        (Box::new(|x| run!(inplace_lerps(x, p, scalar(0.25)))), |[x, _, p]| x + 0.25 * (p - x)),
    ];
    for (run, f) in table {
        let expected: Vec<f32> = (0..6).map(|i| f([X[i], ROW[i % 3], POSITIVE[i]])).collect();
        for (x, _) in layouts(&X) {
            run(x.raw).unwrap();
            near(&x.get(), &expected);
        }
    }
}

#[test]
fn element_types_are_promoted_and_converted() {
    open();
    let (whole, x) = (Tensor::<i32>::new(&[3], &[7, -2, 3]), T::new(&[3], &[0.5; 3]));
    let (out, wide) = (T::new(&[3], &[0.0; 3]), Tensor::<i64>::new(&[3], &[0; 3]));
    run!(add(whole.raw, x.raw, scalar(1.0), out.raw)).unwrap();
    assert_eq!(out.get(), [7.5, -1.5, 3.5]);
    run!(div(whole.raw, whole.raw, out.raw)).unwrap();
    assert_eq!(out.get(), [1.0; 3]);
    run!(mul(whole.raw, whole.raw, wide.raw)).unwrap();
    assert_eq!(wide.get(), [49, 4, 9]);
    assert_eq!(run!(add(whole.raw, x.raw, scalar(1.0), whole.raw)).unwrap_err().0, code::NN_PARAM_INVALID);
    let number = T::new(&[1], &[2.9]);
    run!(inplace_copy(whole.raw, number.raw)).unwrap();
    assert_eq!(whole.get(), [2; 3]);
}

#[test]
fn comparisons_give_truth_values() {
    open();
    let (x, row) = (T::scattered(&[2, 3], &[2.0, 1.0, f32::NAN, 2.0, 0.5, -4.0]), T::new(&[3], &ROW));
    // Fresh memory holds no truth values; kernels must cope.
    let out = Tensor::<u8>::scattered(&[2, 3], &[0xff; 6]);
    run!(eq_tensor(x.raw, row.raw, out.raw)).unwrap();
    assert_eq!(out.get(), [1, 0, 0, 1, 1, 1]);
    run!(eq_scalar(x.raw, scalar(2.0), out.raw)).unwrap();
    assert_eq!(out.get(), [1, 0, 0, 1, 0, 0]);
    let truth = Tensor::<u8>::new(&[3], &[0, 7, 255]);
    let sum = Tensor::<i64>::new(&[], &[0]);
    run!(reduce_sum(truth.raw, ints(&[]), false, dtype::INT64, sum.raw)).unwrap();
    assert_eq!(sum.get(), [2]);
}

#[test]
fn products_of_matrices() {
    open();
    let b = [1.0, -1.0, 0.5, 2.0, 0.0, 3.0];
    let product = |bias: f32, alpha: f32, beta: f32| -> Vec<f32> {
        let at = |i: usize, j: usize| (0..3).map(|k| X[i * 3 + k] * b[k * 2 + j]).sum::<f32>();
        (0..4).map(|at_| alpha * at(at_ / 2, at_ % 2) + beta * bias * (1 + at_ % 2) as f32).collect()
    };
    let bias = T::new(&[2], &[1.0, 2.0]);
    for (x, _) in layouts(&X) {
        for other in [T::new(&[3, 2], &b), T::scattered(&[3, 2], &b)] {
            for out in [T::new(&[2, 2], &[f32::NAN; 4]), T::scattered(&[2, 2], &[f32::NAN; 4])] {
                run!(mm(x.raw, other.raw, out.raw, 0)).unwrap();
                near(&out.get(), &product(0.0, 1.0, 0.0));
                run!(addmm(bias.raw, x.raw, other.raw, scalar(3.0), scalar(0.5), out.raw, 0)).unwrap();
                near(&out.get(), &product(1.0, 0.5, 3.0));
            }
        }
    }
    let (batch, one) = (T::scattered(&[2, 1, 3], &X), T::new(&[1, 3, 2], &b));
    let out = T::new(&[2, 1, 2], &[0.0; 4]);
    run!(batch_matmul(batch.raw, one.raw, out.raw, 0)).unwrap();
    near(&out.get(), &product(0.0, 1.0, 0.0));
}

#[test]
fn reductions() {
    open();
    for (x, _) in layouts(&X) {
        let (column, row, one) =
            (T::new(&[2, 1], &[0.0; 2]), T::scattered(&[3], &[0.0; 3]), T::new(&[], &[0.0]));
        run!(reduce_sum(x.raw, ints(&[-1]), true, dtype::FLOAT, column.raw)).unwrap();
        near(&column.get(), &[1.0, 4.0]);
        run!(reduce_sum(x.raw, ints(&[]), false, dtype::FLOAT, one.raw)).unwrap();
        near(&one.get(), &[5.0]);
        run!(mean(x.raw, ints(&[0]), false, dtype::FLOAT, row.raw)).unwrap();
        near(&row.get(), &[1.875, -0.875, 1.5]);
        run!(mean(x.raw, ints(&[0, 1]), false, dtype::FLOAT, one.raw)).unwrap();
        near(&one.get(), &[5.0 / 6.0]);
        run!(max(x.raw, one.raw)).unwrap();
        assert_eq!(one.get(), [3.25]);
        let (long, short) = (Tensor::<i64>::new(&[3], &[0; 3]), Tensor::<i32>::new(&[2, 1], &[0; 2]));
        run!(max_dim(x.raw, 0, false, row.raw, long.raw)).unwrap();
        assert_eq!((row.get(), long.get()), (vec![3.25, -0.25, 2.0], vec![1, 1, 0]));
        run!(arg_max(x.raw, 1, true, short.raw)).unwrap();
        assert_eq!(short.get(), [2, 0]);
    }
}

#[test]
fn log_softmax_and_its_gradient() {
    open();
    let softmax = |x: &[f32]| -> Vec<f32> {
        let sum: f32 = x.iter().map(|x| x.exp()).sum();
        x.iter().map(|x| x - sum.ln()).collect()
    };
    let expected = [softmax(&X[..3]), softmax(&X[3..])].concat();
    let backward: Vec<f32> = (0..6)
        .map(|i| POSITIVE[i] - expected[i].exp() * POSITIVE[i / 3 * 3..][..3].iter().sum::<f32>())
        .collect();
    let grad = T::new(&[2, 3], &POSITIVE);
    for (x, out) in layouts(&X) {
        run!(log_softmax(x.raw, -1, out.raw)).unwrap();
        near(&out.get(), &expected);
        run!(log_softmax_backward(grad.raw, out.raw, 1, x.raw)).unwrap();
        near(&x.get(), &backward);
    }
    let (column, out) = (T::new(&[3, 1], &X[..3]), T::new(&[3, 1], &[0.0; 3]));
    run!(log_softmax(column.raw, 0, out.raw)).unwrap();
    near(&out.get(), &expected[..3]);
}

#[test]
fn losses_and_their_gradient() {
    open();
    let (target, weight) = (Tensor::<i64>::new(&[2], &[2, 0]), T::new(&[3], &[1.0, 2.0, 0.5]));
    let (total, one) = (T::new(&[1], &[0.0]), T::new(&[], &[0.0]));
    for (x, out) in layouts(&X) {
        run!(nll_loss(x.raw, target.raw, weight.raw, reduction::MEAN, -100, one.raw, total.raw)).unwrap();
        near(&one.get(), &[-(0.5 * 2.0 + 3.25) / 1.5]);
        near(&total.get(), &[1.5]);
        let grad = T::new(&[], &[3.0]);
        let g = [grad.raw, x.raw, target.raw, weight.raw];
        run!(nll_loss_backward(g[0], g[1], g[2], g[3], reduction::MEAN, -100, total.raw, out.raw)).unwrap();
        near(&out.get(), &[0.0, 0.0, -1.0, -2.0, 0.0, 0.0]);
        let each = T::new(&[2], &[0.0; 2]);
        run!(nll_loss(x.raw, target.raw, weight.raw, reduction::NONE, 2, each.raw, total.raw)).unwrap();
        near(&each.get(), &[0.0, -3.25]);
    }
}

#[test]
fn rows_by_number() {
    open();
    let index = Tensor::<i64>::scattered(&[3], &[2, 0, 2]);
    for (x, _) in layouts(&X) {
        let picked = T::scattered(&[2, 3], &[0.0; 6]);
        run!(index_select(x.raw, 1, index.raw, picked.raw)).unwrap();
        assert_eq!(picked.get(), [2.0, 0.5, 2.0, 1.0, 3.25, 1.0]);
        let added = T::new(&[2, 3], &[0.0; 6]);
        run!(index_add(x.raw, 1, index.raw, picked.raw, scalar(2.0), added.raw)).unwrap();
        near(&added.get(), &[1.5, -1.5, 10.0, 9.75, -0.25, 5.0]);
    }
    let (weight, out) = (T::scattered(&[3, 2], &X), T::new(&[3, 2], &[0.0; 6]));
    run!(embedding(weight.raw, index.raw, out.raw)).unwrap();
    assert_eq!(out.get(), [-0.25, 1.0, 0.5, -1.5, -0.25, 1.0]);
    let grad = T::new(&[3, 2], &X);
    run!(embedding_dense_backward(grad.raw, index.raw, 3, u64::MAX, false, out.raw)).unwrap();
    near(&out.get(), &[2.0, 3.25, 0.0, 0.0, 0.25, -0.5]);
    run!(embedding_dense_backward(grad.raw, index.raw, 3, 0, true, out.raw)).unwrap();
    near(&out.get(), &[0.0, 0.0, 0.0, 0.0, 0.125, -0.25]);
}

#[test]
fn an_index_out_of_range_fails_in_the_stream_and_is_named() {
    open();
    let (weight, index) = (T::new(&[3, 2], &X), Tensor::<i64>::new(&[2], &[0, 3]));
    let out = T::new(&[2, 2], &[0.0; 4]);
    let expected = "aclrtSynchronizeStream: aclnnEmbedding: index 3 is out of range 0..3";
    assert_eq!(
        run!(embedding(weight.raw, index.raw, out.raw)),
        Err((code::RT_AICORE_EXCEPTION, expected.into()))
    );
    synchronize().unwrap();
}

#[test]
fn copies_and_fills() {
    open();
    let row = T::new(&[3], &ROW);
    for (x, out) in layouts(&X) {
        run!(inplace_copy(out.raw, x.raw)).unwrap();
        assert_eq!(out.get(), X);
        run!(inplace_copy(out.raw, row.raw)).unwrap();
        assert_eq!(out.get(), [ROW, ROW].concat());
        run!(inplace_fill_scalar(out.raw, scalar(2.5))).unwrap();
        assert_eq!(out.get(), [2.5; 6]);
        run!(inplace_zero(out.raw)).unwrap();
        assert_eq!(out.get(), [0.0; 6]);
    }
}

#[test]
fn a_step_of_adam_counts_itself() {
    open();
    let (x, m, v) = (T::new(&[2], &[1.0, -2.0]), T::new(&[2], &[0.1, 0.2]), T::new(&[2], &[0.3, 0.4]));
    let (grad, step) = (T::scattered(&[2], &[0.5, -1.0]), Tensor::<i64>::new(&[1], &[4]));
    let none = std::ptr::null();
    let (lr, b1, b2, decay, eps) = (0.1f32, 0.9f32, 0.99f32, 0.01f32, 1e-8f32);
    run!(apply_adam_w_v2(
        x.raw, m.raw, v.raw, none, grad.raw, step.raw, lr, b1, b2, decay, eps, false, false
    ))
    .unwrap();
    let expected = [(1.0f32, 0.1f32, 0.3f32, 0.5f32), (-2.0, 0.2, 0.4, -1.0)].map(|(x, m, v, g)| {
        let (m, v) = (b1 * m + (1.0 - b1) * g, b2 * v + (1.0 - b2) * g * g);
        let (m_hat, v_hat) = (m / (1.0 - b1.powi(5)), v / (1.0 - b2.powi(5)));
        (x * (1.0 - lr * decay) - lr * m_hat / (v_hat.sqrt() + eps), m, v)
    });
    near(&x.get(), &expected.map(|e| e.0));
    near(&m.get(), &expected.map(|e| e.1));
    near(&v.get(), &expected.map(|e| e.2));
    let outcome = run!(apply_adam_w_v2(
        x.raw, m.raw, v.raw, none, grad.raw, step.raw, lr, b1, b2, decay, eps, true, false
    ));
    assert_eq!(outcome.unwrap_err().0, code::NN_PARAM_NULLPTR);
}

#[test]
fn an_input_that_overlaps_the_output_is_read_as_it_was() {
    open();
    let block = Block::of(&[1.0f32, 2.0, 3.0, 4.0]);
    let view = |offset| {
        // SAFETY: arrays of one number each.
        unsafe { aclCreateTensor(&3, 1, dtype::FLOAT, &1, offset, 2, &4, 1, block.0) }
    };
    run!(muls(view(0), scalar(10.0), view(1))).unwrap();
    assert_eq!(block.get::<f32>(4), [1.0, 10.0, 20.0, 30.0]);
}
