//! Numbers turned into places in memory.

use crate::elementwise::{pack, to_scratch};
use crate::scratch::Elements;
use crate::{DType, Layout, OutOfRange, View};

/// Runs of elements in the memory of a view, counted from its first element.
///
/// Made for one layout, and good for views of that layout only.
pub struct Places {
    pub(super) starts: Vec<usize>,
    /// How many elements lie one after the other from each start on.
    pub(super) run: usize,
}

/// What is picked along one dimension, or along several together.
enum Axis {
    All { size: usize, stride: usize },
    Listed(Vec<usize>),
}

impl Places {
    /// The slices along `dim` that an index names; with `wrap`, negative numbers count from the back.
    pub fn of_slices(layout: &Layout, dim: usize, index: View<'_>, wrap: bool) -> Result<Places, OutOfRange> {
        let (shape, strides) = dims(layout);
        let listed = scaled(numbers(index, shape[dim], wrap)?, strides[dim]);
        let mut axes = all(shape, strides);
        axes[dim] = Axis::Listed(listed);
        Ok(Places::product(axes))
    }

    /// The elements that have the coordinates of an index, but for dimension `dim`, where they have
    /// the number that it holds there.
    pub fn of_elements(layout: &Layout, dim: usize, index: View<'_>) -> Result<Places, OutOfRange> {
        let (shape, strides) = dims(layout);
        let numbers = numbers(index, shape[dim], false)?;
        let (index_shape, _) = dims(index.layout());
        let stay = strides.iter().enumerate().map(|(at, &stride)| if at == dim { 0 } else { stride });
        let mut starts = offsets(index_shape.iter().copied().zip(stay));
        starts.iter_mut().zip(numbers).for_each(|(start, number)| *start += number * strides[dim]);
        Ok(Places { starts, run: 1 })
    }

    /// The elements with the given numbers in row-major order; negative ones count from the back.
    pub fn of_flat(layout: &Layout, index: View<'_>) -> Result<Places, OutOfRange> {
        let mut starts = numbers(index, layout.len(), true)?;
        if !layout.is_contiguous() {
            starts.iter_mut().for_each(|number| *number = unravel(layout, *number));
        }
        Ok(Places { starts, run: 1 })
    }

    /// The elements where a mask of the same shape is true.
    pub fn of_mask(layout: &Layout, mask: View<'_>) -> Places {
        assert_eq!(layout.shape(), mask.shape(), "a mask says yes or no to each element");
        let offsets = offsets(layout.shape().iter().copied().zip(layout.strides().iter().copied()));
        let mask = pack::<bool>(mask);
        let starts = offsets.into_iter().zip(mask.iter()).filter_map(|(at, &picked)| picked.then_some(at));
        Places { starts: starts.collect(), run: 1 }
    }

    /// The elements that indices of one shape name together, one per leading dimension or none;
    /// negative numbers count from the back. What they pick lies [`block`] dimensions deep.
    pub fn of_indices(layout: &Layout, indices: &[Option<View<'_>>]) -> Result<Places, OutOfRange> {
        let (shape, strides) = (layout.shape(), layout.strides());
        let mut listed: Option<Vec<usize>> = None;
        for (dim, index) in indices.iter().enumerate() {
            let Some(index) = index else { continue };
            let more = scaled(numbers(*index, shape[dim], true)?, strides[dim]);
            match &mut listed {
                Some(sum) => sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more),
                None => listed = Some(more),
            }
        }
        let is_all = |dim: &usize| indices.get(*dim).is_none_or(Option::is_none);
        let mut axes: Vec<Axis> = (0..layout.rank())
            .filter(is_all)
            .map(|dim| Axis::All { size: shape[dim], stride: strides[dim] })
            .collect();
        if let Some(listed) = listed {
            axes.insert(block(indices), Axis::Listed(listed));
        }
        Ok(Places::product(axes))
    }

    /// Everything that one choice along each axis leads to, in row-major order.
    fn product(mut axes: Vec<Axis>) -> Places {
        let is_empty = |axis: &Axis| match axis {
            Axis::All { size, .. } => *size == 0,
            Axis::Listed(listed) => listed.is_empty(),
        };
        if axes.iter().any(is_empty) {
            return Places { starts: Vec::new(), run: 1 };
        }
        let mut run = 1;
        while let Some(Axis::All { size, stride }) = axes.last()
            && (*size == 1 || *stride == run)
        {
            run *= size;
            axes.pop();
        }
        let mut starts = vec![0];
        for axis in axes {
            starts = match axis {
                Axis::All { size, stride } => {
                    starts.iter().flat_map(|start| (0..size).map(move |i| start + i * stride)).collect()
                }
                Axis::Listed(listed) if starts.len() == 1 => scaled_sum(listed, starts[0]),
                Axis::Listed(listed) => {
                    starts.iter().flat_map(|start| listed.iter().map(move |at| start + at)).collect()
                }
            };
        }
        Places { starts, run }
    }

    /// How many elements they are.
    pub fn count(&self) -> usize {
        self.starts.len() * self.run
    }
}

/// How many dimensions without an index lie in front of what indices pick: those before the first if the
/// indices stand side by side, else none.
pub fn block<T>(indices: &[Option<T>]) -> usize {
    let first = indices.iter().position(Option::is_some).unwrap_or(0);
    let mut rest = indices[first..].iter().skip_while(|index| index.is_some());
    if rest.any(Option::is_some) { 0 } else { first }
}

/// The numbers of an index in row-major order, each below `size`. With `wrap`, negative ones count from
/// the back.
pub(super) fn numbers(index: View<'_>, size: usize, wrap: bool) -> Result<Vec<usize>, OutOfRange> {
    let given = match index.dtype() {
        DType::I64 => pack::<i64>(index),
        _ if index.layout().is_empty() => Elements::Lying(&[]),
        DType::I32 => Elements::Copied(to_scratch::<i64>(index)),
        other => panic!("indices are i64 or i32, not {other}"),
    };
    let number = |&index: &i64| {
        let from_front =
            if wrap && index < 0 { index.checked_add_unsigned(size as u64) } else { Some(index) };
        let number = from_front.and_then(|index| usize::try_from(index).ok());
        number.filter(|&number| number < size).ok_or(OutOfRange { index, size })
    };
    given.iter().map(number).collect()
}

/// Shape and strides; a number by itself is seen as a line of one.
fn dims(layout: &Layout) -> (&[usize], &[usize]) {
    if layout.rank() == 0 { (&[1], &[1]) } else { (layout.shape(), layout.strides()) }
}

fn all(shape: &[usize], strides: &[usize]) -> Vec<Axis> {
    shape.iter().zip(strides).map(|(&size, &stride)| Axis::All { size, stride }).collect()
}

fn scaled(mut numbers: Vec<usize>, stride: usize) -> Vec<usize> {
    numbers.iter_mut().for_each(|number| *number *= stride);
    numbers
}

fn scaled_sum(mut numbers: Vec<usize>, start: usize) -> Vec<usize> {
    numbers.iter_mut().for_each(|number| *number += start);
    numbers
}

/// Where each element of some sizes and strides lies, in row-major order.
fn offsets(dims: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let axes = dims.map(|(size, stride)| Axis::All { size, stride }).collect();
    let places = Places::product(axes);
    if places.run == 1 {
        return places.starts;
    }
    places.starts.iter().flat_map(|&start| start..start + places.run).collect()
}

/// Where the element with a number in row-major order lies.
fn unravel(layout: &Layout, mut number: usize) -> usize {
    let mut at = 0;
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()).rev() {
        at += number % size * stride;
        number /= size;
    }
    at
}
