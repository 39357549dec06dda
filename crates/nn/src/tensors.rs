//! What modules take and give: tensors, and what is made of them.

use cresset_tensor::{Scalar, Tensor};

/// Tensors, some of them optional, and plain values beside them.
///
/// As the input of a module it is lent: a module of `(Tensor, Option<Tensor>)` is called with
/// `(&Tensor, Option<&Tensor>)`.
pub trait Tensors: Sized + 'static {
    /// The same, borrowed.
    type Ref<'a>;

    /// Other handles to the same tensors.
    fn own(lent: Self::Ref<'_>) -> Self;

    /// Lends the tensors.
    fn lend(&self) -> Self::Ref<'_>;

    /// Shows all tensors, in order.
    fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor));
}

impl Tensors for Tensor {
    type Ref<'a> = &'a Tensor;

    fn own(lent: &Tensor) -> Tensor {
        lent.clone()
    }

    fn lend(&self) -> &Tensor {
        self
    }

    fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor)) {
        visit(self);
    }
}

impl<T: Tensors> Tensors for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;

    fn own(lent: Self::Ref<'_>) -> Self {
        lent.map(T::own)
    }

    fn lend(&self) -> Self::Ref<'_> {
        self.as_ref().map(T::lend)
    }

    fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor)) {
        if let Some(inner) = self {
            inner.each(visit);
        }
    }
}

impl<T: Tensors + Clone> Tensors for Vec<T> {
    type Ref<'a> = &'a [T];

    fn own(lent: &[T]) -> Vec<T> {
        lent.to_vec()
    }

    fn lend(&self) -> &[T] {
        self
    }

    fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor)) {
        self.iter_mut().for_each(|inner| inner.each(visit));
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    type Ref<'a> = [T::Ref<'a>; N];

    fn own(lent: Self::Ref<'_>) -> Self {
        lent.map(T::own)
    }

    fn lend(&self) -> Self::Ref<'_> {
        self.each_ref().map(T::lend)
    }

    fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor)) {
        self.iter_mut().for_each(|inner| inner.each(visit));
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),*);)*) => {$(
        impl<$($part: Tensors),*> Tensors for ($($part,)*) {
            type Ref<'a> = ($($part::Ref<'a>,)*);

            fn own(lent: Self::Ref<'_>) -> Self {
                ($($part::own(lent.$at),)*)
            }

            fn lend(&self) -> Self::Ref<'_> {
                ($(self.$at.lend(),)*)
            }

            fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Tensor)) {
                $(self.$at.each(visit);)*
            }
        }
    )*};
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}

macro_rules! values {
    ($($ty:ty)*) => {$(
        impl Tensors for $ty {
            type Ref<'a> = $ty;

            fn own(lent: $ty) -> $ty {
                lent
            }

            fn lend(&self) -> $ty {
                *self
            }

            fn each<'a>(&'a mut self, _visit: &mut dyn FnMut(&'a mut Tensor)) {}
        }
    )*};
}

values! { bool usize isize i64 f64 Scalar }
