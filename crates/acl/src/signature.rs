//! Functions as data: names and how C passes what they take and give.

use crate::class::{self, Class};
use crate::structure::*;
use crate::types::*;
use crate::{
    activity_functions, collective_functions, foreign_activity_functions, foreign_object_functions,
    foreign_operators, foreign_runtime_functions, object_functions, operators, probed_functions,
    refused_functions, runtime_functions, undeclared_functions,
};

/// A function and how C passes its arguments and its result: `p` for pointers, else the type.
pub struct Signature {
    /// As C knows it.
    pub name: &'static str,
    /// What it takes.
    pub arguments: &'static [&'static str],
    /// What it gives.
    pub result: &'static str,
}

impl Signature {
    /// As one line: `i32(p,u64,i32)`.
    pub fn text(&self) -> String {
        format!("{}({})", self.result, self.arguments.join(","))
    }
}

/// A type that C functions take or give.
trait Passed {
    /// `p` for pointers, else the type.
    const C: &'static str;
}

macro_rules! passed {
    ($($c:literal: $($ty:ty),*;)*) => {$($(
        impl Passed for $ty {
            const C: &'static str = $c;
        }
    )*)*};
}

passed! {
    "void": ();
    "bool": bool;
    "u8": u8;
    "i32": i32;
    "u32": u32;
    "i64": i64;
    "u64": u64, usize;
    "f32": f32;
    "p": BufferRequested, BufferCompleted, Option<Callback>, Option<DeviceCallback>, Option<StreamCallback>;
}

impl<T> Passed for *const T {
    const C: &'static str = "p";
}

impl<T> Passed for *mut T {
    const C: &'static str = "p";
}

macro_rules! table {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        &[$(Signature {
            name: stringify!($name),
            arguments: &[$(<$ty as Passed>::C),*],
            result: <$result as Passed>::C,
        }),*]
    };
}

macro_rules! plans {
    ($($name:ident = $symbol:ident($($argument:ident: $class:ident),* $(,)?);)*) => {
        &[$(Signature {
            name: stringify!($symbol),
            arguments: &[$(<class::$class as Class>::C),*],
            result: "i32",
        }),*]
    };
}

/// Every plain function, table by table.
pub const FUNCTIONS: &[&[Signature]] = &[
    runtime_functions!(table),
    probed_functions!(table),
    foreign_runtime_functions!(table),
    refused_functions!(table),
    undeclared_functions!(table),
    object_functions!(table),
    foreign_object_functions!(table),
    activity_functions!(table),
    foreign_activity_functions!(table),
    collective_functions!(table),
];

/// Every operator, with the arguments of its own: those that all have in common are left out.
pub const OPERATORS: &[&[Signature]] = &[operators!(plans), foreign_operators!(plans)];
