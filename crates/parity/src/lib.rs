//! Replays recorded answers of PyTorch and says where Cresset's differ.
//!
//! - `golden` reads files of the format: cases, and the tensors they speak of;
//! - `value` is what a case passes: tensors, numbers, lists of them;
//! - `subscript` is an index as Python writes it;
//! - `arguments` hands them to an operator, and notices those it does not know;
//! - [`ops`] is the register: how each recorded operator is called here, a file per family;
//! - [`modules`] is the same for modules: how each is made and called, and what is compared;
//! - [`optim`] is the same for optimizers, schedulers and clipped gradients;
//! - [`train`] trains recorded models again, along torch's curve;
//! - `malicious` gives hostile files to our readers;
//! - [`program`] runs programs written in JSON under our profiler;
//! - `replay` runs a case and compares values, gradients and gradients of gradients;
//! - `stream` is what torch's generator gave while calls were recorded;
//! - `report` counts the verdicts;
//! - `trace` lays two traces of one program side by side.
//!
//! What is not registered, and arguments that nobody asked for, are reported as unsupported:
//! nothing passes that was not computed and compared.

#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod golden;
#[cfg(test)]
mod hostile;
mod malicious;
pub mod modules;
pub mod ops;
pub mod optim;
pub mod program;
mod replay;
mod report;
mod stream;
mod subscript;
mod trace;
pub mod train;
mod value;

pub use arguments::{Arguments, Either, KEYWORD, Term, Zero};
pub use golden::{BadFile, Golden};
pub use malicious::{Expected, HostileFile, replay_malicious};
pub use replay::{Verdict, replay, replay_error};
pub use report::{OPERATORS, Report, Row, Suite, markdown};
pub use trace::{Column, FolderReport, Group, TraceReport, What, compare_folders, compare_traces};
