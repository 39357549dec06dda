//! Indexing as people write it, and indices that lead nowhere.

#![expect(clippy::reversed_empty_ranges, reason = "ends below zero count from the back")]

use cresset_tensor::indexing::{Ellipsis, Indexer, NewAxis, Slice, slice};
use cresset_tensor::ops::Combine;
use cresset_tensor::{Cause, DType, Result, Tensor};

/// `0, 1, …` in a shape.
fn numbers(shape: &[usize]) -> Tensor {
    Tensor::arange(shape.iter().product::<usize>()).unwrap().view(shape).unwrap()
}

fn picked(x: Result<Tensor>) -> (Vec<usize>, Vec<i64>) {
    let x = x.unwrap();
    (x.shape().to_vec(), x.to_vec().unwrap())
}

#[test]
fn numbers_and_ranges_give_views() {
    let x = numbers(&[2, 3, 4]);
    assert_eq!(picked(x.get((1, -1, 0))), (vec![], vec![20]));
    assert_eq!(picked(x.get((0, 1..))), (vec![2, 4], (4..12).collect()));
    assert_eq!(picked(x.get((.., 0, -2..))), (vec![2, 2], vec![2, 3, 14, 15]));
    assert_eq!(picked(x.get((1, ..=0, ..-2))), (vec![1, 2], vec![12, 13]));
    assert_eq!(picked(x.get((0, 0, 1..=-1))), (vec![3], vec![1, 2, 3]));
    assert_eq!(picked(x.get((0, 0, slice(1, None, 2)))), (vec![2], vec![1, 3]));
    assert_eq!(picked(x.get((Ellipsis, 3))), (vec![2, 3], vec![3, 7, 11, 15, 19, 23]));
    assert_eq!(picked(x.get((1, NewAxis, Ellipsis, NewAxis, 0))), (vec![1, 3, 1], vec![12, 16, 20]));
    for view in [x.get(1), x.get(..), x.get(Ellipsis), x.get((0, 1..2))] {
        let view = view.unwrap();
        assert!(view.is_view() && view.storage().same_as(x.storage()));
    }
}

#[test]
fn ranges_are_cut_to_the_dimension() {
    let x = numbers(&[5]);
    assert_eq!(picked(x.get(3..9)), (vec![2], vec![3, 4]));
    assert_eq!(picked(x.get(-9..2)), (vec![2], vec![0, 1]));
    assert_eq!(picked(x.get(4..2)), (vec![0], vec![]));
    assert_eq!(picked(x.get(7..)), (vec![0], vec![]));
    assert_eq!(picked(x.get(slice(i64::MIN, i64::MAX, i64::MAX))), (vec![1], vec![0]));
    assert_eq!(picked(x.get(usize::MAX - 1..usize::MAX)), (vec![0], vec![]));
}

#[test]
fn what_indices_pick_lies_where_numpy_puts_it() {
    let x = numbers(&[2, 3, 4]);
    let rows = Tensor::new([[0i64], [1]]).unwrap();
    assert_eq!(picked(x.get((.., [2, 0]))).0, [2, 2, 4]);
    assert_eq!(picked(x.get((.., &rows, [0, 1, 3]))).0, [2, 2, 3]);
    assert_eq!(picked(x.get(([0, 1], .., [0, 1]))), (vec![2, 3], vec![0, 4, 8, 13, 17, 21]));
    assert_eq!(picked(x.get((0, .., [0, 1]))), (vec![3, 2], vec![0, 1, 4, 5, 8, 9]));
    assert_eq!(picked(x.get(([-1, 0], -1, [1, 1]))), (vec![2], vec![21, 9]));
    assert_eq!(picked(x.get((NewAxis, [1], true))).0, [1, 1, 3, 4]);
    assert_eq!(picked(x.get(false)).0, [0, 2, 3, 4]);
}

#[test]
fn a_mask_stands_for_its_dimensions() {
    let x = numbers(&[2, 3, 2]);
    let mask = Tensor::new([[true, false, true], [false, true, false]]).unwrap();
    assert_eq!(picked(x.get(&mask)), (vec![3, 2], vec![0, 1, 4, 5, 8, 9]));
    assert_eq!(picked(x.get((&mask, 1..))), (vec![3, 1], vec![1, 5, 9]));
    assert_eq!(picked(x.get((&mask, [0, 1, 0]))), (vec![3], vec![0, 5, 8]));
    let columns = Tensor::new([false, true]).unwrap();
    assert_eq!(picked(x.get((Ellipsis, &columns))), (vec![2, 3, 1], vec![1, 3, 5, 7, 9, 11]));
    let one = Tensor::new(1i64).unwrap();
    assert!(x.get(&one).unwrap().is_view());
}

#[test]
fn indices_that_lead_nowhere_are_named() {
    let x = numbers(&[2, 3]);
    let told = |result: Result<Tensor>| result.unwrap_err().to_string();
    assert_eq!(told(x.get(2)), "aten::select: index 2 is out of range for dimension 0 of size 2");
    assert_eq!(told(x.get((.., -4))), "aten::select: index -4 is out of range for dimension 1 of size 3");
    assert_eq!(told(x.get([0, 2])), "aten::index: index 2 is out of range for size 2");
    assert_eq!(told(x.get((0, 0, 0))), "get: 3 dimensions are indexed, shape [2, 3] has 2");
    assert_eq!(told(x.get((Ellipsis, Ellipsis))), "get: expects at most one Ellipsis, not 2");
    assert_eq!(told(x.get(slice(0, 2, 0))), "get: expects a step above 0, not 0");
    let mask = Tensor::new([true, false, true]).unwrap();
    assert_eq!(x.get(&mask).unwrap_err().cause(), Cause::Shape);
    assert_eq!(x.get(Tensor::new([0.5f32]).unwrap()).unwrap_err().cause(), Cause::DType);
    assert_eq!(x.get(([0, 1], [0, 1, 2])).unwrap_err().cause(), Cause::Shape);
    let all = [Indexer::Slice(Slice { start: None, stop: None, step: 1 }), Indexer::At(9)];
    assert_eq!(x.get(&all[..]).unwrap_err().cause(), Cause::Index);
}

#[test]
fn set_writes_to_what_get_would_pick() {
    let x = Tensor::zeros([2, 3], DType::F32).unwrap();
    x.set((.., 1), 5.0).unwrap();
    x.set((1, 2..), &Tensor::new([[8.0f32]]).unwrap()).unwrap();
    x.set(([0, 1], [0, 0]), &Tensor::new([1i64, 2]).unwrap()).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 5.0, 0.0, 2.0, 5.0, 8.0]);
    x.set(x.gt(4.0).unwrap(), -1).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -1.0, 0.0, 2.0, -1.0, -1.0]);
    assert!(x.set(0, &Tensor::new([1.0f32, 2.0]).unwrap()).is_err());
}

#[test]
fn gradients_flow_through_what_was_set() {
    let x = Tensor::new([1.0f32, 2.0, 3.0]).unwrap().with_grad().unwrap();
    let value = Tensor::new(4.0f32).unwrap().with_grad().unwrap();
    let y = x.mul(2.0).unwrap();
    y.set([0, 2], &value).unwrap();
    y.mul(&y).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 16.0, 0.0]);
    assert_eq!(value.grad().unwrap().to_vec::<f32>().unwrap(), [16.0]);
}

#[test]
fn a_failed_change_by_index_leaves_its_target_alone() {
    let x = numbers(&[4]);
    let (bad, source) = (Tensor::new([0i64, 4]).unwrap(), Tensor::new([9i64, 9]).unwrap());
    let flat = [
        x.index_add_(0, &bad, &source),
        x.index_copy_(0, &bad, &source),
        x.index_fill_(0, &bad, 9),
        x.index_reduce_(0, &bad, &source, Combine::Largest, true),
        x.scatter_(0, &bad, &source),
        x.scatter_add_(0, &bad, &source),
        x.scatter_reduce_(0, &bad, &source, Combine::Multiply, false),
        x.put_(&bad, &source, false),
        x.index_put_(&[Some(&bad)], &source, true),
        x.set(&bad, &source),
        x.masked_scatter_(&Tensor::new([true, true, true, false]).unwrap(), &source),
    ];
    for result in flat {
        assert!(result.is_err());
    }
    assert_eq!(x.to_vec::<i64>().unwrap(), [0, 1, 2, 3]);
    assert_eq!(x.version(), 0);
}

#[test]
fn strided_targets_are_changed_where_they_are() {
    let memory = Tensor::zeros([3, 4], DType::BF16).unwrap();
    let turned = memory.t().unwrap();
    let ones = Tensor::ones([2, 3], DType::BF16).unwrap();
    turned.index_add_(0, &Tensor::new([3i64, 3]).unwrap(), &ones).unwrap();
    turned.put_(&Tensor::new([-12i64]).unwrap(), &Tensor::full([], 7.0, DType::BF16).unwrap(), true).unwrap();
    let expected = [7.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0];
    assert_eq!(memory.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap(), expected);
}

#[test]
fn a_source_may_share_memory_with_its_target() {
    let x = numbers(&[4]);
    let back = Tensor::new([3i64, 2, 1, 0]).unwrap();
    x.index_copy_(0, &back, &x).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [3, 2, 1, 0]);
    x.scatter_(0, &x, &x).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [0, 1, 2, 3]);
}

#[test]
fn expanded_indices_beyond_memory_are_errors() {
    let endless = Tensor::new([0i64]).unwrap().expand([1i64 << 50]).unwrap();
    let column = endless.view([1i64 << 50, 1]).unwrap();
    let mask = Tensor::new([false]).unwrap().expand([1i64 << 50]).unwrap();
    let x = numbers(&[1]);
    let results = [
        x.index_select(0, &endless).map(drop),
        x.gather(0, &endless).map(drop),
        x.take(&endless).map(drop),
        x.get(&endless).map(drop),
        numbers(&[1, 1]).get((&endless, &column)).map(drop),
        x.index_put_(&[Some(&endless)], &x, true),
        x.index_fill_(0, &endless, 1),
        x.scatter_(0, &endless, 1),
        x.masked_select(&mask).map(drop),
        endless.nonzero().map(drop),
        x.isin(&endless).map(drop),
        x.one_hot(Some(usize::MAX)).map(drop),
    ];
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().cause(), Cause::Memory, "{number}");
    }
}

#[test]
fn what_an_operator_does_not_keep_may_change() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap().with_grad().unwrap();
    let y = x.mul(3.0).unwrap();
    let z = y.get([1]).unwrap();
    y.add_(1.0).unwrap();
    z.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 3.0]);
}

#[test]
fn embeddings_pad_scale_and_renormalise() {
    let table = Tensor::new([[3.0f32, 4.0], [1.0, 0.0], [6.0, 8.0]]).unwrap();
    let indices = Tensor::new([0i64, 1, 0]).unwrap();
    table.embedding_renorm_(&indices, 1.0, 2.0).unwrap();
    let rows = table.to_vec::<f32>().unwrap();
    assert!((rows[0] - 0.6).abs() < 1e-6 && (rows[1] - 0.8).abs() < 1e-6);
    assert_eq!(rows[2..], [1.0, 0.0, 6.0, 8.0]);
    let table = table.with_grad().unwrap();
    let picked = table.embedding_scaled(&indices, Some(-2), true).unwrap();
    picked.sum().unwrap().backward().unwrap();
    assert_eq!(table.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(table.embedding(&indices, Some(3)).unwrap_err().cause(), Cause::Index);
}

#[test]
fn results_that_depend_on_elements_have_no_meta_form() {
    let x = Tensor::zeros([2, 3], cresset_tensor::Device::META).unwrap();
    let mask = Tensor::zeros([2], (DType::Bool, cresset_tensor::Device::META)).unwrap();
    assert_eq!(x.nonzero().unwrap_err().cause(), Cause::NoKernel);
    assert_eq!(x.get(&mask).unwrap_err().cause(), Cause::NoKernel);
    let index = Tensor::zeros([4], (DType::I64, cresset_tensor::Device::META)).unwrap();
    assert_eq!(x.get(&index).unwrap().shape(), [4, 3]);
}
