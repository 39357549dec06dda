//! Tensors that may be missing, among those of a kernel.

use crate::objects::Tensor;

/// Those that are there, and which are.
pub(super) fn present<const N: usize>(tensors: [Option<Tensor>; N]) -> (Vec<Tensor>, [bool; N]) {
    let given = tensors.each_ref().map(Option::is_some);
    (tensors.into_iter().flatten().collect(), given)
}

/// Views of those that are there, back in their places.
pub(super) fn placed<V, const N: usize>(
    given: [bool; N],
    views: impl IntoIterator<Item = V>,
) -> [Option<V>; N] {
    let mut views = views.into_iter();
    given.map(|given| if given { Some(views.next().expect("one per tensor that is there")) } else { None })
}
