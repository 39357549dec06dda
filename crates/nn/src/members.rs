//! What a module owns.

use crate::{Buffer, Hooks, Module, Parameter, Training};
use cresset_tensor::{DType, Device, MemoryFormat, Scalar};
use std::collections::BTreeMap;

/// What a module owns itself, by name. [Modules](Members::module) are not looked into.
#[derive(Default)]
pub struct Members<'a> {
    pub(crate) parameters: Vec<(String, &'a Parameter)>,
    pub(crate) buffers: Vec<(String, &'a Buffer)>,
    pub(crate) modules: Vec<(String, &'a dyn Module)>,
    pub(crate) flags: Vec<&'a Training>,
}

impl<'a> Members<'a> {
    /// What `module` owns.
    pub(crate) fn of(module: &'a dyn Module) -> Members<'a> {
        let mut members = Members::default();
        module.members(&mut members);
        members
    }

    /// Names a parameter.
    pub fn parameter(&mut self, name: &str, parameter: &'a Parameter) -> &mut Self {
        self.parameters.push((name.to_owned(), parameter));
        self
    }

    /// Names a buffer.
    pub fn buffer(&mut self, name: &str, buffer: &'a Buffer) -> &mut Self {
        self.buffers.push((name.to_owned(), buffer));
        self
    }

    /// Names a module, and thereby all that it owns.
    pub fn module(&mut self, name: &str, module: &'a dyn Module) -> &mut Self {
        self.modules.push((name.to_owned(), module.inner().unwrap_or(module)));
        self
    }

    /// Tells of a flag that [`train`](Module::train) sets.
    pub fn training(&mut self, flag: &'a Training) -> &mut Self {
        self.flags.push(flag);
        self
    }
}

/// What can be a field of a module: parameters, buffers, modules, lists and options of them, and
/// plain values, which are nobody's business.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no module, no parameter, no buffer and no plain value",
    label = "a field of a module",
    note = "derive `Module` for it, wrap a tensor in `Parameter` or `Buffer`, or write `#[module(skip)]` above the field"
)]
pub trait Member {
    /// Joins the members of a module under `name`.
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>);
}

impl<M: Module> Member for M {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        members.module(name, self);
    }
}

impl Member for Parameter {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        members.parameter(name, self);
    }
}

impl Member for Buffer {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        members.buffer(name, self);
    }
}

impl Member for Training {
    fn join<'a>(&'a self, _name: &str, members: &mut Members<'a>) {
        members.training(self);
    }
}

impl<T: Member> Member for Option<T> {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        if let Some(inner) = self {
            inner.join(name, members);
        }
    }
}

impl<T: Member> Member for [T] {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        for (i, inner) in self.iter().enumerate() {
            inner.join(&format!("{name}.{i}"), members);
        }
    }
}

impl<T: Member> Member for Vec<T> {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        self.as_slice().join(name, members);
    }
}

impl<T: Member, const N: usize> Member for [T; N] {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        self.as_slice().join(name, members);
    }
}

impl<T: Member> Member for BTreeMap<String, T> {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        for (key, inner) in self {
            inner.join(&format!("{name}.{key}"), members);
        }
    }
}

impl<A: Member, B: Member> Member for (A, B) {
    fn join<'a>(&'a self, name: &str, members: &mut Members<'a>) {
        self.0.join(&format!("{name}.0"), members);
        self.1.join(&format!("{name}.1"), members);
    }
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Member for $ty {
            fn join<'a>(&'a self, _name: &str, _members: &mut Members<'a>) {}
        }
    )*};
}

plain! {
    bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 String &'static str
    DType Device MemoryFormat Scalar Hooks
}
