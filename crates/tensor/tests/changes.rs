//! Changes in place through views: what they do to gradients, and what is refused.

use cresset_tensor::autograd::{Pass, grad};
use cresset_tensor::{Cause, DType, Result, Tensor, no_grad};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// Elements `from` to `to` of a vector.
fn part(x: &Tensor, from: usize, to: usize) -> Tensor {
    x.as_strided(&[to - from], &[1], from).unwrap()
}

#[test]
fn a_change_through_a_view_is_part_of_the_history_of_its_base() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = x.mul(2.0).unwrap();
    let view = part(&y, 0, 2);
    view.mul_(10.0).unwrap();
    assert_eq!(y.grad_fn(), Some("CopySlices"));
    assert_eq!(view.grad_fn(), Some("AsStridedBackward0"));
    y.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [20.0, 20.0, 2.0]);
}

#[test]
fn the_view_and_its_siblings_see_what_was_changed_through_each_other() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = x.mul(1.0).unwrap();
    let (left, right, all) = (part(&y, 0, 2), part(&y, 1, 3), y.view([3, 1]).unwrap());
    left.mul_(3.0).unwrap();
    right.mul_(5.0).unwrap();
    assert_eq!(f64s(&all), [3.0, 30.0, 15.0]);
    let gradient = |of: &Tensor| {
        let pass = Pass { retain_graph: true, ..Pass::default() };
        f64s(grad(&[(&of.sum().unwrap(), None)], &[&x], pass).unwrap()[0].as_ref().unwrap())
    };
    assert_eq!(gradient(&left), [3.0, 15.0, 0.0]);
    assert_eq!(gradient(&right), [0.0, 15.0, 5.0]);
    assert_eq!(gradient(&all), [3.0, 15.0, 5.0]);
    assert_eq!(gradient(&y), [3.0, 15.0, 5.0]);
}

#[test]
fn a_change_of_the_base_is_seen_by_views_taken_before() {
    let w = leaf(&[1.0, 4.0]);
    let base = Tensor::zeros([2], DType::F64).unwrap();
    let early = base.view([2, 1]).unwrap();
    assert!(!early.requires_grad());
    base.add_(&w).unwrap();
    assert!(early.requires_grad() && !early.is_leaf());
    early.mul(&early).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&w.grad().unwrap()), [2.0, 8.0]);
}

#[test]
fn filling_a_buffer_by_parts_gives_each_part_its_gradient() {
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0]));
    let buffer = Tensor::zeros([3], DType::F64).unwrap();
    part(&buffer, 0, 2).copy_(&a).unwrap();
    part(&buffer, 2, 3).copy_(&b).unwrap();
    buffer.mul(&buffer).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!((f64s(&a.grad().unwrap()), f64s(&b.grad().unwrap())), (vec![2.0, 4.0], vec![6.0]));
}

#[test]
fn views_of_views_and_of_other_orders_change_the_same_base() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0]);
    let y = x.mul(1.0).unwrap().view([2, 2]).unwrap();
    let column = y.t().unwrap().as_strided(&[2], &[2], 1).unwrap();
    column.mul_(&column.detach().unwrap().copy().unwrap()).unwrap();
    assert_eq!(f64s(&y), [1.0, 4.0, 3.0, 16.0]);
    y.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [1.0, 2.0, 1.0, 4.0]);
}

#[test]
fn a_base_with_gaps_is_changed_through_its_views_as_well() {
    let w = leaf(&[5.0]);
    let every_other = Tensor::zeros([5], DType::F64).unwrap().as_strided(&[2], &[2], 1).unwrap();
    let base = every_other.detach().unwrap();
    base.as_strided(&[1], &[2], 3).unwrap().add_(&w).unwrap();
    assert_eq!(f64s(&base), [0.0, 5.0]);
    base.mul(&base).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&w.grad().unwrap()), [10.0]);
}

#[test]
fn changes_through_views_have_second_gradients() {
    let x = leaf(&[2.0, 3.0]);
    let w = leaf(&[5.0]);
    let y = x.mul(&x).unwrap();
    part(&y, 0, 1).mul_(&w).unwrap();
    let loss = y.mul(&y).unwrap().sum().unwrap();
    let pass = Pass { create_graph: true, ..Pass::default() };
    // The loss is x0^4 w^2 + x1^4.
    let first = grad(&[(&loss, None)], &[&x, &w], pass).unwrap();
    let (dx, dw) = (first[0].clone().unwrap(), first[1].clone().unwrap());
    assert_eq!((f64s(&dx), f64s(&dw)), (vec![800.0, 108.0], vec![160.0]));
    let second = grad(&[(&dx.sum().unwrap(), None)], &[&x, &w], Pass::default()).unwrap();
    assert_eq!(f64s(second[0].as_ref().unwrap()), [1200.0, 108.0]);
    assert_eq!(f64s(second[1].as_ref().unwrap()), [320.0]);
}

#[test]
fn a_call_that_keeps_its_result_keeps_the_part_it_changed() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0).unwrap();
    part(&y, 1, 2).addcdiv_(&part(&x, 0, 1), &part(&x, 1, 2), 1.0).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [1.5, 0.75]);
}

#[test]
fn a_view_of_a_saved_tensor_that_was_changed_is_noticed() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0).unwrap();
    let z = y.mul(&y).unwrap();
    part(&y, 0, 1).add_(1.0).unwrap();
    let error = z.sum().unwrap().backward().unwrap_err();
    assert!(error.to_string().contains("was changed in place by aten::add_"), "{error}");
}

#[test]
fn leaves_and_views_of_leaves_refuse_changes() {
    let x = leaf(&[2.0, 3.0]);
    let refused = |result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.cause(), Cause::Graph);
        error.to_string()
    };
    assert_eq!(
        refused(x.add_(1.0)),
        "aten::add_: a leaf that requires grad cannot be changed in place; do it under no_grad()"
    );
    assert_eq!(
        refused(x.view([2, 1]).unwrap().mul_(2.0)),
        "aten::mul_: a view of a leaf that requires grad cannot be changed in place; do it under no_grad()"
    );
    let point = Tensor::new(2.0f64).unwrap().with_grad().unwrap();
    refused(point.t().unwrap().mul_(3.0));
    assert_eq!((f64s(&x), f64s(&point)), (vec![2.0, 3.0], vec![2.0]));
}

#[test]
fn views_made_without_recording_refuse_recorded_changes_and_notice_them() {
    let w = leaf(&[1.0, 1.0]);
    let computed = w.mul(2.0).unwrap();
    let unrecorded = {
        let _guard = no_grad();
        computed.view([2, 1]).unwrap()
    };
    let error = unrecorded.mul_(3.0).unwrap_err();
    assert!(error.to_string().starts_with("aten::mul_: a view made under no_grad()"), "{error}");
    // Also a view of such a view, and one that takes in a tensor with history.
    assert_eq!(unrecorded.view([2]).unwrap().mul_(3.0).unwrap_err().cause(), Cause::Graph);
    computed.mul_(3.0).unwrap();
    let error = unrecorded.sum().unwrap_err();
    assert!(error.to_string().contains("was changed in place by aten::mul_; take the view again"), "{error}");
    let _guard = no_grad();
    assert_eq!(f64s(&unrecorded), [6.0, 6.0]);
    unrecorded.mul_(2.0).unwrap();
    assert_eq!(f64s(&computed), [12.0, 12.0]);
}

#[test]
fn a_detached_tensor_is_changed_on_its_own_account() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(3.0).unwrap();
    let aside = y.detach().unwrap();
    part(&aside, 0, 1).fill_(0.0).unwrap();
    assert!(!aside.requires_grad() && y.grad_fn() == Some("MulBackward0"));
    y.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [3.0, 3.0]);
}

#[test]
fn a_target_that_overlaps_itself_or_another_input_is_refused_and_unchanged() {
    let x = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]]).unwrap();
    let refused = |result: Result<()>| assert_eq!(result.unwrap_err().cause(), Cause::Argument);
    refused(Tensor::new([1.0f64]).unwrap().expand([3]).unwrap().add_(1.0));
    refused(x.add_(&x.t().unwrap()));
    refused(x.as_strided(&[3], &[1], 1).unwrap().copy_(&x.as_strided(&[3], &[1], 0).unwrap()));
    assert_eq!(f64s(&x), [1.0, 2.0, 3.0, 4.0]);
    x.add_(&x).unwrap();
    x.as_strided(&[2], &[1], 0).unwrap().mul_(&x.as_strided(&[2], &[1], 2).unwrap()).unwrap();
    assert_eq!(f64s(&x), [12.0, 32.0, 6.0, 8.0]);
}

#[test]
fn a_change_that_fails_leaves_values_version_and_history_alone() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0).unwrap();
    let view = y.view([2, 1]).unwrap();
    assert!(view.add_(&Tensor::new([1.0f64, 2.0, 3.0]).unwrap()).is_err());
    assert!(view.copy_(&Tensor::new([[1.0f64], [2.0], [3.0]]).unwrap()).is_err());
    assert_eq!((f64s(&y), y.version(), y.grad_fn()), (vec![1.0, 2.0], 0, Some("MulBackward0")));
}
