//! Matrix products, in the precision of their elements.

use crate::aclnn;
use cresset_acl::constant::cube::KEEP_DTYPE;
use cresset_tensor::ops::{Addmm, Bmm, Mm};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    Mm::table().register(npu, |_, [a, b], out| aclnn::mm(a, b, out, KEEP_DTYPE));
    Addmm::table()
        .register(npu, |op, [bias, a, b], out| aclnn::addmm(bias, a, b, op.beta, op.alpha, out, KEEP_DTYPE));
    Bmm::table().register(npu, |_, [a, b], out| aclnn::batch_matmul(a, b, out, KEEP_DTYPE));
}
