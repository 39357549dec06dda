//! Reductions over every arrangement of memory, and their accuracy.

use super::*;
use crate::testing::{Array, SHAPES, assert_close, operands};
use crate::{Element, f16};
use ndarray::Dimension as _;

/// All subsets of the dimensions of a shape.
fn subsets(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << rank).map(move |bits| (0..rank).filter(|dim| bits >> dim & 1 == 1).collect())
}

fn reduced(shape: &[usize], dims: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|dim| if dims.contains(&dim) { 1 } else { shape[dim] }).collect()
}

/// Folds in double precision, one element at a time.
fn reference<T: Element>(x: &Array<T>, dims: &[usize], start: f64, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let shape = reduced(x.layout.shape(), dims);
    let mut out = ndarray::ArrayD::from_elem(&shape[..], start);
    for (index, value) in x.view().array::<T>().indexed_iter() {
        let mut at = index.slice().to_vec();
        dims.iter().for_each(|&dim| at[dim] = 0);
        out[&at[..]] = f(out[&at[..]], value.scalar().as_f64());
    }
    out.iter().copied().collect()
}

#[test]
fn sums_and_means_agree_with_double_precision() {
    for shape in SHAPES {
        for dims in subsets(shape.len()) {
            for x in operands::<f32>(shape, 5) {
                let expected = reference(&x, &dims, 0.0, |a, b| a + b);
                let mut out = Array::<f32>::zeros(&reduced(shape, &dims));
                sum(x.view(), &dims, out.view_mut());
                assert_close(&out.wide(), &expected, 1e-6);
                let count: usize = dims.iter().map(|&dim| shape[dim]).product();
                mean(x.view(), &dims, out.view_mut());
                let expected: Vec<f64> = expected.iter().map(|sum| sum / count as f64).collect();
                assert_close(&out.wide(), &expected, 1e-6);
            }
        }
    }
}

#[test]
fn extremes_agree_with_double_precision() {
    for shape in SHAPES.iter().filter(|shape| !shape.contains(&0)) {
        for dims in subsets(shape.len()) {
            for x in operands::<i32>(shape, 5) {
                let mut out = Array::<i32>::zeros(&reduced(shape, &dims));
                amax(x.view(), &dims, out.view_mut());
                assert_eq!(out.wide(), reference(&x, &dims, f64::NEG_INFINITY, f64::max));
                amin(x.view(), &dims, out.view_mut());
                assert_eq!(out.wide(), reference(&x, &dims, f64::INFINITY, f64::min));
            }
        }
    }
}

#[test]
fn a_million_elements_sum_to_within_a_few_ulp() {
    let mut x = Array::<f32>::zeros(&[1_000_000]);
    crate::random::Philox::new(3, 0).uniform(0.0, 1.0, x.view_mut());
    let exact: f64 = x.wide().iter().sum();
    let mut out = Array::<f32>::zeros(&[1]);
    sum(x.view(), &[0], out.view_mut());
    assert_close(&out.wide(), &[exact], 4.0 * f64::from(f32::EPSILON));
    let columns = x.with(|layout| layout.view(&[500_000, 2]).unwrap());
    let mut out = Array::<f32>::zeros(&[1, 2]);
    sum(columns.view(), &[0], out.view_mut());
    assert_close(&[out.wide().iter().sum()], &[exact], 4.0 * f64::from(f32::EPSILON));
}

#[test]
fn narrow_types_are_added_up_in_wider_ones() {
    let x = Array::new(&[300], &[true; 300]);
    let mut out = Array::<i64>::zeros(&[1]);
    sum(x.view(), &[0], out.view_mut());
    assert_eq!(out.elements, [300]);
    let x = Array::new(&[4096], &[f16::ONE; 4096]);
    let mut out = Array::<f16>::zeros(&[1]);
    sum(x.view(), &[0], out.view_mut());
    assert_eq!(out.wide(), [4096.0]);
    mean(x.view(), &[0], out.view_mut());
    assert_eq!(out.wide(), [1.0]);
}

#[test]
fn a_sum_of_nothing_is_zero_and_its_mean_is_nan() {
    let x = Array::<f32>::zeros(&[2, 0]);
    let mut out = Array::new(&[2, 1], &[5.0f32; 2]);
    sum(x.view(), &[1], out.view_mut());
    assert_eq!(out.elements, [0.0; 2]);
    mean(x.view(), &[1], out.view_mut());
    assert!(out.elements.iter().all(|x| x.is_nan()));
}

#[test]
fn the_first_of_equals_wins_along_either_dimension() {
    let x = Array::new(&[2, 3], &[3, 1, 3, 2, 1, 3]);
    let (mut values, mut indices) = (Array::<i32>::zeros(&[2, 1]), Array::<i64>::zeros(&[2, 1]));
    max(x.view(), 1, values.view_mut(), indices.view_mut());
    assert_eq!((values.list(), indices.list()), (vec![3, 3], vec![0, 2]));
    let (mut values, mut indices) = (Array::<i32>::zeros(&[1, 3]), Array::<i64>::zeros(&[1, 3]));
    min(x.view(), 0, values.view_mut(), indices.view_mut());
    assert_eq!((values.list(), indices.list()), (vec![2, 1, 3], vec![1, 0, 0]));
    argmax(x.view(), 0, indices.view_mut());
    assert_eq!(indices.list(), [0, 0, 0]);
    argmin(x.view(), 0, indices.view_mut());
    assert_eq!(indices.list(), [1, 0, 0]);
}

#[test]
fn nan_is_the_extreme_and_the_first_nan_its_place() {
    let x = Array::new(&[4], &[1.0, f32::NAN, 9.0, f32::NAN]);
    let (mut value, mut index) = (Array::<f32>::zeros(&[1]), Array::<i64>::zeros(&[1]));
    max(x.view(), 0, value.view_mut(), index.view_mut());
    assert!(value.elements[0].is_nan() && index.elements == [1]);
    argmin(x.view(), 0, index.view_mut());
    assert_eq!(index.elements, [1]);
    amin(x.view(), &[0], value.view_mut());
    assert!(value.elements[0].is_nan());
}

#[test]
fn a_number_by_itself_is_its_own_extreme() {
    let x = Array::new(&[], &[4.0f64]);
    let (mut value, mut index) = (Array::<f64>::zeros(&[]), Array::<i64>::zeros(&[]));
    max(x.view(), 0, value.view_mut(), index.view_mut());
    assert_eq!((value.elements, index.elements), (vec![4.0], vec![0]));
}

#[test]
#[should_panic(expected = "the extreme of no elements")]
fn nothing_has_no_extreme() {
    amax(Array::<f32>::zeros(&[0]).view(), &[0], Array::<f32>::zeros(&[1]).view_mut());
}

#[test]
#[should_panic(expected = "reduction of [2, 3] over [1] does not give [2]")]
fn outputs_keep_the_reduced_dimensions() {
    sum(Array::<f32>::zeros(&[2, 3]).view(), &[1], Array::<f32>::zeros(&[2]).view_mut());
}

#[test]
fn large_sums_are_the_same_bits_for_every_number_of_threads() {
    let shapes: [&[usize]; 5] = [&[300_001], &[3, 70_000], &[70_000, 3], &[700, 130], &[40, 5000]];
    for shape in shapes {
        let x = Array::<f32>::random(shape, 5);
        for dims in subsets(shape.len()) {
            let [one, two] = [1, 2].map(|count| {
                let mut out = Array::<f32>::zeros(&reduced(shape, &dims));
                crate::with_threads(count, || sum(x.view(), &dims, out.view_mut()));
                out.wide()
            });
            assert_eq!(one, two);
            assert_close(&one, &reference(&x, &dims, 0.0, |a, b| a + b), 1e-6);
        }
    }
}

#[test]
fn dimensions_in_another_order_and_apart_are_reduced_in_place() {
    let x = Array::<f32>::random(&[5, 3, 40, 7], 5);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let x = x.clone().with(|layout| layout.permute(&order));
        for dims in subsets(4) {
            let mut out = Array::<f32>::zeros(&reduced(x.layout.shape(), &dims));
            sum(x.view(), &dims, out.view_mut());
            assert_close(&out.wide(), &reference(&x, &dims, 0.0, |a, b| a + b), 1e-6);
            amax(x.view(), &dims, out.view_mut());
            assert_eq!(out.wide(), reference(&x, &dims, f64::NEG_INFINITY, f64::max));
        }
    }
}
