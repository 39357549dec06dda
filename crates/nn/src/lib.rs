//! Modules: layers that own their parameters, and ways to put them together.
//!
//! A module implements two functions: [`forward`](Module::forward) computes, and
//! [`members`](Module::members) names what it owns. Everything else follows from these:
//! parameters by name, moving to a device, saving and loading. As in torch, a module is run by
//! [calling](Module::call) it, which is what profiles see.
//!
//! ```
//! use cresset_nn::{Linear, Members, Module, Result, Tensor};
//!
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Module for Mlp {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.out.call(&self.hidden.call(x)?.relu()?)
//!     }
//!
//!     fn members<'a>(&'a self, members: &mut Members<'a>) {
//!         members.module("hidden", &self.hidden).module("out", &self.out);
//!     }
//! }
//!
//! let model = Mlp { hidden: Linear::new(4, 8)?, out: Linear::new(8, 2)? };
//! let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
//! # Ok::<(), cresset_nn::Error>(())
//! ```

#![forbid(unsafe_code)]

mod activation;
mod call;
pub mod init;
mod linear;
mod loss;
mod module;
mod parameter;
mod sequential;

pub use activation::{Relu, Sigmoid, Tanh};
pub use cresset_tensor::{Device, Error, Result, Tensor};
pub use linear::Linear;
pub use loss::CrossEntropyLoss;
pub use module::{Members, Module};
pub use parameter::Parameter;
pub use sequential::Sequential;
