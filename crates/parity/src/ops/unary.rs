//! Functions of one tensor.

use super::Entry;
use crate::arguments::KEYWORD;
use cresset_tensor::Tensor;

/// Functions that take nothing but a tensor, with their in-place forms; then entries in full.
macro_rules! functions {
    ($($name:ident $($change:ident)?,)* ; $($entry:expr,)*) => {
        &[
            $(Entry::one(stringify!($name), |a| a.get::<Tensor>(0, "input")?.$name())
                $(.in_place(|x, _| x.$change()))?,)*
            $($entry,)*
        ]
    };
}

pub(super) const OPS: &[Entry] = functions![
    abs abs_,
    acos acos_,
    acosh acosh_,
    asin asin_,
    asinh asinh_,
    atan atan_,
    atanh atanh_,
    bitwise_not bitwise_not_,
    ceil ceil_,
    cos cos_,
    cosh cosh_,
    deg2rad deg2rad_,
    digamma digamma_,
    erf erf_,
    erfc erfc_,
    erfinv erfinv_,
    exp exp_,
    exp2 exp2_,
    expm1 expm1_,
    floor floor_,
    frac frac_,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    lgamma lgamma_,
    log log_,
    log10 log10_,
    log1p log1p_,
    log2 log2_,
    logical_not logical_not_,
    neg neg_,
    positive,
    rad2deg rad2deg_,
    reciprocal reciprocal_,
    rsqrt rsqrt_,
    sgn sgn_,
    sigmoid sigmoid_,
    sign sign_,
    signbit,
    sin sin_,
    sinc sinc_,
    sinh sinh_,
    sqrt sqrt_,
    square square_,
    tan tan_,
    tanh tanh_,
    trunc trunc_,
    ;
    Entry::one("logit", |a| a.get::<Tensor>(0, "input")?.logit(a.get(1, "eps")?))
        .in_place(|x, a| x.logit_(a.get(1, "eps")?)),
    Entry::one("nan_to_num", |a| {
        a.get::<Tensor>(0, "input")?.nan_to_num(a.get(1, "nan")?, a.get(2, "posinf")?, a.get(3, "neginf")?)
    })
    .in_place(|x, a| x.nan_to_num_(a.get(1, "nan")?, a.get(2, "posinf")?, a.get(3, "neginf")?)),
    Entry::one("round", |a| {
        let x: Tensor = a.get(0, "input")?;
        match a.get(KEYWORD, "decimals")? {
            Some(decimals) => x.round_decimals(decimals),
            None => x.round(),
        }
    })
    .in_place(|x, a| match a.get(KEYWORD, "decimals")? {
        Some(decimals) => x.round_decimals_(decimals),
        None => x.round_(),
    }),
];
