//! Rules of the graph: what is recorded, what is refused, what happens twice.

use cresset_tensor::autograd::{Pass, backward, grad};
use cresset_tensor::ops::BatchNorm;
use cresset_tensor::{Cause, DType, Tensor, no_grad};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

#[test]
fn gradients_add_up_over_paths_and_passes() {
    let x = leaf(&[2.0, 3.0]);
    let loss = || (&x * &x + &x).unwrap().sum().unwrap();
    loss().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [5.0, 7.0]);
    loss().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [10.0, 14.0]);
    x.clear_grad();
    assert!(x.grad().is_none());
}

#[test]
fn leaves_that_share_a_gradient_do_not_share_its_memory() {
    let (x, y) = (leaf(&[1.0]), leaf(&[1.0]));
    for _ in 0..2 {
        (&x + &y).unwrap().sum().unwrap().backward().unwrap();
    }
    assert_eq!((f64s(&x.grad().unwrap()), f64s(&y.grad().unwrap())), (vec![2.0], vec![2.0]));
}

#[test]
fn parts_of_one_gradient_are_changed_apart() {
    let (x, y) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let joined = Tensor::cat(&[&x, &y], 0).unwrap();
    joined.mul(&joined).unwrap().sum().unwrap().backward().unwrap();
    x.own_grad().unwrap().unwrap().zero_().unwrap();
    assert_eq!((f64s(&x.grad().unwrap()), f64s(&y.grad().unwrap())), (vec![0.0, 0.0], vec![6.0, 8.0]));
}

#[test]
fn nothing_is_recorded_under_no_grad() {
    let x = leaf(&[1.0]);
    let y = {
        let _guard = no_grad();
        x.mul(2.0).unwrap()
    };
    assert!(!y.requires_grad() && y.grad_fn().is_none());
    assert_eq!(x.mul(2.0).unwrap().grad_fn(), Some("MulBackward0"));
    let error = y.sum().unwrap().backward().unwrap_err();
    assert!(
        error.to_string().starts_with("backward: a tensor of shape [] was not computed from anything"),
        "{error}"
    );
}

#[test]
fn a_saved_tensor_that_was_changed_is_an_error_that_names_the_change() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0).unwrap();
    let z = y.mul(&y).unwrap();
    y.add_(1.0).unwrap();
    let error = z.sum().unwrap().backward().unwrap_err();
    assert_eq!(error.cause(), Cause::Graph);
    assert_eq!(
        error.to_string(),
        "MulBackward0: a tensor of shape [2] that the gradient needs was changed in place by aten::add_: \
         it was saved at version 0 and is at version 1; change a copy instead"
    );
}

#[test]
fn a_part_of_the_graph_that_keeps_nothing_can_be_run_again() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0]);
    let turned = x.view([2, 2]).unwrap().t().unwrap();
    for _ in 0..2 {
        // Only what is computed of it anew keeps something.
        turned.sin().unwrap().sum().unwrap().backward().unwrap();
    }
    let expected: Vec<f64> = f64s(&x).iter().map(|x| 2.0 * x.cos()).collect();
    let gradient = f64s(&x.grad().unwrap());
    assert!(gradient.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{gradient:?}");
}

#[test]
fn the_output_of_a_normalization_may_be_changed_in_place() {
    let values: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) - 5.0).collect();
    let training = BatchNorm { training: true, ..BatchNorm::default() };
    let gradient = |in_place: bool| {
        let x = Tensor::from_slice(&values, [4, 3, 2]).unwrap().with_grad().unwrap();
        let y = x.batch_norm([None; 2], None, None, training).unwrap();
        if in_place {
            y.relu_().unwrap();
        }
        let y = if in_place { y } else { y.relu().unwrap() };
        y.mul(&y).unwrap().mul(&x.detach().unwrap()).unwrap().sum().unwrap().backward().unwrap();
        f64s(&x.grad().unwrap())
    };
    assert_eq!(gradient(true), gradient(false));
}

#[test]
fn changes_in_place_are_differentiated() {
    let x = leaf(&[2.0, 3.0]);
    let y = x.mul(1.0).unwrap();
    y.mul_(&x).unwrap();
    y.add_(&x).unwrap();
    assert_eq!(y.grad_fn(), Some("AddBackward0"));
    y.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [5.0, 7.0]);
}

#[test]
fn integers_that_take_in_floats_stay_outside_the_graph() {
    let w = leaf(&[0.5]);
    let counts = Tensor::new([1i64]).unwrap();
    counts.copy_(&w).unwrap();
    assert!(!counts.requires_grad());
}

#[test]
fn a_gradient_must_look_like_its_tensor() {
    let x = leaf(&[1.0, 2.0]);
    let error = x.set_grad(Tensor::new([1.0f32, 2.0]).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("set_grad: a gradient of shape [2], f32, on cpu, for"), "{error}");
    let y = x.mul(2.0).unwrap();
    let error = y.backward_with(&Tensor::new([1.0f64]).unwrap()).unwrap_err();
    assert_eq!(error.cause(), Cause::Shape);
    // As in torch, one of another precision is converted on the way in.
    y.backward_with(&Tensor::new([1.0f32, 1.0]).unwrap()).unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [2.0, 2.0]);
}

#[test]
fn a_gradient_that_was_given_is_not_shared_with_the_leaf() {
    let x = leaf(&[1.0]);
    let given = leaf(&[5.0]);
    backward(&[(&x, Some(&given))], Pass::default()).unwrap();
    let grad = x.grad().unwrap();
    assert!(!grad.requires_grad() && !grad.same_as(&given));
}

#[test]
fn a_constant_that_becomes_part_of_the_graph_does_not_keep_itself_alive() {
    const COUNT: usize = 100_000;
    let w = leaf(&[1.0; COUNT]);
    let live = || cresset_tensor::host_bytes_allocated();
    let round = || {
        let buffer = Tensor::zeros([COUNT], cresset_tensor::DType::F64).unwrap();
        let y = w.mul(&buffer).unwrap();
        buffer.add_(&y).unwrap();
    };
    round();
    let before = live();
    (0..100).for_each(|_| round());
    // Other tests allocate meanwhile, but not half as much as a hundred such buffers.
    assert!(live() < before + 50 * 8 * COUNT as u64, "{} bytes were, {} are", before, live());
}

#[test]
fn threads_that_end_at_one_leaf_lose_no_gradient() {
    // Large enough that the first gradient, which is copied to the leaf, takes a while.
    const COUNT: usize = 10_000;
    let leaves: Vec<Tensor> = (0..400).map(|_| leaf(&[1.0; COUNT])).collect();
    let ones = Tensor::ones([COUNT], cresset_tensor::DType::F64).unwrap();
    let together = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for w in &leaves {
                    let sum = w.add(0.0).unwrap();
                    together.wait();
                    backward(&[(&sum, Some(&ones))], Pass::default()).unwrap();
                }
            });
        }
    });
    let lost = leaves.iter().filter(|w| f64s(&w.grad().unwrap())[0] != 2.0).count();
    assert_eq!(lost, 0, "of {} sums", leaves.len());
}

#[test]
fn a_graph_runs_once_unless_it_is_retained() {
    let x = leaf(&[3.0]);
    let y = x.mul(&x).unwrap();
    backward(&[(&y, None)], Pass { retain_graph: true, ..Pass::default() }).unwrap();
    y.backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [12.0]);
    let error = y.backward().unwrap_err();
    assert!(error.to_string().starts_with("MulBackward0: the graph was run before"), "{error}");
}

#[test]
fn gradients_have_gradients() {
    let x = leaf(&[2.0]);
    let cube = x.pow(3.0).unwrap();
    let pass = Pass { create_graph: true, ..Pass::default() };
    let first = grad(&[(&cube, None)], &[&x], pass).unwrap().remove(0).unwrap();
    let second = grad(&[(&first, None)], &[&x], pass).unwrap().remove(0).unwrap();
    let third = grad(&[(&second, None)], &[&x], Pass::default()).unwrap().remove(0).unwrap();
    assert_eq!((f64s(&first), f64s(&second), f64s(&third)), (vec![12.0], vec![12.0], vec![6.0]));
    assert!(x.grad().is_none());
}

#[test]
fn a_gradient_of_something_in_between_leaves_the_rest_of_the_graph_alone() {
    let x = leaf(&[3.0]);
    let square = x.mul(&x).unwrap();
    let cube = square.mul(&x.detach().unwrap()).unwrap();
    let outer = grad(&[(&cube, None)], &[&square], Pass::default()).unwrap().remove(0).unwrap();
    let inner = grad(&[(&square, None)], &[&x], Pass::default()).unwrap().remove(0).unwrap();
    assert_eq!((f64s(&outer), f64s(&inner)), (vec![3.0], vec![6.0]));
}

#[test]
fn unused_inputs_have_no_gradient_and_strangers_are_refused() {
    let (x, y) = (leaf(&[1.0]), leaf(&[1.0]));
    let z = x.mul(2.0).unwrap();
    let pass = Pass { retain_graph: true, ..Pass::default() };
    let error = grad(&[(&z, None)], &[&x, &y], pass).unwrap_err();
    assert_eq!(
        error.to_string(),
        "grad: the roots do not depend on input 1, of shape [1]; set allow_unused if that is as it should be"
    );
    let gradients = grad(&[(&z, None)], &[&x, &y], Pass { allow_unused: true, ..pass }).unwrap();
    assert_eq!(gradients.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    let plain = Tensor::new([1.0f64]).unwrap();
    assert_eq!(
        grad(&[(&x.mul(2.0).unwrap(), None)], &[&plain], Pass::default()).unwrap_err().cause(),
        Cause::Graph
    );
    assert_eq!(Tensor::new([1i64]).unwrap().with_grad().unwrap_err().cause(), Cause::DType);
}

#[test]
fn a_root_that_is_no_single_number_needs_a_gradient() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(3.0).unwrap();
    let error = y.backward().unwrap_err();
    assert_eq!(
        error.to_string(),
        "backward: a tensor of shape [2] is not a single number: give its gradient"
    );
    let seed = Tensor::new([1.0f64, 10.0]).unwrap();
    backward(&[(&y, Some(&seed))], Pass::default()).unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [3.0, 30.0]);
}

#[test]
fn a_pass_begins_with_one_in_the_shape_and_type_of_its_root() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        let x = Tensor::ones([1, 1], dtype).unwrap().with_grad().unwrap();
        x.mul(3.0).unwrap().backward().unwrap();
        let grad = x.grad().unwrap();
        assert_eq!((grad.shape(), grad.dtype()), (&[1, 1][..], dtype));
        assert_eq!(f64s(&grad.to_dtype(DType::F64).unwrap()), [3.0]);
    }
}

#[test]
fn broadcasting_is_undone_in_the_gradient() {
    let (rows, row) = (leaf(&[1.0, 2.0, 3.0, 4.0]), leaf(&[10.0, 20.0]));
    let column = leaf(&[1.0, 2.0]);
    let out = (&rows.view([2, 2]).unwrap() * &row).unwrap().add(&column.view([2, 1]).unwrap()).unwrap();
    out.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&row.grad().unwrap()), [4.0, 6.0]);
    assert_eq!(f64s(&rows.grad().unwrap()), [10.0, 20.0, 10.0, 20.0]);
    assert_eq!(f64s(&column.grad().unwrap()), [2.0, 2.0]);
}

#[test]
fn gradients_come_back_in_the_type_of_their_receiver() {
    let single = Tensor::new([1.0f32, 2.0]).unwrap().with_grad().unwrap();
    let double = leaf(&[3.0, 4.0]);
    (&single * &double).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(single.grad().unwrap().to_vec::<f32>().unwrap(), [3.0, 4.0]);
}

#[test]
fn a_million_calls_deep_neither_backward_nor_drop_overflows_the_stack() {
    let run = || {
        let x = Tensor::new(1.0f64).unwrap().with_grad().unwrap();
        let mut y = x.mul(1.0).unwrap();
        for _ in 0..1_000_000 {
            y = y.add(0.0).unwrap();
        }
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().item().unwrap().as_f64(), 1.0);
        let mut chain = x.exp().unwrap();
        for _ in 0..300_000 {
            chain = chain.mul(&chain).unwrap();
        }
        drop(chain);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_hundred_thousand_changes_through_views_do_not_overflow_the_stack_either() {
    let run = || {
        let x = leaf(&[1.0, 2.0]);
        let y = x.mul(1.0).unwrap();
        let view = y.as_strided(&[1], &[1], 1).unwrap();
        for _ in 0..100_000 {
            view.add_(1.0).unwrap();
        }
        let pass = Pass { retain_graph: true, ..Pass::default() };
        backward(&[(&y.sum().unwrap(), None)], pass).unwrap();
        assert_eq!(f64s(&x.grad().unwrap()), [1.0, 1.0]);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn nodes_are_called_as_in_torch() {
    let x = Tensor::new([0.5f32, 1.5]).unwrap().with_grad().unwrap();
    let y = Tensor::new([1.0f32, 2.0]).unwrap();
    let mask = y.gt(1.5).unwrap();
    let index = Tensor::new([0i64]).unwrap();
    let rows: [(&str, cresset_tensor::Result<Tensor>); 17] = [
        ("MulBackward0", x.mul(2.0)),
        ("PowBackward0", x.pow(2)),
        ("PowBackward1", x.pow(&y)),
        ("PowBackward2", x.rpow(2.0)),
        ("RemainderBackward0", x.remainder(2.0)),
        ("RemainderBackward1", x.remainder(&y)),
        ("ClampMinBackward0", x.clamp_min(0.0)),
        ("ClampMinBackward1", x.clamp_min(&y)),
        ("ClampBackward1", x.clamp(0.0, 1.0)),
        ("MaskedFillBackward0", x.masked_fill(&mask, 0.0)),
        ("MaskedFillBackward1", x.masked_fill(&mask, &Tensor::new(1.0f32).unwrap())),
        ("ScatterBackward0", x.scatter(0, &index, &y)),
        ("ScatterBackward1", x.scatter(0, &index, 1.0)),
        ("SumBackward0", x.sum()),
        ("SumBackward1", x.sum_dims(&[0], true)),
        ("MeanBackward0", x.mean()),
        ("ProdBackward1", x.prod_dim(0, false, None)),
    ];
    for (name, result) in rows {
        assert_eq!(result.unwrap().grad_fn(), Some(name));
    }
}
