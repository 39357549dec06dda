//! Rows of a table put into bags, and what becomes of each bag.

use super::places::numbers;
use crate::computing::{load, store};
use crate::elementwise::to_vec;
use crate::{DType, Float, OutOfRange, View, ViewMut};
use std::collections::HashMap;

/// What becomes of the rows of a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bagging {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest of each column.
    Max,
}

/// Which rows are in which bag. Padding is in none.
pub struct Bags {
    rows: Vec<Option<usize>>,
    bags: Vec<usize>,
    /// How many rows a bag has.
    counts: Vec<usize>,
    /// How often a row is in any bag.
    frequencies: HashMap<usize, usize>,
}

impl Bags {
    /// Bags of the rows, out of `size`, that `indices` name; each bag begins where `offsets` says.
    pub fn new(
        indices: View<'_>,
        offsets: View<'_>,
        size: usize,
        padding: Option<usize>,
    ) -> Result<Bags, OutOfRange> {
        let rows = numbers(indices, size, false)?;
        let offsets: Vec<i64> = to_vec(offsets);
        let mut starts = Vec::with_capacity(offsets.len());
        for &offset in &offsets {
            // The first bag begins at 0, and none before the one in front of it.
            let (least, most) = starts.last().map_or((0, 0), |&last| (last, rows.len()));
            let start = usize::try_from(offset).ok().filter(|start| (least..=most).contains(start));
            starts.push(start.ok_or(OutOfRange { index: offset, size: most + 1 })?);
        }
        let mut bags = vec![0; rows.len()];
        for (bag, &start) in starts.iter().enumerate() {
            let end = starts.get(bag + 1).copied().unwrap_or(rows.len());
            bags[start..end].fill(bag);
        }
        let (mut counts, mut frequencies) = (vec![0; offsets.len()], HashMap::new());
        if offsets.is_empty() && !rows.is_empty() {
            return Err(OutOfRange { index: 0, size: 0 });
        }
        let rows: Vec<Option<usize>> =
            rows.into_iter().map(|row| (Some(row) != padding).then_some(row)).collect();
        for (&row, &bag) in rows.iter().zip(&bags) {
            if let Some(row) = row {
                counts[bag] += 1;
                *frequencies.entry(row).or_default() += 1;
            }
        }
        Ok(Bags { rows, bags, counts, frequencies })
    }

    /// Number, row and bag of everything that is in a bag.
    fn each(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let all = self.rows.iter().zip(&self.bags).enumerate();
        all.filter_map(|(number, (&row, &bag))| Some((number, row?, bag)))
    }
}

/// `out[b, :]` is what becomes of the rows in bag `b`, each weighted if weights are given. For maxima,
/// `largest[b, c]` tells whose row it is, -1 for an empty bag.
pub fn bag(
    table: View<'_>,
    bags: &Bags,
    bagging: Bagging,
    weights: Option<View<'_>>,
    out: ViewMut<'_>,
    largest: ViewMut<'_>,
) {
    if out.dtype() == DType::F64 {
        forward::<f64>(table, bags, bagging, weights, out, largest);
    } else {
        forward::<f32>(table, bags, bagging, weights, out, largest);
    }
}

fn forward<T: Float>(
    table: View<'_>,
    bags: &Bags,
    bagging: Bagging,
    weights: Option<View<'_>>,
    out: ViewMut<'_>,
    largest: ViewMut<'_>,
) {
    let width = table.shape()[1];
    let (table, weights) = (load::<T>(table), weights.map(load::<T>));
    store::<T>(out, |out| {
        store::<i64>(largest, |largest| {
            out.fill(T::ZERO);
            largest.fill(-1);
            for (number, row, bag) in bags.each() {
                let from = &table[row * width..][..width];
                let to = &mut out[bag * width..][..width];
                match bagging {
                    Bagging::Max => {
                        let largest = &mut largest[bag * width..][..width];
                        for ((to, &from), largest) in to.iter_mut().zip(from).zip(largest) {
                            if *largest < 0 || from > *to {
                                (*to, *largest) = (from, row as i64);
                            }
                        }
                    }
                    Bagging::Sum | Bagging::Mean => {
                        let weight = weights.as_ref().map_or(T::ONE, |weights| weights[number]);
                        to.iter_mut().zip(from).for_each(|(to, &from)| *to = *to + weight * from);
                    }
                }
            }
            if bagging == Bagging::Mean && width > 0 {
                for (to, &count) in
                    out.chunks_exact_mut(width).zip(&bags.counts).filter(|(_, count)| **count > 1)
                {
                    to.iter_mut().for_each(|to| *to = *to / T::narrow(count as f64));
                }
            }
        })
    });
}

/// The gradient of [`bag`] for the table, whose shape `out` has; each row's divided by how often it is in
/// a bag if `by_frequency` says so.
pub fn bag_backward(
    grad: View<'_>,
    bags: &Bags,
    bagging: Bagging,
    weights: Option<View<'_>>,
    largest: View<'_>,
    by_frequency: bool,
    out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let size = out.shape()[0];
    let largest: Vec<i64> = to_vec(largest);
    if let Some(&index) = largest.iter().find(|&&row| row >= size as i64) {
        return Err(OutOfRange { index, size });
    }
    let run = Gradient { bags, bagging, by_frequency };
    if out.dtype() == DType::F64 {
        run.of_table::<f64>(grad, weights, &largest, out);
    } else {
        run.of_table::<f32>(grad, weights, &largest, out);
    }
    Ok(())
}

struct Gradient<'a> {
    bags: &'a Bags,
    bagging: Bagging,
    by_frequency: bool,
}

impl Gradient<'_> {
    fn of_table<T: Float>(
        &self,
        grad: View<'_>,
        weights: Option<View<'_>>,
        largest: &[i64],
        out: ViewMut<'_>,
    ) {
        let width = grad.shape()[1];
        let (grad, weights) = (load::<T>(grad), weights.map(load::<T>));
        let share = |row: usize| {
            T::narrow(if self.by_frequency { 1.0 / self.bags.frequencies[&row] as f64 } else { 1.0 })
        };
        store::<T>(out, |out| {
            out.fill(T::ZERO);
            if self.bagging == Bagging::Max {
                for (at, (&grad, &row)) in grad.iter().zip(largest).enumerate() {
                    if let Ok(row) = usize::try_from(row) {
                        let to = &mut out[row * width + at % width];
                        *to = *to + grad * share(row);
                    }
                }
                return;
            }
            for (number, row, bag) in self.bags.each() {
                let mut factor = weights.as_ref().map_or(T::ONE, |weights| weights[number]) * share(row);
                if self.bagging == Bagging::Mean {
                    factor = factor / T::narrow(self.bags.counts[bag] as f64);
                }
                let to = out[row * width..][..width].iter_mut();
                to.zip(&grad[bag * width..][..width]).for_each(|(to, &grad)| *to = *to + factor * grad);
            }
        });
    }
}

/// The gradient of [`bag`] for the weights: what each row and the gradient of its bag have in common.
pub fn bag_weights_backward(grad: View<'_>, table: View<'_>, bags: &Bags, out: ViewMut<'_>) {
    if out.dtype() == DType::F64 {
        of_weights::<f64>(grad, table, bags, out);
    } else {
        of_weights::<f32>(grad, table, bags, out);
    }
}

fn of_weights<T: Float>(grad: View<'_>, table: View<'_>, bags: &Bags, out: ViewMut<'_>) {
    let width = table.shape()[1];
    let (grad, table) = (load::<T>(grad), load::<T>(table));
    store::<T>(out, |out| {
        out.fill(T::ZERO);
        for (number, row, bag) in bags.each() {
            let pairs = table[row * width..][..width].iter().zip(&grad[bag * width..][..width]);
            out[number] = pairs.fold(T::ZERO, |sum, (&x, &grad)| sum + x * grad);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    fn bags(offsets: &[i64], padding: Option<usize>) -> Result<Bags, OutOfRange> {
        let (indices, offsets) = (Array::new(&[3], &[2i64, 0, 2]), Array::new(&[offsets.len()], offsets));
        Bags::new(indices.view(), offsets.view(), 3, padding)
    }

    fn bagged(bags: &Bags, bagging: Bagging) -> Vec<f32> {
        let table = Array::new(&[3, 1], &[1.0f32, 2.0, 5.0]);
        let count = bags.counts.len();
        let (mut out, mut largest) = (Array::<f32>::zeros(&[count, 1]), Array::<i64>::zeros(&[count, 1]));
        bag(table.view(), bags, bagging, None, out.view_mut(), largest.view_mut());
        out.elements
    }

    #[test]
    fn rows_of_a_bag_become_one() {
        let bags = bags(&[0, 2, 3], None).unwrap();
        assert_eq!(bagged(&bags, Bagging::Sum), [6.0, 5.0, 0.0]);
        assert_eq!(bagged(&bags, Bagging::Mean), [3.0, 5.0, 0.0]);
        assert_eq!(bagged(&bags, Bagging::Max), [5.0, 5.0, 0.0]);
    }

    #[test]
    fn padding_is_in_no_bag() {
        assert_eq!(bagged(&bags(&[0, 2], Some(2)).unwrap(), Bagging::Mean), [1.0, 0.0]);
    }

    #[test]
    fn bags_that_begin_elsewhere_are_refused() {
        for offsets in [&[1i64, 2][..], &[0, 4], &[0, 2, 1], &[0, -1], &[]] {
            assert!(bags(offsets, None).is_err());
        }
    }
}
