//! Automatic differentiation: one generic function records every operator, one engine runs
//! what was recorded.
//!
//! - `record` makes a node per call, with an edge to where each input came from;
//! - `saved` keeps what a derivative will need, and notices if it was changed meanwhile;
//! - `engine` sends gradients along the edges, latest call first;
//! - `anomaly` and `results` look for NaN on the way back and on the way forth, where someone asks.
//!
//! A derivative is written with tensor operators only. Broadcasting is undone once, in the
//! engine, so derivatives need not know about it.

mod anomaly;
mod checkpoint;
mod ending;
mod engine;
mod function;
mod functional;
mod gradcheck;
mod graph;
mod hooks;
mod mode;
mod node;
mod record;
pub(crate) mod results;
mod saved;
mod tracking;
mod view;
mod waiting;

pub use anomaly::{DetectAnomaly, detect_anomaly, is_anomaly_enabled};
pub use checkpoint::checkpoint;
pub use ending::at_end_of_backward;
pub use engine::{Pass, backward, grad};
pub use function::{Context, Function};
pub use functional::{hessian, hvp, jacobian, jvp, vhp, vjp};
pub use gradcheck::{GradCheck, gradcheck, gradgradcheck};
pub use graph::GradNode;
pub use hooks::HookHandle;
pub(crate) use mode::check_inference;
pub use mode::{
    enable_grad, in_inference_mode, inference_mode, is_grad_enabled, is_inference_mode, no_grad,
    set_grad_enabled, with_grad_enabled, without_grad,
};
pub use node::{Backward, Grads, Needless, Saves};
pub(crate) use node::{next_sequence, skip_number};
#[doc(hidden)]
pub use record::record;
pub(crate) use record::{record_in_place, records_change};
pub use results::detect_anomaly_in_results;
pub(crate) use tracking::Tracking;
pub(crate) use view::{How, ViewOf};

/// `grads!(ctx; a, b)`: a gradient per input, computed only if someone wants it.
#[macro_export]
macro_rules! grads {
    ($ctx:expr; $($input:literal => $grad:expr),+ $(,)?) => {{
        let mut grads = $crate::Grads::new();
        $(
            if grads.len() <= $input {
                grads.resize($input + 1, None);
            }
            if $ctx.needs($input) {
                grads[$input] = Some($grad);
            }
        )+
        Ok(grads)
    }};
    ($ctx:expr; $($grad:expr),+ $(,)?) => {{
        let mut input = 0;
        let mut grads = $crate::Grads::new();
        $({
            grads.push(if $ctx.needs(input) { Some($grad) } else { None });
            input += 1;
        })+
        let _ = input;
        Ok(grads)
    }};
}
