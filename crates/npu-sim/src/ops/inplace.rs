//! Operators that write their result where an operand was.

use super::*;
use crate::objects::Tensor;
use crate::plan::Planned;
use cresset_kernels::Scalar;

/// One line per operator: its twin, which has a result of its own, and what it takes besides.
macro_rules! inplace {
    ($($name:ident($($argument:ident: $ty:ty),*) = $twin:ident;)*) => {$(
        pub(crate) fn $name(x: Tensor $(, $argument: $ty)*) -> Planned {
            $twin(x.clone() $(, $argument)*, x)
        }
    )*};
}

inplace! {
    inplace_sub(other: Tensor, alpha: Scalar) = sub;
    inplace_subs(other: Scalar, alpha: Scalar) = subs;
    inplace_neg() = neg;
    inplace_exp() = exp;
    inplace_sqrt() = sqrt;
    inplace_rsqrt() = rsqrt;
    inplace_sin() = sin;
    inplace_cos() = cos;
    inplace_relu() = relu;
    inplace_sigmoid() = sigmoid;
    inplace_tanh() = tanh;
    inplace_threshold(limit: Scalar, value: Scalar) = threshold;
    inplace_clamp_max(high: Scalar) = clamp_max;
    inplace_pow_tensor_scalar(exponent: Scalar) = pow_tensor_scalar;
    inplace_pow_tensor_tensor(exponent: Tensor) = pow_tensor_tensor;
    inplace_lerp(end: Tensor, weight: Tensor) = lerp;
    inplace_tril(diagonal: i64) = tril;
    inplace_triu(diagonal: i64) = triu;
    inplace_scatter(dim: i64, index: Tensor, source: Tensor, reduce: i64) = scatter;
    inplace_scatter_value(dim: i64, index: Tensor, value: Scalar, reduce: i64) = scatter_value;
    inplace_acos() = acos;
    inplace_acosh() = acosh;
    inplace_asin() = asin;
    inplace_asinh() = asinh;
    inplace_atan() = atan;
    inplace_atanh() = atanh;
    inplace_ceil() = ceil;
    inplace_cosh() = cosh;
    inplace_erf() = erf;
    inplace_erfc() = erfc;
    inplace_erfinv() = erfinv;
    inplace_exp2() = exp2;
    inplace_expm1() = expm1;
    inplace_floor() = floor;
    inplace_frac() = frac;
    inplace_hardsigmoid() = hardsigmoid;
    inplace_hardswish() = hardswish;
    inplace_log() = log;
    inplace_log10() = log10;
    inplace_log1p() = log1p;
    inplace_log2() = log2;
    inplace_logical_not() = logical_not;
    inplace_mish() = mish;
    inplace_reciprocal() = reciprocal;
    inplace_sinc() = sinc;
    inplace_sinh() = sinh;
    inplace_tan() = tan;
    inplace_atan2(other: Tensor) = atan2;
    inplace_bitwise_and_tensor(other: Tensor) = bitwise_and_tensor;
    inplace_bitwise_xor_tensor(other: Tensor) = bitwise_xor_tensor;
    inplace_eq_tensor(other: Tensor) = eq_tensor;
    inplace_ne_tensor(other: Tensor) = ne_tensor;
    inplace_gt_tensor(other: Tensor) = gt_tensor;
    inplace_ge_tensor(other: Tensor) = ge_tensor;
    inplace_lt_tensor(other: Tensor) = lt_tensor;
    inplace_le_tensor(other: Tensor) = le_tensor;
    inplace_logical_and(other: Tensor) = logical_and;
    inplace_logical_or(other: Tensor) = logical_or;
    inplace_floor_divide(other: Tensor) = floor_divide;
    inplace_fmod_tensor(other: Tensor) = fmod_tensor;
    inplace_remainder_tensor_tensor(other: Tensor) = remainder_tensor_tensor;
    inplace_clamp_min_tensor(other: Tensor) = clamp_min_tensor;
    inplace_clamp_max_tensor(other: Tensor) = clamp_max_tensor;
    inplace_bitwise_and_scalar(other: Scalar) = bitwise_and_scalar;
    inplace_bitwise_xor_scalar(other: Scalar) = bitwise_xor_scalar;
    inplace_eq_scalar(other: Scalar) = eq_scalar;
    inplace_ne_scalar(other: Scalar) = ne_scalar;
    inplace_gt_scalar(other: Scalar) = gt_scalar;
    inplace_ge_scalar(other: Scalar) = ge_scalar;
    inplace_lt_scalar(other: Scalar) = lt_scalar;
    inplace_le_scalar(other: Scalar) = le_scalar;
    inplace_floor_divides(other: Scalar) = floor_divides;
    inplace_fmod_scalar(other: Scalar) = fmod_scalar;
    inplace_remainder_tensor_scalar(other: Scalar) = remainder_tensor_scalar;
    inplace_x_log_y_scalar_other(other: Scalar) = x_log_y_scalar_other;
    inplace_leaky_relu(other: Scalar) = leaky_relu;
    inplace_div_mod(other: Tensor, mode: i32) = div_mod;
    inplace_div_mods(other: Scalar, mode: i32) = div_mods;
    inplace_elu(alpha: Scalar, scale: Scalar, input_scale: Scalar) = elu;
    inplace_hardtanh(low: Scalar, high: Scalar) = hardtanh;
    inplace_nan_to_num(nan: f32, posinf: f32, neginf: f32) = nan_to_num;
    inplace_round_decimals(decimals: i64) = round_decimals;
    inplace_index_copy(dim: i64, index: Tensor, source: Tensor) = index_copy;
}

pub(crate) fn inplace_addmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    cube: i8,
) -> Planned {
    addmm(x.clone(), a, b, beta, alpha, x, cube)
}
