//! A module's call, as observers see it.

use crate::Module;
use cresset_dispatch::observe::{Call, Kind, Name, Role, TensorArgument};

/// A module while it computes.
pub(crate) struct InCall<'a, M: ?Sized>(pub(crate) &'a M);

impl<M: Module + ?Sized> Call for InCall<'_, M> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.0.class())
    }

    fn kind(&self) -> Kind {
        Kind::Module
    }

    /// Where the module lies; 0 for one without a size, which may lie anywhere.
    fn instance(&self) -> u64 {
        if size_of_val(self.0) == 0 { 0 } else { std::ptr::from_ref(self.0).addr() as u64 }
    }

    /// The parameters of the module itself: those of the modules in it are told by their own calls.
    fn owned(&self, visit: &mut dyn FnMut(Role, TensorArgument<'_>)) {
        for parameter in self.0.own_parameters() {
            visit(Role::Parameter, parameter.argument());
            if let Some(grad) = parameter.grad() {
                visit(Role::Gradient, grad.argument());
            }
        }
    }
}

/// The name of a type without its path and its parameters.
pub(crate) fn class(type_name: &'static str) -> &'static str {
    let plain = type_name.split('<').next().unwrap_or(type_name);
    plain.rsplit("::").next().unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Linear, Relu};

    #[test]
    fn a_class_has_neither_path_nor_parameters() {
        assert_eq!(class("cresset_nn::linear::Linear"), "Linear");
        assert_eq!(class("mine::Wrapped<cresset_nn::linear::Linear, u8>"), "Wrapped");
        assert_eq!(class("Bare"), "Bare");
    }

    #[test]
    fn modules_with_a_state_are_told_apart_by_where_they_are() {
        let (a, b) = (Linear::new(1, 1).unwrap(), Linear::new(1, 1).unwrap());
        assert_ne!(InCall(&a).instance(), InCall(&b).instance());
        assert_eq!(InCall(&a).instance(), InCall(&a).instance());
        assert_eq!(InCall(&Relu).instance(), 0);
    }

    #[test]
    fn a_call_tells_which_tensors_are_parameters_and_gradients() {
        let layer = Linear::new(2, 3).unwrap();
        let mut roles = Vec::new();
        let mut look = || {
            roles.clear();
            InCall(&layer).owned(&mut |role, tensor| roles.push((role, tensor.shape.to_vec())));
            roles.clone()
        };
        assert_eq!(look(), [(Role::Parameter, vec![3, 2]), (Role::Parameter, vec![3])]);
        layer.weight.tensor().sum().unwrap().backward().unwrap();
        let gradient = (Role::Gradient, vec![3, 2]);
        assert_eq!(look(), [(Role::Parameter, vec![3, 2]), gradient, (Role::Parameter, vec![3])]);
    }
}
