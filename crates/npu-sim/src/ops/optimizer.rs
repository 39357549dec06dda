//! Optimizer steps.

use super::cast::{FLOATS, converted, expect_dtype};
use super::shape::{expect, expect_one};
use crate::error::fail;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::optimizer::{AdamStep, Tensors, step as take_step};
use cresset_kernels::{DType, View};

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn apply_adam_w_v2(
    x: Tensor,
    m: Tensor,
    v: Tensor,
    max_v: Option<Tensor>,
    grad: Tensor,
    step: Tensor,
    lr: f32,
    beta1: f32,
    beta2: f32,
    weight_decay: f32,
    eps: f32,
    amsgrad: bool,
    maximize: bool,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect("grad", &grad, x.shape())?;
    expect_dtype("grad", &grad, FLOATS)?;
    for (name, state) in [("m", Some(&m)), ("v", Some(&v)), ("max_v", max_v.as_ref())] {
        let Some(state) = state else { continue };
        expect(name, state, x.shape())?;
        expect_dtype(name, state, &[x.dtype()])?;
    }
    expect_one("step", &step)?;
    expect_dtype("step", &step, &[DType::F32, DType::I64])?;
    let numbers = AdamStep {
        lr: lr.into(),
        beta1: beta1.into(),
        beta2: beta2.into(),
        eps: eps.into(),
        weight_decay: weight_decay.into(),
        decoupled: true,
        amsgrad,
        maximize,
        step: 0,
    };
    match max_v.filter(|_| amsgrad) {
        None if amsgrad => fail!(code::NN_PARAM_NULLPTR, "max_v is null, but amsgrad needs it"),
        None => Plan::new(c"ApplyAdamWV2", [grad, step], [x, m, v], move |[grad, step], [x, m, v]| {
            converted(grad, x.dtype(), |grad| {
                take_step(&after(step, numbers), Tensors::new(x, grad, [m, v]))
            });
            Ok(())
        }),
        Some(max_v) => Plan::new(
            c"ApplyAdamWV2",
            [grad, step],
            [x, m, v, max_v],
            move |[grad, step], [x, m, v, max_v]| {
                converted(grad, x.dtype(), |grad| {
                    take_step(&after(step, numbers), Tensors::new(x, grad, [m, v, max_v]));
                });
                Ok(())
            },
        ),
    }
}

/// The numbers of the step after those on the device: the kernel counts itself.
fn after(done: View<'_>, numbers: AdamStep) -> AdamStep {
    let done = converted(done, DType::I64, |done| done.only::<i64>());
    AdamStep { step: done.max(0) as u64 + 1, ..numbers }
}
