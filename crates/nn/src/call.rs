//! A module's call, as observers see it.

use cresset_dispatch::observe::{Call, Kind, Name};

/// A module while it computes.
pub(crate) struct InCall {
    type_name: &'static str,
    /// Where the module lies; 0 for one without a size, which may lie anywhere.
    address: usize,
}

impl InCall {
    pub(crate) fn of<M: ?Sized>(module: &M) -> InCall {
        let address = if size_of_val(module) == 0 { 0 } else { std::ptr::from_ref(module).addr() };
        InCall { type_name: std::any::type_name::<M>(), address }
    }
}

impl Call for InCall {
    fn name(&self) -> Name<'_> {
        Name::Static(class(self.type_name))
    }

    fn kind(&self) -> Kind {
        Kind::Module
    }

    fn instance(&self) -> u64 {
        self.address as u64
    }
}

/// The name of a type without its path and its parameters.
fn class(type_name: &str) -> &str {
    let plain = type_name.split('<').next().unwrap_or(type_name);
    plain.rsplit("::").next().unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_neither_path_nor_parameters() {
        assert_eq!(class("cresset_nn::linear::Linear"), "Linear");
        assert_eq!(class("mine::Wrapped<cresset_nn::linear::Linear, u8>"), "Wrapped");
        assert_eq!(class("Bare"), "Bare");
    }

    #[test]
    fn modules_with_a_state_are_told_apart_by_where_they_are() {
        let (a, b) = (1u64, 2u64);
        assert_ne!(InCall::of(&a).instance(), InCall::of(&b).instance());
        assert_eq!(InCall::of(&a).instance(), InCall::of(&a).instance());
        assert_eq!(InCall::of(&()).instance(), 0);
    }
}
