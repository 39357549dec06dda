//! Which operators autocast knows, and what it gives them: torch's lists for the host.

/// In which precision an operator is given its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// As they are.
    AsGiven,
    /// The lower precision of the region: products, where speed is won and little lost.
    Lower,
    /// `f32`: sums of many terms and functions that lose digits.
    Single,
    /// The widest that is among them.
    Widest,
}

const LOWER: &[&str] = &[
    "aten::addbmm",
    "aten::addmm",
    "aten::baddbmm",
    "aten::bmm",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::linear",
    "aten::matmul",
    "aten::mm",
    "aten::prelu",
    "aten::scaled_dot_product_attention",
];

const SINGLE: &[&str] = &[
    "aten::_linalg_svd",
    "aten::adaptive_avg_pool3d",
    "aten::adaptive_max_pool3d",
    "aten::avg_pool3d",
    "aten::binary_cross_entropy",
    "aten::binary_cross_entropy_with_logits",
    "aten::cdist",
    "aten::cosine_embedding_loss",
    "aten::cross_entropy_loss",
    "aten::ctc_loss",
    "aten::fractional_max_pool2d",
    "aten::fractional_max_pool3d",
    "aten::grid_sampler",
    "aten::hinge_embedding_loss",
    "aten::huber_loss",
    "aten::kl_div",
    "aten::l1_loss",
    "aten::linalg_svdvals",
    "aten::margin_ranking_loss",
    "aten::max_pool3d",
    "aten::max_unpool2d",
    "aten::max_unpool3d",
    "aten::mse_loss",
    "aten::multi_margin_loss",
    "aten::multilabel_margin_loss",
    "aten::nanquantile",
    "aten::nll_loss",
    "aten::nll_loss2d",
    "aten::poisson_nll_loss",
    "aten::prod",
    "aten::quantile",
    "aten::reflection_pad1d",
    "aten::reflection_pad2d",
    "aten::replication_pad1d",
    "aten::replication_pad2d",
    "aten::replication_pad3d",
    "aten::smooth_l1_loss",
    "aten::soft_margin_loss",
    "aten::trace",
    "aten::triplet_margin_loss",
];

const WIDEST: &[&str] = &["aten::cat", "aten::index_copy", "aten::stack"];

/// What autocast does for the operator called `name`. Known when the program is compiled, so that
/// operators of no list pay nothing.
pub(crate) const fn policy(name: &str) -> Policy {
    if contains(LOWER, name) {
        Policy::Lower
    } else if contains(SINGLE, name) {
        Policy::Single
    } else if contains(WIDEST, name) {
        Policy::Widest
    } else {
        Policy::AsGiven
    }
}

const fn contains(list: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < list.len() {
        if same(list[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // From the end: all names begin alike.
    let mut left = a.len();
    while left > 0 {
        left -= 1;
        if a[left] != b[left] {
            return false;
        }
    }
    true
}
