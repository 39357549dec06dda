//! Operators that are there to be found, and refuse.

use crate::error::fail;
use crate::objects::Tensor;
use crate::plan::Planned;
use cresset_acl::code;

fn no_kernel(what: &str) -> Planned {
    fail!(code::NN_FIND_KERNEL, "{what} are not simulated");
}

pub(crate) fn svd(
    _x: Tensor,
    _full: bool,
    _vectors: bool,
    _values: Tensor,
    _u: Tensor,
    _v: Tensor,
) -> Planned {
    no_kernel("singular values")
}

pub(crate) fn linalg_qr(_x: Tensor, _mode: i64, _q: Tensor, _r: Tensor) -> Planned {
    no_kernel("orthogonal factors")
}
