//! Activations and their gradients.

use super::cast::{expect_castable, number};
use super::numbers::{numbers, store};
use super::shape::expect;
use super::unary::{gradient, map_number, only_float};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::{FloatBinary, NumberUnary, SigmoidBackward, TanhBackward, Unary};
use cresset_kernels::{Float, Layout, Number, Scalar};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// One line per activation: its numbers, its kernel, and what it does to an element.
macro_rules! activations {
    ($($name:ident($($number:ident),*) = $kernel:literal, |$x:ident| $value:expr;)*) => {$(
        pub(crate) fn $name(x: Tensor, $($number: Scalar,)* out: Tensor) -> Planned {
            #[derive(Clone, Copy)]
            struct Function {
                $($number: f64,)*
            }

            impl Unary for Function {
                fn apply<T: Float>(self, $x: T) -> T {
                    $(let $number = T::narrow(self.$number);)*
                    $value
                }
            }

            only_float($kernel, Function { $($number: $number.as_f64(),)* }, x, out)
        }
    )*};
}

activations! {
    silu() = c"Swish", |x| x / (T::ONE + (-x).exp());
    mish() = c"Mish", |x| x * softplus_tanh(x);
    hardswish() = c"HardSwish", |x| x * sixths(x);
    hardsigmoid() = c"HardSigmoid", |x| sixths(x);
    softplus(beta, threshold) = c"SoftplusV2",
        |x| if x * beta > threshold { x } else { (x * beta).exp().ln_1p() / beta };
    leaky_relu(slope) = c"LeakyRelu", |x| if x > T::ZERO { x } else { x * slope };
    elu(alpha, scale, input_scale) = c"Elu",
        |x| if x > T::ZERO { x * scale } else { (x * input_scale).exp_m1() * alpha * scale };
    log_sigmoid() = c"LogSigmoid",
        |x| (if x < T::ZERO { x } else { T::ZERO * x }) - (-x.abs()).exp().ln_1p();
    hardshrink(lambda) = c"HardShrink", |x| if x.abs() <= lambda { T::ZERO } else { x };
    softshrink(lambda) = c"SoftShrink", |x| {
        let less = x.abs() - lambda;
        if less > T::ZERO { less.copysign(x) } else { x * T::ZERO }
    };
}

/// One line per gradient: its numbers, its kernel, and what it makes of the gradient `g` at `x`.
macro_rules! gradients {
    ($($name:ident($($number:ident),*) = $kernel:literal, |$g:ident, $x:ident| $value:expr;)*) => {$(
        pub(crate) fn $name(grad: Tensor, x: Tensor, $($number: Scalar,)* out: Tensor) -> Planned {
            #[derive(Clone, Copy)]
            struct Function {
                $($number: f64,)*
            }

            impl FloatBinary for Function {
                fn apply<T: Float>(self, $g: T, $x: T) -> T {
                    $(let $number = T::narrow(self.$number);)*
                    $value
                }
            }

            expect("x", &x, grad.shape())?;
            gradient($kernel, Function { $($number: $number.as_f64(),)* }, grad, x, out)
        }
    )*};
}

gradients! {
    threshold_backward(threshold) = c"ThresholdGradV2D", |g, x| if x <= threshold { T::ZERO } else { g };
    silu_backward() = c"SiluGrad", |g, x| {
        let share = (T::ONE + (-x).exp()).recip();
        g * share * (T::ONE + x * (T::ONE - share))
    };
    mish_backward() = c"MishGrad", |g, x| {
        let (share, bend) = ((T::ONE + (-x).exp()).recip(), softplus_tanh(x));
        g * (bend + x * share * (T::ONE - bend * bend))
    };
    hardswish_backward() = c"HardSwishGrad", |g, x| {
        let three = T::narrow(3.0);
        if x <= -three { T::ZERO } else if x < three { g * (x / three + T::narrow(0.5)) } else { g }
    };
    hardsigmoid_backward() = c"HardSigmoidGrad",
        |g, x| if x.abs() < T::narrow(3.0) { g / T::narrow(6.0) } else { T::ZERO };
    softplus_backward(beta, threshold) = c"SoftplusV2Grad", |g, x| {
        let e = (x * beta).exp();
        if x * beta > threshold { g } else { g * e / (e + T::ONE) }
    };
    hardtanh_backward(low, high) = c"HardtanhGrad", |g, x| if x <= low || x >= high { T::ZERO } else { g };
    hardshrink_backward(lambda) = c"HardShrinkGrad", |g, x| if x.abs() <= lambda { T::ZERO } else { g };
    softshrink_backward(lambda) = c"SoftShrinkGrad", |g, x| if x.abs() <= lambda { T::ZERO } else { g };
    leaky(slope) = c"LeakyReluGrad", |g, x| if x > T::ZERO { g } else { g * slope };
    bent(alpha, scale, input_scale) = c"EluGradV2",
        |g, x| if x > T::ZERO { g * scale } else { g * input_scale * alpha * scale * (x * input_scale).exp() };
    bent_result(alpha, scale, input_scale) = c"EluGradV2",
        |g, y| if y > T::ZERO { g * scale } else { g * input_scale * (y + alpha * scale) };
    gelu_by_erf_backward() = c"GeluGradV2", |g, x| {
        let half = T::narrow(0.5);
        let density = (-half * x * x).exp() * T::narrow(FRAC_1_SQRT_2 * FRAC_2_SQRT_PI / 2.0);
        g * (half * (T::ONE + Float::erf(x * T::narrow(FRAC_1_SQRT_2))) + x * density)
    };
    gelu_by_tanh_backward() = c"GeluGradV2", |g, x| {
        let (share, one, three) = (tanh_share(x), T::ONE, T::narrow(3.0));
        let slope = T::narrow(2.0 * LINEAR) * (one + three * T::narrow(CUBIC) * x * x);
        g * share * (one + x * (one - share) * slope)
    };
}

/// The share that GELU takes of `x` is about that of `2 LINEAR (x + CUBIC x^3)` by the logistic function.
const LINEAR: f64 = FRAC_1_SQRT_2 * FRAC_2_SQRT_PI;
const CUBIC: f64 = 0.044_715;

pub(super) fn gelu_by_erf<T: Float>(x: T) -> T {
    x * T::narrow(0.5) * (T::ONE + Float::erf(x * T::narrow(FRAC_1_SQRT_2)))
}

pub(super) fn gelu_by_tanh<T: Float>(x: T) -> T {
    x * tanh_share(x)
}

fn tanh_share<T: Float>(x: T) -> T {
    let z = T::narrow(2.0 * LINEAR) * x * (T::ONE + T::narrow(CUBIC) * x * x);
    (T::ONE + (-z).exp()).recip()
}

/// `tanh(log(1 + e^x))`, which is `n / (n + 2)` of `n = e^x (e^x + 2)`, and 1 for all large `x`.
fn softplus_tanh<T: Float>(x: T) -> T {
    let (two, e) = (T::narrow(2.0), x.exp());
    let n = e * (e + two);
    if x > T::narrow(20.0) { T::ONE } else { n / (n + two) }
}

/// A line from 0 at -3 to 1 at 3.
fn sixths<T: Float>(x: T) -> T {
    let (zero, six, shifted) = (T::ZERO, T::narrow(6.0), x + T::narrow(3.0));
    if shifted < zero {
        zero
    } else if shifted > six {
        T::ONE
    } else {
        shifted / six
    }
}

pub(crate) fn leaky_relu_backward(
    grad: Tensor,
    x: Tensor,
    slope: Scalar,
    _x_is_result: bool,
    out: Tensor,
) -> Planned {
    leaky(grad, x, slope, out)
}

pub(crate) fn elu_backward(
    grad: Tensor,
    alpha: Scalar,
    scale: Scalar,
    input_scale: Scalar,
    is_result: bool,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let run = if is_result { bent_result } else { bent };
    run(grad, x, alpha, scale, input_scale, out)
}

pub(crate) fn celu(x: Tensor, alpha: Scalar, out: Tensor) -> Planned {
    elu(x, alpha, Scalar::Float(1.0), Scalar::Float(1.0 / alpha.as_f64()), out)
}

/// One slope for all, or one per channel.
fn slopes(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if weight.layout().len() == 1 {
        let one = Layout::contiguous(&[]).expect("one element");
        return super::shape::broadcast_to("weight", &weight.with_layout(one), x.shape());
    }
    let channels = x.shape().get(1).copied().unwrap_or(1);
    super::shape::expect("weight", weight, &[channels])?;
    let mut strides = vec![0; x.shape().len()];
    strides[1] = weight.layout().strides()[0];
    Ok(weight.with_layout(Layout::strided(x.shape(), &strides, 0).expect("elements are repeated")))
}

pub(crate) fn prelu(x: Tensor, weight: Tensor, out: Tensor) -> Planned {
    let weight = slopes(&x, &weight)?;
    super::numbers::each(c"PRelu", [x, weight], out, |[x, weight]| if x > 0.0 { x } else { weight * x })
}

pub(crate) fn prelu_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    to_x: Tensor,
    to_weight: Tensor,
) -> Planned {
    super::shape::expect("grad", &grad, x.shape())?;
    super::shape::expect("to_x", &to_x, x.shape())?;
    super::shape::expect("to_weight", &to_weight, weight.shape())?;
    let count = weight.layout().len();
    let inner: usize = x.shape().get(2..).unwrap_or(&[]).iter().product();
    let weight = slopes(&x, &weight)?;
    let plan =
        Plan::new(c"PReluGrad", [grad, x, weight], [to_x, to_weight], move |inputs, [to_x, to_weight]| {
            let [grad, x, weight] = inputs.map(numbers);
            let (mut slopes, mut sums) = (Vec::with_capacity(x.len()), vec![0.0; count]);
            for at in 0..x.len() {
                let is_bent = x[at] <= 0.0;
                slopes.push(if is_bent { weight[at] * grad[at] } else { grad[at] });
                let channel = if count == 1 { 0 } else { at / inner.max(1) % count };
                sums[channel] += if is_bent { x[at] * grad[at] } else { 0.0 };
            }
            store(&slopes, to_x);
            store(&sums, to_weight);
            Ok(())
        });
    plan.map(Plan::with_workspace)
}

pub(crate) fn gelu_v2(x: Tensor, approximate: i64, out: Tensor) -> Planned {
    match approximate {
        0 => only_float(c"GeluV2", ByErf, x, out),
        1 => only_float(c"GeluV2", ByTanh, x, out),
        _ => fail!(code::NN_PARAM_INVALID, "there is no approximation {approximate}"),
    }
}

#[derive(Clone, Copy)]
struct ByErf;

impl Unary for ByErf {
    fn apply<T: Float>(self, x: T) -> T {
        gelu_by_erf(x)
    }
}

#[derive(Clone, Copy)]
struct ByTanh;

impl Unary for ByTanh {
    fn apply<T: Float>(self, x: T) -> T {
        gelu_by_tanh(x)
    }
}

pub(crate) fn gelu_backward_v2(grad: Tensor, x: Tensor, approximate: String, out: Tensor) -> Planned {
    match approximate.as_str() {
        "none" => gelu_by_erf_backward(grad, x, out),
        "tanh" => gelu_by_tanh_backward(grad, x, out),
        other => fail!(code::NN_PARAM_INVALID, "there is no approximation {other:?}"),
    }
}

pub(crate) fn gelu(x: Tensor, out: Tensor) -> Planned {
    only_float(c"Gelu", ByTanh, x, out)
}

pub(crate) fn gelu_backward(grad: Tensor, x: Tensor, out: Tensor) -> Planned {
    gelu_by_tanh_backward(grad, x, out)
}

pub(crate) fn tanh_backward(grad: Tensor, output: Tensor, out: Tensor) -> Planned {
    gradient(c"TanhGrad", TanhBackward, grad, output, out)
}

pub(crate) fn sigmoid_backward(grad: Tensor, output: Tensor, out: Tensor) -> Planned {
    gradient(c"SigmoidGrad", SigmoidBackward, grad, output, out)
}

pub(crate) fn hardtanh(x: Tensor, low: Scalar, high: Scalar, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    map_number(c"ClipByValueV2", Hardtanh { low, high }, number(x.dtype()), x, out)
}

#[derive(Clone, Copy)]
struct Hardtanh {
    low: Scalar,
    high: Scalar,
}

impl NumberUnary for Hardtanh {
    fn apply<T: Number>(self, x: T) -> T {
        let (low, high) = (T::from_scalar(self.low), T::from_scalar(self.high));
        if x < low {
            low
        } else if x > high {
            high
        } else {
            x
        }
    }
}

pub(crate) fn threshold(x: Tensor, threshold: Scalar, value: Scalar, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    map_number(c"ThresholdV2", Threshold { threshold, value }, number(x.dtype()), x, out)
}

#[derive(Clone, Copy)]
struct Threshold {
    threshold: Scalar,
    value: Scalar,
}

impl NumberUnary for Threshold {
    fn apply<T: Number>(self, x: T) -> T {
        if x <= T::from_scalar(self.threshold) { T::from_scalar(self.value) } else { x }
    }
}

pub(crate) fn log_sigmoid_backward(grad: Tensor, x: Tensor, _buffer: Tensor, out: Tensor) -> Planned {
    #[derive(Clone, Copy)]
    struct Slope;

    impl FloatBinary for Slope {
        fn apply<T: Float>(self, grad: T, x: T) -> T {
            grad / (T::ONE + x.exp())
        }
    }

    gradient(c"LogSigmoidGrad", Slope, grad, x, out)
}

pub(crate) fn log_sigmoid_forward(x: Tensor, out: Tensor, _buffer: Tensor) -> Planned {
    log_sigmoid(x, out)
}
