//! Which operators are given which element type. Torch 2.15 was asked for each.

use super::wave;
use cresset_tensor::ops::{
    Approximate, Attention, Averaging, Between, ClassLoss, Convolving, MultiMargin, Padding, PoissonLoss,
    Pooling, Reduction, TripletMargin,
};
use cresset_tensor::{DType, Result, Tensor, autocast, tensor};

const MEAN: Reduction = Reduction::Mean;

type Call = fn(&dyn Fn(&[usize]) -> Tensor) -> Result<Tensor>;

/// What computes in the lower precision.
const LOWER: &[(&str, Call)] = &[
    ("addbmm", |x| x(&[3, 3]).addbmm(&x(&[2, 3, 3]), &x(&[2, 3, 3]))),
    ("addmm", |x| x(&[3]).addmm(&x(&[3, 3]), &x(&[3, 3]))),
    ("baddbmm", |x| x(&[2, 3, 3]).baddbmm(&x(&[2, 3, 3]), &x(&[2, 3, 3]))),
    ("bmm", |x| x(&[2, 3, 3]).bmm(&x(&[2, 3, 3]))),
    ("conv1d", |x| x(&[1, 2, 5]).conv1d(&x(&[3, 2, 3]), Some(&x(&[3])), &Convolving::default())),
    ("conv2d", |x| x(&[1, 2, 5, 5]).conv2d(&x(&[3, 2, 3, 3]), None, &Convolving::default())),
    ("conv3d", |x| x(&[1, 2, 4, 4, 4]).conv3d(&x(&[3, 2, 3, 3, 3]), None, &Convolving::default())),
    ("conv_transpose1d", |x| x(&[1, 2, 5]).conv_transpose1d(&x(&[2, 3, 3]), None, &Convolving::default())),
    ("conv_transpose2d", |x| {
        x(&[1, 2, 5, 5]).conv_transpose2d(&x(&[2, 3, 3, 3]), None, &Convolving::default())
    }),
    ("conv_transpose3d", |x| {
        x(&[1, 2, 3, 3, 3]).conv_transpose3d(&x(&[2, 3, 2, 2, 2]), None, &Convolving::default())
    }),
    ("linear", |x| x(&[3, 3]).linear(&x(&[2, 3]), Some(&x(&[2])))),
    ("matmul", |x| x(&[3, 3]).matmul(&x(&[3]))),
    ("mm", |x| x(&[3, 3]).mm(&x(&[3, 3]))),
    ("einsum", |x| Tensor::einsum("ij,jk->ik", &[&x(&[3, 3]), &x(&[3, 3])])),
    ("prelu", |x| x(&[2, 3]).prelu(&x(&[3]))),
    ("scaled_dot_product_attention", |x| {
        x(&[1, 2, 3, 4]).scaled_dot_product_attention(
            &x(&[1, 2, 3, 4]),
            &x(&[1, 2, 3, 4]),
            Attention::default(),
        )
    }),
];

/// What computes in single precision.
const SINGLE: &[(&str, Call)] = &[
    ("adaptive_avg_pool3d", |x| x(&[1, 1, 4, 4, 4]).adaptive_avg_pool3d(&[Some(2), Some(2), Some(2)])),
    ("avg_pool3d", |x| {
        let windows = Pooling::new([2]);
        x(&[1, 1, 4, 4, 4]).avg_pool3d(&Averaging {
            windows,
            count_include_pad: true,
            divisor_override: None,
        })
    }),
    ("max_pool3d", |x| x(&[1, 1, 4, 4, 4]).max_pool3d(&Pooling::new([2]))),
    ("binary_cross_entropy", |x| x(&[3]).sigmoid()?.binary_cross_entropy(&x(&[3]).sigmoid()?, None, MEAN)),
    ("binary_cross_entropy_with_logits", |x| {
        x(&[3]).binary_cross_entropy_with_logits(&x(&[3]), None, None, MEAN)
    }),
    ("cdist", |x| x(&[3, 3]).cdist(&x(&[3, 3]), 2.0)),
    ("cosine_embedding_loss", |x| {
        x(&[2, 3]).cosine_embedding_loss(&x(&[2, 3]), &tensor![1i64, -1]?, 0.0, MEAN)
    }),
    ("cross_entropy_loss", |x| x(&[3, 4]).cross_entropy(&tensor![0i64, 1, 2]?)),
    ("cross_entropy_loss with weights", |x| {
        let weight = x(&[4]);
        x(&[3, 4]).cross_entropy_with(
            &tensor![0i64, 1, 2]?,
            ClassLoss { weight: Some(&weight), ..ClassLoss::default() },
        )
    }),
    ("ctc_loss", |x| {
        x(&[5, 1, 3]).ctc_loss(&tensor![[1i64, 2]]?, &[5], &[2], cresset_tensor::ops::Ctc::default())
    }),
    ("hinge_embedding_loss", |x| x(&[2]).hinge_embedding_loss(&tensor![1i64, -1]?, 1.0, MEAN)),
    ("huber_loss", |x| x(&[3]).huber_loss(&x(&[3]), 1.0, MEAN)),
    ("kl_div", |x| x(&[3]).kl_div(&x(&[3]).exp()?, false, MEAN)),
    ("l1_loss", |x| x(&[3]).l1_loss(&x(&[3]), MEAN)),
    ("margin_ranking_loss", |x| x(&[2]).margin_ranking_loss(&x(&[2]), &tensor![1i64, -1]?, 0.0, MEAN)),
    ("mse_loss", |x| x(&[3]).mse_loss(&x(&[3]), MEAN)),
    ("multi_margin_loss", |x| x(&[3, 4]).multi_margin_loss(&tensor![0i64, 1, 2]?, MultiMargin::default())),
    ("multilabel_margin_loss", |x| x(&[1, 4]).multilabel_margin_loss(&tensor![[0i64, 1, -1, 2]]?, MEAN)),
    ("nll_loss", |x| x(&[3, 4]).nll_loss(&tensor![0i64, 1, 2]?, None, MEAN)),
    ("nll_loss2d", |x| x(&[1, 4, 2]).nll_loss(&tensor![[0i64, 1]]?, None, MEAN)),
    ("poisson_nll_loss", |x| x(&[3]).poisson_nll_loss(&x(&[3]).exp()?, PoissonLoss::default())),
    ("prod", |x| x(&[3]).prod(None)),
    ("prod along a dimension", |x| x(&[3, 2]).prod_dim(0, false, None)),
    ("quantile", |x| x(&[5]).quantile(0.5, None, false, Between::Linear)),
    ("quantile of a tensor", |x| x(&[5]).quantile(&x(&[2]).sigmoid()?, None, false, Between::Linear)),
    ("reflection_pad1d", |x| x(&[1, 2, 5]).pad(&[1, 1], Padding::Reflect)),
    ("reflection_pad2d", |x| x(&[1, 2, 5, 5]).pad(&[1, 1, 1, 1], Padding::Reflect)),
    ("replication_pad1d", |x| x(&[1, 2, 5]).pad(&[1, 1], Padding::Replicate)),
    ("replication_pad2d", |x| x(&[1, 2, 5, 5]).pad(&[1, 1, 1, 1], Padding::Replicate)),
    ("replication_pad3d", |x| x(&[1, 2, 3, 3, 3]).pad(&[1, 1, 1, 1, 1, 1], Padding::Replicate)),
    ("smooth_l1_loss", |x| x(&[3]).smooth_l1_loss(&x(&[3]), 1.0, MEAN)),
    ("soft_margin_loss", |x| x(&[2]).soft_margin_loss(&tensor![1.0f32, -1.0]?, MEAN)),
    ("linalg_svd", |x| {
        let [_, values, _] = x(&[3, 3]).svd()?;
        Ok(values)
    }),
    ("linalg_svdvals", |x| x(&[3, 3]).svdvals()),
    ("trace", |x| x(&[3, 3]).trace()),
    ("triplet_margin_loss", |x| {
        x(&[2, 3]).triplet_margin_loss(&x(&[2, 3]), &x(&[2, 3]), TripletMargin::default())
    }),
];

/// What takes what it gets.
const AS_GIVEN: &[(&str, Call)] = &[
    ("add", |x| x(&[2]).add(&x(&[2]))),
    ("bilinear", |x| x(&[2, 3]).bilinear(&x(&[2, 3]), &x(&[4, 3, 3]), None)),
    ("dot", |x| x(&[3]).dot(&x(&[3]))),
    ("exp", |x| x(&[2]).exp()),
    ("gelu", |x| x(&[2]).gelu(Approximate::None)),
    ("max_pool2d", |x| x(&[1, 1, 4, 4]).max_pool2d(&Pooling::new([2]))),
    ("mv", |x| x(&[3, 3]).mv(&x(&[3]))),
    ("reflection_pad3d", |x| x(&[1, 2, 3, 3, 3]).pad(&[1, 1, 1, 1, 1, 1], Padding::Reflect)),
    ("softmax", |x| x(&[2, 3]).softmax(-1)),
    ("sum", |x| x(&[2]).sum()),
];

/// The element type of what an operator gives inside autocast to bf16, for tensors of `dtype`.
fn given(name: &str, call: Call, dtype: DType) -> DType {
    let x = |shape: &[usize]| wave(0.3, shape).and_then(|x| x.to(dtype)).unwrap();
    let out = autocast(DType::BF16, || call(&x));
    out.unwrap_or_else(|error| panic!("{name} of {dtype}: {error}")).dtype()
}

#[test]
fn products_compute_in_the_lower_precision() {
    for (name, call) in LOWER {
        for dtype in [DType::F32, DType::BF16, DType::F16] {
            assert_eq!(given(name, *call, dtype), DType::BF16, "{name} of {dtype}");
        }
        assert_eq!(given(name, *call, DType::F64), DType::F64, "{name} of f64");
    }
}

#[test]
fn what_needs_digits_computes_in_single_precision() {
    for (name, call) in SINGLE {
        for dtype in [DType::F32, DType::BF16, DType::F16] {
            assert_eq!(given(name, *call, dtype), DType::F32, "{name} of {dtype}");
        }
    }
}

#[test]
fn all_others_take_what_they_get() {
    for (name, call) in AS_GIVEN {
        for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
            assert_eq!(given(name, *call, dtype), dtype, "{name}");
        }
    }
}

#[test]
fn tensors_that_are_joined_get_the_widest_type_among_them() -> Result<()> {
    let single = wave(0.1, &[3])?;
    let [lower, half, double] = [DType::BF16, DType::F16, DType::F64].map(|dtype| single.to(dtype));
    let (lower, half, double) = (lower?, half?, double?);
    let join = |a: &Tensor, b: &Tensor| autocast(DType::BF16, || Tensor::cat(&[a, b], 0)).map(|x| x.dtype());
    assert_eq!(join(&single, &lower)?, DType::F32);
    assert_eq!(join(&lower, &lower)?, DType::BF16);
    assert_eq!(join(&double, &double)?, DType::F64);
    assert_eq!(join(&single, &half)?, DType::F32);
    let stacked = autocast(DType::BF16, || Tensor::stack(&[&lower, &single], 0))?;
    assert_eq!(stacked.dtype(), DType::F32);
    let put = autocast(DType::BF16, || lower.index_copy(0, &tensor![1i64]?, &single.narrow(0, 0, 1)?))?;
    assert_eq!(put.dtype(), DType::F32);
    let refused = join(&half, &lower).unwrap_err().to_string();
    assert_eq!(
        refused,
        "aten::cat: a tensor of f16 inside autocast to bf16: tensors to be joined are of bf16 or f32 there; convert it with to()"
    );
    Ok(())
}
