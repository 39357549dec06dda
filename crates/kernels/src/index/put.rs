//! Elements written to places, or combined with what is there.

use super::Places;
use crate::elementwise::{pack, to_vec};
use crate::functions::{Binary, Maximum, Minimum};
use crate::{DType, Element, Number, Scalar, View, ViewMut, with_dtype};

/// What becomes of an element that another one is put to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The new one takes its place.
    Replace,
    /// Their sum; of truths, whether either holds.
    Add,
    /// Their product; of truths, whether both hold.
    Multiply,
    /// The mean of all that meet, cut to the integer below.
    Mean,
    /// The largest of all that meet.
    Largest,
    /// The smallest of all that meet.
    Smallest,
}

/// Puts the elements of `source` to places of `out`, in row-major order. Without `include`, what was there
/// takes no part where something is put.
///
/// # Panics
/// If element types or numbers of elements differ, or means of truths are asked for.
pub fn put(mut out: ViewMut<'_>, places: &Places, source: View<'_>, how: Combine, include: bool) {
    assert_eq!(out.dtype(), source.dtype(), "put: element types differ");
    assert_eq!(places.count(), source.layout().len(), "put: one element per place");
    if how == Combine::Replace {
        return replace(out.bits(), places, source.bits());
    }
    match out.dtype() {
        DType::Bool => {
            let how = match how {
                Combine::Add | Combine::Largest => Combine::Largest,
                Combine::Multiply | Combine::Smallest => Combine::Smallest,
                Combine::Replace | Combine::Mean => panic!("put: truths have no mean"),
            };
            combine::<u8>(out.bits().span(), places, &pack(source.bits()), how, include);
        }
        DType::F16 | DType::BF16 => with_dtype!(out.dtype(), [floats] T => {
            let to = out.span::<T>();
            // Sums of half precision are rounded once: only what is touched goes through `f32` and back.
            let mut wide: Vec<f32> = to.iter().map(|&x| f32::from_scalar(x.scalar())).collect();
            combine(&mut wide, places, &to_vec::<f32>(source), how, include);
            each(places, |at| to[at] = T::from_scalar(wide[at].scalar()));
        }, else unreachable!("half precision is of floats")),
        dtype => with_dtype!(dtype, [numbers] T => {
            combine::<T>(out.span(), places, &pack(source), how, include);
        }, else unreachable!("bool has its own arm")),
    }
}

fn each(places: &Places, mut visit: impl FnMut(usize)) {
    for &start in &places.starts {
        (start..start + places.run).for_each(&mut visit);
    }
}

fn replace(mut out: ViewMut<'_>, places: &Places, source: View<'_>) {
    match out.dtype() {
        DType::U8 => join(out.span::<u8>(), places, &pack(source), |_, new| new),
        DType::I16 => join(out.span::<i16>(), places, &pack(source), |_, new| new),
        DType::I32 => join(out.span::<i32>(), places, &pack(source), |_, new| new),
        _ => join(out.span::<i64>(), places, &pack(source), |_, new| new),
    }
}

fn combine<T: Number>(to: &mut [T], places: &Places, from: &[T], how: Combine, include: bool) {
    if !include {
        start_afresh(to, places, from, how);
    }
    match how {
        Combine::Replace => join(to, places, from, |_, new| new),
        Combine::Add | Combine::Mean => join(to, places, from, T::plus),
        Combine::Multiply => join(to, places, from, T::times),
        Combine::Largest => join(to, places, from, |old, new| Maximum.apply(old, new)),
        Combine::Smallest => join(to, places, from, |old, new| Minimum.apply(old, new)),
    }
    if how == Combine::Mean {
        divide_by_count(to, places, usize::from(include));
    }
}

#[inline]
fn join<T: Element>(to: &mut [T], places: &Places, from: &[T], f: impl Fn(T, T) -> T) {
    for (&start, from) in places.starts.iter().zip(from.chunks_exact(places.run)) {
        for (to, &from) in to[start..][..places.run].iter_mut().zip(from) {
            *to = f(*to, from);
        }
    }
}

/// Makes each place what leaves the first thing that is put there as it is.
fn start_afresh<T: Number>(to: &mut [T], places: &Places, from: &[T], how: Combine) {
    match how {
        Combine::Replace => {}
        Combine::Add | Combine::Mean => each(places, |at| to[at] = T::ZERO),
        Combine::Multiply => each(places, |at| to[at] = T::ONE),
        // Any of those that meet will do.
        Combine::Largest | Combine::Smallest => join(to, places, from, |_, new| new),
    }
}

fn divide_by_count<T: Number>(to: &mut [T], places: &Places, more: usize) {
    let mut counts = vec![0; to.len()];
    each(places, |at| counts[at] += 1);
    for (x, count) in to.iter_mut().zip(counts).filter(|&(_, count)| count > 0) {
        let count: usize = count + more;
        *x = T::from_scalar(match x.scalar() {
            Scalar::Float(sum) => Scalar::Float(sum / count as f64),
            Scalar::Int(sum) => Scalar::Int(sum.div_euclid(count as i64)),
            truth @ Scalar::Bool(_) => truth,
        });
    }
}
