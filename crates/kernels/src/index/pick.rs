//! Elements picked from places.

use super::Places;
use crate::elementwise::write;
use crate::{DType, Element, View, ViewMut};

/// The elements of `x` at `places`, in row-major order of `out`.
///
/// # Panics
/// If element types or numbers of elements differ.
pub fn pick(x: View<'_>, places: &Places, out: ViewMut<'_>) {
    assert_eq!(x.dtype(), out.dtype(), "pick: element types differ");
    assert_eq!(places.count(), out.layout().len(), "pick: one element per place");
    let (x, out) = (x.bits(), out.bits());
    // Only the size of elements matters to a move.
    match x.dtype() {
        DType::U8 => copy_runs::<u8>(x, places, out),
        DType::I16 => copy_runs::<i16>(x, places, out),
        DType::I32 => copy_runs::<i32>(x, places, out),
        _ => copy_runs::<i64>(x, places, out),
    }
}

fn copy_runs<T: Element>(x: View<'_>, places: &Places, out: ViewMut<'_>) {
    let from = x.span::<T>();
    write(out, |to| match places.run {
        1 => to.iter_mut().zip(&places.starts).for_each(|(to, &at)| *to = from[at]),
        run => {
            for (to, &start) in to.chunks_exact_mut(run).zip(&places.starts) {
                to.copy_from_slice(&from[start..][..run]);
            }
        }
    });
}
