//! Modules: layers that own their parameters, and ways to put them together.
//!
//! A module is a struct. `#[derive(Module)]` reads off its fields what it owns, and
//! [`Forward`] says what it computes. Everything else follows from these: parameters by name,
//! moving to a device, training and evaluation, saving and loading. As in torch, a module is run
//! by [calling](Forward::call) it, which is what hooks and profiles see.
//!
//! ```
//! use cresset_nn::{Forward, Linear, Module, Result, Tensor};
//!
//! #[derive(Module)]
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Forward for Mlp {
//!     type Output = Tensor;
//!
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.out.call(&self.hidden.call(x)?.relu()?)
//!     }
//! }
//!
//! let model = Mlp { hidden: Linear::new(4, 8)?, out: Linear::new(8, 2)? };
//! assert_eq!(model.call(&Tensor::ones([3, 4], ())?)?.shape(), [3, 2]);
//! let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
//! # Ok::<(), cresset_nn::Error>(())
//! ```
//!
//! Options of a layer are methods that give it back, or an error that names what would have been
//! accepted: `Conv2d::new(3, 16, 3)?.padding(1)?`. Those of activations are fields.

#![forbid(unsafe_code)]

// The derive names this crate by its name, here as everywhere.
extern crate self as cresset_nn;

mod activation;
mod attention;
mod call;
mod check;
mod clip;
mod container;
mod convolution;
mod dims;
mod distance;
mod dropout;
mod embedding;
mod file;
mod forward;
pub mod functional;
mod hooks;
mod in_place;
pub mod init;
mod inputs;
mod inside;
mod linear;
mod loss;
mod members;
mod module;
mod normalization;
mod padding;
mod parameter;
mod pooling;
mod recurrent;
mod sequential;
mod shape;
mod softmax;
mod spectral_norm;
mod state;
mod summary;
mod tensors;
mod training;
mod transformer;
mod weight_norm;

pub use activation::*;
pub use attention::{Attend, Attended, MultiheadAttention, causal_mask};
pub use clip::*;
pub use container::{ModuleDict, ModuleList};
pub use convolution::*;
pub use cresset_nn_derive::Module;
pub use cresset_tensor::ops::{Approximate, Bagging, Interpolation};
pub use cresset_tensor::{DType, Device, Error, Result, Tensor};
pub use dims::{Edges, PerDim};
pub use distance::{CosineSimilarity, PairwiseDistance};
pub use dropout::*;
pub use embedding::{Embedding, EmbeddingBag};
#[doc(hidden)]
pub use file::replace_file;
pub use file::{load, load_state, save, save_state};
pub use forward::{Forward, Layer};
pub use hooks::{HookHandle, Hooked, Hooks};
pub use in_place::{InPlace, Overwrite};
pub use linear::{Bilinear, Linear};
pub use loss::*;
pub use members::{Member, Members};
pub use module::{AsModule, Incompatible, Module};
pub use normalization::*;
pub use padding::*;
pub use parameter::{Buffer, Parameter};
pub use pooling::*;
pub use recurrent::*;
pub use sequential::Sequential;
pub use shape::*;
pub use softmax::*;
pub use spectral_norm::SpectralNorm;
pub use summary::{Summary, SummaryRow, summary};
pub use tensors::Tensors;
pub use training::Training;
pub use transformer::*;
pub use weight_norm::{WeightNorm, Weighted};
