//! Every derivative against finite differences, and second derivatives likewise.

use cresset_tensor::autograd::{GradCheck, Pass, grad, gradcheck, gradgradcheck};
use cresset_tensor::ops::{
    Approximate, Attention, BatchNorm, Between, Border, Convolving, Ctc, GaussianLoss, Interpolation,
    LocalResponseNorm, Margin, Method, MultiMargin, Norm, PoissonLoss, Pooling, Reduction, Resize, Sampling,
    TripletMargin,
};
use cresset_tensor::{Result, Tensor};

type Function = fn(&[Tensor]) -> Result<Tensor>;

/// One row per operator: its name, the shapes of its inputs, and how it is called.
const TABLE: &[(&str, &[&[usize]], Function)] = &[
    ("add", &[&[2, 3], &[3]], |x| x[0].add_scaled(&x[1], 0.5)),
    ("sub", &[&[2, 1], &[3]], |x| x[0].sub(&x[1])),
    ("rsub", &[&[3]], |x| x[0].rsub(2.0)),
    ("mul", &[&[2, 3], &[2, 1]], |x| x[0].mul(&x[1])),
    ("mul by a number", &[&[3]], |x| x[0].mul(-3.5)),
    ("div", &[&[2, 3], &[3]], |x| x[0].div(&x[1])),
    ("div by a number", &[&[3]], |x| x[0].div(4.0)),
    ("pow of a number", &[&[3]], |x| x[0].pow(2.5)),
    ("pow of a tensor", &[&[2, 3], &[3]], |x| x[0].pow(&x[1])),
    ("neg", &[&[3]], |x| x[0].neg()),
    ("exp", &[&[3]], |x| x[0].exp()),
    ("log", &[&[3]], |x| x[0].log()),
    ("sqrt", &[&[3]], |x| x[0].sqrt()),
    ("reciprocal", &[&[3]], |x| x[0].reciprocal()),
    ("tanh", &[&[3]], |x| x[0].tanh()),
    ("sigmoid", &[&[3]], |x| x[0].sigmoid()),
    ("exp2", &[&[3]], |x| x[0].exp2()),
    ("expm1", &[&[3]], |x| x[0].expm1()),
    ("log2", &[&[3]], |x| x[0].log2()),
    ("log10", &[&[3]], |x| x[0].log10()),
    ("log1p", &[&[3]], |x| x[0].log1p()),
    ("rsqrt", &[&[3]], |x| x[0].rsqrt()),
    ("square", &[&[3]], |x| x[0].square()),
    ("sin", &[&[3]], |x| x[0].sin()),
    ("cos", &[&[3]], |x| x[0].cos()),
    ("tan", &[&[3]], |x| x[0].tan()),
    ("atan", &[&[3]], |x| x[0].atan()),
    ("sinh", &[&[3]], |x| x[0].sinh()),
    ("cosh", &[&[3]], |x| x[0].cosh()),
    ("asinh", &[&[3]], |x| x[0].asinh()),
    ("deg2rad", &[&[3]], |x| x[0].deg2rad()),
    ("rad2deg", &[&[3]], |x| x[0].rad2deg()),
    ("erf", &[&[3]], |x| x[0].erf()),
    ("abs", &[&[3]], |x| x[0].abs()),
    ("frac", &[&[3]], |x| x[0].frac()),
    ("asin", &[&[3]], |x| x[0].mul(0.5)?.asin()),
    ("acos", &[&[3]], |x| x[0].mul(0.5)?.acos()),
    ("atanh", &[&[3]], |x| x[0].mul(0.5)?.atanh()),
    ("acosh", &[&[3]], |x| x[0].add(1)?.acosh()),
    ("floor, which is flat", &[&[3]], |x| x[0].mul(2.1)?.floor()),
    ("sin_, which needs what it overwrites", &[&[3]], |x| changed(&x[0], Tensor::sin_)),
    ("erfc", &[&[3]], |x| x[0].erfc()),
    ("lgamma", &[&[3]], |x| x[0].lgamma()),
    ("digamma", &[&[3]], |x| x[0].digamma()),
    ("sinc", &[&[3]], |x| x[0].sinc()),
    ("polygamma", &[&[3]], |x| x[0].polygamma(2)),
    ("erfinv", &[&[3]], |x| x[0].mul(0.5)?.erfinv()),
    ("logit", &[&[3]], |x| x[0].mul(0.5)?.logit(None)),
    ("logit with bounds", &[&[3]], |x| x[0].mul(0.5)?.logit(Some(0.4))),
    ("nan_to_num", &[&[3]], |x| x[0].nan_to_num(None, None, None)),
    ("relu", &[&[2, 3]], |x| x[0].sub(0.9)?.relu()),
    ("softplus", &[&[2, 3]], |x| x[0].softplus(2.0, 20.0)),
    ("softplus beyond the threshold", &[&[2, 3]], |x| x[0].softplus(2.0, 1.5)),
    ("threshold", &[&[2, 3]], |x| x[0].threshold(0.9, 2.0)),
    ("leaky_relu", &[&[2, 3]], |x| x[0].sub(0.9)?.leaky_relu(0.2)),
    ("elu", &[&[2, 3]], |x| x[0].sub(0.9)?.elu(1.7)),
    ("celu", &[&[2, 3]], |x| x[0].sub(0.9)?.celu(1.7)),
    ("selu", &[&[2, 3]], |x| x[0].sub(0.9)?.selu()),
    ("selu_", &[&[2, 3]], |x| changed(&x[0].sub(0.9)?, Tensor::selu_)),
    ("prelu with a weight per channel", &[&[2, 3, 2], &[3]], |x| x[0].sub(0.9)?.prelu(&x[1])),
    ("prelu with one weight", &[&[4], &[]], |x| x[0].sub(0.9)?.prelu(&x[1])),
    ("hardtanh", &[&[2, 3]], |x| x[0].hardtanh(0.7, 1.2)),
    ("hardsigmoid", &[&[2, 3]], |x| x[0].mul(4)?.sub(2)?.hardsigmoid()),
    ("hardswish", &[&[2, 3]], |x| x[0].mul(8)?.sub(8)?.hardswish()),
    ("logsigmoid", &[&[2, 3]], |x| x[0].sub(0.9)?.logsigmoid()),
    ("silu", &[&[2, 3]], |x| x[0].sub(0.9)?.silu()),
    ("mish", &[&[2, 3]], |x| x[0].sub(0.9)?.mish()),
    ("gelu", &[&[2, 3]], |x| x[0].sub(0.9)?.gelu(Approximate::None)),
    ("gelu by tanh", &[&[2, 3]], |x| x[0].sub(0.9)?.gelu(Approximate::Tanh)),
    ("glu", &[&[2, 4]], |x| x[0].glu(-1)),
    ("glu over the first dimension", &[&[2, 3]], |x| x[0].glu(0)),
    ("hardshrink", &[&[2, 3]], |x| x[0].hardshrink(0.9)),
    ("softshrink", &[&[2, 3]], |x| x[0].softshrink(0.9)),
    ("tanhshrink", &[&[2, 3]], |x| x[0].tanhshrink()),
    ("softsign", &[&[2, 3]], |x| x[0].sub(0.9)?.softsign()),
    ("sum", &[&[2, 3]], |x| x[0].sum()),
    ("sum over a dimension", &[&[2, 3, 2]], |x| x[0].sum_dims(&[1], false)),
    ("mean", &[&[2, 3]], |x| x[0].mean()),
    ("mean over dimensions", &[&[2, 3, 2]], |x| x[0].mean_dims(&[0, -1], true)),
    ("max", &[&[2, 3]], |x| x[0].max()),
    ("max over a dimension", &[&[2, 3]], |x| Ok(x[0].max_dim(0, false)?[0].clone())),
    ("prod", &[&[2, 2]], |x| x[0].prod(None)),
    ("prod over a dimension", &[&[2, 3, 2]], |x| x[0].prod_dim(1, true, None)),
    ("cumsum", &[&[2, 3]], |x| x[0].cumsum(1, None)),
    ("cumprod", &[&[3, 2]], |x| x[0].cumprod(0, None)),
    ("norm", &[&[2, 3]], |x| x[0].norm(2.0, &[], false, None)),
    ("norm of a fractional order", &[&[2, 3]], |x| x[0].sub(1.0)?.vector_norm(1.5, &[1], false, None)),
    ("norm of a negative order", &[&[2, 3]], |x| x[0].vector_norm(-2.0, &[0], true, None)),
    ("norm of infinite order", &[&[2, 3]], |x| x[0].sub(1.0)?.vector_norm(f64::INFINITY, &[1], false, None)),
    ("logcumsumexp", &[&[3, 2]], |x| x[0].logcumsumexp(0)),
    ("cummax", &[&[4]], |x| Ok(x[0].cummax(0)?[0].clone())),
    ("cummin", &[&[2, 3]], |x| Ok(x[0].cummin(1)?[0].clone())),
    ("diff", &[&[2, 4], &[2, 1]], |x| x[0].diff(2, -1, None, Some(&x[1]))),
    ("aminmax", &[&[2, 3]], |x| {
        let [low, high] = x[0].aminmax(Some(1), false)?;
        low.mul(&high)
    }),
    ("kthvalue", &[&[2, 3]], |x| Ok(x[0].kthvalue(2, 1, true)?[0].clone())),
    ("median", &[&[2, 3]], |x| x[0].median()),
    ("median over a dimension", &[&[3, 2]], |x| Ok(x[0].nanmedian_dim(0, false)?[0].clone())),
    ("mode", &[&[2, 3]], |x| Ok(x[0].mode(1, false)?[0].clone())),
    ("quantile", &[&[2, 4]], |x| x[0].quantile(&Tensor::new([0.3, 0.8])?, Some(1), false, Between::Linear)),
    ("trace", &[&[2, 3]], |x| x[0].trace()),
    ("nuclear norm", &[&[2, 3, 2]], |x| x[0].norm(Norm::Nuclear, &[0, 1], false, None)),
    ("svd", &[&[3, 2]], |x| {
        let [u, s, vh] = x[0].svd()?;
        u.mul(&u)?.mul(&s)?.matmul(&vh.mul(&vh)?)
    }),
    ("einsum", &[&[2, 3], &[2, 3, 2], &[2]], |x| Tensor::einsum("ij,ijk,k->j", &[&x[0], &x[1], &x[2]])),
    ("einsum of a diagonal", &[&[2, 2, 3]], |x| Tensor::einsum("ii...->...i", &[&x[0]])),
    ("tensordot", &[&[2, 3], &[3, 2, 2]], |x| x[0].tensordot(&x[1], &[0, 1], &[2, 0])),
    ("multi_dot", &[&[2], &[2, 3], &[3, 2]], |x| Tensor::multi_dot(&[&x[0], &x[1], &x[2]])),
    ("kron", &[&[2, 1], &[3]], |x| x[0].kron(&x[1])),
    ("cross", &[&[2, 3], &[1, 3]], |x| x[0].cross(&x[1], Some(1))),
    ("normalize", &[&[2, 3]], |x| x[0].normalize(2.0, 1, 1e-12)),
    ("cosine_similarity", &[&[2, 3], &[3]], |x| x[0].cosine_similarity(&x[1], 1, 1e-8)),
    ("cdist", &[&[2, 3], &[2, 3]], |x| x[0].cdist(&x[1], 2.0)),
    ("mm", &[&[2, 3], &[3, 4]], |x| x[0].mm(&x[1])),
    ("mm of transposed matrices", &[&[3, 2], &[4, 3]], |x| x[0].t()?.mm(&x[1].t()?)),
    ("addmm", &[&[4], &[2, 3], &[3, 4]], |x| x[0].addmm(&x[1], &x[2])),
    ("matmul of stacks", &[&[2, 1, 2, 3], &[3, 3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul with a vector", &[&[2, 3], &[3]], |x| x[0].matmul(&x[1])),
    ("linear", &[&[2, 2, 3], &[4, 3], &[4]], |x| x[0].linear(&x[1], Some(&x[2]))),
    ("transpose", &[&[2, 3, 2]], |x| x[0].transpose(0, -1)),
    ("view", &[&[2, 3]], |x| x[0].view([3, 2])),
    ("expand", &[&[3]], |x| x[0].expand([2, 3])),
    ("as_strided", &[&[7]], |x| x[0].as_strided(&[2, 3], &[1, 2], 1)),
    ("as_strided with overlap", &[&[2, 3]], |x| x[0].as_strided(&[4, 2], &[1, 2], 0)),
    ("as_strided of repeated elements", &[&[3]], |x| x[0].expand([2, 3])?.as_strided(&[2, 2], &[1, 1], 0)),
    ("contiguous", &[&[2, 3]], |x| x[0].t()?.contiguous()),
    ("log_softmax", &[&[2, 3]], |x| x[0].log_softmax(1)),
    ("log_softmax over the first dimension", &[&[2, 3]], |x| x[0].log_softmax(0)),
    ("nll_loss with weights", &[&[3, 4]], |x| {
        let weight = Tensor::new([0.1f64, 0.7, 0.4, 1.3])?;
        x[0].nll_loss(&Tensor::new([1i64, 3, 1])?, Some(&weight), Reduction::Mean)
    }),
    ("nll_loss by sample", &[&[2, 4]], |x| x[0].nll_loss(&Tensor::new([1i64, 3])?, None, Reduction::None)),
    ("cross_entropy", &[&[3, 4]], |x| x[0].cross_entropy(&Tensor::new([1i64, 3, 1])?)),
    ("mse_loss", &[&[2, 3], &[3]], |x| x[0].mse_loss(&x[1], Reduction::Mean)),
    ("mse_loss by element", &[&[2, 3], &[3]], |x| x[0].mse_loss(&x[1], Reduction::None)),
    ("smooth_l1_loss", &[&[2, 3], &[2, 3]], |x| x[0].smooth_l1_loss(&x[1].sub(5.0)?, 20.0, Reduction::Mean)),
    ("huber_loss beyond delta", &[&[2, 3], &[2, 3]], |x| {
        x[0].huber_loss(&x[1].sub(5.0)?, 0.5, Reduction::None)
    }),
    ("l1_loss", &[&[2, 3], &[2, 3]], |x| x[0].l1_loss(&x[1].sub(5.0)?, Reduction::Sum)),
    ("binary_cross_entropy", &[&[2, 3], &[2, 3]], |x| {
        let weight = Tensor::new([0.1f64, 0.7, 0.4])?;
        x[0].sigmoid()?.binary_cross_entropy(&x[1], Some(&weight), Reduction::Mean)
    }),
    ("binary_cross_entropy_with_logits", &[&[2, 3], &[2, 3]], |x| {
        let [weight, positive] = [Tensor::new([0.1f64, 0.7, 0.4])?, Tensor::new([1.5f64, 2.0, 0.5])?];
        x[0].binary_cross_entropy_with_logits(&x[1], Some(&weight), Some(&positive), Reduction::Mean)
    }),
    ("kl_div", &[&[2, 3], &[2, 3]], |x| x[0].kl_div(&x[1], false, Reduction::Mean)),
    ("kl_div of logarithms", &[&[2, 3], &[2, 3]], |x| x[0].kl_div_per_sample(&x[1], true)),
    ("soft_margin_loss", &[&[2, 3]], |x| {
        x[0].soft_margin_loss(&Tensor::new([1.0f64, -1.0, 1.0])?, Reduction::Mean)
    }),
    ("hinge_embedding_loss", &[&[4]], |x| {
        x[0].hinge_embedding_loss(&Tensor::new([1i64, -1, 1, -1])?, 9.0, Reduction::Mean)
    }),
    ("margin_ranking_loss", &[&[3], &[3]], |x| {
        x[0].margin_ranking_loss(&x[1], &Tensor::new([1.0f64, -1.0, 1.0])?, 9.0, Reduction::Sum)
    }),
    ("cosine_embedding_loss", &[&[2, 3], &[2, 3]], |x| {
        x[0].cosine_embedding_loss(&x[1], &Tensor::new([1i64, -1])?, -1.5, Reduction::None)
    }),
    ("triplet_margin_loss", &[&[2, 3], &[2, 3], &[2, 3]], |x| {
        let how = TripletMargin { margin: 9.0, swap: true, ..TripletMargin::default() };
        x[0].triplet_margin_loss(&x[1].add(3.0)?, &x[2].sub(1.0)?, how)
    }),
    ("multi_margin_loss", &[&[2, 3]], |x| {
        let how = MultiMargin { squared: true, margin: 9.0, ..MultiMargin::default() };
        x[0].multi_margin_loss(&Tensor::new([2i64, 0])?, how)
    }),
    ("multilabel_soft_margin_loss", &[&[2, 3], &[2, 3]], |x| {
        x[0].multilabel_soft_margin_loss(&x[1], None, Reduction::Mean)
    }),
    ("poisson_nll_loss", &[&[3], &[3]], |x| {
        let how = PoissonLoss { full: true, ..PoissonLoss::default() };
        x[0].poisson_nll_loss(&x[1].add(2.0)?, how)
    }),
    ("gaussian_nll_loss with a variance per column", &[&[2, 3], &[2, 3], &[1, 3]], |x| {
        x[0].gaussian_nll_loss(&x[1], &x[2].mul(&x[2])?, GaussianLoss::default())
    }),
    ("gaussian_nll_loss", &[&[2, 3], &[3], &[2, 1]], |x| {
        x[0].gaussian_nll_loss(&x[1], &x[2].mul(&x[2])?, GaussianLoss::default())
    }),
    ("pixel_shuffle", &[&[4, 2, 1]], |x| x[0].pixel_shuffle(2)),
    ("pixel_unshuffle", &[&[1, 4, 2]], |x| x[0].pixel_unshuffle(2)),
    ("channel_shuffle", &[&[1, 4, 2]], |x| x[0].channel_shuffle(2)),
    ("interpolate by cubics", &[&[1, 1, 3, 2]], |x| {
        x[0].interpolate(&Resize::To(vec![2, 5]), Interpolation::Bicubic, Some(true))
    }),
    ("interpolate by areas", &[&[1, 2, 2, 3, 2]], |x| {
        let size = Resize::By { factors: vec![1.5], recompute: true };
        x[0].interpolate(&size, Interpolation::Area, None)
    }),
    ("grid_sample by cubics", &[&[1, 2, 3, 4], &[1, 2, 2, 2]], |x| {
        let how = Sampling { method: Method::Cubic, border: Border::Mirrored, align_corners: false };
        x[0].grid_sample(&x[1].sub(1.1)?, how)
    }),
    ("grid_sample of volumes", &[&[1, 1, 2, 3, 2], &[1, 1, 2, 1, 3]], |x| {
        let how = Sampling { method: Method::Linear, border: Border::Zeros, align_corners: false };
        x[0].grid_sample(&x[1].sub(1.1)?, how)
    }),
    ("local_response_norm", &[&[1, 4, 2]], |x| x[0].local_response_norm(LocalResponseNorm::new(3))),
    ("index_select", &[&[2, 3]], |x| x[0].index_select(1, &Tensor::new([2i64, 0, 2])?)),
    ("index_add", &[&[3, 2], &[2, 2]], |x| x[0].index_add(0, &Tensor::new([2i64, 0])?, &x[1])),
    ("embedding", &[&[4, 2]], |x| x[0].embedding(&Tensor::new([[1i64, 3], [1, 0]])?, None)),
    ("where", &[&[2, 3], &[3]], |x| {
        x[0].where_(&Tensor::new([[true, false, true], [false, true, true]])?, &x[1])
    }),
    ("a number to a power", &[&[2, 3]], |x| x[0].rpow(1.7)),
    ("maximum", &[&[2, 3], &[3]], |x| x[0].maximum(&x[1])),
    ("minimum", &[&[2, 3], &[3]], |x| x[0].minimum(&x[1])),
    ("clamp by numbers", &[&[2, 3]], |x| x[0].clamp(0.8, 1.2)),
    ("clamp by tensors", &[&[2, 3], &[3], &[3]], |x| x[0].clamp(&x[1], &x[2])),
    ("clamp_min", &[&[2, 3], &[3]], |x| x[0].clamp_min(&x[1])),
    ("clamp_max", &[&[2, 3], &[3]], |x| x[0].clamp_max(&x[1])),
    ("remainder", &[&[2, 3], &[3]], |x| x[0].mul(3)?.remainder(&x[1].neg()?)),
    ("fmod", &[&[2, 3], &[3]], |x| x[0].mul(3)?.fmod(&x[1].neg()?)),
    ("atan2", &[&[2, 3], &[3]], |x| x[0].atan2(&x[1])),
    ("copysign", &[&[2, 3], &[3]], |x| x[0].copysign(&x[1].neg()?)),
    ("hypot", &[&[2, 3], &[3]], |x| x[0].hypot(&x[1])),
    ("logaddexp", &[&[2, 3], &[3]], |x| x[0].logaddexp(&x[1])),
    ("xlogy", &[&[2, 3], &[3]], |x| x[0].xlogy(&x[1])),
    ("xlogy of a number", &[&[2, 3]], |x| x[0].xlogy(2.5)),
    ("fmax", &[&[2, 3], &[3]], |x| x[0].fmax(&x[1])),
    ("fmin", &[&[2, 3], &[3]], |x| x[0].fmin(&x[1])),
    ("float_power", &[&[2, 3], &[3]], |x| x[0].float_power(&x[1])),
    ("ldexp", &[&[2, 3], &[3]], |x| x[0].ldexp(&x[1])),
    ("dist", &[&[2, 3], &[3]], |x| x[0].dist(&x[1], 3.0)),
    ("addcmul", &[&[3], &[2, 1], &[3]], |x| x[0].addcmul(&x[1], &x[2], 2.0)),
    ("addcdiv", &[&[3], &[2, 1], &[3]], |x| x[0].addcdiv(&x[1], &x[2], 2.0)),
    ("lerp", &[&[3], &[2, 1]], |x| x[0].lerp(&x[1], 0.7)),
    ("lerp by a tensor", &[&[3], &[2, 1], &[3]], |x| x[0].lerp(&x[1], &x[2])),
    ("addcmul_", &[&[3], &[3], &[3]], |x| changed(&x[0], |y| y.addcmul_(&x[1], &x[2], 2.0))),
    ("addcdiv_", &[&[3], &[3], &[3]], |x| changed(&x[0], |y| y.addcdiv_(&x[1], &x[2], 2.0))),
    ("lerp_", &[&[3], &[3]], |x| changed(&x[0], |y| y.lerp_(&x[1], 0.3))),
    ("mul_", &[&[3], &[3]], |x| changed(&x[0], |y| y.mul_(&x[1]))),
    ("sub_", &[&[3], &[3]], |x| changed(&x[0], |y| y.sub_scaled_(&x[1], 2.0))),
    ("div_", &[&[3], &[3]], |x| changed(&x[0], |y| y.div_(&x[1]))),
    ("pow_", &[&[3], &[3]], |x| changed(&x[0], |y| y.pow_(&x[1]))),
    ("pow_ of a number", &[&[3]], |x| changed(&x[0], |y| y.pow_(2.5))),
    ("atan2_", &[&[3], &[3]], |x| changed(&x[0], |y| y.atan2_(&x[1]))),
    ("hypot_ with a constant", &[&[3]], |x| changed(&x[0], |y| y.hypot_(&Tensor::new([1.0f64, 2.0, 3.0])?))),
    ("clamp_", &[&[6]], |x| changed(&x[0], |y| y.clamp_(0.8, 1.2))),
    ("fill_", &[&[3]], |x| changed(&x[0], |y| y.fill_(2.0))),
    ("copy_", &[&[2, 3], &[3]], |x| changed(&x[0], |y| y.copy_(&x[1]))),
    ("conv2d", &[&[2, 4, 4, 3], &[2, 2, 2, 2], &[2]], |x| {
        let how = Convolving {
            stride: [2, 1][..].into(),
            groups: 2,
            padding: Margin::By([1][..].into()),
            ..Convolving::default()
        };
        x[0].conv2d(&x[1], Some(&x[2]), &how)
    }),
    ("conv_transpose1d", &[&[2, 2, 3], &[2, 1, 2], &[1]], |x| {
        let how =
            Convolving { stride: [2][..].into(), output_padding: [1][..].into(), ..Convolving::default() };
        x[0].conv_transpose1d(&x[1], Some(&x[2]), &how)
    }),
    ("max_pool2d", &[&[1, 2, 4, 5]], |x| x[0].max_pool2d(&Pooling::new([2]))),
    ("attention", &[&[1, 2, 3, 2], &[1, 2, 4, 2], &[1, 2, 4, 2]], |x| {
        x[0].scaled_dot_product_attention(&x[1], &x[2], Attention::default())
    }),
    ("causal attention of shared heads", &[&[2, 4, 2], &[1, 3, 2], &[1, 3, 2]], |x| {
        let how = Attention { causal: true, grouped: true, scale: Some(0.7), ..Attention::default() };
        x[0].scaled_dot_product_attention(&x[1], &x[2], how)
    }),
    ("masked attention", &[&[1, 1, 2, 2], &[1, 1, 3, 2], &[1, 1, 3, 2]], |x| {
        let mask = Tensor::new([[true, false, true], [true, true, false]])?;
        let how = Attention { mask: Some(&mask), ..Attention::default() };
        x[0].scaled_dot_product_attention(&x[1], &x[2], how)
    }),
];

/// A copy of `x` after a change in place, which is thereby part of the graph.
fn changed(x: &Tensor, change: impl FnOnce(&Tensor) -> Result<()>) -> Result<Tensor> {
    let y = x.copy()?;
    change(&y)?;
    Ok(y)
}

/// Inputs between 0.5 and 1.5, all different, away from the kinks of relu and max.
fn inputs(shapes: &[&[usize]]) -> Vec<Tensor> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.5 + (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let tensor = |shape: &&[usize]| {
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
        Tensor::from_slice(&values, shape)
    };
    shapes.iter().map(tensor).map(|tensor| tensor.unwrap().with_grad().unwrap()).collect()
}

#[test]
fn derivatives_agree_with_finite_differences() {
    for (name, shapes, function) in TABLE {
        gradcheck(function, &inputs(shapes), GradCheck::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn second_derivatives_agree_with_finite_differences() {
    for (name, shapes, function) in TABLE {
        gradgradcheck(function, &inputs(shapes), GradCheck::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn sequences_have_the_gradient_that_a_softmax_hands_on_and_no_second() {
    let function: Function = |x| {
        let targets = Tensor::new([1i64, 2, 2, 2])?;
        let how = Ctc { reduction: Reduction::None, ..Ctc::default() };
        x[0].log_softmax(-1)?.ctc_loss(&targets, &[4, 5], &[1, 3], how)
    };
    let x = inputs(&[&[5, 2, 4]]);
    gradcheck(function, &x, GradCheck::default()).unwrap();
    let error = gradgradcheck(function, &x, GradCheck::default()).unwrap_err();
    assert_eq!(error.to_string(), "aten::_ctc_loss_backward: has no derivative");
}

#[test]
fn samples_too_short_for_their_labels_are_left_out_on_demand() {
    let x = inputs(&[&[3, 2, 4]]).remove(0);
    let loss = |zero_infinity| {
        let how = Ctc { reduction: Reduction::Sum, zero_infinity, ..Ctc::default() };
        let targets = Tensor::new([[1i64, 1], [2, 3]]).unwrap();
        x.log_softmax(-1).unwrap().ctc_loss(&targets, &[2, 3], &[2, 2], how).unwrap()
    };
    assert_eq!(loss(false).item().unwrap().as_f64(), f64::INFINITY);
    let finite = loss(true);
    assert!(finite.item().unwrap().as_f64().is_finite());
    finite.backward().unwrap();
    let gradient = x.grad().unwrap().to_vec::<f64>().unwrap();
    assert!(gradient.chunks(8).all(|step| step[..4] == [0.0; 4] && step[4..].iter().all(|x| *x != 0.0)));
}

#[test]
fn products_with_zeros_have_both_derivatives() {
    for values in [[2.0f64, 0.0, 3.0, 0.5], [0.0, 2.0, 0.0, 1.5], [0.0, 0.0, 2.0, 0.0]] {
        let x = [Tensor::new(values).unwrap().with_grad().unwrap()];
        let functions: [Function; 2] = [|x| x[0].prod(None), |x| x[0].cumprod(0, None)];
        for function in functions {
            gradcheck(function, &x, GradCheck::default()).unwrap();
            gradgradcheck(function, &x, GradCheck::default()).unwrap();
        }
    }
}

#[test]
fn normalizations_have_derivatives_of_every_order() {
    let functions: [Function; 3] = [
        |x| x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-5),
        |x| x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5),
        |x| {
            let how = BatchNorm { training: true, ..BatchNorm::default() };
            x[0].batch_norm([None, None], Some(&x[1]), Some(&x[2]), how)
        },
    ];
    for function in functions {
        let x = inputs(&[&[3, 4], &[4], &[4]]);
        gradcheck(function, &x, GradCheck::default()).unwrap();
        gradgradcheck(function, &x, GradCheck::default()).unwrap();
        // What is linear in the output has no second derivative of interest.
        let slope = |x: &[Tensor]| {
            let pass = Pass { create_graph: true, ..Pass::default() };
            let loss = function(x)?.pow(3)?.sum()?;
            let gradients = grad(&[(&loss, None)], &[&x[0], &x[1]], pass)?;
            Ok(gradients.into_iter().flatten().collect::<Vec<_>>())
        };
        gradgradcheck(slope, &x, GradCheck::default()).unwrap();
    }
}

#[test]
fn the_padding_row_of_an_embedding_gets_no_gradient() {
    let table = inputs(&[&[3, 2]]).remove(0);
    table.embedding(&Tensor::new([1i64, 2, 1]).unwrap(), Some(1)).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(table.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn powers_of_zero_have_the_slopes_that_torch_gives_them() {
    let a = Tensor::new([0.0f64, 0.0, 0.0, 2.0]).unwrap().with_grad().unwrap();
    let b = Tensor::new([0.0f64, 1.0, 2.0, 0.0]).unwrap().with_grad().unwrap();
    a.pow(&b).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(a.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0, 0.0, 2f64.ln()]);
}

#[test]
fn equals_share_the_gradient_of_the_larger_and_of_bounds() {
    let leaf = |value: f64| Tensor::new([value]).unwrap().with_grad().unwrap();
    let gradient = |x: &Tensor| x.grad().unwrap().to_vec::<f64>().unwrap()[0];
    let (a, b) = (leaf(1.0), leaf(1.0));
    a.maximum(&b).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!((gradient(&a), gradient(&b)), (0.5, 0.5));
    let (x, min, max) = (leaf(2.0), leaf(2.0), leaf(3.0));
    x.clamp(&min, &max).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!((gradient(&x), gradient(&min), gradient(&max)), (0.5, 0.5, 0.0));
    let at_a_number = leaf(2.0);
    at_a_number.clamp(2.0, 3.0).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(gradient(&at_a_number), 0.0);
}
