//! The algorithms, a file each: options, and a step in three forms.
//!
//! The single form is torch's sequence of operators, so that profiles can be compared; the form over
//! lists is torch's too; the fused one is one operator.

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod asgd;
mod moments;
mod muon;
mod nadam;
mod radam;
mod rmsprop;
mod rprop;
mod sgd;

pub use adadelta::{Adadelta, AdadeltaOptions};
pub use adafactor::{Adafactor, AdafactorOptions};
pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use adamax::{Adamax, AdamaxOptions};
pub use asgd::{Asgd, AsgdOptions};
pub use muon::{AdjustLr, Muon, MuonOptions};
pub use nadam::{Nadam, NadamOptions};
pub use radam::{Radam, RadamOptions};
pub use rmsprop::{Rmsprop, RmspropOptions};
pub use rprop::{Rprop, RpropOptions};
pub use sgd::{Sgd, SgdOptions};

use cresset_tensor::{Result, Tensor};

/// The gradient with its sign.
fn turned(grad: &Tensor, maximize: bool) -> Result<Tensor> {
    if maximize { grad.neg() } else { Ok(grad.clone()) }
}

/// The gradient with the pull of weight decay.
fn pulled(grad: Tensor, parameter: &Tensor, decay: f64) -> Result<Tensor> {
    if decay == 0.0 { Ok(grad) } else { grad.add_scaled(parameter, decay) }
}

/// The parts of an [`Algorithm`](crate::descent::Algorithm) that say which fused operator it has.
macro_rules! fused_by {
    ($op:ident, $rule:ty) => {
        type Rule = $rule;

        fn asked(&self) -> Option<crate::Implementation> {
            self.implementation
        }

        fn preferred(key: cresset_tensor::Key) -> crate::Implementation {
            use cresset_tensor::{Kernel as _, Key};
            let offered = matches!(key, Key::CPU | Key::META) || $op::table().get(key).is_some();
            if offered { crate::Implementation::Fused } else { crate::Implementation::Foreach }
        }

        fn fused(
            tensors: &[cresset_tensor::Tensor],
            rules: &[$rule],
            steps: &[cresset_tensor::Tensor],
        ) -> cresset_tensor::Result<()> {
            cresset_tensor::Op::call($op, cresset_tensor::ops::Batch { tensors, rules, steps })
        }
    };
}

use fused_by;
