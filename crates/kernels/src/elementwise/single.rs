//! Half precision is stored, not computed with: operands pass through `f32`.

use super::copy::{contiguous, copy, to_scratch};
use crate::scratch::Scratch;
use crate::{Layout, View, ViewMut};

/// Contiguous `f32` elements that stand in for a view.
pub(crate) struct Single {
    elements: Scratch<f32>,
    layout: Layout,
}

impl Single {
    pub(crate) fn load(x: View<'_>) -> Single {
        Single { elements: to_scratch(x), layout: contiguous(x.shape()) }
    }

    pub(crate) fn zeros(shape: &[usize]) -> Single {
        let layout = contiguous(shape);
        Single { elements: Scratch::zeros(layout.len()), layout }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::of(&self.elements, &self.layout)
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::of(&mut self.elements, &self.layout)
    }

    /// Rounds the elements back into `out`.
    pub(crate) fn store(&self, out: ViewMut<'_>) {
        copy(self.view(), out);
    }
}
