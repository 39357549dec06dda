//! Optimizers: they change parameters by their gradients.
//!
//! Names, defaults and formulas are torch's. A step is a scope in a profile, named as torch
//! names it, and made of ordinary operators.
//!
//! - [`algorithm`](mod@algorithm): each optimizer's options and its step in three forms;
//! - [`descent`](mod@descent): what they share: groups, state dicts, hooks, choosing the form;
//! - [`schedule`]: learning rates over time; [`average`]: averages of parameters;
//!   [`GradScaler`]: losses in half precision;
//! - `value`, `state` and `flat`: options by name, what is kept from step to step, and both as files hold them.

#![forbid(unsafe_code)]

pub mod algorithm;
pub mod average;
pub mod descent;
mod flat;
mod foreach;
mod hooks;
mod lbfgs;
mod optimizer;
mod scaler;
pub mod schedule;
mod scope;
mod state;
mod value;

pub use algorithm::*;
pub use cresset_tensor::{Error, Result, Tensor};
pub use descent::{Algorithm, Descent, Group};
pub use lbfgs::{Lbfgs, LbfgsOptions, LineSearch};
pub use optimizer::{HookId, Implementation, Optimizer, StepHook};
pub use scaler::{GradScaler, GradScalerOptions, GradScalerState};
pub use state::{GroupState, State, StateDict};
pub use value::{Options, Setting, Value};
