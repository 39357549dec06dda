//! What modules of many inputs are called with: the tensors that must be, and methods for the rest.

/// Declares the input of a module twice: as it is lent to a call, and as hooks own it. First come the
/// tensors that must be given, then those that may be, then flags with their defaults.
macro_rules! inputs {
    ($(
        $(#[$doc:meta])*
        $lent:ident, $owned:ident($($must:ident),*) {
            $($(#[$of:meta])* $may:ident;)*
        } flags {
            $($(#[$about:meta])* $flag:ident = $default:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[must_use]
        pub struct $lent<'a> {
            $(pub(crate) $must: &'a cresset_tensor::Tensor,)*
            $(pub(crate) $may: Option<&'a cresset_tensor::Tensor>,)*
            $(pub(crate) $flag: bool,)*
        }

        impl<'a> $lent<'a> {
            /// With no masks.
            pub fn new($($must: &'a cresset_tensor::Tensor),*) -> Self {
                Self { $($must,)* $($may: None,)* $($flag: $default,)* }
            }

            $(
                $(#[$of])*
                pub fn $may(self, $may: impl Into<Option<&'a cresset_tensor::Tensor>>) -> Self {
                    Self { $may: $may.into(), ..self }
                }
            )*

            $(
                $(#[$about])*
                pub fn $flag(self, $flag: bool) -> Self {
                    Self { $flag, ..self }
                }
            )*
        }

        #[doc = concat!("[`", stringify!($lent), "`] that owns its tensors.")]
        #[derive(Clone)]
        pub struct $owned {
            $($must: cresset_tensor::Tensor,)*
            $($may: Option<cresset_tensor::Tensor>,)*
            $($flag: bool,)*
        }

        impl crate::Tensors for $owned {
            type Ref<'a> = $lent<'a>;

            fn own(lent: $lent<'_>) -> Self {
                Self {
                    $($must: lent.$must.clone(),)*
                    $($may: lent.$may.cloned(),)*
                    $($flag: lent.$flag,)*
                }
            }

            fn lend(&self) -> $lent<'_> {
                $lent {
                    $($must: &self.$must,)*
                    $($may: self.$may.as_ref(),)*
                    $($flag: self.$flag,)*
                }
            }

            fn each<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut cresset_tensor::Tensor)) {
                $(visit(&mut self.$must);)*
                $(if let Some(tensor) = &mut self.$may { visit(tensor); })*
            }
        }
    )*};
}

pub(crate) use inputs;
