//! Host math on strided views of plain elements: no tensors, no dispatch.
//!
//! The CPU backend and the simulated device compute with the same functions. A caller
//! locks a [`Buffer`], looks at it through a [`View`] or [`ViewMut`] (an element type and a
//! [`Layout`] over bytes), and calls a function of one of the families below. Shapes and
//! dtypes are the caller's duty: a function panics when its views do not fit together,
//! which is a bug of the caller, never of a user.
//!
//! | family | holds |
//! |---|---|
//! | [`elementwise`] | one element of each operand to one of the output; comparison, selection, copies and casts |
//! | [`functions`] | the scalar functions that elementwise loops apply; the traits to write more |
//! | [`reduce`] | sums, products, means, variances, norms, extremes and where they are |
//! | [`matrix`] | products of matrices and of batches of them |
//! | [`attention`] | scaled dot products of queries and keys, and what they weigh |
//! | [`recurrent`] | a layer that reads a sequence step by step |
//! | [`order`] | sorting, and elements by their rank |
//! | [`scan`] | running sums and products |
//! | [`svd`], [`histogram`] | singular values and vectors; counts by range |
//! | [`softmax`], [`loss`] | softmax and its logarithm; losses of classes, distances and probabilities |
//! | [`arrange`] | elements moved to other places: flips, triangles, padding |
//! | [`index`] | elements picked, changed and found by number; embeddings |
//! | [`normalization`] | mean and spread, and what is left without them |
//! | [`convolution`], [`pooling`] | what sliding windows see, weighted, averaged or its maximum |
//! | [`index`] | rows picked and added up by number; embeddings |
//! | [`resample`] | other sizes, and samples at any place |
//! | [`optimizer`] | whole optimizer steps in one pass |
//! | [`random`] | a counter-based generator and its distributions |

#![deny(unsafe_code)]

pub mod arrange;
pub mod attention;
mod blocks;
mod buffer;
mod computing;
pub mod convolution;
mod copies;
mod division;
mod dtype;
pub mod elementwise;
pub mod functions;
pub mod histogram;
pub mod index;
mod lanes;
mod layout;
pub mod loss;
pub mod matrix;
pub mod normalization;
pub mod optimizer;
pub mod order;
mod owned;
pub mod pooling;
pub mod random;
mod range;
pub mod recurrent;
pub mod reduce;
pub mod resample;
mod rows;
mod scalar;
pub mod scan;
mod scratch;
mod shared;
pub mod softmax;
mod special;
pub mod svd;
mod sync;
#[cfg(test)]
mod testing;
mod threads;
mod view;
mod waiting;
mod wide;
mod window;

pub use blocks::{idle_memory, release_idle_memory};
pub use buffer::{AllocationFailed, Buffer, Foreign, Reading, Writing};
pub use copies::{count_copy, take_copied};
pub use division::Divide;
pub use dtype::{DType, Element, Float, Number};
pub use layout::{Dims, Layout};
pub use owned::Owned;
pub use range::OutOfRange;
pub use scalar::Scalar;
pub use shared::{Shared, Watcher};
pub use threads::{THREADS_VARIABLE, set_threads, threads, with_threads};
pub use view::{View, ViewMut};
pub use window::Window;

#[doc(no_inline)]
pub use half::{bf16, f16};
