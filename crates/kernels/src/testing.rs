//! Arrays for tests: elements with a layout.

use crate::random::Philox;
use crate::{Element, Layout, Scalar, View, ViewMut};

#[derive(Clone)]
pub(crate) struct Array<T> {
    pub(crate) elements: Vec<T>,
    pub(crate) layout: Layout,
}

impl<T: Element> Array<T> {
    pub(crate) fn new(shape: &[usize], elements: &[T]) -> Array<T> {
        let layout = Layout::contiguous(shape).unwrap();
        assert_eq!(layout.len(), elements.len());
        Array { elements: elements.to_vec(), layout }
    }

    pub(crate) fn zeros(shape: &[usize]) -> Array<T> {
        let layout = Layout::contiguous(shape).unwrap();
        Array { elements: vec![T::default(); layout.len()], layout }
    }

    /// Small integers and halves, so that sums of a few are exact.
    pub(crate) fn random(shape: &[usize], seed: u64) -> Array<T> {
        let mut array = Array::zeros(shape);
        let mut numbers = vec![0i64; array.elements.len()];
        let layout = Layout::contiguous(&[numbers.len()]).unwrap();
        Philox::new(seed, 0).integers(-20, 20, ViewMut::of(&mut numbers, &layout));
        let convert = |&n: &i64| T::from_scalar(Scalar::Float(n as f64 / 2.0));
        array.elements = numbers.iter().map(convert).collect();
        array
    }

    pub(crate) fn with(mut self, layout: impl FnOnce(&Layout) -> Layout) -> Array<T> {
        self.layout = layout(&self.layout);
        self
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::of(&self.elements, &self.layout)
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::of(&mut self.elements, &self.layout)
    }

    /// Elements in row-major order.
    pub(crate) fn list(&self) -> Vec<T> {
        self.view().array::<T>().iter().copied().collect()
    }

    pub(crate) fn wide(&self) -> Vec<f64> {
        self.list().into_iter().map(|x| x.scalar().as_f64()).collect()
    }
}

/// Shapes of every kind that a function should take.
pub(crate) const SHAPES: &[&[usize]] =
    &[&[], &[1], &[5], &[0], &[2, 2], &[3, 70], &[70, 3], &[4, 0, 2], &[1, 6, 1], &[3, 4, 5], &[2, 3, 4, 33]];

/// Arrays of one shape that lie in memory in many ways.
pub(crate) fn arrangements<T: Element>(shape: &[usize], seed: u64) -> Vec<Array<T>> {
    let mut arrays = vec![Array::random(shape, seed)];
    for dim in 0..shape.len() {
        let mut other = shape.to_vec();
        other.swap(0, dim);
        arrays.push(Array::random(&other, seed).with(|layout| layout.transpose(0, dim)));
        other = shape.to_vec();
        other[dim] = 2 * shape[dim] + 1;
        let sparse = Array::random(&other, seed);
        let mut strides = sparse.layout.strides().to_vec();
        strides[dim] *= 2;
        arrays.push(sparse.with(|_| Layout::strided(shape, &strides, 0).unwrap()));
        let part = Array::random(&other, seed);
        arrays.push(part.with(|layout| layout.narrow(dim, 1, shape[dim])));
    }
    arrays
}

/// As [`arrangements`], and repeated ones.
pub(crate) fn operands<T: Element>(shape: &[usize], seed: u64) -> Vec<Array<T>> {
    let mut arrays = arrangements(shape, seed);
    for dim in 0..shape.len() {
        let mut other = shape.to_vec();
        other[dim] = 1;
        arrays.push(Array::random(&other, seed).with(|layout| layout.broadcast_to(shape).unwrap()));
    }
    arrays.push(Array::random(&[], seed).with(|layout| layout.broadcast_to(shape).unwrap()));
    arrays
}

pub(crate) fn assert_close(ours: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), expected.len());
    for (i, (a, b)) in ours.iter().zip(expected).enumerate() {
        let close = (a - b).abs() <= tolerance * b.abs().max(1.0) || a == b || (a.is_nan() && b.is_nan());
        assert!(close, "element {i} is {a}, not {b}");
    }
}
