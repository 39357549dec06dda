//! Backward passes on several threads: of graphs that share nothing, a leaf, or everything.

use cresset_tensor::Tensor;
use cresset_tensor::autograd::{Pass, backward, checkpoint, grad};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

const THREADS: usize = 4;
const ROUNDS: usize = 50;

/// Runs `work` on several threads at once, many times.
fn together(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || (0..ROUNDS).for_each(|_| work(thread)));
        }
    });
}

#[test]
fn graphs_that_share_nothing_run_side_by_side() {
    together(|thread| {
        let x = leaf(&[thread as f64; 64]);
        x.mul(&x).unwrap().exp().unwrap().sum().unwrap().backward().unwrap();
        let at = thread as f64;
        let expected = 2.0 * at * (at * at).exp();
        assert!(f64s(&x.grad().unwrap()).iter().all(|slope| (slope - expected).abs() <= 1e-9 * expected));
    });
}

#[test]
fn a_leaf_that_all_share_gets_every_gradient() {
    let w = leaf(&[1.0; 64]);
    together(|_| {
        let x = leaf(&[2.0; 64]);
        (&x * &w).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(f64s(&x.grad().unwrap()), [1.0; 64]);
    });
    assert_eq!(f64s(&w.grad().unwrap()), [2.0 * (THREADS * ROUNDS) as f64; 64]);
}

#[test]
fn one_graph_can_be_run_by_all_at_once_if_it_is_retained() {
    let x = leaf(&[0.5; 64]);
    let inside = checkpoint(|x| x[0].mul(&x[0])?.exp(), &[&x]).unwrap();
    let view = inside.mul(2.0).unwrap();
    view.as_strided(&[32], &[1], 0).unwrap().mul_(3.0).unwrap();
    let loss = view.sum().unwrap();
    let pass = Pass { retain_graph: true, ..Pass::default() };
    let expected = f64s(grad(&[(&loss, None)], &[&x], pass).unwrap()[0].as_ref().unwrap());
    together(|_| {
        let slopes = grad(&[(&loss, None)], &[&x], pass).unwrap();
        assert_eq!(f64s(slopes[0].as_ref().unwrap()), expected);
        backward(&[(&loss, None)], pass).unwrap();
    });
    let passes = (THREADS * ROUNDS) as f64;
    let sum = f64s(&x.grad().unwrap());
    assert!(sum.iter().zip(&expected).all(|(sum, one)| (sum - passes * one).abs() <= 1e-9 * sum.abs()));
}

#[test]
fn a_graph_may_begin_on_one_thread_and_go_on_on_another() {
    let x = leaf(&[5.0]);
    // This thread has counted further than a fresh one will: numbers say nothing across threads.
    let early = (0..20).fold(x.clone(), |y, _| y.add(&x).unwrap());
    let late = std::thread::scope(|scope| scope.spawn(|| early.mul(&early).unwrap()).join().unwrap());
    let gradients = grad(&[(&late, None)], &[&x], Pass::default()).unwrap();
    assert_eq!(f64s(gradients[0].as_ref().unwrap()), [2.0 * 21.0 * 21.0 * 5.0]);
}
