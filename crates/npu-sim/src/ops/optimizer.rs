//! Optimizer steps.

use super::cast::{FLOATS, converted, expect_dtype};
use super::numbers::{numbers, store};
use super::optional::{placed, present};
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
    let rule = AdamStep {
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
            converted(grad, x.dtype(), |grad| take_step(&after(step, rule), Tensors::new(x, grad, [m, v])));
            Ok(())
        }),
        Some(max_v) => Plan::new(
            c"ApplyAdamWV2",
            [grad, step],
            [x, m, v, max_v],
            move |[grad, step], [x, m, v, max_v]| {
                converted(grad, x.dtype(), |grad| {
                    take_step(&after(step, rule), Tensors::new(x, grad, [m, v, max_v]));
                });
                Ok(())
            },
        ),
    }
}

/// The numbers of the step after those on the device: the kernel counts itself.
fn after(done: View<'_>, rule: AdamStep) -> AdamStep {
    let done = converted(done, DType::I64, |done| done.only::<i64>());
    AdamStep { step: done.max(0) as u64 + 1, ..rule }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn apply_adam_w(
    x: Tensor,
    m: Tensor,
    v: Tensor,
    power1: Tensor,
    power2: Tensor,
    lr: Tensor,
    weight_decay: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    eps: Tensor,
    grad: Tensor,
    max_v: Option<Tensor>,
    amsgrad: bool,
    maximize: bool,
) -> Planned {
    let numbers_given = [power1, power2, lr, weight_decay, beta1, beta2, eps];
    numbers_given.iter().try_for_each(|number| expect_one("a number", number))?;
    let max_v = max_v.filter(|_| amsgrad);
    if amsgrad && max_v.is_none() {
        fail!(code::NN_PARAM_NULLPTR, "max_v is null, but amsgrad needs it");
    }
    for (name, state) in [("m", Some(&m)), ("v", Some(&v)), ("grad", Some(&grad)), ("max_v", max_v.as_ref())]
    {
        state.map_or(Ok(()), |state| expect(name, state, x.shape()))?;
    }
    let (more, kept) = present([max_v]);
    let reads = [vec![grad], numbers_given.to_vec()].concat();
    let writes = [vec![x, m, v], more].concat();
    Plan::lists(c"ApplyAdamW", reads, writes, move |reads, writes| {
        let given: Vec<f64> = reads[1..].iter().map(|number| numbers(*number)[0]).collect();
        let &[power1, power2, lr, decay, beta1, beta2, eps] = &given[..] else {
            unreachable!("seven numbers")
        };
        let (power1, power2) = (power1 * beta1, power2 * beta2);
        let grads = numbers(reads[0]);
        let mut writes = writes.into_iter();
        let [x, m, v] = std::array::from_fn(|_| writes.next().expect("three states"));
        let [max_v] = placed(kept, writes);
        let [mut xs, mut ms, mut vs] = [&x, &m, &v].map(|state| numbers(state.as_view()));
        let mut most = max_v.as_ref().map(|max_v| numbers(max_v.as_view()));
        for at in 0..xs.len() {
            let grad = if maximize { -grads[at] } else { grads[at] };
            ms[at] = beta1 * ms[at] + (1.0 - beta1) * grad;
            vs[at] = beta2 * vs[at] + (1.0 - beta2) * grad * grad;
            let spread = most.as_mut().map_or(vs[at], |most| {
                most[at] = most[at].max(vs[at]);
                most[at]
            });
            let root = (spread / (1.0 - power2)).sqrt() + eps;
            xs[at] = xs[at] * (1.0 - lr * decay) - lr / (1.0 - power1) * ms[at] / root;
        }
        store(&xs, x);
        store(&ms, m);
        store(&vs, v);
        if let Some((most, max_v)) = most.zip(max_v) {
            store(&most, max_v);
        }
        Ok(())
    })
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn apply_fused_ema_adam(
    grad: Tensor,
    x: Tensor,
    m: Tensor,
    v: Tensor,
    average: Tensor,
    step: Tensor,
    lr: f64,
    decay: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    mode: i64,
    correct: bool,
    weight_decay: f64,
) -> Planned {
    if !(0..=1).contains(&mode) {
        fail!(code::NN_PARAM_INVALID, "there is no mode {mode}");
    }
    expect_one("step", &step)?;
    for (name, state) in [("grad", &grad), ("m", &m), ("v", &v), ("average", &average)] {
        expect(name, state, x.shape())?;
    }
    Plan::new(c"ApplyFusedEmaAdam", [grad, step], [x, m, v, average], move |[grad, step], states| {
        let (grads, step) = (numbers(grad), numbers(step)[0]);
        let corrections = [beta1, beta2].map(|beta| if correct { 1.0 - beta.powf(step) } else { 1.0 });
        let [mut xs, mut ms, mut vs, mut averages] = states.each_ref().map(|state| numbers(state.as_view()));
        for at in 0..xs.len() {
            let grad = grads[at] + if mode == 0 { weight_decay * xs[at] } else { 0.0 };
            ms[at] = beta1 * ms[at] + (1.0 - beta1) * grad;
            vs[at] = beta2 * vs[at] + (1.0 - beta2) * grad * grad;
            let root = (vs[at] / corrections[1]).sqrt() + eps;
            let decayed = if mode == 1 { weight_decay * xs[at] } else { 0.0 };
            xs[at] -= lr * (ms[at] / corrections[0] / root + decayed);
            averages[at] = decay * averages[at] + (1.0 - decay) * xs[at];
        }
        let [x, m, v, average] = states;
        store(&xs, x);
        store(&ms, m);
        store(&vs, v);
        store(&averages, average);
        Ok(())
    })
}
